//! Replies that are JSON: what a person would read in them, as lines.

use serde_json::Value;
use std::borrow::Cow;

/// Levels of nesting that are looked into.
const DEPTH_MAX: usize = 32;

/// Keys of a call that a model printed instead of making it.
const CALL_KEYS: [&str; 7] = ["tool", "tool_call", "tool_calls", "function", "function_call", "tool_name", "action"];
const ARGUMENT_KEYS: [&str; 6] = ["arguments", "parameters", "args", "params", "input", "kwargs"];

/// The reply itself, or the texts in it where it is JSON from end to end. A printed call says nothing.
pub(super) fn readable(reply: &str) -> Cow<'_, str> {
    let body = unfenced(reply.trim());
    if !body.starts_with(['{', '[']) {
        return Cow::Borrowed(reply);
    }
    let Ok(value) = serde_json::from_str::<Value>(body) else { return Cow::Borrowed(reply) };
    let mut out = String::with_capacity(body.len());
    write(&value, "", 0, &mut out);
    Cow::Owned(out)
}

/// The inside of a reply that is one code fence and nothing else.
fn unfenced(body: &str) -> &str {
    let inside = body.strip_prefix("```").and_then(|it| it.strip_suffix("```"));
    let Some(inside) = inside.filter(|it| !it.contains("```")) else { return body };
    inside.split_once('\n').map_or(inside, |(_, rest)| rest).trim()
}

fn is_call(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
    let named = object.contains_key("name") && has(&ARGUMENT_KEYS);
    named || (has(&CALL_KEYS) && (has(&ARGUMENT_KEYS) || !object.contains_key("message")))
}

fn write(value: &Value, key: &str, depth: usize, out: &mut String) {
    if depth > DEPTH_MAX || (depth == 0 && is_call(value)) {
        return;
    }
    match value {
        Value::Object(object) => {
            heading(key, out);
            for (key, value) in object {
                write(value, key, depth + 1, out);
            }
        }
        Value::Array(list) => {
            heading(key, out);
            for value in list {
                write(value, "", depth + 1, out);
            }
        }
        Value::String(text) => {
            // A text of several words is prose and stands alone; one of a few is the value of its key.
            if text.split_whitespace().nth(3).is_none() && !key.is_empty() {
                words(key, out);
                // "Exchange status submitted" is one statement; of others the key is a heading.
                out.push_str(if key.ends_with("status") { " " } else { ": " });
            }
            out.push_str(text);
            out.push('\n');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn heading(key: &str, out: &mut String) {
    if !key.is_empty() {
        words(key, out);
        out.push_str(":\n");
    }
}

fn words(key: &str, out: &mut String) {
    out.extend(key.chars().map(|it| if it == '_' || it == '-' { ' ' } else { it }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_a_json_reply_are_read_and_a_printed_call_is_not() {
        let table = [
            (r#"{"message": "I have moved it.\nBye", "n": 1}"#, "I have moved it.\nBye\n"),
            (r#"{"exchange_status": {"state": "all done"}}"#, "exchange status:\nstate: all done\n"),
            (r#"{"exchange_status": "submitted"}"#, "exchange status submitted\n"),
            ("```json\n{\"tool\": \"move\", \"args\": {\"to\": \"it was moved to me\"}}\n```", ""),
            ("{\"name\": \"move\", \"arguments\": {}}", ""),
            ("{not json", "{not json"),
            ("plain", "plain"),
        ];
        for (reply, expected) in table {
            assert_eq!(readable(reply), expected, "{reply}");
        }
    }

    #[test]
    fn json_without_bottom_costs_nothing() {
        let deep = "[".repeat(100_000);
        assert_eq!(readable(&deep), deep.as_str());
    }
}
