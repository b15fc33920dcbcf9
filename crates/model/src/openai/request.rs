//! Writes the body of a request.

use gesta_run::message::{Block, BlockKind, Message, Part, Source};
use gesta_run::reply::{Fault, FaultKind};
use gesta_run::tool::Tool;
use serde_json::Value;

use crate::check::calls;
use crate::dialect::{Dialect, legal_name};
use crate::fault::fault;
use crate::ids::Ids;
use crate::json::{Writer, sendable};
use crate::request::Request;

/// Keys of the options that the request itself decides.
const RESERVED: [&str; 4] = ["model", "messages", "tools", "stream"];

/// The body of a request. The history must have been checked ([`crate::check_history`]).
///
/// # Errors
/// A part that the protocol cannot carry.
pub fn request(request: &Request<'_>, dialect: &Dialect) -> Result<Vec<u8>, Fault> {
    let mut w = Writer::with_capacity(request.bytes_about());
    w.open('{').field("model", request.model);
    w.key("messages").open('[');
    if !request.system.is_empty() {
        w.fixed(r#"{"role":"system","content":"#).string(request.system).close('}');
    }
    messages(&mut w, request, dialect)?;
    w.close(']');
    if !request.tools.is_empty() {
        w.key("tools").open('[');
        for offered in request.tools.iter() {
            tool(&mut w, offered);
        }
        w.close(']');
    }
    if let Some(schema) = request.output_schema.filter(|_| dialect.output_schema) {
        output_schema(&mut w, schema);
    }
    for (key, value) in request.options {
        if !RESERVED.contains(&key.as_str()) {
            let key = if key == "max_tokens" { &dialect.max_tokens_key } else { key };
            w.key(key).value(value);
        }
    }
    w.key("stream").raw(if request.stream { "true" } else { "false" });
    if request.stream && dialect.stream_usage && !request.options.contains_key("stream_options") {
        w.key("stream_options").raw("{\"include_usage\":true}");
    }
    w.close('}');
    Ok(w.finish())
}

fn messages(w: &mut Writer, request: &Request<'_>, dialect: &Dialect) -> Result<(), Fault> {
    let mut ids = Ids::new(dialect.call_ids);
    let mut said: Vec<Said<'_>> = Vec::new();
    for message in request.all() {
        match message {
            Message::User { parts, .. } => said.extend(parts.iter().map(Said::Part)),
            Message::Notice { text } => said.push(Said::Notice(text)),
            Message::Assistant { blocks } => {
                user(w, &mut said)?;
                ids.begin(blocks);
                assistant(w, blocks, &ids, dialect);
                continue;
            }
            Message::Tools { results } => {
                for (n, result) in results.iter().enumerate() {
                    w.fixed(r#"{"role":"tool","tool_call_id":"#).string(ids.nth(n));
                    w.fixed(r#""content":"#).string(&result.content).close('}');
                }
                continue;
            }
        }
        if !dialect.alternate {
            user(w, &mut said)?;
        }
    }
    user(w, &mut said)
}

/// Something said in the user's role.
#[derive(Clone, Copy)]
enum Said<'a> {
    Part(&'a Part),
    Notice(&'a str),
}

impl<'a> Said<'a> {
    fn text(self) -> Option<&'a str> {
        match self {
            Self::Notice(text) => Some(text),
            Self::Part(Part::Text { text }) => Some(text),
            Self::Part(Part::Image { .. } | Part::File { .. }) => None,
        }
    }
}

/// One message of what was said: a plain text where that is all, since some servers read nothing else.
fn user(w: &mut Writer, said: &mut Vec<Said<'_>>) -> Result<(), Fault> {
    if said.is_empty() {
        return Ok(());
    }
    w.fixed(r#"{"role":"user","content":"#);
    let texts: Option<Vec<&str>> = said.iter().map(|it| it.text()).collect();
    match texts.as_deref() {
        Some([one]) => {
            w.string(one);
        }
        Some(texts) => {
            w.string(&texts.join("\n\n"));
        }
        None => {
            w.open('[');
            for piece in said.iter() {
                match piece {
                    Said::Notice(text) => text_part(w, text),
                    Said::Part(it) => part(w, it)?,
                }
            }
            w.close(']');
        }
    }
    w.close('}');
    said.clear();
    Ok(())
}

fn text_part(w: &mut Writer, text: &str) {
    w.fixed(r#"{"type":"text","text":"#).string(text).close('}');
}

fn part(w: &mut Writer, part: &Part) -> Result<(), Fault> {
    match part {
        Part::Text { text } => text_part(w, text),
        Part::Image { media_type, source } => {
            w.open('{').field("type", "image_url").key("image_url").open('{').key("url");
            match source {
                Source::Url(url) => w.string(url),
                Source::Base64(data) => w.string_of(&["data:", media_type, ";base64,", data]),
            };
            w.close('}').close('}');
        }
        Part::File { source: Source::Url(_), .. } => {
            let why = "this protocol takes a file as its bytes only, not as an address";
            return Err(fault(FaultKind::BadRequest, why));
        }
        Part::File { media_type, name, source: Source::Base64(data) } => match audio_format(media_type) {
            Some(format) => {
                w.open('{').field("type", "input_audio").key("input_audio").open('{');
                w.field("data", data).field("format", format).close('}').close('}');
            }
            None => {
                w.open('{').field("type", "file").key("file").open('{');
                w.field("filename", name.as_deref().unwrap_or("file")).key("file_data");
                w.string_of(&["data:", media_type, ";base64,", data]).close('}').close('}');
            }
        },
    }
    Ok(())
}

fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

/// The provider's own form of a block, if it came from this provider.
fn own<'a>(block: &'a Block, dialect: &Dialect) -> Option<&'a Value> {
    block.raw.as_ref().filter(|raw| raw.origin == dialect.origin).map(|raw| &raw.item)
}

/// A raw form that is a part of the content, as opposed to fields of the message.
fn own_part<'a>(block: &'a Block, dialect: &Dialect) -> Option<&'a Value> {
    own(block, dialect).filter(|item| item.get("type").is_some() && !matches!(block.kind, BlockKind::Call(_)))
}

fn assistant(w: &mut Writer, blocks: &[Block], ids: &Ids<'_>, dialect: &Dialect) {
    let has_calls = calls(blocks).next().is_some();
    let has_parts = blocks.iter().any(|block| own_part(block, dialect).is_some());
    let text = || {
        blocks.iter().filter_map(|block| match &block.kind {
            BlockKind::Text(text) if !text.is_empty() => Some(text.as_str()),
            _ => None,
        })
    };
    if !has_calls && !has_parts && text().next().is_none() {
        // Nothing was said that could be sent, and some servers refuse an empty message.
        return;
    }
    w.fixed(r#"{"role":"assistant","content":"#);
    if has_parts {
        w.open('[');
        for block in blocks {
            match (own_part(block, dialect), &block.kind) {
                (Some(item), _) => {
                    w.value(item);
                }
                (None, BlockKind::Text(text)) if !text.is_empty() => text_part(w, text),
                _ => {}
            }
        }
        w.close(']');
    } else {
        let mut texts = text();
        match (texts.next(), texts.next()) {
            (None, _) => w.raw("null"),
            (Some(one), None) => w.string(one),
            (Some(_), Some(_)) => w.string(&text().collect::<Vec<_>>().concat()),
        };
    }
    for block in blocks.iter().filter(|block| !matches!(block.kind, BlockKind::Call(_))) {
        let fields = own(block, dialect).filter(|item| item.get("type").is_none()).and_then(Value::as_object);
        for (key, value) in fields.into_iter().flatten() {
            w.key(key).value(value);
        }
    }
    if has_calls {
        tool_calls(w, blocks, ids, dialect);
    }
    w.close('}');
}

fn tool_calls(w: &mut Writer, blocks: &[Block], ids: &Ids<'_>, dialect: &Dialect) {
    w.key("tool_calls").open('[');
    for (n, (call, block)) in calls(blocks).enumerate() {
        w.fixed(r#"{"id":"#).string(ids.nth(n));
        w.fixed(r#""type":"function","function":{"name":"#).string(&legal_name(&call.name));
        w.fixed(r#""arguments":"#).string(sendable(&call.arguments)).close('}');
        for (key, value) in own(block, dialect).and_then(Value::as_object).into_iter().flatten() {
            if !matches!(key.as_str(), "id" | "type" | "function" | "index") {
                w.key(key).value(value);
            }
        }
        w.close('}');
    }
    w.close(']');
}

fn tool(w: &mut Writer, tool: &Tool) {
    w.fixed(r#"{"type":"function","function":{"name":"#).string(&tool.spec.name);
    if !tool.spec.description.is_empty() {
        w.fixed(r#""description":"#).string(&tool.spec.description);
    }
    w.fixed(r#""parameters":"#).raw(tool.parameters_json()).close('}').close('}');
}

fn output_schema(w: &mut Writer, schema: &Value) {
    w.key("response_format").open('{').field("type", "json_schema").key("json_schema").open('{');
    w.field("name", "reply").key("schema").value(schema);
    w.key("strict").raw(if is_closed(schema) { "true" } else { "false" });
    w.close('}').close('}');
}

/// Whether every object of a schema is closed and wants all its keys, without which OpenAI refuses to be strict.
fn is_closed(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => {
            let properties = object.get("properties").and_then(Value::as_object);
            let required = object.get("required").and_then(Value::as_array);
            let wants_all = properties.is_none_or(|properties| {
                let named = |key: &String| required.is_some_and(|list| list.iter().any(|it| it == key));
                properties.keys().all(named)
            });
            let is_object = properties.is_some() || object.get("type").is_some_and(|kind| kind == "object");
            let is_shut = !is_object || object.get("additionalProperties") == Some(&Value::Bool(false));
            wants_all && is_shut && object.values().all(is_closed)
        }
        Value::Array(list) => list.iter().all(is_closed),
        _ => true,
    }
}
