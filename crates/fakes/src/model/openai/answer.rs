//! Writes an answer of the script as this service does, whole or as a stream.

use bytes::Bytes;
use gesta_run::message::{Block, BlockKind};
use gesta_run::reply::{Finish, Reply, Usage};
use serde_json::{Map, Value, json};

use crate::model::deliver::Written;
use crate::model::pieces::{arguments_pieces, text_pieces};
use crate::model::serve::Asked;

const ORIGIN: &str = "openai";

/// The answer in bytes. `id` distinguishes it.
pub(in crate::model) fn write(reply: &Reply, usage: &Usage, asked: &Asked, id: &str) -> Written {
    let head = |object: &str| {
        let model = if reply.model.is_empty() { &asked.model } else { &reply.model };
        let mut head = Map::new();
        head.insert("id".to_owned(), format!("chatcmpl-{id}").into());
        head.insert("object".to_owned(), object.into());
        head.insert("created".to_owned(), 1_700_000_000.into());
        head.insert("model".to_owned(), model.as_str().into());
        head.insert("system_fingerprint".to_owned(), "fp_fake".into());
        head
    };
    if !asked.stream {
        let mut body = head("chat.completion");
        let choice = json!({"index": 0, "message": message(reply), "logprobs": null,
            "finish_reason": finish_reason(reply)});
        body.insert("choices".to_owned(), json!([choice]));
        body.insert("usage".to_owned(), tokens(usage));
        return Written::Plain(Value::Object(body).to_string().into());
    }
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = head("chat.completion.chunk");
        chunk.insert("choices".to_owned(), choices);
        if asked.stream_usage {
            chunk.insert("usage".to_owned(), usage.unwrap_or_default());
        }
        Bytes::from(format!("data: {}\n\n", Value::Object(chunk)))
    };
    let choice =
        |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
    let begin = json!({"role": "assistant", "content": "", "refusal": null});
    let mut events = vec![chunk(choice(begin, Value::Null), None)];
    events.extend(deltas(reply).into_iter().map(|delta| chunk(choice(delta, Value::Null), None)));
    events.push(chunk(choice(json!({}), finish_reason(reply).into()), None));
    if asked.stream_usage {
        events.push(chunk(json!([]), Some(tokens(usage))));
    }
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    Written::Events(events)
}

/// The service's own word, where the script gives one that the service knows.
fn finish_reason(reply: &Reply) -> &str {
    let own = ["stop", "tool_calls", "length", "content_filter", "function_call"];
    match reply.finish {
        _ if own.contains(&reply.finish_reason.as_str()) => &reply.finish_reason,
        Finish::Stop | Finish::Refusal => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Other if reply.finish_reason.is_empty() => "other",
        Finish::Other => &reply.finish_reason,
    }
}

fn own(block: &Block) -> Option<&Value> {
    block.raw.as_ref().filter(|raw| raw.origin == ORIGIN).map(|raw| &raw.item)
}

/// A raw form that is a part of the content, and not fields of the message or of a call.
fn own_part(block: &Block) -> Option<&Value> {
    own(block).filter(|item| item.get("type").is_some() && !matches!(block.kind, BlockKind::Call(_)))
}

fn own_fields(block: &Block) -> impl Iterator<Item = (&String, &Value)> {
    own(block).filter(|item| item.get("type").is_none()).and_then(Value::as_object).into_iter().flatten()
}

fn call(block: &Block, id: &str, name: &str, arguments: &str) -> Map<String, Value> {
    let mut call = Map::new();
    // A script that gives a call no id means a server that gives none.
    if !id.is_empty() {
        call.insert("id".to_owned(), id.into());
    }
    call.insert("type".to_owned(), "function".into());
    call.insert("function".to_owned(), json!({"name": name, "arguments": arguments}));
    call.extend(own_fields(block).map(|(key, value)| (key.clone(), value.clone())));
    call
}

fn message(reply: &Reply) -> Value {
    let mut message = Map::from_iter([("role".to_owned(), "assistant".into())]);
    let (mut text, mut thinking) = (String::new(), String::new());
    let (mut parts, mut calls) = (Vec::new(), Vec::new());
    for block in &reply.blocks {
        match (own_part(block), &block.kind) {
            (Some(part), _) => parts.push(part.clone()),
            (None, BlockKind::Call(it)) => {
                calls.push(Value::Object(call(block, it.id.as_str(), &it.name, &it.arguments)))
            }
            (None, BlockKind::Text(more)) => {
                text.push_str(more);
                parts.push(json!({"type": "text", "text": more}));
            }
            (None, BlockKind::Thinking(more)) if own(block).is_none() => thinking.push_str(more),
            (None, BlockKind::Thinking(_) | BlockKind::Other) => {
                message.extend(own_fields(block).map(|(key, value)| (key.clone(), value.clone())));
            }
        }
    }
    let has_parts = reply.blocks.iter().any(|block| own_part(block).is_some());
    let content = match text {
        _ if has_parts => Value::Array(parts),
        text if text.is_empty() && !calls.is_empty() => Value::Null,
        text => text.into(),
    };
    let (content, refusal) =
        if reply.finish == Finish::Refusal { (Value::Null, content) } else { (content, Value::Null) };
    message.insert("content".to_owned(), content);
    message.insert("refusal".to_owned(), refusal);
    if !thinking.is_empty() {
        message.insert("reasoning_content".to_owned(), thinking.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Value::Object(message)
}

fn deltas(reply: &Reply) -> Vec<Value> {
    let mut deltas = Vec::new();
    let mut calls = 0;
    let text_key = if reply.finish == Finish::Refusal { "refusal" } else { "content" };
    for block in &reply.blocks {
        match (own_part(block), &block.kind) {
            (Some(part), _) => deltas.push(json!({"content": [part]})),
            (None, BlockKind::Text(text)) => {
                deltas.extend(text_pieces(text).map(|piece| json!({text_key: piece})));
            }
            (None, BlockKind::Thinking(text)) if own(block).is_none() => {
                deltas.extend(text_pieces(text).map(|piece| json!({"reasoning_content": piece})));
            }
            (None, BlockKind::Thinking(_) | BlockKind::Other) => {
                deltas.extend(own_fields(block).map(|(key, value)| json!({key: value})));
            }
            (None, BlockKind::Call(it)) => {
                let mut first = call(block, it.id.as_str(), &it.name, "");
                first.insert("index".to_owned(), calls.into());
                deltas.push(json!({"tool_calls": [first]}));
                let more = |piece| json!({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]});
                deltas.extend(arguments_pieces(&it.arguments).map(more));
                calls += 1;
            }
        }
    }
    deltas
}

fn tokens(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    })
}
