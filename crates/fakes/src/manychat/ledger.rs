//! Every request of the API with its body and time, so that attempts can be counted (`spec/channel.md`, 24, point 8).

use serde::Serialize;
use serde_json::Value;

use super::faults::Fault;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Which, from 1.
    pub number: u64,
    /// The fake's clock, in milliseconds since 1970.
    pub at_ms: i64,
    /// GET or POST.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The body; null where there is none.
    pub body: Value,
    /// Whether it did what it asked for.
    pub performed: bool,
    /// The status of the answer; none where there was none.
    pub status: Option<u16>,
    /// What is wrong with the request, or the fault that struck it.
    pub why: String,
    /// The fault that struck it.
    pub fault: Option<Fault>,
}

impl Entry {
    /// The path alone.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The contact that it is about, as text; blank where it is about none.
    pub fn contact(&self) -> String {
        match &self.body["subscriber_id"] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        }
    }
}

/// Requests that are kept; the oldest go first.
pub(crate) const ENTRIES_MAX: usize = 100_000;
