//! Who asks: one run after another on a connection of its own, streamed, each looked at.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::Failed;

const SAID: &str = "What about order 7?";
const REPLY: &str = "Order 7 is an armchair for 300 dollars. It has been delivered.";

/// A connection that is used again, where there is one.
type Line = Option<SendRequest<Full<Bytes>>>;

/// Who is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whom {
    Server,
    Model,
}

/// What came of the runs of one who asks: the time of each, and what went wrong.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) took: Vec<Duration>,
    pub(crate) wrong: Vec<String>,
}

/// Asks one after another until the time is up: the server for runs, or the model itself.
pub(crate) async fn ask_until(whom: Whom, at: SocketAddr, wait: Duration, until: Instant) -> Asked {
    tokio::time::sleep(wait).await;
    let mut asked = Asked::default();
    let mut line = None;
    while Instant::now() < until {
        let began = Instant::now();
        let came = match whom {
            Whom::Server => one_run(&mut line, at).await,
            Whom::Model => one_alone(&mut line, at).await,
        };
        match came {
            Ok(()) => asked.took.push(began.elapsed()),
            Err(why) => {
                asked.wrong.push(why.to_string());
                line = None;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    asked
}

async fn one_run(line: &mut Line, server: SocketAddr) -> Result<(), Failed> {
    let body = json!({ "input": SAID, "stream": true });
    let text = send(line, server, "/v1/agents/desk/runs", &body).await?;
    let last = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let data = last.lines().find_map(|it| it.strip_prefix("data: ")).unwrap_or_default();
    let data: Value = serde_json::from_str(data)?;
    let deltas = text.matches("event: reply.delta").count();
    if data["outcome"] != "completed" || data["result"]["text"] != REPLY || deltas == 0 {
        return Err(format!("it ended with {deltas} deltas and {last}").into());
    }
    Ok(())
}

/// How long the model alone takes for what one run asks: the least of three times.
pub(crate) async fn own_time(model: SocketAddr) -> Result<Duration, Failed> {
    let (mut line, mut least) = (None, Duration::MAX);
    for _ in 0..3 {
        let began = Instant::now();
        one_alone(&mut line, model).await?;
        least = least.min(began.elapsed());
    }
    Ok(least)
}

/// What one run asks the model, asked without a run.
async fn one_alone(line: &mut Line, model: SocketAddr) -> Result<(), Failed> {
    let call = json!({ "id": "f1", "type": "function",
        "function": { "name": "find_order", "arguments": "{\"order\":\"7\"}" } });
    let said = json!([{ "role": "user", "content": SAID }]);
    let found = json!([said[0], { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "f1", "content": "{}" }]);
    let parameters = json!({ "type": "object", "properties": { "order": { "type": "string" } } });
    let tools = json!([{ "type": "function", "function": { "name": "find_order", "parameters": parameters } }]);
    for messages in [&said, &found] {
        // As the program asks: usage is one event more.
        let body = json!({ "model": "any", "stream": true, "stream_options": { "include_usage": true },
            "messages": messages, "tools": tools });
        send(line, model, "/v1/chat/completions", &body).await?;
    }
    Ok(())
}

/// Sends a request on this connection, or on a new one, and reads the whole answer.
async fn send(line: &mut Line, to: SocketAddr, path: &str, body: &Value) -> Result<String, Failed> {
    if line.as_ref().is_none_or(SendRequest::is_closed) {
        let (sender, connection) = handshake(TokioIo::new(TcpStream::connect(to).await?)).await?;
        tokio::spawn(connection);
        *line = Some(sender);
    }
    let sender = line.as_mut().ok_or("there is no connection")?;
    sender.ready().await?;
    let request = Request::builder().method(Method::POST).uri(path).header(header::HOST, to.to_string());
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let response = sender.send_request(request.body(Full::new(body.to_string().into()))?).await?;
    let status = response.status();
    let text = String::from_utf8(response.into_body().collect().await?.to_bytes().to_vec())?;
    if status.is_success() { Ok(text) } else { Err(format!("{status}: {text}").into()) }
}
