//! The boundary of values: JSON in, JSON out, both within limits (`spec/documents.md`, 3.7).

use std::fmt::Write as _;

use gesta_run::json::Object;
use serde_json::Value;
use stof::imbl::{OrdMap, Vector};
use stof::model::{Field, Graph, NOEXPORT_FIELD_ATTR, NodeRef, Prototype};
use stof::runtime::{Num, Val, ValRef};

use crate::Limits;

/// Why a value does not cross.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    /// Too many levels, or a value that contains itself: the two look the same from the surface.
    #[error("the value contains itself or has more than {max} levels")]
    Depth {
        /// The limit.
        max: usize,
    },
    /// Too large.
    #[error("the value is larger than {max} bytes")]
    Size {
        /// The limit.
        max: usize,
    },
    /// Too many keys.
    #[error("the value has more than {max} keys")]
    Keys {
        /// The limit.
        max: usize,
    },
    /// No JSON form.
    #[error("the value holds {what}, which has no JSON form")]
    Kind {
        /// What it holds.
        what: &'static str,
    },
}

/// How large a value may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) depth_max: usize,
    pub(crate) bytes_max: usize,
    pub(crate) keys_max: usize,
}

impl Bounds {
    /// The limits of a value that crosses the boundary.
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { depth_max: limits.value_depth_max, bytes_max: limits.value_bytes_max, keys_max: limits.value_keys_max }
    }

    /// The same, with another size.
    pub(crate) fn with_bytes(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }
}

/// The value as JSON.
pub(crate) fn to_json(graph: &Graph, value: &Val, bounds: Bounds) -> Result<Value, ValueError> {
    match value {
        Val::Void | Val::Null => return Ok(Value::Null),
        Val::Bool(yes) => return Ok(Value::Bool(*yes)),
        Val::Num(Num::Int(int)) => return Ok(Value::from(*int)),
        Val::Str(text) if text.len() <= bounds.bytes_max => return Ok(Value::from(text.as_str())),
        _ => {}
    }
    let mut writer = Writer::new(graph, bounds);
    writer.value(value, 0)?;
    // Written by the lines below, so only a bug could make it unreadable.
    serde_json::from_str(&writer.text).map_err(|_| ValueError::Kind { what: "something unknown" })
}

/// The result of a tool: as JSON, or, where it is too large, the beginning of its text with a note
/// (`spec/contract.md`, 2.12).
pub(crate) fn result_to_json(graph: &Graph, value: &Val, bounds: Bounds) -> Result<Value, ValueError> {
    if let Val::Str(text) = value
        && text.len() > bounds.bytes_max
    {
        return Ok(shortened(text, bounds.bytes_max));
    }
    let mut writer = Writer::new(graph, bounds);
    match writer.value(value, 0) {
        Ok(()) => serde_json::from_str(&writer.text).map_err(|_| ValueError::Kind { what: "something unknown" }),
        Err(ValueError::Size { max }) => Ok(shortened(&writer.text, max)),
        Err(other) => Err(other),
    }
}

fn shortened(text: &str, bytes_max: usize) -> Value {
    let note = format!("\n[The result was cut: it is longer than {bytes_max} bytes. Ask for less.]");
    let kept = gesta_run::json::cut(text, bytes_max.saturating_sub(note.len()));
    Value::from(format!("{kept}{note}"))
}

/// The value as a person would read it: a string as it is, all else as JSON; what has no JSON form by its kind.
pub(crate) fn to_text(graph: &Graph, value: &Val, bounds: Bounds) -> String {
    if let Val::Str(text) = value {
        return gesta_run::json::cut(text, bounds.bytes_max).to_owned();
    }
    if let Val::Num(_) = value {
        return value.to_string();
    }
    let mut writer = Writer::new(graph, bounds);
    match writer.value(value, 0) {
        Ok(()) => writer.text,
        Err(ValueError::Size { max }) => format!("{}…", gesta_run::json::cut(&writer.text, max)),
        Err(other) => format!("({other})"),
    }
}

