//! Checks one block of a message as the service does.

use serde_json::{Map, Value};

use super::signature::sign;
use crate::model::fields::{Kind, anthropic, anthropic_kind, is_word};
use crate::model::refusal::{Checked, Refusal};

/// The longest id of a call, in bytes.
const ID_BYTES_MAX: usize = 64;

/// Checks a block of a message in this role.
pub(super) fn check(block: &Value, at: &str, role: &str) -> Checked {
    let Value::Object(block) = block else {
        return Err(Refusal::bad(format!("{at}: Input should be a valid dictionary")));
    };
    let kind = match block.get("type") {
        None => return Err(Refusal::bad(format!("{at}.type: Field required"))),
        Some(kind) => kind.as_str().unwrap_or_default(),
    };
    let inner = format!("{at}.{kind}");
    let only = |allowed: &str| {
        if role == allowed {
            return Ok(());
        }
        Err(Refusal::bad(format!("{at}: `{kind}` blocks can only be in `{allowed}` messages")))
    };
    match kind {
        "text" => text(block, &inner, "messages"),
        "image" | "document" => {
            only("user")?;
            source(block, &inner)
        }
        "tool_use" => {
            only("assistant")?;
            call(block, &inner)
        }
        "tool_result" => {
            only("user")?;
            result(block, &inner)
        }
        "thinking" => {
            only("assistant")?;
            thinking(block, at)
        }
        "redacted_thinking" => {
            only("assistant")?;
            anthropic(block, &inner, &[("type", Kind::Text), ("data", Kind::Text)], &[])
        }
        "search_result" | "container_upload" => only("user"),
        // What the service's own tools said comes back as it was.
        _ if kind == "server_tool_use" || kind == "mcp_tool_use" || kind.ends_with("_tool_result") => Ok(()),
        _ => Err(Refusal::bad(format!(
            "{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags: 'document', 'image', \
             'redacted_thinking', 'text', 'thinking', 'tool_result', 'tool_use'"
        ))),
    }
}

/// A block of text. `part` says of what, for the message.
pub(super) fn text(block: &Map<String, Value>, at: &str, part: &str) -> Checked {
    let known = [("cache_control", Kind::Object), ("citations", Kind::List)];
    anthropic(block, at, &[("type", Kind::Text), ("text", Kind::Text)], &known)?;
    said(block["text"].as_str().unwrap_or_default(), at, part)?;
    cache_control(block, at)
}

/// A text that must say something.
pub(super) fn said(text: &str, at: &str, part: &str) -> Checked {
    if text.is_empty() {
        return Err(Refusal::bad(format!("{part}: text content blocks must be non-empty ({at})")));
    }
    if text.trim().is_empty() {
        return Err(Refusal::bad(format!("{part}: text content blocks must contain non-whitespace text ({at})")));
    }
    Ok(())
}

fn call(block: &Map<String, Value>, at: &str) -> Checked {
    let needed = [("type", Kind::Text), ("id", Kind::Text), ("name", Kind::Text), ("input", Kind::Object)];
    anthropic(block, at, &needed, &[("cache_control", Kind::Object), ("caller", Kind::Object)])?;
    word(block, at, "id", ID_BYTES_MAX)?;
    word(block, at, "name", 64)?;
    cache_control(block, at)
}

fn word(block: &Map<String, Value>, at: &str, key: &str, max: usize) -> Checked {
    let text = block[key].as_str().unwrap_or_default();
    if text.len() > max {
        return Err(Refusal::bad(format!("{at}.{key}: String should have at most {max} characters")));
    }
    if !is_word(text, max) {
        return Err(Refusal::bad(format!("{at}.{key}: String should match pattern '^[a-zA-Z0-9_-]+$'")));
    }
    Ok(())
}

fn result(block: &Map<String, Value>, at: &str) -> Checked {
    let known = [("content", Kind::TextOrList), ("is_error", Kind::Flag), ("cache_control", Kind::Object)];
    anthropic(block, at, &[("type", Kind::Text), ("tool_use_id", Kind::Text)], &known)?;
    word(block, at, "tool_use_id", ID_BYTES_MAX)?;
    for (n, one) in block.get("content").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let at = format!("{at}.content.{n}");
        match one.get("type").and_then(Value::as_str) {
            Some("text" | "image" | "document" | "search_result") => check(one, &at, "user")?,
            Some("tool_reference") => {}
            None => return Err(Refusal::bad(format!("{at}.type: Field required"))),
            Some(other) => {
                let why = format!(
                    "{at}: Input tag '{other}' found using 'type' does not match any of the expected tags: \
                     'document', 'image', 'search_result', 'text', 'tool_reference'"
                );
                return Err(Refusal::bad(why));
            }
        }
    }
    cache_control(block, at)
}

fn thinking(block: &Map<String, Value>, at: &str) -> Checked {
    let inner = format!("{at}.thinking");
    let needed = [("type", Kind::Text), ("thinking", Kind::Text), ("signature", Kind::Text)];
    anthropic(block, &inner, &needed, &[])?;
    if block["signature"] != sign(block["thinking"].as_str().unwrap_or_default()).as_str() {
        return Err(Refusal::bad(format!(
            "{at}: Invalid `signature` in `thinking` block: its text must come back exactly as this server gave it"
        )));
    }
    Ok(())
}

fn source(block: &Map<String, Value>, at: &str) -> Checked {
    let Some(source) = block.get("source") else {
        return Err(Refusal::bad(format!("{at}.source: Field required")));
    };
    anthropic_kind(source, &format!("{at}.source"), Kind::Object)?;
    let needs: &[&str] = match source.get("type").and_then(Value::as_str) {
        Some("base64") => &["media_type", "data"],
        Some("url") => &["url"],
        Some("text") => &["media_type", "data"],
        Some("file") => &["file_id"],
        Some("content") => &[],
        _ => return Err(Refusal::bad(format!("{at}.source.type: Input should be 'base64', 'url', 'text' or 'file'"))),
    };
    for key in needs {
        let value = source.get(*key).ok_or_else(|| Refusal::bad(format!("{at}.source.{key}: Field required")))?;
        anthropic_kind(value, &format!("{at}.source.{key}"), Kind::Text)?;
    }
    let images = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let media = source.get("media_type").and_then(Value::as_str);
    if at.ends_with(".image") && media.is_some_and(|media| !images.contains(&media)) {
        return Err(Refusal::bad(format!(
            "{at}.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        )));
    }
    cache_control(block, at)
}

fn cache_control(block: &Map<String, Value>, at: &str) -> Checked {
    let Some(Value::Object(mark)) = block.get("cache_control") else { return Ok(()) };
    let at = format!("{at}.cache_control");
    anthropic(mark, &at, &[("type", Kind::Text)], &[("ttl", Kind::Text)])?;
    if mark["type"] != "ephemeral" {
        return Err(Refusal::bad(format!("{at}.type: Input should be 'ephemeral'")));
    }
    match mark.get("ttl").and_then(Value::as_str) {
        None | Some("5m" | "1h") => Ok(()),
        Some(_) => Err(Refusal::bad(format!("{at}.ephemeral.ttl: Input should be '5m' or '1h'"))),
    }
}
