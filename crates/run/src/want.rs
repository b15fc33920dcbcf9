//! What a run asks of the world.

use crate::id::{CallId, WantId};

/// One thing that a run wants done. Derived from its state: after a crash the same wants are there again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    /// Its name, which the answer must quote; with the run's id, the idempotency key outside the process.
    pub id: WantId,
    /// What is wanted.
    pub effect: Effect,
}

/// The closed list of what a run can want. What a want is about stands in the run: [`crate::Run::call`],
/// [`crate::Run::transcript`], [`crate::Run::reply_text`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Say which tools there are now.
    Offer,
    /// Call the model with the transcript and the tools offered.
    CallModel,
    /// Say what is to become of a call.
    Decide(CallId),
    /// Run a tool's body with [`crate::CallState::arguments`].
    RunTool(CallId),
    /// Say what is to become of a grant that a running call asked for; the number is which of that call.
    DecideGrant(CallId, u32),
    /// Run a grant with [`crate::GrantCall::arguments`].
    RunGrant(CallId, u32),
    /// Ask a backstop whether it is wanted; the number is its place in the plan.
    Detect(usize),
    /// Run a backstop.
    RunBackstop(usize),
    /// Show the hold to whoever may answer it. Nothing is fed back until they do.
    Hold(CallId),
    /// Hand the reply to the client.
    Deliver,
    /// Make the single attempt at a staged action.
    Perform(CallId),
}

impl Effect {
    /// Whether the events so far must be stored before this is performed. Asking a hook, a backstop's `detect` or
    /// for the list of tools has no effect outside, so their answers may share an append with what they answer.
    pub fn needs_stored_log(&self) -> bool {
        !matches!(self, Self::Offer | Self::Decide(_) | Self::DecideGrant(..) | Self::Detect(_))
    }
}
