//! The journal of a fake: what it was asked, and what it did about it. Bounded: the oldest entries go first.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

/// One request as it came, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Which request of this server it was, from 1.
    pub number: u64,
    /// For instance `POST`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body as it came. Blank where it was longer than the server reads.
    pub body: Bytes,
    /// What was done.
    pub shown: Shown,
}

/// What a fake did about a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// It answered with the `n`-th answer of its script (from 0), chosen by this text of the user.
    Answered {
        /// Which answer.
        n: usize,
        /// The text that chose the section.
        user_text: String,
        /// The faults that it showed, in words; blank for none.
        faults: String,
    },
    /// It refused the request.
    Refused {
        /// The HTTP status.
        status: u16,
        /// What is wrong, and where.
        message: String,
    },
    /// Something without a script: health, the list of models, the call of a tool.
    Plain {
        /// The HTTP status; none where it closed the connection or kept silent.
        status: Option<u16>,
    },
}

impl Seen {
    /// The value of a header. `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.body.len() + self.target.len() + headers
    }

    /// The entry as JSON for everybody who can reach the port: without keys.
    fn to_json(&self) -> Value {
        let secret = |name: &str| matches!(name, "authorization" | "x-api-key" | "api-key" | "cookie");
        let shown = |(name, value): &(String, String)| {
            (name.clone(), if secret(name) { "(hidden)".into() } else { Value::from(value.clone()) })
        };
        let body: Value = serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| String::from_utf8_lossy(&self.body).into_owned().into());
        let headers: serde_json::Map<String, Value> = self.headers.iter().map(shown).collect();
        let outcome = match &self.shown {
            Shown::Answered { n, user_text, faults } => {
                json!({"answered": {"n": n, "user_text": user_text, "faults": faults}})
            }
            Shown::Refused { status, message } => json!({"refused": {"status": status, "message": message}}),
            Shown::Plain { status } => json!({"status": status}),
        };
        json!({"number": self.number, "method": self.method, "target": self.target, "headers": headers,
            "body": body, "outcome": outcome})
    }
}

/// What a fake was asked, newest last.
#[derive(Debug)]
pub struct Journal {
    kept: Mutex<Kept>,
    entries_max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    entries: VecDeque<Seen>,
    bytes: usize,
    count: u64,
}

/// Bodies and headers that a journal keeps at most, in bytes.
const BYTES_MAX: usize = 64 << 20;

impl Journal {
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { kept: Mutex::default(), entries_max }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing that is done under the lock can leave it half done.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, mut seen: Seen) {
        let mut kept = self.kept();
        kept.count += 1;
        seen.number = kept.count;
        kept.bytes += seen.bytes();
        kept.entries.push_back(seen);
        while kept.entries.len() > self.entries_max || kept.bytes > BYTES_MAX {
            let Some(oldest) = kept.entries.pop_front() else { break };
            kept.bytes -= oldest.bytes();
        }
    }

    /// The entries that are kept.
    pub fn entries(&self) -> Vec<Seen> {
        self.kept().entries.iter().cloned().collect()
    }

    /// How many requests there were, forgotten ones included.
    pub fn count(&self) -> u64 {
        self.kept().count
    }

    /// The messages of the requests that were refused.
    pub fn refusals(&self) -> Vec<String> {
        let refusal = |seen: Seen| match seen.shown {
            Shown::Refused { message, .. } => Some(message),
            Shown::Answered { .. } | Shown::Plain { .. } => None,
        };
        self.entries().into_iter().filter_map(refusal).collect()
    }

    /// The entries as a JSON array, keys hidden: what `GET /__journal` gives.
    pub fn to_json(&self) -> Value {
        self.kept().entries.iter().map(Seen::to_json).collect()
    }
}
