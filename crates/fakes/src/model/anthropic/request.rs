//! Checks a request as the service does: fields, limits, tools.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{block, history};
use crate::model::fields::{Field, Kind, anthropic, anthropic_kind, is_word};
use crate::model::refusal::{Checked, Refusal};
use crate::model::serve::Asked;

/// How many marks for the cache a request may have.
const CACHE_MARKS_MAX: usize = 4;

const NEEDED: [Field; 3] = [("model", Kind::Text), ("messages", Kind::List), ("max_tokens", Kind::Integer)];

const KNOWN: [Field; 18] = [
    ("cache_control", Kind::Object),
    ("container", Kind::TextOrObject),
    ("context_management", Kind::Object),
    ("inference_geo", Kind::Text),
    ("mcp_servers", Kind::List),
    ("metadata", Kind::Object),
    ("output_config", Kind::Object),
    ("output_format", Kind::Object),
    ("service_tier", Kind::Text),
    ("stop_sequences", Kind::List),
    ("stream", Kind::Flag),
    ("system", Kind::TextOrList),
    ("temperature", Kind::Number),
    ("thinking", Kind::Object),
    ("tool_choice", Kind::Object),
    ("tools", Kind::List),
    ("top_k", Kind::Integer),
    ("top_p", Kind::Number),
];

/// Checks a request body.
pub(in crate::model) fn check(body: &Map<String, Value>) -> Checked<Asked> {
    anthropic(body, "", &NEEDED, &KNOWN)?;
    let model = body["model"].as_str().unwrap_or_default();
    if model.is_empty() {
        return Err(Refusal::bad("model: String should have at least 1 character"));
    }
    limits(body)?;
    let thinking = thinking(body)?;
    system(body.get("system"))?;
    let names = tools(body.get("tools"))?;
    choice(body, &names, thinking)?;
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    history::check(messages, thinking)?;
    cache_marks(body)?;
    let stream = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
    Ok(Asked { model: model.to_owned(), stream, stream_usage: true, thinking })
}

fn limits(body: &Map<String, Value>) -> Checked {
    if body["max_tokens"].as_i64().is_some_and(|tokens| tokens < 1) {
        return Err(Refusal::bad("max_tokens: Input should be greater than or equal to 1"));
    }
    for key in ["temperature", "top_p"] {
        if let Some(value) = body.get(key).and_then(Value::as_f64).filter(|value| !(0.0..=1.0).contains(value)) {
            let bound = if value < 0.0 { "greater than or equal to 0" } else { "less than or equal to 1" };
            return Err(Refusal::bad(format!("{key}: Input should be {bound}")));
        }
    }
    let stops = body.get("stop_sequences").and_then(Value::as_array);
    for (n, stop) in stops.into_iter().flatten().enumerate() {
        let at = format!("stop_sequences.{n}");
        anthropic_kind(stop, &at, Kind::Text)?;
        if stop.as_str().is_some_and(|stop| stop.trim().is_empty()) {
            return Err(Refusal::bad("stop_sequences: each stop sequence must contain non-whitespace"));
        }
    }
    Ok(())
}

/// Whether the model must think.
fn thinking(body: &Map<String, Value>) -> Checked<bool> {
    let Some(Value::Object(thinking)) = body.get("thinking") else { return Ok(false) };
    match thinking.get("type").and_then(Value::as_str) {
        Some("disabled" | "adaptive") => return Ok(false),
        Some("enabled") => {}
        _ => {
            let why = "thinking: Input tag should be one of 'disabled', 'enabled' or 'adaptive'";
            return Err(Refusal::bad(why));
        }
    }
    let budget = thinking.get("budget_tokens").unwrap_or(&Value::Null);
    if budget.is_null() {
        return Err(Refusal::bad("thinking.enabled.budget_tokens: Field required"));
    }
    anthropic_kind(budget, "thinking.enabled.budget_tokens", Kind::Integer)?;
    let budget = budget.as_i64().unwrap_or(i64::MAX);
    if budget < 1024 {
        return Err(Refusal::bad("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"));
    }
    if body["max_tokens"].as_i64().is_some_and(|tokens| tokens <= budget) {
        return Err(Refusal::bad("`max_tokens` must be greater than `thinking.budget_tokens`"));
    }
    if body.get("temperature").and_then(Value::as_f64).is_some_and(|it| it != 1.0) {
        return Err(Refusal::bad("`temperature` may only be set to 1 when thinking is enabled"));
    }
    Ok(true)
}