/// Writes a value as JSON text and stops at the first limit.
struct Writer<'a> {
    graph: &'a Graph,
    bounds: Bounds,
    keys: usize,
    text: String,
}

impl<'a> Writer<'a> {
    fn new(graph: &'a Graph, bounds: Bounds) -> Self {
        Self { graph, bounds, keys: 0, text: String::new() }
    }

    fn value(&mut self, value: &Val, depth: usize) -> Result<(), ValueError> {
        if depth > self.bounds.depth_max {
            return Err(ValueError::Depth { max: self.bounds.depth_max });
        }
        match value {
            Val::Void | Val::Null => self.text.push_str("null"),
            Val::Bool(true) => self.text.push_str("true"),
            Val::Bool(false) => self.text.push_str("false"),
            Val::Num(number) => self.number(number)?,
            Val::Str(text) => self.string(text)?,
            Val::Prompt(prompt) => self.string(&prompt.to_string())?,
            Val::Ver(..) => self.string(&value.to_string())?,
            Val::Blob(bytes) => self.blob(bytes)?,
            Val::List(items) | Val::Tup(items) => self.sequence(items.iter(), depth)?,
            Val::Set(items) => self.sequence(items.iter(), depth)?,
            Val::Map(entries) => self.map(entries, depth)?,
            Val::Obj(node) => self.object(node, depth)?,
            Val::Fn(_) => return Err(ValueError::Kind { what: "a function" }),
            Val::Data(_) => return Err(ValueError::Kind { what: "a data pointer" }),
            Val::Promise(..) => return Err(ValueError::Kind { what: "a promise (await it)" }),
        }
        self.check_size()
    }

    fn check_size(&self) -> Result<(), ValueError> {
        if self.text.len() > self.bounds.bytes_max { Err(self.too_large()) } else { Ok(()) }
    }

    fn too_large(&self) -> ValueError {
        ValueError::Size { max: self.bounds.bytes_max }
    }

