//! Checks a history as the service does: roles, contents, and one result for each call.

use serde_json::{Map, Value};

use super::tools::{empty, name};
use crate::model::fields::{Kind, found, openai, openai_needs};
use crate::model::refusal::{Checked, Refusal};

/// The longest id of a call, in bytes.
const ID_BYTES_MAX: usize = 40;

/// The calls of the last answer that wait for their results.
#[derive(Default)]
struct Due<'a> {
    /// The message that made them.
    by: usize,
    open: Vec<&'a str>,
    done: Vec<&'a str>,
}

pub(super) fn check(messages: &[Value]) -> Checked {
    if messages.is_empty() {
        return Err(empty("messages"));
    }
    let mut due = Due::default();
    for (n, message) in messages.iter().enumerate() {
        let at = format!("messages[{n}]");
        let Value::Object(message) = message else {
            let why = format!("Invalid type for '{at}': expected an object, but got {} instead.", found(message));
            return Err(Refusal::bad(why).code("invalid_type").at(at));
        };
        let role = openai_needs(message, &at, ("role", Kind::Text))?.as_str().unwrap_or_default();
        if role != "tool" {
            due.settled()?;
            due = Due { by: n, ..Due::default() };
        }
        match role {
            "tool" => result(message, &at, n, &mut due)?,
            "assistant" => assistant(message, &at, n, &mut due)?,
            "user" => content(message, &at, &["text", "image_url", "input_audio", "file"])?,
            "system" | "developer" => content(message, &at, &["text"])?,
            other => {
                let why = format!(
                    "Invalid value: '{other}'. Supported values are: 'system', 'assistant', 'user', 'tool', and \
                     'developer'."
                );
                return Err(Refusal::bad(why).code("invalid_value").at(format!("{at}.role")));
            }
        }
    }
    due.settled()
}

impl Due<'_> {
    fn settled(&self) -> Checked {
        if self.open.is_empty() {
            return Ok(());
        }
        let why = format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
             The following tool_call_ids did not have response messages: {} (calls of messages[{}])",
            self.open.join(", "),
            self.by
        );
        Err(Refusal::bad(why).at(format!("messages.[{}].role", self.by + 1)))
    }
}

fn result<'a>(message: &'a Map<String, Value>, at: &str, n: usize, due: &mut Due<'a>) -> Checked {
    let id = openai_needs(message, at, ("tool_call_id", Kind::Text))?.as_str().unwrap_or_default();
    if let Some(open) = due.open.iter().position(|it| *it == id) {
        due.open.remove(open);
        due.done.push(id);
    } else if due.done.contains(&id) {
        let why = format!("Duplicate value for 'tool_call_id' of '{id}' in message[{n}]");
        return Err(Refusal::bad(why).at(format!("{at}.tool_call_id")));
    } else if due.done.is_empty() && due.open.is_empty() {
        let why = format!(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. \
             messages[{n}] answers '{id}'."
        );
        return Err(Refusal::bad(why).at(format!("messages.[{n}].role")));
    } else {
        let why =
            format!("Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of messages[{}].", due.by);
        return Err(Refusal::bad(why).at(format!("messages.[{n}].tool_call_id")));
    }
    match openai_needs(message, at, ("content", Kind::TextOrList))? {
        Value::Array(parts) => content_parts(parts, &format!("{at}.content"), &["text"]),
        _ => Ok(()),
    }
}

fn assistant<'a>(message: &'a Map<String, Value>, at: &str, n: usize, due: &mut Due<'a>) -> Checked {
    openai(
        message,
        at,
        &[
            ("content", Kind::TextOrList),
            ("name", Kind::Text),
            ("refusal", Kind::Text),
            ("reasoning", Kind::Text),
            ("reasoning_content", Kind::Text),
            ("reasoning_details", Kind::List),
            ("tool_calls", Kind::List),
            ("function_call", Kind::Object),
            ("audio", Kind::Object),
        ],
    )?;
    let is_set = |key: &str| message.get(key).is_some_and(|value| !value.is_null());
    if !is_set("tool_calls") {
        let says_other = ["refusal", "audio", "function_call"].iter().any(|key| is_set(key));
        return if says_other && !is_set("content") {
            Ok(())
        } else {
            content(message, at, &["text", "refusal", "thinking"])
        };
    }
    if let Some(Value::Array(parts)) = message.get("content") {
        content_parts(parts, &format!("{at}.content"), &["text", "refusal", "thinking"])?;
    }
    let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
    if calls.is_empty() {
        return Err(empty(&format!("{at}.tool_calls")));
    }
    due.by = n;
    for (k, one) in calls.iter().enumerate() {
        let id = call(one, &format!("{at}.tool_calls[{k}]"))?;
        if due.open.contains(&id) {
            let why = format!("Duplicate value for 'tool_call_id' of '{id}' in message[{n}]");
            return Err(Refusal::bad(why).at(format!("{at}.tool_calls[{k}].id")));
        }
        due.open.push(id);
    }
    Ok(())
}

