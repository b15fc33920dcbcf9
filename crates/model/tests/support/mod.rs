//! What the tests of this crate share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod rules;
pub mod server;

use gesta_model::{Dialect, EventReader, Protocol, Request, anthropic, openai};
use gesta_run::json::Object;
use gesta_run::message::{Block, BlockKind, Message, Part, ToolResult};
use gesta_run::reply::{Delta, Fault, FaultKind, Reply};
use gesta_run::tool::{ToolList, ToolSpec};

/// Reads a streamed answer whose bytes come in these pieces; the deltas too.
pub fn read_stream(protocol: Protocol, pieces: &[&[u8]]) -> (Result<Reply, Fault>, Vec<Delta>) {
    macro_rules! read {
        ($stream:expr, $close:expr) => {{
            let mut stream = $stream;
            let mut reader = EventReader::default();
            let mut deltas = Vec::new();
            for piece in pieces {
                if let Err(fault) = reader.feed(piece, |data| stream.event(data, b"")) {
                    return (Err(fault), deltas);
                }
                deltas.extend(stream.take_deltas());
                if stream.is_done() {
                    break;
                }
            }
            if !stream.is_done() {
                match reader.finish(|data| stream.event(data, b"")) {
                    Err(fault) if fault.kind == FaultKind::Malformed => {
                        let cut = Fault { kind: FaultKind::CutShort, ..fault };
                        return (Err(cut), deltas);
                    }
                    Err(fault) => return (Err(fault), deltas),
                    Ok(()) => {}
                }
            }
            $close(&mut stream);
            deltas.extend(stream.take_deltas());
            (stream.finish(), deltas)
        }};
    }
    match protocol {
        Protocol::OpenAi => read!(openai::Stream::new("openai"), openai::Stream::close),
        Protocol::Anthropic => read!(anthropic::Stream::new("anthropic"), |_: &mut anthropic::Stream| {}),
    }
}

pub fn read_whole(protocol: Protocol, body: &[u8]) -> Result<Reply, Fault> {
    match protocol {
        Protocol::OpenAi => openai::reply(body, "openai", b""),
        Protocol::Anthropic => anthropic::reply(body, "anthropic", b""),
    }
}

pub fn dialect(protocol: Protocol) -> Dialect {
    match protocol {
        Protocol::OpenAi => Dialect::openai(),
        Protocol::Anthropic => Dialect::anthropic(),
    }
}

/// Writes a request and checks it by the rules of the protocol.
pub fn write(protocol: Protocol, request: &Request<'_>) -> Result<serde_json::Value, String> {
    gesta_model::check_history(request.all()).map_err(|fault| fault.message)?;
    let body = match protocol {
        Protocol::OpenAi => openai::request(request, &dialect(protocol)),
        Protocol::Anthropic => anthropic::request(request, &dialect(protocol)),
    };
    let body = body.map_err(|fault| fault.message)?;
    let value = serde_json::from_slice(&body).map_err(|why| why.to_string())?;
    rules::check(protocol, &value)?;
    Ok(value)
}

/// A request of nothing but messages.
pub fn request<'a>(messages: &'a [Message], tools: &'a ToolList, options: &'a Object) -> Request<'a> {
    Request {
        model: "m-1",
        system: "Be brief.",
        history: &[],
        messages,
        tools,
        output_schema: None,
        options,
        stream: true,
        failed_before: 0,
    }
}

pub fn said(text: &str) -> Message {
    Message::User { parts: vec![Part::text(text)], prompted: false }
}

/// The answer as the machine adds it to a transcript: with ids of its own where the model's are blank or repeated, and
/// followed by a result for each call.
pub fn transcript(reply: &Reply) -> Vec<Message> {
    let mut blocks = reply.blocks.clone();
    let mut seen: Vec<String> = Vec::new();
    for block in &mut blocks {
        if let BlockKind::Call(call) = &mut block.kind {
            if call.id.as_str().is_empty() || seen.iter().any(|id| id == call.id.as_str()) {
                call.id = format!("ours_{}", seen.len()).as_str().into();
            }
            seen.push(call.id.as_str().to_owned());
        }
    }
    let results = results(&blocks);
    let mut messages = vec![said("Please."), Message::Assistant { blocks }];
    messages.extend((!results.is_empty()).then_some(Message::Tools { results }));
    messages.push(Message::Notice { text: "NOW: Friday".into() });
    messages.push(said("And then?"));
    messages
}

pub fn results(blocks: &[Block]) -> Vec<ToolResult> {
    let result = |block: &Block| match &block.kind {
        BlockKind::Call(call) => Some(ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: "{\"ok\":true}".into(),
            is_error: false,
        }),
        _ => None,
    };
    blocks.iter().filter_map(result).collect()
}

pub fn tools() -> ToolList {
    let schema = serde_json::json!({"type": "object", "properties": {"day": {"type": "string"}}});
    ToolList::compile([ToolSpec::new("move", "Moves a visit.", schema)]).unwrap()
}
