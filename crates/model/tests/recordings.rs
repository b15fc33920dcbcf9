//! Recorded exchanges of real services are read, and what was read is sent back as the services accept it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::path::Path;

use gesta_model::Protocol;
use gesta_run::json::Object;
use gesta_run::message::{Block, BlockKind, CallBlock, Message, ToolResult};
use gesta_run::reply::{FaultKind, Reply};
use serde_json::Value;
use support::{read_stream, read_whole, request, rules, said, tools, transcript, write};

fn recordings() -> Vec<(Protocol, Value)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/http-recordings-train.jsonl");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("left out: the recordings of real services are not there");
        return Vec::new();
    };
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_ours = all.filter_map(|record| {
        let path = record["uri"].as_str()?.split('?').next()?.to_owned();
        match path {
            path if path.ends_with("/chat/completions") => Some((Protocol::OpenAi, record)),
            path if path.ends_with("/messages") => Some((Protocol::Anthropic, record)),
            _ => None,
        }
    });
    of_ours.collect()
}

fn read(protocol: Protocol, record: &Value) -> Result<Reply, gesta_run::reply::Fault> {
    match &record["response"] {
        Value::String(stream) => read_stream(protocol, &[stream.as_bytes()]).0,
        whole => read_whole(protocol, whole.to_string().as_bytes()),
    }
}

#[test]
fn recorded_answers_are_read_and_sent_back() {
    let (tools, options) = (tools(), Object::new());
    let (mut answers, mut errors) = (0, 0);
    for (protocol, record) in recordings() {
        let name = format!("{} #{}", record["cassette"], record["n"]);
        let result = read(protocol, &record);
        if record["status"] != 200 {
            let fault = result.expect_err(&name);
            assert!(matches!(fault.kind, FaultKind::BadRequest), "{name}: {fault:?}");
            errors += 1;
            continue;
        }
        let reply = result.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert!(reply.usage.total > 0 && !reply.model.is_empty() && !reply.finish_reason.is_empty(), "{name}");
        assert!(!reply.blocks.is_empty(), "{name}");
        for to in [Protocol::OpenAi, Protocol::Anthropic] {
            let sent = write(to, &request(&transcript(&reply), &tools, &options));
            let sent = sent.unwrap_or_else(|why| panic!("{name} as {}: {why}", to.as_str()));
            if to == protocol {
                holds_what_was_recorded(&sent, &record["response"], &name);
            }
        }
        answers += 1;
    }
    println!("{answers} answers, {errors} errors");
}

/// Every text and every block of a recorded whole answer stands in what is sent back.
fn holds_what_was_recorded(sent: &Value, response: &Value, name: &str) {
    let text = sent.to_string();
    for block in response["content"].as_array().into_iter().flatten() {
        let kind = block["type"].as_str().unwrap_or_default();
        let is_blank = kind == "text" && block["text"].as_str().is_some_and(|it| it.trim().is_empty());
        if matches!(kind, "text" | "tool_use") && !is_blank {
            let key = if kind == "text" { "text" } else { "input" };
            assert!(text.contains(&block[key].to_string()), "{name}: {block} in {text}");
        } else if !is_blank {
            assert!(text.contains(&block.to_string()), "{name}: {block} in {text}");
        }
    }
    for choice in response["choices"].as_array().into_iter().flatten() {
        for call in choice["message"]["tool_calls"].as_array().into_iter().flatten() {
            assert!(text.contains(&call["function"]["arguments"].to_string()), "{name}");
            assert!(text.contains(&call["id"].to_string()), "{name}");
        }
        if let Some(content) = choice["message"]["content"].as_str().filter(|it| !it.is_empty()) {
            assert!(text.contains(&Value::from(content).to_string()), "{name}");
        }
    }
}

#[test]
fn recorded_requests_are_written_as_the_services_took_them() {
    let (tools, options) = (tools(), Object::new());
    let (mut written, mut left_out) = (0, 0);
    for (protocol, record) in recordings().into_iter().filter(|(_, record)| record["status"] == 200) {
        let name = format!("{} #{}", record["cassette"], record["n"]);
        let recorded = record["request"]["messages"].as_array().unwrap();
        let Some(messages) = messages_of(protocol, recorded) else {
            left_out += 1;
            continue;
        };
        let mut asked = request(&messages, &tools, &options);
        asked.system = "";
        let sent = write(protocol, &asked).unwrap_or_else(|why| panic!("{name}: {why}"));
        rules::check(protocol, &record["request"]).unwrap_or_else(|why| println!("{name}: our rules refuse it: {why}"));
        assert_eq!(calls(&sent["messages"]), calls(&record["request"]["messages"]), "{name}");
        written += 1;
    }
    println!("{written} requests, {left_out} left out: their messages hold what we never write");
}

/// How many calls these messages hold.
fn calls(messages: &Value) -> usize {
    let messages = messages.as_array().into_iter().flatten();
    let of = |message: &Value| {
        let blocks = message["content"].as_array().into_iter().flatten();
        let used = blocks.filter(|block| block["type"] == "tool_use").count();
        used + message["tool_calls"].as_array().map_or(0, Vec::len)
    };
    messages.map(of).sum()
}

/// The messages in our words; none where they hold what we have no word for.
fn messages_of(protocol: Protocol, recorded: &[Value]) -> Option<Vec<Message>> {
    let mut out = Vec::new();
    for message in recorded {
        let blocks = match &message["content"] {
            Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks.clone(),
            _ => Vec::new(),
        };
        match message["role"].as_str()? {
            "user" => {
                let mut results = Vec::new();
                for block in &blocks {
                    match block["type"].as_str()? {
                        "text" => out.push(said(block["text"].as_str()?)),
                        "tool_result" => results.push(result(block["tool_use_id"].as_str()?, &block["content"])),
                        _ => return None,
                    }
                }
                if !results.is_empty() {
                    let at = out.len() - (blocks.len() - results.len());
                    out.insert(at, Message::Tools { results });
                }
            }
            "tool" => {
                let new = result(message["tool_call_id"].as_str()?, &message["content"]);
                match out.last_mut() {
                    Some(Message::Tools { results }) => results.push(new),
                    _ => out.push(Message::Tools { results: vec![new] }),
                }
            }
            "assistant" => {
                let whole = match protocol {
                    Protocol::Anthropic => serde_json::json!({"content": blocks}),
                    Protocol::OpenAi => serde_json::json!({"choices": [{"message": message}]}),
                };
                let reply = read_whole(protocol, whole.to_string().as_bytes()).ok()?;
                out.push(Message::Assistant { blocks: reply.blocks });
            }
            "system" => {}
            _ => return None,
        }
    }
    Some(out)
}

fn result(id: &str, content: &Value) -> ToolResult {
    let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
    ToolResult { call_id: id.into(), name: "t".into(), content, is_error: false }
}

#[test]
fn a_call_read_from_a_recording_keeps_its_text() {
    let body = r#"{"content":[{"type":"tool_use","id":"t","name":"n","input":{"b": 1,  "a":[]}}]}"#;
    let reply = read_whole(Protocol::Anthropic, body.as_bytes()).unwrap();
    let expected =
        CallBlock { id: "t".into(), name: "n".into(), arguments: r#"{"b": 1,  "a":[]}"#.into(), recovered: false };
    assert_eq!(reply.blocks, [Block::from(BlockKind::Call(expected))]);
}
