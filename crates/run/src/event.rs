//! What has happened in a run. The log of events is the truth; a run is its fold.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::call::CallEnd;
use crate::decision::Decision;
use crate::hold::HoldReply;
use crate::id::CallId;
use crate::input::{Attempt, Opening};
use crate::intervention::Intervention;
use crate::json::Object;
use crate::outcome::Outcome;
use crate::reply::{Fault, Reply};
use crate::time::Timestamp;
use crate::tool::ToolSpec;

/// Version of the event log's form. A change of form raises it, comes with a migration, and leaves an old log in
/// `fixtures/` that still loads.
pub const LOG_VERSION: u32 = 2;

/// One thing that has happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: EventKind,
}

/// What has happened, in the past tense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A user spoke.
    Opened {
        /// Who, what, when.
        opening: Opening,
        /// The index of the intent it matched, where `act_when_asked` is on and one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<u32>,
    },
    /// The list of tools was read anew and differs from the plan's.
    Offered {
        /// The trip it is for.
        trip: u32,
        /// SHA-256 of the whole list.
        hash: String,
        /// The tools beyond the plan's.
        added: Vec<ToolSpec>,
    },
    /// The model answered.
    Replied {
        /// The trip.
        trip: u32,
        /// The answer, with leaked calls already turned into calls.
        reply: Reply,
        /// What each of its calls became, in order.
        calls: Vec<Resolved>,
    },
    /// The model call failed for good.
    ModelFailed {
        /// The trip.
        trip: u32,
        /// Why.
        fault: Fault,
    },
    /// A call got its decision.
    Decided {
        /// The call.
        call: CallId,
        /// The decision, or why there is none.
        ruling: Result<Decision, String>,
    },
    /// A call with effects is about to begin. After a crash, one without an answer is of unknown outcome.
    Started {
        /// The call.
        call: CallId,
    },
    /// A call ended.
    Answered {
        /// The call.
        call: CallId,
        /// How, and with what.
        end: CallEnd,
        /// How long its body took, decision and hold left out.
        #[serde(default)]
        duration_ms: u64,
    },
    /// A running call of a document's tool asked for a grant.
    GrantAsked {
        /// The call.
        call: CallId,
        /// Which grant of that call, from 0.
        n: u32,
        /// Its full name, as the document wrote it.
        grant: String,
        /// The arguments, by name.
        arguments: Object,
    },
    /// A grant call got its decision.
    GrantDecided {
        /// The call.
        call: CallId,
        /// Which grant of that call.
        n: u32,
        /// The decision, or why there is none.
        ruling: Result<Decision, String>,
    },
    /// A grant is about to run. After a crash, one without an answer is of unknown outcome.
    GrantStarted {
        /// The call.
        call: CallId,
        /// Which grant of that call.
        n: u32,
    },
    /// A grant call ended: its result, or its error, goes back into the document.
    GrantAnswered {
        /// The call.
        call: CallId,
        /// Which grant of that call.
        n: u32,
        /// How, and with what.
        end: CallEnd,
        /// How long it took.
        #[serde(default)]
        duration_ms: u64,
    },
    /// A call was put on hold.
    Held {
        /// The call.
        call: CallId,
        /// When the hold runs out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
    /// A hold was answered.
    HoldAnswered {
        /// The call.
        call: CallId,
        /// What was said.
        answer: HoldReply,
        /// The new `NOW:` notice, sent with the results.
        now: String,
    },
    /// All calls of a trip have ended: its messages enter the transcript as one unit.
    TripEnded {
        /// The trip.
        trip: u32,
    },
    /// A staged tool's action was written down.
    Staged {
        /// The call.
        call: CallId,
        /// It waits for a person too.
        needs_approval: bool,
    },
    /// A staged action was attempted, once.
    Performed {
        /// The call.
        call: CallId,
        /// What came of it.
        attempt: Attempt,
    },
    /// A staged action is about to be attempted.
    Attempting {
        /// The call.
        call: CallId,
    },
    /// A staged action will not be performed.
    Discarded {
        /// The call.
        call: CallId,
        /// Why.
        reason: String,
    },
    /// A backstop was asked whether it is wanted.
    Detected {
        /// Its place in the plan.
        backstop: usize,
        /// Whether it is.
        wanted: bool,
        /// Its `detect` failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// How long it took.
        #[serde(default)]
        duration_ms: u64,
    },
    /// A backstop ran: it has used its one run.
    BackstopRan {
        /// Its place in the plan.
        backstop: usize,
        /// The prompt it returned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        /// The state that backstops share.
        #[serde(default, deserialize_with = "crate::json::present", skip_serializing_if = "Option::is_none")]
        state: Option<Value>,
        /// It failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// How long it took.
        #[serde(default)]
        duration_ms: u64,
    },
    /// The runtime sent a prompt of its own, or was about to and did not.
    Intervened(Intervention),
    /// A function of the author failed.
    FunctionFailed {
        /// Which.
        function: String,
        /// Why.
        error: String,
    },
    /// Something decided that the run is to end: open calls are being closed.
    Stopped {
        /// How it will have ended.
        outcome: Outcome,
        /// Why.
        message: String,
    },
    /// The outcome is fixed.
    Ended {
        /// How.
        outcome: Outcome,
        /// What went wrong, where something did.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// The validated structured output.
        #[serde(default, deserialize_with = "crate::json::present", skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// The reply reached the client.
    Delivered {
        /// By which path.
        path: String,
    },
    /// A run that had ended for want of trips or of a model goes on.
    Resumed {
        /// The limit of trips from now on.
        trips_max: u32,
        /// The new `NOW:` notice.
        now: String,
    },
    /// Another process took the run up from its log.
    Recovered,
    /// A run that could have gone on no longer can: a new turn has begun.
    Settled,
}

impl EventKind {
    /// Lets go of what is not stored, and stands in the state once the event is folded.
    pub(crate) fn forget(&mut self) {
        if let Self::Replied { calls, .. } = self {
            calls.iter_mut().for_each(|call| call.arguments = None);
        }
    }
}

/// What became of a call when its answer arrived.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Resolved {
    /// The run's id of the call: the model's own where it is usable and unique.
    pub id: CallId,
    /// Why it cannot run, where it cannot: the call's end is already known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<CallEnd>,
    /// The arguments, read once.
    #[serde(skip)]
    pub arguments: Option<Arguments>,
}

/// The arguments are read from the reply beside it: a log that was stored equals the one that was written.
impl PartialEq for Resolved {
    fn eq(&self, other: &Self) -> bool {
        (&self.id, &self.end) == (&other.id, &other.end)
    }
}
