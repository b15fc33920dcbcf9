//! What a service says when it refuses a request or fails: status and body in the form of each protocol.

use serde_json::{Value, json};

/// Which protocol a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Chat Completions, as OpenAI and compatible servers speak it.
    OpenAi,
    /// Messages, as Anthropic speaks it.
    Anthropic,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// OpenAI's `code`.
    pub(crate) code: Option<&'static str>,
    /// OpenAI's `param`: the place in the request.
    pub(crate) param: Option<String>,
    /// What is wrong, and where.
    pub(crate) message: String,
}

/// The outcome of a check.
pub(crate) type Checked<T = ()> = Result<T, Refusal>;

impl Refusal {
    /// A bad request.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::with_status(400, message)
    }

    pub(crate) fn with_status(status: u16, message: impl Into<String>) -> Self {
        Self { status, code: None, param: None, message: message.into() }
    }

    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    pub(crate) fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// The error object in the form of a protocol.
    pub(crate) fn body(&self, protocol: Protocol) -> Value {
        let kind = kind_of_status(protocol, self.status);
        match protocol {
            Protocol::OpenAi => json!({"error": {
                "message": self.message, "type": kind, "param": self.param, "code": self.code,
            }}),
            Protocol::Anthropic => json!({
                "type": "error",
                "error": {"type": kind, "message": self.message},
                "request_id": "req_fake",
            }),
        }
    }
}

/// How a service calls the errors of a status.
fn kind_of_status(protocol: Protocol, status: u16) -> &'static str {
    match (protocol, status) {
        (Protocol::Anthropic, 401) => "authentication_error",
        (Protocol::Anthropic, 403) => "permission_error",
        (Protocol::Anthropic, 404) => "not_found_error",
        (Protocol::Anthropic, 413) => "request_too_large",
        (Protocol::Anthropic, 429) => "rate_limit_error",
        (Protocol::Anthropic, 503 | 529) => "overloaded_error",
        (Protocol::Anthropic, 500..) => "api_error",
        (Protocol::OpenAi, 429) => "requests",
        (Protocol::OpenAi, 500..) => "server_error",
        (Protocol::OpenAi | Protocol::Anthropic, _) => "invalid_request_error",
    }
}

/// What a service usually says beside a status that the faults ask for.
pub(crate) fn usual(protocol: Protocol, status: u16) -> Refusal {
    let message = match (protocol, status) {
        (_, 401) => "the fake refuses this key on request",
        (_, 429) => "Rate limit reached. Please try again later.",
        (Protocol::Anthropic, 529 | 503) => "Overloaded",
        (_, 500..) => "The server had an error while processing your request.",
        _ => "the fake answers with this status on request",
    };
    let refusal = Refusal::with_status(status, message);
    match status {
        429 => refusal.code("rate_limit_exceeded"),
        _ => refusal,
    }
}
