//! What became of each action of a turn: ids and values of the configuration, never ManyChat's names or a contact's words
//! (`spec/channel.md`, 11).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What became of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Written down; not delivered, or not approved, or lost with an inline run that died.
    Staged,
    /// ManyChat said yes.
    Performed,
    /// Refused, timed out, or of unknown outcome.
    Failed,
    /// Given up before any attempt.
    Discarded,
    /// The turn was full.
    DroppedOverCap,
    /// Went down with its outbox row.
    DeadLettered,
}

impl Status {
    /// Whether an action may go from this to that: each does so once, under compare-and-set (`spec/channel.md`, L51).
    pub fn may_become(self, next: Self) -> bool {
        self == Self::Staged && !matches!(next, Self::Staged | Self::DroppedOverCap)
    }
}

/// One entry of a turn's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The tool, or `send_event`.
    pub tool: String,
    /// The id in the tenant's files.
    pub id: String,
    /// A field's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Of a note: its length in characters, never its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// What became of it.
    pub status: Status,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `opening` or `stage`, where the server sent it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Set where this is what opened the gate of a payment link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_asked: Option<bool>,
}

/// A turn's `actions`: null where no tool was offered and nothing sent, a list otherwise.
pub fn actions(tools_offered: bool, entries: &[Entry]) -> Value {
    if tools_offered || !entries.is_empty() { serde_json::to_value(entries).unwrap_or_default() } else { Value::Null }
}
