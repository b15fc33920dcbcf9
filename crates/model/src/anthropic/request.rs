//! Writes the body of a request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gesta_run::message::{Block, BlockKind, CallBlock, Message, Part, Source, ToolResult};
use gesta_run::reply::{Fault, FaultKind};
use gesta_run::tool::Tool;
use serde_json::Value;

use crate::dialect::{CacheTime, Dialect, legal_name};
use crate::fault::fault;
use crate::ids::Ids;
use crate::json::{Writer, sendable};
use crate::request::Request;

/// Keys of the options that the request itself decides.
const RESERVED: [&str; 6] = ["model", "messages", "system", "tools", "stream", "max_tokens"];

/// What a conversation that begins with the model's words is opened with, since the user's role must come first.
const OPENING: &str = "(start)";

/// The body of a request. The history must have been checked ([`crate::check_history`]).
///
/// # Errors
/// A part that the protocol cannot carry, or nothing to send at all.
pub fn request(request: &Request<'_>, dialect: &Dialect) -> Result<Vec<u8>, Fault> {
    let (pieces, cached) = gather(request, dialect);
    if pieces.is_empty() {
        return Err(fault(FaultKind::BadRequest, "there is nothing to send: every message is blank"));
    }
    let mut w = Writer::with_capacity(request.bytes_about());
    w.open('{').field("model", request.model).key("max_tokens");
    match request.options.get("max_tokens") {
        Some(tokens) => w.value(tokens),
        None => w.raw(&dialect.max_tokens.to_string()),
    };
    system(&mut w, request, dialect);
    tools(&mut w, request, dialect);
    w.key("messages").open('[');
    messages(&mut w, &pieces, cached.zip(dialect.cache))?;
    w.close(']');
    if let Some(schema) = request.output_schema.filter(|_| dialect.output_schema) {
        w.key("output_config").open('{').key("format").open('{');
        w.field("type", "json_schema").key("schema").value(schema).close('}').close('}');
    }
    for (key, value) in request.options {
        if !RESERVED.contains(&key.as_str()) {
            w.key(key).value(value);
        }
    }
    w.key("stream").raw(if request.stream { "true" } else { "false" }).close('}');
    Ok(w.finish())
}

/// One block of a message, before it is written.
enum Piece<'a> {
    Text(&'a str),
    Part(&'a Part),
    Result(String, &'a ToolResult),
    Said(&'a str),
    Call(String, &'a CallBlock, Option<&'a Value>),
    Raw(&'a Value),
}

impl Piece<'_> {
    fn role(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Part(_) | Self::Result(..) => "user",
            Self::Said(_) | Self::Call(..) | Self::Raw(_) => "assistant",
        }
    }
}

/// The blocks in order, and the number of the last one that belongs to the history: up to it the prefix is the same in
/// every request of a turn, so that it is worth caching. The notice of the time comes after it.
fn gather<'a>(request: &Request<'a>, dialect: &Dialect) -> (Vec<Piece<'a>>, Option<usize>) {
    let mut ids = Ids::new(dialect.call_ids);
    let mut pieces = Vec::new();
    let mut cached = None;
    for (n, message) in request.all().enumerate() {
        if n == request.history.len() {
            cached = pieces.iter().rposition(|piece| !matches!(piece, Piece::Raw(_)));
        }
        match message {
            Message::User { parts, .. } => pieces.extend(parts.iter().filter(|part| !is_blank(part)).map(Piece::Part)),
            Message::Notice { text } => pieces.push(Piece::Text(text)),
            Message::Assistant { blocks } => {
                if pieces.is_empty() {
                    pieces.push(Piece::Text(OPENING));
                }
                ids.begin(blocks);
                answer(&mut pieces, blocks, &ids, dialect);
            }
            Message::Tools { results } => {
                let result = |(n, result)| Piece::Result(ids.nth(n).to_owned(), result);
                pieces.extend(results.iter().enumerate().map(result));
            }
        }
    }
    (pieces, cached)
}

fn is_blank(part: &Part) -> bool {
    matches!(part, Part::Text { text } if text.trim().is_empty())
}

fn answer<'a>(pieces: &mut Vec<Piece<'a>>, blocks: &'a [Block], ids: &Ids<'_>, dialect: &Dialect) {
    let mut calls = 0;
    for block in blocks {
        let own = block.raw.as_ref().filter(|raw| raw.origin == dialect.origin).map(|raw| &raw.item);
        match (&block.kind, own) {
            (BlockKind::Call(call), own) => {
                pieces.push(Piece::Call(ids.nth(calls).to_owned(), call, own));
                calls += 1;
            }
            // A stream that was cut by the length limit may have lost the signature.
            (BlockKind::Thinking(_), Some(item)) if !is_signed(item) => {}
            (_, Some(item)) => pieces.push(Piece::Raw(item)),
            // The service refuses blank texts.
            (BlockKind::Text(text), None) if !text.trim().is_empty() => pieces.push(Piece::Said(text)),
            // Thinking of another provider has no signature that would be accepted.
            (BlockKind::Text(_) | BlockKind::Thinking(_) | BlockKind::Other, None) => {}
        }
    }
}

/// Whether the service would take thinking back.
fn is_signed(item: &Value) -> bool {
    let signed = item.get("signature").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    signed || item.get("type").is_some_and(|kind| kind == "redacted_thinking")
}

