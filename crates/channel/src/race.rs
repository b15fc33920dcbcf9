//! What the webhook answers, and when: one race from the request's arrival (`spec/channel.md`, 5, 6 and 15). Told the
//! time, it never asks for it; the run itself knows nothing of all this.

use gesta_run::Timestamp;

use crate::numbers::{MODEL_ABORT_MS, RACE_DEADLINE_MS, TURN_WAIT_MS};

/// The bounds of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Race {
    /// When the request arrived: the wait for the previous turn counts.
    pub arrived: Timestamp,
    /// `RACE_DEADLINE_MS`.
    pub deadline_ms: u64,
    /// `MODEL_ABORT_MS`.
    pub abort_ms: u64,
}

/// How far the turn has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The contact's previous turn has not settled.
    InLane,
    /// The run goes on; a flow that it sent may play until then.
    Running {
        /// The latest end of the flows sent so far.
        plays_until: Option<Timestamp>,
    },
    /// The run parked on a hold.
    Parked,
    /// There is a reply, or a handoff's text.
    Replied {
        /// The latest end of the flows sent.
        plays_until: Option<Timestamp>,
    },
}

/// What the webhook does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing yet: ask again at this moment, or when the turn has come further.
    Wait(Timestamp),
    /// Answer with the reply.
    Reply,
    /// Answer with the tenant's acknowledgement; the reply comes through the outbox.
    Holding,
    /// Answer with nothing; whatever the turn comes to goes through the outbox, not due before this moment.
    Silent {
        /// When what is queued may go out at the earliest.
        not_before: Option<Timestamp>,
    },
}

impl Race {
    /// A race with the default bounds.
    pub fn new(arrived: Timestamp) -> Self {
        Self { arrived, deadline_ms: RACE_DEADLINE_MS, abort_ms: MODEL_ABORT_MS }
    }

    /// When the holding line goes out.
    pub fn deadline(&self) -> Timestamp {
        self.arrived.plus_ms(self.deadline_ms)
    }

    /// When the model call is ended: the timer stays armed on the late path, and time spent parked does not count.
    pub fn aborts_at(&self, began: Timestamp, parked_ms: u64) -> Timestamp {
        began.plus_ms(self.abort_ms).plus_ms(parked_ms)
    }

    /// What to do. `queued` says that an earlier reply of the contact still waits in the outbox: nothing overtakes it.
    pub fn step(&self, now: Timestamp, progress: Progress, queued: bool) -> Step {
        let lost = now >= self.deadline();
        let silent = Step::Silent { not_before: None };
        match progress {
            Progress::InLane if lost => silent,
            Progress::InLane => Step::Wait(self.deadline()),
            Progress::Parked if queued => silent,
            Progress::Parked => Step::Holding,
            Progress::Running { plays_until } if lost => match plays_until.filter(|until| *until > now) {
                Some(until) => Step::Silent { not_before: Some(until) },
                None if queued => silent,
                None => Step::Holding,
            },
            Progress::Running { .. } => Step::Wait(self.deadline()),
            Progress::Replied { plays_until } => match plays_until.filter(|until| *until > now) {
                Some(until) if queued || until >= self.deadline() => Step::Silent { not_before: Some(until) },
                Some(until) => Step::Wait(until),
                None if queued => silent,
                None => Step::Reply,
            },
        }
    }
}

/// When a turn that has not settled is ended by the sweeper, counted from its last claim (`spec/channel.md`, 6).
pub fn expires_at(claimed: Timestamp) -> Timestamp {
    claimed.plus_ms(TURN_WAIT_MS)
}

/// When a flow has played: counted from ManyChat's answer (`spec/channel.md`, 15).
pub fn plays_until(answered: Timestamp, settle_seconds: u64) -> Timestamp {
    answered.plus_ms(settle_seconds.saturating_mul(1000))
}

/// Whether the bounds may stand beside each other (`spec/channel.md`, 5, and L20).
pub fn bounds_fit(deadline_ms: u64, abort_ms: u64) -> bool {
    abort_ms > deadline_ms
}