    fn number(&mut self, number: &Num) -> Result<(), ValueError> {
        match number {
            Num::Int(int) => write!(self.text, "{int}").unwrap_or_default(),
            Num::Float(float) => match serde_json::Number::from_f64(*float) {
                Some(number) => write!(self.text, "{number}").unwrap_or_default(),
                // As `null` it would reach a grant with effects in place of an amount.
                None => {
                    return Err(ValueError::Kind {
                        what: "a number that is none or infinite, as after a division by zero",
                    });
                }
            },
            // A unit is part of what is meant, so it is kept: "5min".
            Num::Units(..) => {
                let text = Val::Num(*number).to_string();
                self.text.push_str(&Value::from(text).to_string());
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<(), ValueError> {
        let room = self.bounds.bytes_max.saturating_sub(self.text.len());
        let kept = gesta_run::json::cut(text, room);
        // Writing a string slice into a string cannot fail.
        self.text.push_str(&serde_json::to_string(kept).unwrap_or_default());
        if kept.len() < text.len() { Err(self.too_large()) } else { Ok(()) }
    }

    fn blob(&mut self, bytes: &[u8]) -> Result<(), ValueError> {
        use base64::Engine as _;
        if bytes.len() > self.bounds.bytes_max {
            return Err(self.too_large());
        }
        self.string(&base64::engine::general_purpose::STANDARD.encode(bytes))
    }

    fn sequence<'v>(&mut self, items: impl Iterator<Item = &'v ValRef<Val>>, depth: usize) -> Result<(), ValueError> {
        self.text.push('[');
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.value(&item.read_recursive(), depth + 1)?;
        }
        self.text.push(']');
        Ok(())
    }

    fn map(&mut self, entries: &OrdMap<ValRef<Val>, ValRef<Val>>, depth: usize) -> Result<(), ValueError> {
        self.text.push('{');
        for (index, (key, value)) in entries.iter().enumerate() {
            self.key(index, &key_text(&key.read_recursive())?)?;
            self.value(&value.read_recursive(), depth + 1)?;
        }
        self.text.push('}');
        Ok(())
    }

    fn key(&mut self, index: usize, name: &str) -> Result<(), ValueError> {
        self.keys += 1;
        if self.keys > self.bounds.keys_max {
            return Err(ValueError::Keys { max: self.bounds.keys_max });
        }
        if index > 0 {
            self.text.push(',');
        }
        self.string(name)?;
        self.text.push(':');
        Ok(())
    }

    /// An object is its fields, those that it has from its prototypes included, functions left out.
    fn object(&mut self, node: &NodeRef, depth: usize) -> Result<(), ValueError> {
        self.text.push('{');
        let mut written: Vec<&str> = Vec::new();
        let mut levels = vec![node.clone()];
        levels.extend(Prototype::prototype_nodes(self.graph, node, true));
        let graph = self.graph;
        for level in &levels {
            let Some(level) = level.node(graph) else { continue };
            for (name, data) in &level.data {
                let Some(field) = graph.get_stof_data::<Field>(data) else { continue };
                if field.attributes.contains_key(NOEXPORT_FIELD_ATTR.as_str()) || written.contains(&name.as_str()) {
                    continue;
                }
                let value = field.value.val.read_recursive();
                if matches!(&*value, Val::Fn(_) | Val::Data(_)) {
                    continue;
                }
                self.key(written.len(), name)?;
                self.value(&value, depth + 1)?;
                written.push(name);
            }
        }
        self.text.push('}');
        Ok(())
    }
}

fn key_text(key: &Val) -> Result<String, ValueError> {
    match key {
        Val::Str(text) => Ok(text.to_string()),
        Val::Void | Val::Null => Ok("null".to_owned()),
        Val::Bool(_) | Val::Num(_) | Val::Ver(..) => Ok(key.to_string()),
        _ => Err(ValueError::Kind { what: "a key that is no string or number" }),
    }
}

/// The JSON as a value of the engine.
pub(crate) fn from_json(value: &Value, bounds: Bounds) -> Result<Val, ValueError> {
    let mut left = Left { bytes: bounds.bytes_max, keys: bounds.keys_max };
    left.value(value, 0, bounds)
}

/// What is left of the limits while a value is read.
struct Left {
    bytes: usize,
    keys: usize,
}

impl Left {
    fn take(&mut self, bytes: usize, bounds: Bounds) -> Result<(), ValueError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(ValueError::Size { max: bounds.bytes_max })?;
        Ok(())
    }

    fn value(&mut self, value: &Value, depth: usize, bounds: Bounds) -> Result<Val, ValueError> {
        if depth > bounds.depth_max {
            return Err(ValueError::Depth { max: bounds.depth_max });
        }
        self.take(1, bounds)?;
        Ok(match value {
            Value::Null => Val::Null,
            Value::Bool(yes) => Val::Bool(*yes),
            Value::Number(number) => match number.as_i64() {
                Some(int) => Val::Num(Num::Int(int)),
                None => Val::Num(Num::Float(number.as_f64().unwrap_or(f64::NAN))),
            },
            Value::String(text) => {
                self.take(text.len(), bounds)?;
                Val::Str(text.as_str().into())
            }
            Value::Array(items) => {
                let mut list = Vector::new();
                for item in items {
                    list.push_back(ValRef::new(self.value(item, depth + 1, bounds)?));
                }
                Val::List(list)
            }
            Value::Object(entries) => self.object(entries, depth, bounds)?,
        })
    }

    fn object(&mut self, entries: &Object, depth: usize, bounds: Bounds) -> Result<Val, ValueError> {
        let mut map = OrdMap::new();
        for (key, value) in entries {
            self.keys = self.keys.checked_sub(1).ok_or(ValueError::Keys { max: bounds.keys_max })?;
            self.take(key.len(), bounds)?;
            map.insert(ValRef::new(Val::Str(key.as_str().into())), ValRef::new(self.value(value, depth + 1, bounds)?));
        }
        Ok(Val::Map(map))
    }
}
