//! A client that knows nothing of the server but HTTP.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::described;

/// A client of one server.
#[derive(Clone)]
pub(crate) struct Client {
    at: SocketAddr,
    headers: Vec<(String, String)>,
}

/// What the server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// The body of an answer that is no problem.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{self:?}");
        self.json()
    }

    /// The problem document with this status and code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        let problem = self.json();
        assert_eq!((self.status.as_u16(), problem["code"].as_str()), (status, Some(code)), "{problem}");
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(problem["status"], status);
        assert!(problem["detail"].as_str().is_some_and(|it| !it.is_empty()), "{problem}");
        problem
    }
}

impl Client {
    pub(crate) fn new(at: SocketAddr) -> Self {
        Self { at, headers: Vec::new() }
    }

    /// The same with one more header on every request.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// Where its server is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.at
    }

    /// What it sends under this name.
    pub(crate) fn header(&self, name: &str) -> String {
        let found = self.headers.iter().rev().find(|(it, _)| it == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.ask(Method::DELETE, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask(Method::POST, path, Some(body.to_string())).await
    }

    /// Sends a body as it stands.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<String>) -> Answer {
        let is_description = path == "/openapi.json";
        let response = self.send(method.clone(), path, body).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let answer = Answer { status: parts.status, headers: parts.headers, body };
        if !is_description {
            described::check(&method, path, &answer);
        }
        answer
    }

    /// As a browser asks for a page, which the description does not know.
    pub(crate) async fn raw(&self, method: Method, path: &str, body: Option<&str>) -> Answer {
        let response = self.send(method, path, body.map(str::to_owned)).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// Whether something is given at all, for what never ends.
    pub(crate) async fn status(&self, path: &str) -> StatusCode {
        self.send(Method::GET, path, None).await.status()
    }

    /// Follows a run, or begins one and follows it.
    pub(crate) async fn events(&self, method: Method, path: &str, body: Option<Value>) -> Events {
        let client = self.with("accept", "text/event-stream");
        let response = client.send(method, path, body.map(|it| it.to_string())).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        Events { body: response.into_body(), text: String::new() }
    }

    async fn send(&self, method: Method, path: &str, body: Option<String>) -> http::Response<Incoming> {
        let stream = TcpStream::connect(self.at).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        let names: Vec<String> = self.headers.iter().map(|(name, _)| name.to_lowercase()).collect();
        if !names.iter().any(|name| name == "host") {
            request = request.header(header::HOST, self.at.to_string());
        }
        if body.is_some() && !names.iter().any(|name| name == "content-type") {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(body.unwrap_or_default()))).unwrap();
        sender.send_request(request).await.unwrap()
    }
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// A stream of them.
pub(crate) struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    /// The next one; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let said = said(block);
                self.text = rest.to_owned();
                match said {
                    Some(said) => return Some(said),
                    None => continue,
                }
            }
            let frame = self.body.frame().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    }

    /// All up to the next of this name, that one included.
    pub(crate) async fn until(&mut self, name: &str) -> Vec<Said> {
        let mut all = Vec::new();
        while let Some(said) = self.next().await {
            let last = said.name == name;
            all.push(said);
            if last {
                return all;
            }
        }
        panic!("no {name} came: {all:?}")
    }

    /// All to the end.
    pub(crate) async fn all(mut self) -> Vec<Said> {
        let mut all = Vec::new();
        while let Some(said) = self.next().await {
            all.push(said);
        }
        all
    }
}

fn said(block: &str) -> Option<Said> {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        lines.map(|it| it.trim_start().to_owned()).next()
    };
    let data = field("data")?;
    Some(Said { name: field("event")?, id: field("id"), data: serde_json::from_str(&data).unwrap() })
}
