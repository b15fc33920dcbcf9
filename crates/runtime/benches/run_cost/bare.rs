//! The least a program can do for the same run: an HTTP client, serde, a loop. No limits, no checks, no log.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::words;

/// What requests go over.
#[derive(Clone)]
pub(crate) enum Http {
    Reqwest(reqwest::Client),
    Hyper(Client<HttpConnector, Full<Bytes>>),
}

impl Http {
    pub(crate) fn reqwest() -> Self {
        Self::Reqwest(reqwest::Client::builder().no_proxy().build().expect("a client without TLS can be built"))
    }

    pub(crate) fn hyper() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self::Hyper(Client::builder(TokioExecutor::new()).build(connector))
    }

    async fn post(&self, url: &str, body: Vec<u8>) -> Body {
        const JSON: &str = "application/json";
        match self {
            Self::Reqwest(client) => {
                let sent = client.post(url).header("content-type", JSON).body(body).send().await;
                Body::Reqwest(sent.expect("the server answers"))
            }
            Self::Hyper(client) => {
                let request = http::Request::post(url).header("content-type", JSON).body(Full::from(body));
                let sent = client.request(request.expect("the address is good")).await;
                Body::Hyper(sent.expect("the server answers").into_body())
            }
        }
    }
}

enum Body {
    Reqwest(reqwest::Response),
    Hyper(Incoming),
}

impl Body {
    async fn piece(&mut self) -> Option<Bytes> {
        match self {
            Self::Reqwest(response) => response.chunk().await.expect("the body is whole"),
            Self::Hyper(body) => body.frame().await?.expect("the body is whole").into_data().ok(),
        }
    }

    async fn whole(self) -> Bytes {
        match self {
            Self::Reqwest(response) => response.bytes().await.expect("the body is whole"),
            Self::Hyper(body) => body.collect().await.expect("the body is whole").to_bytes(),
        }
    }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'static str,
    messages: &'a [Message],
    tools: &'a RawValue,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Message {
    role: &'static str,
    content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Call {
    id: String,
    r#type: String,
    function: Function,
}

#[derive(Default, Serialize, Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
}

#[derive(Default, Deserialize)]
struct Said {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<CallPart>,
}

#[derive(Deserialize)]
struct CallPart {
    index: usize,
    id: Option<String>,
    function: FunctionPart,
}

#[derive(Deserialize)]
struct FunctionPart {
    name: Option<String>,
    arguments: String,
}

fn message(role: &'static str, content: &str) -> Message {
    Message { role, content: Some(content.to_owned()), tool_calls: Vec::new(), tool_call_id: None }
}

/// A program that does the run.
#[derive(Clone)]
pub(crate) struct Bare {
    pub(crate) http: Http,
    url: String,
    tools: std::sync::Arc<RawValue>,
    stream: bool,
}

impl Bare {
    pub(crate) fn new(http: Http, base: &str, stream: bool) -> Self {
        let tools = RawValue::from_string(words::TOOLS.to_owned()).expect("the definitions are JSON");
        Self { http, url: format!("{base}/chat/completions"), tools: tools.into(), stream }
    }

    /// Does one run, and says how long the text was that came out.
    pub(crate) async fn run(&self) -> usize {
        let mut messages = vec![message("system", words::INSTRUCTIONS), message("user", words::INPUT)];
        let mut shown = 0;
        loop {
            let stream_options = self.stream.then_some(StreamOptions { include_usage: true });
            let request = Request {
                model: "measured",
                messages: &messages,
                tools: &self.tools,
                stream: self.stream,
                stream_options,
            };
            let body = serde_json::to_vec(&request).expect("a request can be written");
            let answer = self.http.post(&self.url, body).await;
            let said = if self.stream { follow(answer, &mut shown).await } else { read(answer).await };
            if said.tool_calls.is_empty() {
                return said.content.map_or(0, |text| text.len()).max(shown);
            }
            let results: Vec<Message> = said.tool_calls.iter().map(result).collect();
            let role = "assistant";
            messages.push(Message { role, content: said.content, tool_calls: said.tool_calls, tool_call_id: None });
            messages.extend(results);
        }
    }
}

fn result(call: &Call) -> Message {
    let arguments = serde_json::from_str(&call.function.arguments).expect("the arguments fit");
    let done = crate::agent::act(&arguments);
    let content = serde_json::to_string(&done).expect("a result can be written");
    Message { role: "tool", content: Some(content), tool_calls: Vec::new(), tool_call_id: Some(call.id.clone()) }
}

async fn read(body: Body) -> Said {
    let body = body.whole().await;
    let answer: Answer = serde_json::from_slice(&body).expect("the answer is good");
    answer.choices.into_iter().next().map(|choice| choice.message).unwrap_or_default()
}

async fn follow(mut body: Body, shown: &mut usize) -> Said {
    let mut said = Said::default();
    let mut buffer: Vec<u8> = Vec::new();
    while let Some(piece) = body.piece().await {
        buffer.extend_from_slice(&piece);
        let mut begun = 0;
        while let Some(length) = memchr::memmem::find(&buffer[begun..], b"\n\n") {
            let data = buffer[begun..begun + length].strip_prefix(b"data: ");
            if let Some(data) = data.filter(|data| *data != b"[DONE]") {
                take(&mut said, serde_json::from_slice(data).expect("the event is good"), shown);
            }
            begun += length + 2;
        }
        buffer.drain(..begun);
    }
    said
}

fn take(said: &mut Said, chunk: Chunk, shown: &mut usize) {
    let Some(part) = chunk.choices.into_iter().next() else { return };
    if let Some(text) = part.delta.content {
        *shown += text.len();
        said.content.get_or_insert_default().push_str(&text);
    }
    for part in part.delta.tool_calls {
        if part.index >= said.tool_calls.len() {
            said.tool_calls.resize_with(part.index + 1, Call::default);
        }
        let call = &mut said.tool_calls[part.index];
        if let Some(id) = part.id {
            (call.id, call.r#type) = (id, "function".to_owned());
        }
        call.function.name.push_str(&part.function.name.unwrap_or_default());
        call.function.arguments.push_str(&part.function.arguments);
    }
}
