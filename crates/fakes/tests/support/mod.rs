//! A small HTTP client and readers of answers that share nothing with the fakes: they must agree by themselves.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub)]

use std::net::SocketAddr;
use std::time::Duration;

use gesta_fakes::model::{ModelServer, Options, serve};
use gesta_scene::Script;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long a client waits for a server that is asked to fall silent.
const SILENCE: Duration = Duration::from_millis(50);

/// The two protocols by their paths.
pub const CHAT: &str = "/v1/chat/completions";
pub const MESSAGES: &str = "/v1/messages";

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// All that was announced has come.
    Whole,
    /// The connection ended before that.
    Broken,
    /// Nothing more came, and the connection is open.
    Silent,
}

#[derive(Debug)]
pub struct Got {
    pub head: String,
    pub status: u16,
    pub body: Vec<u8>,
    pub end: End,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    }
}

pub async fn server(script: &str) -> ModelServer {
    serve(Script::parse(script).unwrap(), Options::default()).await.unwrap()
}

/// Sends a body as JSON with the headers that the protocol of the path wants.
pub async fn post(address: SocketAddr, path: &str, body: &Value) -> Got {
    post_with(address, path, "", body).await
}

pub async fn post_with(address: SocketAddr, path: &str, headers: &str, body: &Value) -> Got {
    let version = if path.contains("/messages") { "anthropic-version: 2023-06-01\r\n" } else { "" };
    let headers = format!("content-type: application/json\r\n{version}{headers}");
    send(address, "POST", path, &headers, &body.to_string()).await
}

pub async fn get(address: SocketAddr, path: &str, headers: &str) -> Got {
    send(address, "GET", path, headers, "").await
}

pub async fn send(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> Got {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let (mut bytes, mut end) = (Vec::new(), End::Broken);
    loop {
        // Only a server that is asked for silence is given up soon: a busy machine may make the others slow.
        let silent = path.contains("stall") || path.contains("hang");
        let patience = if silent { SILENCE } else { Duration::from_secs(10) };
        match tokio::time::timeout(patience, stream.read_buf(&mut bytes)).await {
            Ok(Ok(n)) if n > 0 => {}
            Ok(_) => break,
            Err(_) => {
                end = End::Silent;
                break;
            }
        }
    }
    read(&bytes, end)
}

fn read(bytes: &[u8], end: End) -> Got {
    let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else {
        return Got { head: String::new(), status: 0, body: bytes.to_vec(), end };
    };
    let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
    let rest = &bytes[at + 4..];
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let lower = head.to_lowercase();
    let (body, whole) = match lower.lines().find_map(|line| line.strip_prefix("content-length: ")) {
        Some(length) => (rest.to_vec(), rest.len() == length.parse::<usize>().unwrap()),
        None => unchunk(rest),
    };
    Got { head, status, body, end: if whole { End::Whole } else { end } }
}

fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|it| it == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let data = &rest[at + 2..];
        if data.len() < size + 2 {
            body.extend(&data[..size.min(data.len())]);
            break;
        }
        body.extend(&data[..size]);
        rest = &data[size + 2..];
    }
    (body, false)
}

/// The data of a stream's events.
pub fn events(body: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(body).unwrap();
    let data = |event: &str| event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
    text.split("\n\n").filter_map(data).collect()
}

/// What an answer says, in words of neither protocol.
#[derive(Debug, Default, PartialEq, Clone)]
pub struct Said {
    pub text: String,
    pub thinking: String,
    pub signature: String,
    /// Id, name, arguments.
    pub calls: Vec<[String; 3]>,
    pub stop: String,
    pub tokens: (u64, u64),
}

fn add(to: &mut String, value: &Value) {
    to.push_str(value.as_str().unwrap_or_default());
}

pub fn read_chat(got: &Got) -> Said {
    let mut said = Said::default();
    let chunks: Vec<Value> = match got.json() {
        Value::Null => {
            let mut data = events(&got.body);
            assert_eq!(data.pop().as_deref(), Some("[DONE]"));
            data.iter().map(|data| serde_json::from_str(data).unwrap()).collect()
        }
        whole => vec![whole],
    };
    for chunk in &chunks {
        if let Some(input) = chunk["usage"]["prompt_tokens"].as_u64() {
            said.tokens = (input, chunk["usage"]["completion_tokens"].as_u64().unwrap());
        }
        let choice = &chunk["choices"][0];
        let message = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        add(&mut said.text, &message["content"]);
        add(&mut said.thinking, &message["reasoning_content"]);
        add(&mut said.stop, &choice["finish_reason"]);
        for (n, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let at = call["index"].as_u64().map_or(n, |at| at as usize);
            said.calls.resize(said.calls.len().max(at + 1), Default::default());
            add(&mut said.calls[at][0], &call["id"]);
            add(&mut said.calls[at][1], &call["function"]["name"]);
            add(&mut said.calls[at][2], &call["function"]["arguments"]);
        }
    }
    said
}

pub fn read_messages(got: &Got) -> Said {
    let mut said = Said::default();
    let whole = got.json();
    if whole.is_object() {
        for block in whole["content"].as_array().unwrap() {
            add(&mut said.text, &block["text"]);
            add(&mut said.thinking, &block["thinking"]);
            add(&mut said.signature, &block["signature"]);
            if block["type"] == "tool_use" {
                let text = |key: &str| block[key].as_str().unwrap().to_owned();
                said.calls.push([text("id"), text("name"), block["input"].to_string()]);
            }
        }
        add(&mut said.stop, &whole["stop_reason"]);
        said.tokens = message_tokens(&whole["usage"]);
        return said;
    }
    for data in events(&got.body) {
        let event: Value = serde_json::from_str(&data).unwrap();
        let (block, delta) = (&event["content_block"], &event["delta"]);
        if block["type"] == "tool_use" {
            let text = |key: &str| block[key].as_str().unwrap().to_owned();
            said.calls.push([text("id"), text("name"), String::new()]);
        }
        add(&mut said.text, &delta["text"]);
        add(&mut said.thinking, &delta["thinking"]);
        add(&mut said.signature, &delta["signature"]);
        add(&mut said.stop, &delta["stop_reason"]);
        if let (Some(call), true) = (said.calls.last_mut(), delta["partial_json"].is_string()) {
            add(&mut call[2], &delta["partial_json"]);
        }
        if event["type"] == "message_delta" {
            said.tokens = message_tokens(&event["usage"]);
        }
    }
    said
}

fn message_tokens(usage: &Value) -> (u64, u64) {
    let of = |key: &str| usage[key].as_u64().unwrap();
    let input = of("input_tokens") + of("cache_read_input_tokens") + of("cache_creation_input_tokens");
    (input, of("output_tokens"))
}

pub fn read_answer(path: &str, got: &Got) -> Said {
    if path.contains("messages") { read_messages(got) } else { read_chat(got) }
}

/// A request that both services take, with these messages.
pub fn request(path: &str, messages: Value, stream: bool) -> Value {
    let mut body = json!({"model": "m", "messages": messages, "stream": stream});
    if path.contains("messages") {
        body["max_tokens"] = 100.into();
    } else if stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

pub fn hello() -> Value {
    json!([{"role": "user", "content": "hello"}])
}
