//! Calls that wait for someone outside, and what may be said to them (`spec/contract.md`, 7.3 to 7.5).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, RunId};
use crate::json::Object;
use crate::time::Timestamp;
use crate::tool::Accepts;

/// What a hold is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldKind {
    /// A call: the run is parked until it is answered.
    Call,
    /// A staged action: the turn does not wait for it.
    Action,
}

/// How far a hold has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldState {
    /// It waits for an answer.
    Open,
    /// An approved call was executing when the process died: only `result`, `error` or `outcome_unknown` help.
    Undecided,
}

/// What an approval is bound to: it counts for exactly this and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The run.
    pub run_id: RunId,
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// SHA-256 over the tool's name, a zero byte and the exact arguments in canonical JSON.
    pub fingerprint: String,
    /// The hash of the plan under which the run parked.
    pub config_version: String,
}

/// One call, or staged action, that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// The call's id.
    pub id: CallId,
    /// What waits.
    pub kind: HoldKind,
    /// The tool.
    pub name: String,
    /// The model's arguments.
    pub arguments: Object,
    /// Why it was deferred, where the decision said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The trip it was made on.
    pub trip: u32,
    /// Its place in the answer, from 0.
    pub index: u32,
    /// Which answers it takes.
    pub accepts: Accepts,
    /// When it runs out, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// How far it has come.
    pub state: HoldState,
    /// What an answer must quote.
    pub binding: Binding,
}

/// An answer to a hold: the binding it quotes, and what it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoldAnswer {
    /// The binding of the hold, as it was handed out.
    pub binding: Binding,
    /// What it says.
    pub answer: HoldReply,
}

/// What may be said to a hold. Exactly one of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReply {
    /// The body runs now, with the model's arguments or with these.
    Approve {
        /// Instead of the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Object>,
    },
    /// It does not run; the model reads the reason.
    Deny {
        /// Not blank.
        reason: String,
    },
    /// It was done elsewhere, and this came of it.
    Result {
        /// The result.
        value: Value,
    },
    /// It was tried elsewhere, or cannot be done.
    Error {
        /// The error's text.
        text: String,
    },
    /// Nobody knows: only for a hold that is undecided.
    OutcomeUnknown,
}

/// Why answers to holds were refused. Nothing was recorded and nothing ran.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The run has no such hold.
    #[error("no hold `{call}`; open: {}", list(.open))]
    UnknownCall {
        /// What was named.
        call: CallId,
        /// What could have been named.
        open: Vec<CallId>,
    },
    /// The run is not waiting for answers.
    #[error("the run has ended ({0}); its holds are closed")]
    RunEnded(String),
    /// The binding differs. To be logged as a security event.
    #[error("hold `{call}`: the answer is bound to another {part}")]
    Binding {
        /// The hold.
        call: CallId,
        /// What differs: `run`, `tool`, `fingerprint` or `config_version`.
        part: &'static str,
    },
    /// It is too deep to be kept.
    #[error("hold `{call}`: what was handed in is nested more than {} levels deep", crate::json::DEPTH_MAX)]
    TooDeep {
        /// The hold.
        call: CallId,
    },
    /// Another answer was there first, or two of one request differ.
    #[error("hold `{call}`: another answer was given first")]
    Conflict {
        /// The hold.
        call: CallId,
    },
    /// The hold does not take this kind of answer.
    #[error("hold `{call}`: does not take `{kind}` (it accepts {accepts})")]
    NotAccepted {
        /// The hold.
        call: CallId,
        /// What was said.
        kind: &'static str,
        /// What it takes.
        accepts: &'static str,
    },
    /// A denial without a reason.
    #[error("hold `{call}`: a denial needs a reason")]
    NoReason {
        /// The hold.
        call: CallId,
    },
    /// Edited arguments break the schema.
    #[error("hold `{call}`: the arguments do not fit the tool's schema: {issues}")]
    Arguments {
        /// The hold.
        call: CallId,
        /// What does not fit.
        issues: String,
    },
    /// It ran out.
    #[error("hold `{call}`: has expired")]
    Expired {
        /// The hold.
        call: CallId,
    },
    /// The tool is gone; bring it back and answer again, or force an error for the call.
    #[error("hold `{call}`: tool `{tool}` is not there any more")]
    ToolGone {
        /// The hold.
        call: CallId,
        /// The tool.
        tool: String,
    },
}

fn list(ids: &[CallId]) -> String {
    let ids: Vec<&str> = ids.iter().map(CallId::as_str).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}
