//! A TOML file as a tree that knows where each of its keys and values stands.

use std::ops::Range;

use serde_json::{Number, Value};
use toml::de::{DeTable, DeValue};

use super::problem::{Place, Problem};

/// Largest file that is read, in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Syntax errors shown of one file.
const SYNTAX_ERRORS_MAX: usize = 10;

/// A TOML file that has been parsed.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its name, relative to the folder.
    pub(crate) file: String,
    /// Its text.
    pub(crate) text: String,
    /// Its tables.
    pub(crate) root: Node,
}

/// One value and where it stands.
#[derive(Debug)]
pub(crate) struct Node {
    /// The bytes it stands on.
    pub(crate) span: Range<usize>,
    /// What it is.
    pub(crate) kind: Kind,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A text, a number, a boolean.
    Plain(Value),
    /// A number that is too large, or is none. No key takes one.
    NoNumber,
    /// A date or a time, as it is written. JSON has none, so no key takes one.
    Date(String),
    /// A list.
    List(Vec<Node>),
    /// A table: keys in the order of the file.
    Table(Vec<Entry>),
}

/// One key of a table.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// The bytes it stands on.
    pub(crate) key_span: Range<usize>,
    /// Its value.
    pub(crate) value: Node,
}

/// One step into a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'a> {
    /// A key of a table.
    Key(&'a str),
    /// A place in a list.
    Index(usize),
}

impl<'a> From<&'a str> for Step<'a> {
    fn from(key: &'a str) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for Step<'_> {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl Source {
    /// Parses a file.
    ///
    /// # Errors
    /// Each place that is no TOML.
    pub(crate) fn parse(file: &str, text: String) -> Result<Self, Vec<Problem>> {
        if text.len() > FILE_BYTES_MAX {
            return Err(vec![Problem::new(file, format!("is larger than {FILE_BYTES_MAX} bytes"))]);
        }
        let (root, errors) = DeTable::parse_recoverable(&text);
        let problems: Vec<Problem> = errors
            .iter()
            .take(SYNTAX_ERRORS_MAX)
            .map(|error| {
                let at = error.span().map(|span| Place::of(&text, span.start));
                Problem::new(file, format!("no TOML: {}", error.message().replace('\n', ", "))).at(at)
            })
            .collect();
        let root = Node { span: root.span(), kind: table(root.get_ref()) };
        if problems.is_empty() { Ok(Self { file: file.to_owned(), text, root }) } else { Err(problems) }
    }

    /// The place of a byte.
    pub(crate) fn place(&self, byte: usize) -> Place {
        Place::of(&self.text, byte)
    }

    /// Where the value at this path stands, or the nearest table around it that exists.
    pub(crate) fn locate(&self, path: &[Step<'_>]) -> Place {
        let (mut node, mut byte) = (&self.root, 0);
        for step in path {
            let next = match (step, &node.kind) {
                (Step::Key(key), Kind::Table(entries)) => {
                    entries.iter().find(|entry| entry.key == *key).map(|entry| (&entry.value, entry.key_span.start))
                }
                (Step::Index(at), Kind::List(items)) => items.get(*at).map(|item| (item, item.span.start)),
                _ => None,
            };
            let Some((inner, start)) = next else { break };
            (node, byte) = (inner, start);
        }
        self.place(byte)
    }

    /// A problem with what stands at this path.
    pub(crate) fn problem(&self, path: &[Step<'_>], message: impl Into<String>) -> Problem {
        Problem::new(&self.file, message).at(Some(self.locate(path))).about(path_text(path))
    }
}

/// A path as it is shown: `tools[0].url`.
pub(crate) fn path_text(path: &[Step<'_>]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(key);
            }
            Step::Index(at) => out.push_str(&format!("[{at}]")),
        }
    }
    out
}

impl Node {
    /// The value as JSON. Dates become texts.
    pub(crate) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Plain(value) => value.clone(),
            Kind::NoNumber => Value::Null,
            Kind::Date(text) => Value::String(text.clone()),
            Kind::List(items) => items.iter().map(Self::to_json).collect(),
            Kind::Table(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect())
            }
        }
    }
}

fn table(table: &DeTable<'_>) -> Kind {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            value: Node { span: value.span(), kind: kind(value.get_ref()) },
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    Kind::Table(entries)
}

fn kind(value: &DeValue<'_>) -> Kind {
    let number = match value {
        DeValue::Integer(it) => i64::from_str_radix(it.as_str(), it.radix()).ok().map(Number::from),
        DeValue::Float(it) => it.as_str().parse().ok().and_then(Number::from_f64),
        DeValue::String(it) => return Kind::Plain(Value::String(it.to_string())),
        DeValue::Boolean(it) => return Kind::Plain(Value::Bool(*it)),
        DeValue::Datetime(it) => return Kind::Date(it.to_string()),
        DeValue::Array(items) => {
            let node = |item: &toml::Spanned<DeValue<'_>>| Node { span: item.span(), kind: kind(item.get_ref()) };
            return Kind::List(items.iter().map(node).collect());
        }
        DeValue::Table(it) => return table(it),
    };
    number.map_or(Kind::NoNumber, |number| Kind::Plain(Value::Number(number)))
}