fn messages(w: &mut Writer, pieces: &[Piece<'_>], cached: Option<(usize, CacheTime)>) -> Result<(), Fault> {
    let mut role = "";
    for (n, piece) in pieces.iter().enumerate() {
        if piece.role() != role {
            if !role.is_empty() {
                w.close(']').close('}');
            }
            role = piece.role();
            w.fixed(r#"{"role":"#).string(role).fixed(r#""content":["#);
        }
        write_piece(w, piece, cached.filter(|(at, _)| *at == n).map(|(_, time)| time))?;
    }
    if !role.is_empty() {
        w.close(']').close('}');
    }
    Ok(())
}

fn write_piece(w: &mut Writer, piece: &Piece<'_>, cache: Option<CacheTime>) -> Result<(), Fault> {
    if let Piece::Raw(item) = piece {
        w.value(item);
        return Ok(());
    }
    w.open('{');
    match piece {
        Piece::Text(text) | Piece::Said(text) => {
            w.fixed(r#""type":"text","text":"#).string(text);
        }
        Piece::Part(part) => write_part(w, part)?,
        Piece::Result(id, result) => {
            w.fixed(r#""type":"tool_result","tool_use_id":"#).string(id);
            w.fixed(r#""content":"#).string(&result.content);
            if result.is_error {
                w.key("is_error").raw("true");
            }
        }
        Piece::Call(id, call, own) => {
            w.fixed(r#""type":"tool_use","id":"#).string(id).fixed(r#""name":"#).string(&legal_name(&call.name));
            w.fixed(r#""input":"#).raw(sendable(&call.arguments));
            for (key, value) in own.and_then(Value::as_object).into_iter().flatten() {
                if !matches!(key.as_str(), "type" | "id" | "name" | "input") {
                    w.key(key).value(value);
                }
            }
        }
        Piece::Raw(_) => {}
    }
    if let Some(time) = cache {
        cache_control(w, time);
    }
    w.close('}');
    Ok(())
}

fn write_part(w: &mut Writer, part: &Part) -> Result<(), Fault> {
    match part {
        Part::Text { text } => {
            w.field("type", "text").field("text", text);
        }
        Part::Image { media_type, source } => {
            w.field("type", "image").key("source").open('{');
            match source {
                Source::Url(url) => w.field("type", "url").field("url", url),
                Source::Base64(data) => w.field("type", "base64").field("media_type", media_type).field("data", data),
            };
            w.close('}');
        }
        Part::File { media_type, name, source } => {
            w.field("type", "document").key("source").open('{');
            match source {
                Source::Url(url) => {
                    w.field("type", "url").field("url", url);
                }
                Source::Base64(data) if media_type.starts_with("text/") => {
                    let text = STANDARD.decode(data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                    let unreadable = || fault(FaultKind::BadRequest, "a text file of the input is no UTF-8 in base64");
                    w.field("type", "text")
                        .field("media_type", "text/plain")
                        .field("data", &text.ok_or_else(unreadable)?);
                }
                Source::Base64(data) if media_type == "application/pdf" => {
                    w.field("type", "base64").field("media_type", media_type).field("data", data);
                }
                Source::Base64(_) => {
                    let why = format!("this protocol takes PDF and text files, not `{}`", media_type.escape_default());
                    return Err(fault(FaultKind::BadRequest, why));
                }
            }
            w.close('}');
            if let Some(name) = name {
                w.field("title", name);
            }
        }
    }
    Ok(())
}

fn cache_control(w: &mut Writer, time: CacheTime) {
    w.key("cache_control").open('{').field("type", "ephemeral");
    match time {
        CacheTime::FiveMinutes => {}
        CacheTime::OneHour => {
            w.field("ttl", "1h");
        }
    }
    w.close('}');
}

/// The cache covers what stands before its mark, and tools stand before the system text.
fn system(w: &mut Writer, request: &Request<'_>, dialect: &Dialect) {
    if request.system.trim().is_empty() {
        return;
    }
    w.key("system");
    let Some(time) = dialect.cache else {
        w.string(request.system);
        return;
    };
    w.open('[').open('{').field("type", "text").field("text", request.system);
    cache_control(w, time);
    w.close('}').close(']');
}

fn tools(w: &mut Writer, request: &Request<'_>, dialect: &Dialect) {
    if request.tools.is_empty() {
        return;
    }
    w.key("tools").open('[');
    let mark = dialect.cache.filter(|_| request.system.trim().is_empty());
    let last = request.tools.iter().len() - 1;
    for (n, offered) in request.tools.iter().enumerate() {
        tool(w, offered, mark.filter(|_| n == last));
    }
    w.close(']');
}

fn tool(w: &mut Writer, tool: &Tool, cache: Option<CacheTime>) {
    w.fixed(r#"{"name":"#).string(&tool.spec.name);
    if !tool.spec.description.is_empty() {
        w.fixed(r#""description":"#).string(&tool.spec.description);
    }
    w.fixed(r#""input_schema":"#);
    match &tool.spec.parameters {
        Value::Object(schema) if !schema.contains_key("type") => {
            w.open('{').field("type", "object");
            for (key, value) in schema {
                w.key(key).value(value);
            }
            w.close('}');
        }
        _ => {
            w.raw(tool.parameters_json());
        }
    }
    if let Some(time) = cache {
        cache_control(w, time);
    }
    w.close('}');
}
