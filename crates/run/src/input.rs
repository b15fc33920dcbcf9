//! What the world tells a run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::Answer;
use crate::decision::Ruling;
use crate::hold::HoldAnswer;
use crate::id::{ContactId, ConversationId, RunId, WantId};
use crate::json::Object;
use crate::message::Part;
use crate::reply::{Fault, Reply};
use crate::time::Timestamp;
use crate::tool::ToolSpec;
use crate::traceparent::TraceParent;

/// One thing the world tells, with its time.
#[derive(Debug, Clone)]
pub struct Input {
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub kind: InputKind,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum InputKind {
    /// A user spoke: the run begins.
    Opened(Opening),
    /// A want was met.
    Met {
        /// Which.
        want: WantId,
        /// With what.
        met: Met,
    },
    /// Someone answered holds: all answers are valid, or none counts.
    Answers {
        /// What they said.
        answers: Vec<HoldAnswer>,
        /// Held tools that this process does not have: approving their calls is refused before anything runs.
        missing_tools: Vec<String>,
        /// The new `NOW:` notice.
        now: String,
    },
    /// Whoever ended for want of trips or of a model goes on.
    Resumed {
        /// A higher limit of trips.
        trips_max: Option<u32>,
        /// The new `NOW:` notice.
        now: String,
    },
    /// A new message of the same contact closes a parked run, and one that could still have gone on.
    Superseded,
    /// Another process took the run up from its log: what had begun and is not answered has an unknown outcome.
    Recovered,
    /// Time passed.
    Tick,
    /// The cancellation signal fired.
    Cancelled,
}

/// How a run begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// The run's name.
    pub run: RunId,
    /// The conversation it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// Who is at the other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<ContactId>,
    /// What was said.
    pub input: Vec<Part>,
    /// The turn's `NOW:` notice: time and zone, without the word.
    pub now: String,
    /// The trace that the turn belongs to, where its caller named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

/// What came of a want.
#[derive(Debug, Clone)]
pub enum Met {
    /// `Offer`: the tools beyond the plan's, and the plan's that are gone.
    Offered {
        /// Tools added to those of the plan.
        added: Vec<ToolSpec>,
    },
    /// `CallModel`: it answered.
    Replied(Reply),
    /// `CallModel`: it failed for good. `Offer`: nobody can say which tools there are.
    Failed(Fault),
    /// `Decide`, `DecideGrant`.
    Decided(Ruling),
    /// `RunTool`: the running call of a document's tool asks for a grant. The want stands.
    Asked {
        /// Which grant of that call, from 0: a repetition is out of turn.
        n: u32,
        /// Its full name, `App.refund` for instance.
        grant: String,
        /// The arguments, by name.
        arguments: Object,
    },
    /// `RunTool`, `RunGrant`.
    Answered(Answer),
    /// `Detect`: whether the backstop is wanted; an error is a log line and a *no*.
    Detected(Result<bool, String>),
    /// `RunBackstop`: what it returned.
    Ran(Result<Ran, String>),
    /// `Deliver`: it reached the client.
    Delivered {
        /// By which path, for instance `inline`.
        path: String,
    },
    /// `Perform`: the single attempt.
    Performed(Attempt),
}

/// What a backstop returned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ran {
    /// A prompt for the model.
    pub prompt: Option<String>,
    /// The shared state as it is now, where it can be serialised.
    pub state: Option<Value>,
}

/// What came of performing a staged action, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempt {
    /// Its receiver accepted it.
    Performed,
    /// It did not, or nobody knows (`outcome_unknown`).
    Failed {
        /// Why.
        error: String,
    },
}
