//! What a scene shows on demand: the lines under `show: …`.

use gesta_run::Run;
use gesta_run::event::Event;
use gesta_run::json::canonical;
use gesta_run::message::{Block, BlockKind, Message, Part};
use gesta_run::outcome::Status;
use serde_json::{Map, Value};

use crate::did::word;
use crate::text::write_word;
use crate::world::Show;
use crate::world_print::said;

/// The lines, without their indentation.
pub(crate) fn lines(run: &Run, log: &[Event], what: Show) -> Vec<String> {
    let lines = match what {
        Show::Messages => run.transcript().iter().flat_map(message).collect(),
        Show::Events => log.iter().map(|event| event_kind(&event.what)).collect(),
        Show::Holds => run.holds().iter().map(|hold| fields(hold, &HOLD)).collect(),
        Show::Result => result(run),
        Show::Calls => list(run, "/tool_calls", &CALL),
        Show::Interventions => list(run, "/contract/interventions", &INTERVENTION),
        Show::Contract => contract(run),
        Show::Usage => vec![usage(run)],
        Show::Actions => list(run, "/actions", &ACTION),
    };
    if lines.is_empty() { vec!["none".to_owned()] } else { lines }
}

const HOLD: [&str; 9] = ["id", "kind", "name", "arguments", "reason", "accepts", "state", "expires_at", "trip"];
const CALL: [&str; 9] =
    ["id", "name", "arguments", "arguments_by", "status", "result", "is_error", "recovered", "grants"];
const INTERVENTION: [&str; 10] =
    ["trip", "kind", "phase", "name", "tools", "reason", "outcome", "skipped", "attempt", "limit"];
const ACTION: [&str; 6] = ["id", "name", "arguments", "arguments_by", "status", "reason"];
const USAGE: [&str; 6] = ["input", "output", "total", "cached", "reasoning", "cache_write"];
/// Values that say nothing new.
const USUAL: [(&str, &str); 6] = [
    ("arguments_by", "\"model\""),
    ("recovered", "false"),
    ("kind", "\"call\""),
    ("accepts", "\"any\""),
    ("state", "\"open\""),
    ("phase", "\"after\""),
];

/// Some fields of a record on one line, those left out that are absent or usual.
fn fields(record: &impl serde::Serialize, names: &[&str]) -> String {
    let value = serde_json::to_value(record).unwrap_or_default();
    let mut line = Vec::new();
    for name in names {
        let Some(field) = value.get(*name) else { continue };
        let text = canonical(field);
        let usual = USUAL.iter().any(|(usual, value)| usual == name && *value == text);
        let empty = field.is_null() && *name != "result" || *field == Value::Array(Vec::new());
        let zero = field == 0 && USAGE.contains(name);
        if !(usual || empty || zero) {
            line.push(format!("{name} {text}"));
        }
    }
    if line.is_empty() { "nothing".to_owned() } else { line.join(", ") }
}

fn result_value(run: &Run) -> Value {
    serde_json::to_value(run.result()).unwrap_or_default()
}

fn list(run: &Run, pointer: &str, names: &[&str]) -> Vec<String> {
    let value = result_value(run);
    let records = value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    records.iter().map(|record| fields(record, names)).collect()
}

fn contract(run: &Run) -> Vec<String> {
    let value = result_value(run);
    let contract = value.get("contract").cloned().unwrap_or_default();
    vec![fields(&contract, &["asked", "acted", "unmet", "refusals"])]
}

/// The tokens, and what they cost where there is a price.
fn usage(run: &Run) -> String {
    let result = run.result();
    let line = fields(&result.usage, &USAGE);
    result.cost_usd.map_or(line.clone(), |cost| format!("{line}, cost_usd {}", canonical(&Value::from(cost))))
}

/// The parts of a result that no other `show:` line has.
fn result(run: &Run) -> Vec<String> {
    let value = result_value(run);
    let mut lines = Vec::new();
    let status = match run.status() {
        Status::Open => "open",
        Status::Parked => "parked",
        Status::Ended => "ended",
    };
    lines.push(format!("status {status}"));
    for name in ["outcome", "finish_reason", "text", "empty_reply", "data", "error", "trips"] {
        let Some(field) = value.get(name) else { continue };
        let silent = field.is_null() || *field == Value::Bool(false) || field == "";
        if !silent {
            lines.push(format!("{name} {}", canonical(field)));
        }
    }
    lines
}

fn event_kind(what: &gesta_run::event::EventKind) -> String {
    let ids = ["call", "trip", "backstop", "outcome"];
    match serde_json::to_value(what) {
        Ok(Value::Object(object)) => {
            let Some((kind, body)) = object.into_iter().next() else { return String::new() };
            let empty = Map::new();
            let body = body.as_object().unwrap_or(&empty);
            let named = ids.iter().filter_map(|id| body.get(*id).map(|value| format!(" {id} {}", canonical(value))));
            let calls = body.get("calls").and_then(Value::as_array).into_iter().flatten();
            let calls = calls.filter_map(|call| call.get("id")).map(|id| format!(" call {}", canonical(id)));
            format!("{kind}{}{}", named.collect::<String>(), calls.collect::<String>())
        }
        Ok(Value::String(kind)) => kind,
        _ => word(what),
    }
}

/// JSON with its keys in order, whatever order the program that wrote it keeps them in; any other text as it is.
fn settled(content: &str) -> std::borrow::Cow<'_, str> {
    match serde_json::from_str::<Value>(content) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => canonical(&value).into(),
        _ => content.into(),
    }
}

fn message(message: &Message) -> Vec<String> {
    match message {
        Message::User { parts, prompted } => {
            let who = if *prompted { "prompt:" } else { "user:" };
            parts.iter().map(|part| user_part(who, part)).collect()
        }
        Message::Notice { .. } => Vec::new(),
        Message::Assistant { blocks } if blocks.is_empty() => vec!["assistant says nothing".to_owned()],
        Message::Assistant { blocks } => blocks.iter().map(block).collect(),
        Message::Tools { results } => results
            .iter()
            .map(|result| {
                let mark = if result.is_error { " error" } else { "" };
                said(&format!("result of {}{mark}:", write_word(result.call_id.as_str())), &settled(&result.content))
            })
            .collect(),
    }
}

fn user_part(who: &str, part: &Part) -> String {
    match part {
        Part::Text { text } => said(who, text),
        Part::Image { media_type, .. } => format!("{who} (image {media_type})"),
        Part::File { media_type, .. } => format!("{who} (file {media_type})"),
    }
}

fn block(block: &Block) -> String {
    match &block.kind {
        BlockKind::Text(text) => said("assistant:", text),
        BlockKind::Thinking(text) => said("assistant thinks:", text),
        BlockKind::Call(call) => {
            let head = format!("assistant calls {} {}", write_word(call.id.as_str()), write_word(&call.name));
            said(&head, &call.arguments)
        }
        BlockKind::Other => "assistant: (a block of its provider)".to_owned(),
    }
}
