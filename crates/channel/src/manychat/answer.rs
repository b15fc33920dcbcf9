//! What an answer of ManyChat means. A 2xx is a success only when its body says so (`spec/channel.md`, L3).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::request::Operation;

/// A call that did not succeed. Its text holds endpoint, status and ManyChat's message, never key or parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The endpoint.
    pub operation: Operation,
    /// What happened.
    pub failure: Failure,
    /// ManyChat's message, cut; blank where it gave none.
    pub message: String,
    /// ManyChat's code, where it gave one: 3011 is outside the 24-hour window.
    pub code: Option<i64>,
    /// How long ManyChat asked to wait.
    pub retry_after_ms: Option<u64>,
}

/// How a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A status that is no 2xx.
    Status(u16),
    /// A 2xx whose body says that it is an error, or does not say that it is none.
    Refused(u16),
    /// A 2xx whose body is no JSON object.
    NotJson(u16),
    /// No answer in time.
    TimedOut,
    /// The caller let go.
    Aborted,
    /// No connection, or it broke.
    Network,
    /// There is no `MANYCHAT_API_TOKEN`.
    NoToken,
}

impl CallError {
    /// A failure without an answer.
    pub fn without_answer(operation: Operation, failure: Failure) -> Self {
        Self { operation, failure, message: String::new(), code: None, retry_after_ms: None }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.operation.path())?;
        match self.failure {
            Failure::Status(status) => write!(f, "status {status}")?,
            Failure::Refused(status) => write!(f, "status {status} with an error")?,
            Failure::NotJson(status) => write!(f, "status {status} without JSON")?,
            Failure::TimedOut => f.write_str("timeout")?,
            Failure::Aborted => f.write_str("aborted")?,
            Failure::Network => f.write_str("network")?,
            Failure::NoToken => f.write_str("no MANYCHAT_API_TOKEN is set; set it and start again")?,
        }
        if let Some(code) = self.code {
            write!(f, ", code {code}")?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for CallError {}

/// ManyChat's messages are cut to this. Characters.
const MESSAGE_CHARS_MAX: usize = 300;

/// Reads an answer. `retry_after` is the header's value.
///
/// # Errors
/// What kind of failure it is; both of ManyChat's shapes are read.
pub fn read(operation: Operation, status: u16, retry_after: Option<&str>, body: &[u8]) -> Result<Value, CallError> {
    let parsed = serde_json::from_slice::<Value>(body).ok().filter(Value::is_object);
    let ok = (200..300).contains(&status);
    let failure = match &parsed {
        Some(body) if ok && body.get("status").and_then(Value::as_str) == Some("success") => {
            return Ok(body.get("data").cloned().unwrap_or_default());
        }
        Some(_) if ok => Failure::Refused(status),
        None if ok => Failure::NotJson(status),
        _ => Failure::Status(status),
    };
    let body = parsed.unwrap_or_default();
    let seconds = retry_after.and_then(|it| it.trim().parse::<u64>().ok());
    Err(CallError {
        operation,
        failure,
        message: message(&body),
        code: body.get("code").and_then(Value::as_i64),
        retry_after_ms: seconds.map(|it| it.saturating_mul(1000)),
    })
}

/// The message and those of its details, on one line.
fn message(body: &Value) -> String {
    let details = body.pointer("/details/messages").and_then(Value::as_array).into_iter().flatten();
    let details = details.filter_map(|it| it.get("message").and_then(Value::as_str));
    let all: Vec<&str> = body.get("message").and_then(Value::as_str).into_iter().chain(details).collect();
    crate::text::collapse(&all.join("; ")).chars().take(MESSAGE_CHARS_MAX).collect()
}

/// What of a contact leaves the client: names of tags, values of fields, nothing that identifies (`spec/channel.md`, 16).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contact {
    /// Names of the tags that are set.
    pub tags: BTreeSet<String>,
    /// Values of the fields that are set and not blank, by name.
    pub fields: BTreeMap<String, String>,
}

/// Cuts the data of `getInfo` down.
pub fn read_contact(data: &Value) -> Contact {
    let list = |key| data.get(key).and_then(Value::as_array).into_iter().flatten();
    let name = |it: &Value| it.get("name").and_then(Value::as_str).map(str::to_owned);
    let field = |it: &Value| {
        let value = match it.get("value")? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((name(it)?, value)).filter(|(_, value)| !value.trim().is_empty())
    };
    Contact { tags: list("tags").filter_map(name).collect(), fields: list("custom_fields").filter_map(field).collect() }
}
