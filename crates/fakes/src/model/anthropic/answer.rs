//! Writes an answer of the script as this service does, whole or as a stream.

use bytes::Bytes;
use gesta_run::message::{Block, BlockKind};
use gesta_run::reply::{Finish, Reply, Usage};
use serde_json::{Map, Value, json};

use super::signature::sign;
use crate::model::deliver::Written;
use crate::model::pieces::{arguments_pieces, text_pieces};
use crate::model::serve::Asked;

const ORIGIN: &str = "anthropic";

/// What a model says to itself that must think while its script has no thoughts.
const THOUGHT: &str = "Let me see.";

/// The answer in bytes. `id` distinguishes it.
pub(in crate::model) fn write(reply: &Reply, usage: &Usage, asked: &Asked, id: &str) -> Written {
    let model = if reply.model.is_empty() { &asked.model } else { &reply.model };
    let thought = (asked.thinking && !thinks(reply)).then(|| Block::from(BlockKind::Thinking(THOUGHT.to_owned())));
    let blocks = thought.iter().chain(&reply.blocks);
    let stop = stop_reason(reply);
    let message = |content: Vec<Value>, stop: Option<&str>, usage: Value| {
        json!({"id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": stop, "stop_sequence": null, "usage": usage})
    };
    if !asked.stream {
        let content = blocks.filter_map(whole).collect();
        return Written::Plain(message(content, Some(stop), tokens(usage)).to_string().into());
    }
    let begun = Usage { output: 1, ..*usage };
    let mut events = vec![
        event(&json!({"type": "message_start", "message": message(Vec::new(), None, tokens(&begun))})),
        event(&json!({"type": "ping"})),
    ];
    let mut index = 0;
    for block in blocks {
        let Some((start, deltas)) = pieces(block) else { continue };
        events.push(event(&json!({"type": "content_block_start", "index": index, "content_block": start})));
        let delta = |delta| event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.extend(deltas.into_iter().map(delta));
        events.push(event(&json!({"type": "content_block_stop", "index": index})));
        index += 1;
    }
    let end = json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": tokens(usage)});
    events.extend([event(&end), event(&json!({"type": "message_stop"}))]);
    Written::Events(events)
}

fn event(value: &Value) -> Bytes {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default()).into()
}

fn thinks(reply: &Reply) -> bool {
    reply.blocks.first().is_some_and(|block| matches!(block.kind, BlockKind::Thinking(_)))
}

/// The service's own word, where the script gives one that the service knows.
fn stop_reason(reply: &Reply) -> &str {
    let own = ["end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause_turn"];
    match reply.finish {
        _ if own.contains(&reply.finish_reason.as_str()) => &reply.finish_reason,
        Finish::Stop => "end_turn",
        Finish::ToolCalls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::Refusal | Finish::ContentFilter => "refusal",
        Finish::Other if reply.finish_reason.is_empty() => "other",
        Finish::Other => &reply.finish_reason,
    }
}

/// The raw form of a block, where it is one of this service.
fn own(block: &Block) -> Option<Map<String, Value>> {
    let item = block.raw.as_ref().filter(|raw| raw.origin == ORIGIN).map(|raw| &raw.item)?;
    item.as_object().cloned()
}

/// A block in one piece; none for what this service does not have.
fn whole(block: &Block) -> Option<Value> {
    let mut item = own(block).unwrap_or_default();
    match &block.kind {
        BlockKind::Text(text) => {
            item.entry("type").or_insert_with(|| "text".into());
            item.insert("text".to_owned(), text.as_str().into());
        }
        BlockKind::Thinking(_) if is_redacted(&item) => {}
        BlockKind::Thinking(text) => {
            item.insert("type".to_owned(), "thinking".into());
            item.insert("thinking".to_owned(), text.as_str().into());
            item.insert("signature".to_owned(), sign(text).into());
        }
        BlockKind::Call(call) => {
            item.insert("type".to_owned(), "tool_use".into());
            item.insert("id".to_owned(), call.id.as_str().into());
            item.insert("name".to_owned(), call.name.as_str().into());
            item.insert("input".to_owned(), input(&call.arguments));
        }
        BlockKind::Other if item.is_empty() => return None,
        BlockKind::Other => {}
    }
    Some(Value::Object(item))
}

fn is_redacted(item: &Map<String, Value>) -> bool {
    item.get("type").is_some_and(|kind| kind == "redacted_thinking")
}

/// Arguments as an input. What is no JSON stays a text, as some servers around the service send it.
fn input(arguments: &str) -> Value {
    if arguments.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into())
}

/// How a block begins, and how it goes on.
fn pieces(block: &Block) -> Option<(Value, Vec<Value>)> {
    let mut start = whole(block)?;
    let deltas = match &block.kind {
        BlockKind::Text(text) => {
            start["text"] = "".into();
            text_pieces(text).map(|piece| json!({"type": "text_delta", "text": piece})).collect()
        }
        BlockKind::Thinking(text) if start["type"] == "thinking" => {
            start["thinking"] = "".into();
            start["signature"] = "".into();
            let piece = |piece| json!({"type": "thinking_delta", "thinking": piece});
            let signature = json!({"type": "signature_delta", "signature": sign(text)});
            text_pieces(text).map(piece).chain([signature]).collect()
        }
        BlockKind::Call(call) => {
            start["input"] = json!({});
            let piece = |piece| json!({"type": "input_json_delta", "partial_json": piece});
            [""].into_iter().chain(arguments_pieces(&call.arguments)).map(piece).collect()
        }
        BlockKind::Thinking(_) | BlockKind::Other => Vec::new(),
    };
    Some((start, deltas))
}

fn tokens(usage: &Usage) -> Value {
    let fresh = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_write);
    json!({
        "input_tokens": fresh,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": usage.output,
        "service_tier": "standard",
    })
}