fn call<'a>(call: &'a Value, at: &str) -> Checked<&'a str> {
    let Value::Object(call) = call else {
        let why = format!("Invalid type for '{at}': expected an object, but got {} instead.", found(call));
        return Err(Refusal::bad(why).code("invalid_type").at(at));
    };
    let id = openai_needs(call, at, ("id", Kind::Text))?.as_str().unwrap_or_default();
    let wrong =
        |why: &str, code| Err(Refusal::bad(format!("Invalid '{at}.id': {why}")).code(code).at(format!("{at}.id")));
    if id.len() > ID_BYTES_MAX {
        let why = format!(
            "string too long. Expected a string with maximum length {ID_BYTES_MAX}, but got a string with length {} \
             instead.",
            id.len()
        );
        return wrong(&why, "string_above_max_length");
    }
    if id.is_empty() {
        return wrong(
            "empty string. Expected a string with minimum length 1, but got an empty string instead.",
            "empty_string",
        );
    }
    if id.contains(char::is_control) {
        return wrong("string does not match pattern. Expected a string without control characters.", "invalid_value");
    }
    let kind = openai_needs(call, at, ("type", Kind::Text))?;
    if kind != "function" {
        let why = format!("Invalid value: '{}'. Supported values are: 'function'.", kind.as_str().unwrap_or_default());
        return Err(Refusal::bad(why).code("invalid_value").at(format!("{at}.type")));
    }
    let Value::Object(function) = openai_needs(call, at, ("function", Kind::Object))? else { return Ok(id) };
    let at = format!("{at}.function");
    name(openai_needs(function, &at, ("name", Kind::Text))?.as_str().unwrap_or_default(), &format!("{at}.name"))?;
    let arguments = openai_needs(function, &at, ("arguments", Kind::Text))?.as_str().unwrap_or_default();
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => Ok(id),
        Err(why) => {
            Err(Refusal::bad(format!("Invalid '{at}.arguments': expected a string that holds a JSON object ({why})."))
                .code("invalid_value")
                .at(format!("{at}.arguments")))
        }
    }
}

/// A content that must be there and say something.
fn content(message: &Map<String, Value>, at: &str, kinds: &[&str]) -> Checked {
    let value = openai_needs(message, at, ("content", Kind::TextOrList))?;
    let at = format!("{at}.content");
    match value {
        Value::String(text) if text.is_empty() => {
            let why = "empty string. Expected a string with minimum length 1, but got an empty string instead.";
            Err(Refusal::bad(format!("Invalid '{at}': {why}")).code("empty_string").at(at))
        }
        Value::Array(parts) if parts.is_empty() => Err(empty(&at)),
        Value::Array(parts) => content_parts(parts, &at, kinds),
        _ => Ok(()),
    }
}

fn content_parts(parts: &[Value], at: &str, kinds: &[&str]) -> Checked {
    for (n, one) in parts.iter().enumerate() {
        part(one, &format!("{at}[{n}]"), kinds)?;
    }
    Ok(())
}

fn part(part: &Value, at: &str, kinds: &[&str]) -> Checked {
    let Value::Object(part) = part else {
        let why = format!("Invalid type for '{at}': expected an object, but got {} instead.", found(part));
        return Err(Refusal::bad(why).code("invalid_type").at(at));
    };
    let kind = openai_needs(part, at, ("type", Kind::Text))?.as_str().unwrap_or_default();
    if !kinds.contains(&kind) {
        let known = kinds.iter().map(|kind| format!("'{kind}'")).collect::<Vec<_>>().join(", ");
        let why = format!("Invalid value: '{kind}'. Supported values are: {known}.");
        return Err(Refusal::bad(why).code("invalid_value").at(format!("{at}.type")));
    }
    match kind {
        "text" | "refusal" => openai_needs(part, at, (kind_key(kind), Kind::Text)).map(drop),
        "thinking" => openai_needs(part, at, ("thinking", Kind::List)).map(drop),
        "image_url" => {
            let Value::Object(image) = openai_needs(part, at, ("image_url", Kind::Object))? else { return Ok(()) };
            let at = format!("{at}.image_url");
            let url = openai_needs(image, &at, ("url", Kind::Text))?.as_str().unwrap_or_default();
            let legal = url.starts_with("https://") || url.starts_with("http://");
            let data = url.starts_with("data:image/") && url.contains(";base64,");
            if legal || data {
                return Ok(());
            }
            let why = format!(
                "Invalid '{at}.url': expected a URL of http or https, or a base64-encoded data URL with an \
                 image MIME type."
            );
            Err(Refusal::bad(why).code("invalid_image_url").at(format!("{at}.url")))
        }
        _ => {
            let Value::Object(inner) = openai_needs(part, at, (kind_key(kind), Kind::Object))? else { return Ok(()) };
            let at = dotted_key(at, kind);
            if kind == "input_audio" {
                openai_needs(inner, &at, ("data", Kind::Text))?;
                return openai_needs(inner, &at, ("format", Kind::Text)).map(drop);
            }
            openai(inner, &at, &[("file_data", Kind::Text), ("filename", Kind::Text), ("file_id", Kind::Text)])
        }
    }
}

/// The key that carries what a part of this kind holds.
fn kind_key(kind: &str) -> &'static str {
    match kind {
        "text" => "text",
        "refusal" => "refusal",
        "input_audio" => "input_audio",
        _ => "file",
    }
}

fn dotted_key(at: &str, kind: &str) -> String {
    format!("{at}.{}", kind_key(kind))
}
