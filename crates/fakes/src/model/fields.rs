//! Fields of a JSON object by their kind: which are known, what they must be, and how each service says so.

use serde_json::{Map, Value};

use super::refusal::{Checked, Refusal};

/// What a field must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Flag,
    Integer,
    Number,
    List,
    Object,
    TextOrList,
    TextOrObject,
    Any,
}

impl Kind {
    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::TextOrList => value.is_string() || value.is_array(),
            Self::TextOrObject => value.is_string() || value.is_object(),
            Self::Any => true,
        }
    }

    /// As OpenAI names it.
    fn openai(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Flag => "a boolean",
            Self::Integer => "an integer",
            Self::Number => "a decimal",
            Self::List => "an array of objects",
            Self::Object => "an object",
            Self::TextOrList => "one of a string or array of objects",
            Self::TextOrObject => "one of a string or object",
            Self::Any => "anything",
        }
    }

    /// As Anthropic names it.
    fn anthropic(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Flag => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::List => "list",
            Self::Object => "dictionary",
            Self::TextOrList => "string or list",
            Self::TextOrObject => "string or dictionary",
            Self::Any => "value",
        }
    }
}

/// A known field.
pub(crate) type Field = (&'static str, Kind);

/// What OpenAI calls a value that it did not expect.
pub(crate) fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// OpenAI's place of a key inside a place.
pub(crate) fn dotted(place: &str, key: &str) -> String {
    if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") }
}

/// OpenAI: the kinds of those fields that are there. It takes null where a field may be missing.
pub(crate) fn openai(object: &Map<String, Value>, place: &str, fields: &[Field]) -> Checked {
    for (key, kind) in fields {
        if let Some(value) = object.get(*key).filter(|value| !value.is_null() && !kind.takes(value)) {
            return Err(wrong_kind(&dotted(place, key), *kind, value));
        }
    }
    Ok(())
}

/// OpenAI: this field must be there and of this kind.
pub(crate) fn openai_needs<'a>(object: &'a Map<String, Value>, place: &str, (key, kind): Field) -> Checked<&'a Value> {
    let at = dotted(place, key);
    match object.get(key) {
        None => {
            Err(Refusal::bad(format!("Missing required parameter: '{at}'.")).code("missing_required_parameter").at(at))
        }
        Some(value) if kind.takes(value) => Ok(value),
        Some(value) => Err(wrong_kind(&at, kind, value)),
    }
}

fn wrong_kind(at: &str, kind: Kind, value: &Value) -> Refusal {
    let (wanted, found) = (kind.openai(), found(value));
    Refusal::bad(format!("Invalid type for '{at}': expected {wanted}, but got {found} instead."))
        .code("invalid_type")
        .at(at)
}

/// Anthropic: every field is known, of its kind, and there if it is needed.
pub(crate) fn anthropic(object: &Map<String, Value>, place: &str, needed: &[Field], known: &[Field]) -> Checked {
    for (key, kind) in needed {
        match object.get(*key) {
            None => return Err(Refusal::bad(format!("{}: Field required", dotted(place, key)))),
            Some(value) => anthropic_kind(value, &dotted(place, key), *kind)?,
        }
    }
    for (key, value) in object {
        if needed.iter().any(|(it, _)| it == key) {
            continue;
        }
        match known.iter().find(|(it, _)| it == key) {
            None => return Err(Refusal::bad(format!("{}: Extra inputs are not permitted", dotted(place, key)))),
            Some((_, kind)) if !value.is_null() => anthropic_kind(value, &dotted(place, key), *kind)?,
            Some(_) => {}
        }
    }
    Ok(())
}

/// Anthropic: a value is of this kind.
pub(crate) fn anthropic_kind(value: &Value, at: &str, kind: Kind) -> Checked {
    if kind.takes(value) {
        return Ok(());
    }
    Err(Refusal::bad(format!("{at}: Input should be a valid {}", kind.anthropic())))
}

/// Letters, digits, `_` and `-`, at least one and at most `max`.
pub(crate) fn is_word(text: &str, max: usize) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !text.is_empty() && text.len() <= max && text.bytes().all(legal)
}
