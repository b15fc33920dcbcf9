//! How calls end, and the record of each.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::CallId;

/// How a call ended. A closed list (`spec/contract.md`, 2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// The body returned a result that is no refusal, or someone handed the result in.
    Completed,
    /// The tool said no.
    Refused,
    /// The body returned an error or panicked, or someone handed an error in.
    Failed,
    /// Its time limit passed; whether it had an effect is unknown.
    TimedOut,
    /// The arguments were no JSON object or did not fit the schema.
    InvalidArguments,
    /// No tool of that name was offered.
    UnknownTool,
    /// A hook or a person said no.
    Denied,
    /// The batch was stopped before it began, or the answer had too many calls.
    NotRun,
    /// Cancelled before it began.
    Cancelled,
    /// Its hold was closed by a new message.
    Superseded,
    /// Its hold ran out.
    Expired,
    /// It began, and a crash or a cancellation hid what came of it.
    OutcomeUnknown,
}

impl CallStatus {
    /// The call was closed before it could begin, so that its record shows what the model asked for.
    pub(crate) fn never_began(self) -> bool {
        matches!(self, Self::Denied | Self::NotRun | Self::Cancelled | Self::Superseded | Self::Expired)
    }
}

/// How a call ended, and with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallEnd {
    /// How.
    pub status: CallStatus,
    /// The result, or the error's text.
    pub result: Value,
    /// `result` is an error's text: the model reads `{"error": …}`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Why the tool refused, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The hook's edit broke the schema: not the model's mistake.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hook_edit: bool,
}

impl CallEnd {
    /// Whether a body ran, as far as anybody knows.
    pub(crate) fn began(&self) -> bool {
        use CallStatus::{Completed, Failed, OutcomeUnknown, Refused, TimedOut};
        matches!(self.status, Completed | Refused | Failed | TimedOut | OutcomeUnknown)
    }
}

/// Whose arguments a call ran with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentsBy {
    /// The model's own.
    #[default]
    Model,
    /// The decision replaced them.
    Hook,
    /// The approval replaced them.
    Approver,
}

/// What a tool's body, or whoever ran it, gave back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It returned this.
    Ok(Value),
    /// It failed, or panicked, with this text.
    Error(String),
    /// Its time limit passed.
    TimedOut,
    /// A limit of time passed, and this says which.
    TimedOutWith(String),
    /// It began, and nobody knows what came of it (the connection broke, for instance).
    Unknown,
}

/// The call record: the same wherever calls are handed out (`spec/contract.md`, 2.10).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// The arguments really executed; for calls that did not run, the model's.
    pub arguments: Value,
    /// Whose they are.
    pub arguments_by: ArgumentsBy,
    /// The result, or the error's text.
    pub result: Value,
    /// It did not complete.
    pub is_error: bool,
    /// How it ended.
    pub status: CallStatus,
    /// The trip it was made on.
    pub trip: u32,
    /// Its place in the answer, from 0.
    pub index: u32,
    /// It was found in text.
    pub recovered: bool,
    /// The grants it called, in order, where it is a document's tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<GrantRecord>,
}

/// The record of one grant that a document's tool called (`spec/documents.md`, 3.14).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantRecord {
    /// The id of its tool's call, a slash, and which grant of that call it was, from 0.
    pub id: CallId,
    /// Its full name, `App.refund` for instance.
    pub name: String,
    /// The arguments really executed, by name; for one that did not run, those it was called with.
    pub arguments: Value,
    /// The result, or the error's text.
    pub result: Value,
    /// It did not complete.
    pub is_error: bool,
    /// How it ended.
    pub status: CallStatus,
}
