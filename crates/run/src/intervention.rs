//! What the runtime did of its own accord around the model's answers (`spec/contract.md`, 5).

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Which option of chapter 3 it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum InterventionKind {
    Backstop,
    ToolRefusal,
    ActWhenAsked,
}

/// On which side of the model a backstop stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Once, ahead of the first model call.
    Before,
    /// On every answer that would be final.
    #[default]
    After,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterventionOutcome {
    /// The prompt was sent.
    Sent,
    /// There was nothing to send.
    NoPrompt,
    /// It was due and did not happen.
    Skipped,
}

/// Why it did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// No trip is left.
    NoTripsLeft,
    /// Its own budget is used.
    BudgetUsed,
    /// Every missing tool was denied: a refusal by policy or person is not to be worked around.
    Denied,
    /// The run was cancelled.
    Cancelled,
    /// Another prompt went first.
    OtherFired,
    /// Its function failed or took too long.
    Error,
}

/// One intervention, on the trip whose answer caused it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intervention {
    /// Which option.
    pub kind: InterventionKind,
    /// Before or after the model.
    pub phase: Phase,
    /// The trip whose answer caused it; 0 for those before.
    pub trip: u32,
    /// The backstop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Required or refused tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Index of the matched intent, the refusals' reasons, or the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The text sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What came of it.
    pub outcome: InterventionOutcome,
    /// Why it did not happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Attempts permitted.
    pub limit: u32,
    /// When.
    pub at: Timestamp,
    /// How long its function took.
    pub duration_ms: u64,
}
