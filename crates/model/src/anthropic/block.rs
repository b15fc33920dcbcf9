//! One block of an answer while it grows: what its raw form will need besides what the draft holds.

use serde_json::{Map, Value};

use crate::draft::Draft;
use crate::halves;

/// What we take a block for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Redacted,
    Call,
    Other,
}

/// A block that has begun.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) number: u32,
    kind: Kind,
    /// The block as it began, with what is not in the draft.
    item: Map<String, Value>,
    /// Pieces of an input that is no call of ours.
    input: String,
    has_arguments: bool,
}

impl Open {
    /// Takes the start of a block.
    pub(super) fn begin(number: u32, block: Value, draft: &mut Draft) -> Self {
        let item = match block {
            Value::Object(item) => item,
            _ => Map::new(),
        };
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("type") {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "redacted_thinking" => Kind::Redacted,
            "tool_use" => Kind::Call,
            _ => Kind::Other,
        };
        match kind {
            Kind::Text if text("text").is_empty() => {}
            Kind::Text => draft.text(number, text("text")),
            Kind::Thinking => draft.thinking(number, text("thinking")),
            Kind::Redacted => draft.thinking(number, ""),
            Kind::Call => draft.call(number, text("id"), text("name"), ""),
            Kind::Other => {}
        }
        Self { number, kind, item, input: String::new(), has_arguments: false }
    }

    pub(super) fn text(&mut self, more: &str, draft: &mut Draft) {
        if self.kind == Kind::Text && !more.is_empty() {
            draft.text(self.number, more);
        }
    }

    pub(super) fn thinking(&mut self, more: &str, draft: &mut Draft) {
        if self.kind == Kind::Thinking {
            draft.thinking(self.number, more);
        }
    }

    pub(super) fn signature(&mut self, more: &str) {
        match self.item.get_mut("signature") {
            Some(Value::String(so_far)) => so_far.push_str(more),
            _ => {
                self.item.insert("signature".to_owned(), more.into());
            }
        }
    }

    pub(super) fn citation(&mut self, citation: Value) {
        match self.item.get_mut("citations") {
            Some(Value::Array(list)) => list.push(citation),
            _ => {
                self.item.insert("citations".to_owned(), Value::Array(vec![citation]));
            }
        }
    }

    pub(super) fn json(&mut self, more: &str, draft: &mut Draft) {
        match self.kind {
            Kind::Call if more.is_empty() => {}
            Kind::Call => {
                self.has_arguments = true;
                draft.call(self.number, "", "", more);
            }
            Kind::Text | Kind::Thinking | Kind::Redacted | Kind::Other => self.input.push_str(more),
        }
    }

    /// The block has ended: its raw form is added where it says more than ours. `arguments` is the text of a call's
    /// input where it is known.
    pub(super) fn end(mut self, draft: &mut Draft, origin: &str, arguments: Option<&str>) {
        let number = self.number;
        draft.end(number);
        match self.kind {
            Kind::Text => {
                if !self.has_more(&["type", "text"]) {
                    return;
                }
                self.item.insert("text".to_owned(), draft.said(number).into());
            }
            Kind::Thinking => {
                self.item.insert("thinking".to_owned(), draft.thought(number).into());
            }
            Kind::Redacted => {}
            Kind::Call => {
                if !self.has_arguments {
                    let begun = self.item.get("input").filter(|input| !input.is_null());
                    let begun = begun.map_or_else(|| "{}".to_owned(), Value::to_string);
                    draft.call(number, "", "", arguments.unwrap_or(&begun));
                }
                self.item.remove("input");
                if !self.has_more(&["type", "id", "name"]) {
                    return;
                }
            }
            Kind::Other => {
                let mended = halves::replaced(self.input.as_bytes());
                let input = mended.as_deref().unwrap_or(self.input.as_bytes());
                if let Ok(input) = serde_json::from_slice(input) {
                    self.item.insert("input".to_owned(), input);
                }
            }
        }
        draft.raw(number, origin, Value::Object(self.item));
    }

    fn has_more(&self, known: &[&str]) -> bool {
        let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        self.item.iter().any(|(key, value)| !known.contains(&key.as_str()) && !empty(value))
    }
}
