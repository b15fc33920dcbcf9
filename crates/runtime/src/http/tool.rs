//! Tools that are HTTP endpoints (`spec/contract.md`, 2.11).

use std::sync::Arc;

use bytes::Bytes;
use gesta_model::transport::{Received, TransportError};
use gesta_run::call::Answer;
use gesta_run::json::{self, Object};
use http::StatusCode;
use serde_json::Value;

use super::caller::{Call, Caller, HttpCaller, text_of};
use super::headers::Scoped;
use crate::folder::{Endpoint, Secrets};
use crate::tool::{AnswerFuture, Scope, ToolBody};

/// The longest body of an answer, in bytes.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// The longest error text that is handed on, in bytes.
const ERROR_BYTES_MAX: usize = 4 * 1024;

/// The body of a tool that is an endpoint.
#[derive(Debug)]
pub struct HttpTool {
    caller: Arc<Caller>,
    call: Call,
}

impl HttpCaller {
    /// The body of a tool at an endpoint. The request may take `time_limit_ms` in all.
    pub fn tool(&self, endpoint: &Endpoint, secrets: &Secrets, time_limit_ms: u64) -> HttpTool {
        HttpTool { caller: self.0.clone(), call: Call::new(&endpoint.url, &endpoint.headers, secrets, time_limit_ms) }
    }
}

impl ToolBody for HttpTool {
    fn call(&self, arguments: Object, scope: Scope) -> AnswerFuture {
        let (caller, call) = (self.caller.clone(), self.call.clone());
        Box::pin(async move {
            let body = serde_json::json!({ "arguments": arguments }).to_string();
            let scoped = Scoped {
                idempotency_key: scope.idempotency_key(),
                run: scope.run.as_str(),
                conversation: scope.conversation.as_ref().map(|it| it.as_str()),
                contact: scope.contact.as_ref().map(|it| it.as_str()),
            };
            match caller.post(&call, &scoped, Bytes::from(body), BODY_BYTES_MAX).await {
                Ok(received) => call.hide(answer(&received)),
                Err(why) => failure(&why),
            }
        })
    }
}

/// What an answer of the server means.
fn answer(received: &Received) -> Answer {
    let status = received.status;
    let text = text_of(received);
    if status.is_success() {
        return match text {
            Ok(text) => Answer::Ok(result(text)),
            Err(why) => Answer::Error(format!("the call was made, but its answer {why}, and was not read")),
        };
    }
    if let Ok(text) = text
        && status.is_client_error()
        && !text.trim().is_empty()
    {
        return Answer::Error(json::cut(text, ERROR_BYTES_MAX).to_owned());
    }
    if status.is_redirection() {
        return Answer::Error(format!("the tool's server answered with a redirect ({status}), which is not followed"));
    }
    Answer::Error(said(status))
}

fn said(status: StatusCode) -> String {
    format!("the tool's server answered {status}")
}

/// The JSON of the body; its text where it is none.
fn result(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Null;
    }
    json::read_strict(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// What it means that no answer came. Where nothing was sent, nothing can have happened; else nobody knows.
fn failure(why: &TransportError) -> Answer {
    match why {
        TransportError::Timeout(_) => Answer::TimedOut,
        TransportError::TooLong { bytes_max } => Answer::Error(format!(
            "the call was made, but its answer is longer than {bytes_max} bytes and was not read"
        )),
        why if why.may_have_arrived() => Answer::Unknown,
        why => Answer::Error(format!("the call was not made: {why}")),
    }
}