fn system(system: Option<&Value>) -> Checked {
    let Some(Value::Array(blocks)) = system else { return Ok(()) };
    for (n, one) in blocks.iter().enumerate() {
        let at = format!("system.{n}");
        let Value::Object(one) = one else {
            return Err(Refusal::bad(format!("{at}: Input should be a valid dictionary")));
        };
        if one.get("type").is_none_or(|kind| kind != "text") {
            return Err(Refusal::bad(format!("{at}.type: Input should be 'text'")));
        }
        block::text(one, &at, "system")?;
    }
    Ok(())
}

/// The names of the tools.
fn tools(tools: Option<&Value>) -> Checked<HashSet<&str>> {
    let mut names = HashSet::new();
    for (n, tool) in tools.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let at = format!("tools.{n}");
        let Value::Object(tool) = tool else {
            return Err(Refusal::bad(format!("{at}: Input should be a valid dictionary")));
        };
        let kind = tool.get("type").filter(|kind| !kind.is_null());
        match kind.map(|kind| kind.as_str().unwrap_or_default()) {
            None | Some("custom") => custom(tool, &format!("{at}.custom"))?,
            Some("") => return Err(Refusal::bad(format!("{at}.type: Input should be a valid string"))),
            // A tool that the service runs itself.
            Some(_) => anthropic_kind(tool.get("name").unwrap_or(&Value::Null), &format!("{at}.name"), Kind::Text)?,
        }
        if !names.insert(tool["name"].as_str().unwrap_or_default()) {
            return Err(Refusal::bad(format!("tools: Tool names must be unique. {at} is another {}", tool["name"])));
        }
    }
    Ok(names)
}

fn custom(tool: &Map<String, Value>, at: &str) -> Checked {
    let known = [
        ("type", Kind::Text),
        ("description", Kind::Text),
        ("cache_control", Kind::Object),
        ("strict", Kind::Flag),
        ("defer_loading", Kind::Flag),
        ("eager_input_streaming", Kind::Flag),
        ("allowed_callers", Kind::List),
        ("input_examples", Kind::List),
    ];
    anthropic(tool, at, &[("name", Kind::Text), ("input_schema", Kind::Object)], &known)?;
    if !is_word(tool["name"].as_str().unwrap_or_default(), 64) {
        return Err(Refusal::bad(format!("{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")));
    }
    match tool["input_schema"].get("type") {
        None => return Err(Refusal::bad(format!("{at}.input_schema.type: Field required"))),
        Some(kind) if kind != "object" => {
            return Err(Refusal::bad(format!("{at}.input_schema.type: Input should be 'object'")));
        }
        Some(_) => {}
    }
    match crate::model::openai::wrong_schema(&tool["input_schema"]) {
        None => Ok(()),
        Some(why) => {
            let why =
                format!("{at}.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12: {why}");
            Err(Refusal::bad(why))
        }
    }
}

fn choice(body: &Map<String, Value>, names: &HashSet<&str>, thinking: bool) -> Checked {
    let Some(Value::Object(choice)) = body.get("tool_choice") else { return Ok(()) };
    if names.is_empty() {
        return Err(Refusal::bad("tool_choice: tool_choice may only be specified while providing tools"));
    }
    let known = [("name", Kind::Text), ("disable_parallel_tool_use", Kind::Flag)];
    anthropic(choice, "tool_choice", &[("type", Kind::Text)], &known)?;
    let kind = choice["type"].as_str().unwrap_or_default();
    match kind {
        "auto" | "none" => return Ok(()),
        "any" => {}
        "tool" => {
            let name = choice.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| Refusal::bad("tool_choice.tool.name: Field required"))?;
            if !names.contains(name) {
                return Err(Refusal::bad(format!("Tool '{name}' not found in provided tools")));
            }
        }
        _ => {
            let why = format!(
                "tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: 'any', 'auto', \
                 'none', 'tool'"
            );
            return Err(Refusal::bad(why));
        }
    }
    if thinking {
        return Err(Refusal::bad("Thinking may not be enabled when tool_choice forces tool use."));
    }
    Ok(())
}

fn cache_marks(body: &Map<String, Value>) -> Checked {
    let mut marks = 0;
    let mut count = |value: Option<&Value>| marks += value.map_or(0, marks_in);
    for key in ["system", "tools", "messages"] {
        count(body.get(key));
    }
    if marks > CACHE_MARKS_MAX {
        let why = format!("A maximum of {CACHE_MARKS_MAX} blocks with cache_control may be provided. Found {marks}.");
        return Err(Refusal::bad(why));
    }
    Ok(())
}

/// Marks where they mean something: on a tool, on a block, on a block within a result. Inputs of calls are data.
fn marks_in(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(marks_in).sum(),
        Value::Object(object) => {
            let own = usize::from(object.get("cache_control").is_some_and(|mark| !mark.is_null()));
            own + object.get("content").map_or(0, marks_in)
        }
        _ => 0,
    }
}
