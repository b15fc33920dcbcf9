//! A world outside that can be stopped at any request: a model that checks each history, and tools that count.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    /// By their names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// What the model answers, by how many answers it has given since the last message of the user.
type Answers = Vec<Value>;

/// The world. Its threads end with the process of the test.
pub(crate) struct World {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    stopped: Receiver<usize>,
}

struct Shared {
    answers: Answers,
    seen: Mutex<Vec<Seen>>,
    /// The request that is not answered until it is released, counted from 1; 0 for none.
    stop_at: Mutex<usize>,
    released: Condvar,
    stopping: Mutex<Sender<usize>>,
}

impl World {
    /// Answers on a free port.
    pub(crate) fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stopping, stopped) = channel();
        let shared = Arc::new(Shared {
            answers,
            seen: Mutex::default(),
            stop_at: Mutex::new(0),
            released: Condvar::new(),
            stopping: Mutex::new(stopping),
        });
        let of_listener = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = of_listener.clone();
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { port, shared, stopped }
    }

    /// An agent with this model and these tools, as `name = "effect"`, and more of its file behind them.
    pub(crate) fn agent(&self, tools: &[(&str, &str)], more: &str) -> String {
        let port = self.port;
        let mut text = format!(
            "name = \"worker\"\nmodel = \"work:m\"\nstream = false\n{more}\n\
             [providers.work]\nprotocol = \"openai\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
             [network]\nallow = [\"127.0.0.1:{port}\"]\n[requests]\nattempts_max = 1\n"
        );
        for (name, effect) in tools {
            text.push_str(&format!(
                "[[tools]]\nname = \"{name}\"\ndescription = \"Does {name}.\"\neffect = \"{effect}\"\n\
                 url = \"http://127.0.0.1:{port}/{name}\"\nparameters = {{ type = \"object\" }}\n"
            ));
        }
        text
    }

    /// The n-th request from now on, counted from 1, is not answered until it is released.
    pub(crate) fn stop_at(&self, n: usize) {
        let seen = self.shared.seen.lock().unwrap().len();
        *self.shared.stop_at.lock().unwrap() = seen + n;
    }

    /// Waits until the request has come.
    pub(crate) fn wait(&self) {
        self.stopped.recv_timeout(std::time::Duration::from_secs(60)).expect("the request comes");
    }

    /// Lets every request go on.
    pub(crate) fn release(&self) {
        *self.shared.stop_at.lock().unwrap() = 0;
        self.shared.released.notify_all();
    }

    /// All that was asked, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The calls of one tool.
    pub(crate) fn calls(&self, tool: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.path == format!("/{tool}")).collect()
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let Some(seen) = read(&mut reader) else { return };
        let n = {
            let mut all = self.seen.lock().unwrap();
            all.push(seen.clone());
            all.len()
        };
        let mut stop_at = self.stop_at.lock().unwrap();
        if *stop_at == n {
            let _ = self.stopping.lock().unwrap().send(n);
            while *stop_at == n {
                stop_at = self.released.wait(stop_at).unwrap();
            }
        }
        drop(stop_at);
        let (status, body) = self.answer(&seen);
        let text = body.to_string();
        let _ = write!(
            reader.get_mut(),
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        );
    }

    fn answer(&self, seen: &Seen) -> (&'static str, Value) {
        if seen.path != "/v1/chat/completions" {
            return ("200 OK", json!({"done": seen.path}));
        }
        let messages = seen.body["messages"].as_array().cloned().unwrap_or_default();
        if let Err(why) = sendable(&messages) {
            return ("400 Bad Request", json!({"error": {"message": why, "type": "invalid_request_error"}}));
        }
        // A run that goes on is told the time anew behind its results: that begins no turn.
        let notice = |message: &Value| message["content"].as_str().is_some_and(|text| text.starts_with("NOW: "));
        let since_user = messages.iter().rev().take_while(|it| it["role"] != "user" || notice(it));
        let given = since_user.filter(|message| message["role"] == "assistant").count();
        let answer = self.answers.get(given).or(self.answers.last()).cloned().unwrap_or_default();
        let finish = if answer["tool_calls"].is_array() { "tool_calls" } else { "stop" };
        let choice = json!({"index": 0, "message": answer, "finish_reason": finish});
        ("200 OK", json!({"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}))
    }
}

/// What the real services insist on: behind each answer with calls one result for each, in order, and nothing else.
fn sendable(messages: &[Value]) -> Result<(), String> {
    let mut waiting: Vec<String> = Vec::new();
    for message in messages {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                if waiting.is_empty() || waiting.remove(0) != id {
                    return Err(format!("the result {id} belongs to no call before it"));
                }
            }
            _ if !waiting.is_empty() => return Err(format!("calls without results: {waiting:?}")),
            Some("assistant") => {
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                waiting = calls.map(|call| call["id"].as_str().unwrap_or_default().to_owned()).collect();
            }
            _ => {}
        }
    }
    if waiting.is_empty() { Ok(()) } else { Err(format!("calls without results: {waiting:?}")) }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen { path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// An answer of text alone.
pub(crate) fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// An answer with calls, as `(id, tool)`.
pub(crate) fn calls(calls: &[(&str, &str)]) -> Value {
    let call = |(id, tool): &(&str, &str)| json!({"id": id, "type": "function", "function": {"name": tool, "arguments": "{\"n\":1}"}});
    json!({"role": "assistant", "content": null, "tool_calls": calls.iter().map(call).collect::<Vec<_>>()})
}
