//! The author's own code around a run: the decision on each call, and backstops.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use gesta_run::{Arguments, CallId, CallRecord, ContactId, ConversationId, Message, Phase, Ran, Ruling, RunId};
use serde_json::Value;

/// A call that is put to the hook, before it runs (`spec/contract.md`, 7.1). A copy: changing it changes nothing.
#[derive(Debug, Clone)]
pub struct CallAsked {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// The model's arguments.
    pub arguments: Arguments,
    /// The arguments' text as the model wrote it.
    pub raw_arguments: Arc<str>,
    /// The trip it was made on.
    pub trip: u32,
    /// Its place in the answer, from 0.
    pub index: u32,
    /// How many calls the answer has.
    pub batch_size: usize,
    /// The run.
    pub run_id: RunId,
    /// The conversation, where the run belongs to one.
    pub conversation: Option<ConversationId>,
    /// Who is at the other end.
    pub contact: Option<ContactId>,
    /// The run has been parked, or has gone on, before this call was made.
    pub resumed: bool,
}

/// What the hook says, some time later.
pub type RulingFuture = Pin<Box<dyn Future<Output = Ruling> + Send>>;

/// Decides on calls. Default time limit 10 s, 2 s in a live session; a hook that fails, panics or takes too long
/// stops the run, and nothing of the batch runs.
pub trait Hook: Send + Sync {
    /// Decides on one call.
    fn decide(&self, call: CallAsked) -> RulingFuture;
}

impl<F> Hook for F
where
    F: Fn(CallAsked) -> RulingFuture + Send + Sync,
{
    fn decide(&self, call: CallAsked) -> RulingFuture {
        self(call)
    }
}

/// What a backstop is shown (`spec/contract.md`, 3.4). Copies.
#[derive(Debug, Clone)]
pub struct TurnSeen {
    /// Before or after the model.
    pub phase: Phase,
    /// The run.
    pub run_id: RunId,
    /// The conversation, where the run belongs to one.
    pub conversation: Option<ConversationId>,
    /// Who is at the other end.
    pub contact: Option<ContactId>,
    /// The user's text.
    pub input: String,
    /// The answer; absent before the model.
    pub reply: Option<String>,
    /// The trip whose answer it is; 0 before.
    pub trip_index: u32,
    /// Every call that has ended.
    pub tool_calls: Vec<CallRecord>,
    /// The history and the run's own messages.
    pub messages: Vec<Message>,
    /// The state that the run's backstops share, as it was left.
    pub state: Value,
}

/// Whether a backstop is wanted, some time later.
pub type DetectFuture = Pin<Box<dyn Future<Output = Result<bool, String>> + Send>>;
/// What a backstop returned, some time later.
pub type RanFuture = Pin<Box<dyn Future<Output = Result<Ran, String>> + Send>>;

/// A deterministic check beside the model. An error in either function is a log line and never fails the run.
pub trait Backstop: Send + Sync {
    /// Whether it is wanted. May be tried on several answers.
    fn detect(&self, turn: TurnSeen) -> DetectFuture;

    /// Runs it, at most once in a run. `Ran::state`, where set, is what the next backstop of the run finds.
    fn run(&self, turn: TurnSeen) -> RanFuture;
}
