//! Calls that a model wrote as text (`spec/contract.md`, 2.2, point 5).

use serde_json::Value;

use crate::json::{self, Object};
use crate::message::{Block, BlockKind, CallBlock};
use crate::reply::{Finish, Reply};
use crate::tool::ToolList;

/// Turns text that is nothing but a tool call into a call, where its name is registered and its arguments fit.
/// Text that only copies a real call of the same answer is dropped.
pub(crate) fn recover(reply: &mut Reply, tools: &ToolList) {
    if matches!(reply.finish, Finish::Length) {
        return;
    }
    // A provider may send one text in several blocks.
    let text = reply.joined_text();
    let Some((name, arguments)) = call_in(&text) else { return };
    let real: Vec<&CallBlock> = reply.calls().collect();
    let copies = |call: &&CallBlock| {
        call.name == name && json::read_strict(&call.arguments).ok() == Some(Value::Object(arguments.clone()))
    };
    let is_copy = real.iter().any(copies);
    if !real.is_empty() && !is_copy {
        return;
    }
    if !is_copy && tools.get(&name).is_none_or(|tool| tool.check(&arguments).is_err()) {
        return;
    }
    let recovered = Block::from(BlockKind::Call(CallBlock {
        id: "".into(),
        name,
        arguments: Value::Object(arguments).to_string(),
        recovered: true,
    }));
    let is_text = |block: &Block| matches!(&block.kind, BlockKind::Text(_));
    let before = reply
        .blocks
        .iter()
        .take_while(|block| !matches!(&block.kind, BlockKind::Text(text) if !text.trim().is_empty()));
    let at = before.filter(|block| !is_text(block)).count();
    reply.blocks.retain(|block| !is_text(block));
    if !is_copy {
        reply.blocks.insert(at, recovered);
    }
}

/// Whether a text that is still arriving may turn out to be a leaked call, so that a listener holds it back.
pub fn may_become_a_call(text_so_far: &str) -> bool {
    let text = text_so_far.trim_start();
    ["{", "```", "<tool_call>"].iter().any(|start| text.starts_with(start) || start.starts_with(text))
}

fn call_in(text: &str) -> Option<(String, Object)> {
    let inner = strip(text.trim());
    if !inner.starts_with('{') {
        return None;
    }
    let Ok(Value::Object(mut object)) = json::read_strict(inner) else { return None };
    let name = object.get("name")?.as_str()?.to_owned();
    let arguments = match (object.remove("arguments"), object.remove("parameters")) {
        (Some(Value::Object(arguments)), None) | (None, Some(Value::Object(arguments))) => arguments,
        _ => return None,
    };
    let known = object.keys().all(|key| matches!(key.as_str(), "name" | "type" | "id"));
    known.then_some((name, arguments))
}

fn strip(text: &str) -> &str {
    if let Some(inner) = text.strip_prefix("<tool_call>").and_then(|it| it.strip_suffix("</tool_call>")) {
        return inner.trim();
    }
    if let Some(inner) = text.strip_prefix("```").and_then(|it| it.strip_suffix("```")) {
        let body = inner.split_once('\n').map_or(inner, |(language, body)| {
            if language.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '_') { body } else { inner }
        });
        return body.trim();
    }
    text
}
