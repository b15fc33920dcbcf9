//! Faults that can be switched on, per endpoint and for the nth call (`spec/channel.md`, 24, point 5).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// It is performed and answered, later. Milliseconds.
    DelayMs(u64),
    /// Nothing is performed, and nobody answers.
    Hang,
    /// 400 with details, performed is nothing.
    Details,
    /// 400 with a code, performed is nothing.
    Code(i64),
    /// Any other status: 401, 403, 404, 429, 500, 502.
    Status(u16),
    /// 429 with `Retry-After`. Seconds.
    RetryAfter(u64),
    /// 200 with an error in it, performed is nothing.
    ErrorIn2xx,
    /// 200 with a page of HTML, performed is nothing.
    NotJson,
    /// It is performed, and nobody answers.
    PerformedAndHung,
    /// It is performed, and the connection closes without an answer.
    PerformedAndCut,
    /// It is accepted, and the contact gets nothing.
    NotDelivered,
}

impl Fault {
    /// Whether the call does what it asks for.
    pub(crate) fn performs(self) -> bool {
        matches!(self, Self::DelayMs(_) | Self::PerformedAndHung | Self::PerformedAndCut)
    }

    /// The answer that it gives in place of ManyChat's; none where it gives ManyChat's own or none at all.
    pub(crate) fn answer(self) -> Option<(u16, Value)> {
        Some(match self {
            Self::Details => (400, details("Validation error", "something is not valid")),
            Self::Code(code) => (400, json!({"status": "error", "message": "It cannot be done", "code": code})),
            Self::Status(status) => (status, json!({"error": "status"})),
            Self::RetryAfter(_) => (429, json!({"error": "too many requests"})),
            Self::ErrorIn2xx => (200, json!({"status": "error", "message": "It was not done", "code": 2000})),
            Self::NotJson => (200, Value::Null),
            Self::DelayMs(_) | Self::Hang | Self::PerformedAndHung | Self::PerformedAndCut | Self::NotDelivered => {
                return None;
            }
        })
    }
}

/// ManyChat's first shape of an error.
pub(crate) fn details(message: &str, why: &str) -> Value {
    json!({"status": "error", "message": message, "details": {"messages": [{"message": why}]}})
}

/// A fault, switched on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// The path of an endpoint, `/fb/sending/sendFlow` for instance; blank for all of them.
    #[serde(default)]
    pub endpoint: String,
    /// Which call of those that it meets from now on, from 1; none for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// What goes wrong.
    pub fault: Fault,
    /// The calls met so far.
    #[serde(default, skip)]
    pub met: u64,
}

impl Switch {
    /// A fault at each call of an endpoint.
    pub fn each(endpoint: &str, fault: Fault) -> Self {
        Self { endpoint: endpoint.to_owned(), nth: None, fault, met: 0 }
    }

    /// A fault at the nth call of an endpoint from now on, from 1.
    pub fn nth(endpoint: &str, nth: u64, fault: Fault) -> Self {
        Self { nth: Some(nth), ..Self::each(endpoint, fault) }
    }

    /// Whether it strikes this call; counts it.
    pub(crate) fn strikes(&mut self, path: &str) -> bool {
        if !self.endpoint.is_empty() && self.endpoint != path {
            return false;
        }
        self.met += 1;
        self.nth.is_none_or(|nth| nth == self.met)
    }
}
