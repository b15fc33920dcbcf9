//! What the services demand of a request, as their documentation and their errors tell it.

use std::collections::HashSet;

use gesta_model::Protocol;
use serde_json::Value;

/// Checks a request body.
pub fn check(protocol: Protocol, body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().filter(|it| !it.is_empty()).ok_or("no messages")?;
    if !body["model"].is_string() {
        return Err("no model".into());
    }
    match protocol {
        Protocol::OpenAi => check_openai(messages),
        Protocol::Anthropic if !body["max_tokens"].is_u64() => Err("max_tokens: field required".into()),
        Protocol::Anthropic => check_anthropic(messages),
    }
}

fn legal(text: &str, max: usize) -> bool {
    !text.is_empty() && text.len() <= max && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

fn check_openai(messages: &[Value]) -> Result<(), String> {
    let mut due: Vec<String> = Vec::new();
    let mut all = HashSet::new();
    for (n, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().ok_or("a message without a role")?;
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if due.is_empty() || due.remove(0) != id {
                return Err(format!("messages[{n}]: result `{id}` does not follow its call"));
            }
            if !message["content"].is_string() {
                return Err(format!("messages[{n}]: a result without content"));
            }
            continue;
        }
        if !due.is_empty() {
            return Err(format!("messages[{n}]: calls without result: {due:?}"));
        }
        let content = &message["content"];
        let is_content = content.is_string() || content.as_array().is_some_and(|list| !list.is_empty());
        match role {
            "system" | "user" if !is_content => return Err(format!("messages[{n}]: no content")),
            "assistant" => {
                let calls = message.get("tool_calls").map(|it| it.as_array().cloned().unwrap_or_default());
                if calls.as_ref().is_some_and(Vec::is_empty) {
                    return Err(format!("messages[{n}]: tool_calls is too short"));
                }
                if !is_content && calls.is_none() {
                    return Err(format!("messages[{n}]: neither content nor calls"));
                }
                for call in calls.into_iter().flatten() {
                    let id = call["id"].as_str().unwrap_or_default().to_owned();
                    if id.is_empty() || id.len() > 40 || !all.insert(id.clone()) {
                        return Err(format!("messages[{n}]: id `{id}` is blank, too long or there twice"));
                    }
                    let function = &call["function"];
                    if !legal(function["name"].as_str().unwrap_or_default(), 64) {
                        return Err(format!("messages[{n}]: name {}", function["name"]));
                    }
                    let arguments = function["arguments"].as_str().unwrap_or_default();
                    if !serde_json::from_str::<Value>(arguments).is_ok_and(|it| it.is_object()) {
                        return Err(format!("messages[{n}]: arguments {arguments}"));
                    }
                    due.push(id);
                }
            }
            "system" | "user" => {}
            _ => return Err(format!("messages[{n}]: role {role}")),
        }
    }
    if due.is_empty() { Ok(()) } else { Err(format!("calls without result: {due:?}")) }
}

fn check_anthropic(messages: &[Value]) -> Result<(), String> {
    let mut role = "assistant";
    let mut due: Vec<String> = Vec::new();
    let mut all = HashSet::new();
    for (n, message) in messages.iter().enumerate() {
        let next = message["role"].as_str().unwrap_or_default();
        if next == role || !matches!(next, "user" | "assistant") {
            return Err(format!("messages[{n}]: role {next} after {role}"));
        }
        role = next;
        let blocks = message["content"].as_array().filter(|it| !it.is_empty()).ok_or("no content")?;
        let mut begun = false;
        for block in blocks {
            let text = |key: &str| block[key].as_str().unwrap_or_default();
            match text("type") {
                "text" if text("text").trim().is_empty() => return Err(format!("messages[{n}]: blank text")),
                "tool_result" => {
                    if role != "user" || begun || due.is_empty() || due.remove(0) != text("tool_use_id") {
                        return Err(format!("messages[{n}]: result {} out of place", block["tool_use_id"]));
                    }
                    continue;
                }
                "tool_use" => {
                    let id = text("id").to_owned();
                    if role != "assistant" || !legal(&id, 64) || !all.insert(id.clone()) {
                        return Err(format!("messages[{n}]: id `{id}`"));
                    }
                    if !legal(text("name"), 64) || !block["input"].is_object() {
                        return Err(format!("messages[{n}]: name or input of {id}"));
                    }
                    due.push(id);
                    continue;
                }
                "thinking" if role == "assistant" && block["signature"].is_string() => {}
                "thinking" => return Err(format!("messages[{n}]: thinking without signature")),
                "" => return Err(format!("messages[{n}]: a block without type")),
                _ => {}
            }
            if role == "user" && !due.is_empty() {
                return Err(format!("messages[{n}]: calls without result: {due:?}"));
            }
            begun = true;
        }
        if role == "user" && !due.is_empty() {
            return Err(format!("messages[{n}]: calls without result: {due:?}"));
        }
    }
    if due.is_empty() { Ok(()) } else { Err(format!("calls without result: {due:?}")) }
}
