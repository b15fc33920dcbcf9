//! What is written to a store and read from it: heads of runs, leases, turns, holds, filters.

use gesta_run::event::Event;
use gesta_run::hold::{Hold, HoldKind, HoldReply};
use gesta_run::id::{CallId, ContactId, ConversationId, RunId};
use gesta_run::message::Message;
use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::document::DocumentChange;
use crate::error::Busy;

/// A run that is to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its name: a time-ordered UUID of the host ([`crate::new_run_id`] makes one), never used before.
    pub run: RunId,
    /// The agent's name.
    pub agent: String,
    /// The conversation it belongs to, where it belongs to one. It takes it: one run at a time.
    pub conversation: Option<ConversationId>,
    /// Who is at the other end.
    pub contact: Option<ContactId>,
    /// The hash of the plan, under which its snapshot was put ([`crate::Configs::put_config`]).
    pub config: String,
    /// When it was opened, as its caller tells the time.
    pub at: Timestamp,
}

/// What is known of a run without reading its events. Holds nothing that a person wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHead {
    /// The run.
    pub run: RunId,
    /// The agent's name.
    pub agent: String,
    /// The conversation, where it belongs to one.
    pub conversation: Option<ConversationId>,
    /// Who is at the other end.
    pub contact: Option<ContactId>,
    /// The hash of its plan.
    pub config: String,
    /// Open, parked or ended.
    pub status: Status,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
    /// It has ended and wants nothing more: no delivery, no action, no answer to an action's hold.
    pub closed: bool,
    /// How many events it has.
    pub events: u64,
    /// When it was opened.
    pub started_at: Timestamp,
    /// The time of its last event.
    pub updated_at: Timestamp,
    /// How often it was taken up. Grows with each claim; a write with a smaller one is refused.
    pub fence: u64,
    /// Who works on it now, where someone does.
    pub held_by: Option<LeaseHolder>,
}

impl RunHead {
    /// Where a listing goes on after this run.
    pub fn cursor(&self) -> RunCursor {
        RunCursor { started_at: self.started_at, run: self.run.clone() }
    }

    /// Whether a lease is still the one that counts.
    pub(crate) fn is_held_by(&self, lease: &Lease) -> bool {
        self.fence == lease.fence && self.held_by.as_ref().is_some_and(|holder| holder.owner == lease.owner)
    }

    /// How it has its conversation. A lease that lapsed, or whose owner is gone, is none.
    pub(crate) fn busy(&self, now: Timestamp, is_gone: impl Fn(&str) -> bool) -> Busy {
        match (self.status, &self.held_by) {
            (_, Some(holder)) if holder.until > now && !is_gone(&holder.owner) => Busy::Open,
            (Status::Open, _) => Busy::Left,
            (Status::Parked, _) => Busy::Parked,
            (Status::Ended, _) => Busy::CanGoOn,
        }
    }
}

/// Who works on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseHolder {
    /// The opened store that holds the lease.
    pub owner: String,
    /// When the lease lapses by the store's clock, unless it is renewed.
    pub until: Timestamp,
}

/// The right to append to one run, until someone else takes it with a higher fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub(crate) run: RunId,
    pub(crate) conversation: Option<ConversationId>,
    pub(crate) bucket: i16,
    pub(crate) owner: String,
    pub(crate) fence: u64,
    pub(crate) until: Timestamp,
}

impl Lease {
    /// The run it is for.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The number that makes it the latest one.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// When it lapses by the store's clock, as of the time it was given. Each append and each renewal moves that on.
    pub fn until(&self) -> Timestamp {
        self.until
    }
}

/// What one append changes beside the events, in the same transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadChange {
    /// The run's status after these events.
    pub status: Status,
    /// Its outcome after these events.
    pub outcome: Option<Outcome>,
    /// After these events it wants nothing any more.
    pub closed: bool,
    /// Holds that were opened, or that changed their state (`undecided` after a crash), as they are now.
    pub holds: Vec<Hold>,
    /// Holds that were answered or closed. The first committed answer wins.
    pub holds_closed: Vec<HoldClosed>,
    /// What goes into the conversation's history, where the run's turn is over. Once in a run.
    pub turn: Option<Turn>,
    /// The run's working copy of its document as it is after this append, in place of the one before; none where it has
    /// not changed. At most [`crate::DOCUMENT_BYTES_MAX`] bytes.
    pub working: Option<Vec<u8>>,
    /// What becomes of the working copy, [`Self::working`] of this very append included.
    pub document: DocumentChange,
    /// The lease is given back with this append: the run parks or is closed, and nobody works on it any more.
    pub release: bool,
}

impl HeadChange {
    /// Nothing but a status.
    pub fn to(status: Status) -> Self {
        Self {
            status,
            outcome: None,
            closed: false,
            holds: Vec::new(),
            holds_closed: Vec::new(),
            turn: None,
            working: None,
            document: DocumentChange::Keep,
            release: false,
        }
    }

    /// An end with this outcome.
    pub fn ended(outcome: Outcome) -> Self {
        Self { outcome: Some(outcome), ..Self::to(Status::Ended) }
    }

    /// Whether the conversation is free for another run after this append: the turn is in the history, or the run has
    /// ended and can't go on. One that failed and can still go on keeps it, so that the next turn settles it first
    /// (`spec/contract.md`, 2.4).
    pub(crate) fn frees_conversation(&self) -> bool {
        self.turn.is_some() || (self.status == Status::Ended && !self.outcome.is_some_and(Outcome::can_go_on))
    }
}

/// A hold that no longer waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoldClosed {
    /// The call.
    pub call: CallId,
    /// The answer it got; none where it was closed without one (superseded, expired, cancelled).
    pub answer: Option<HoldReply>,
    /// When, as the caller tells the time.
    pub at: Timestamp,
}

/// What one run adds to the history of its conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The run's input, whole trips and final text. A call never stands here without its result.
    pub messages: Vec<Message>,
    /// About how many tokens the messages are.
    pub tokens: u64,
}

/// A run and all that happened in it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// Its head.
    pub head: RunHead,
    /// Its events, in order.
    pub events: Vec<Event>,
}

/// Which runs to list. Everything that is not set matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this agent.
    pub agent: Option<String>,
    /// In this status.
    pub status: Option<Status>,
    /// That ended so.
    pub outcome: Option<Outcome>,
    /// Closed or not.
    pub closed: Option<bool>,
    /// Of this conversation.
    pub conversation: Option<ConversationId>,
    /// Of this contact.
    pub contact: Option<ContactId>,
    /// Opened at or after this moment.
    pub since: Option<Timestamp>,
    /// At most so many; 0 stands for [`PAGE_MAX`], which is also the most.
    pub limit: u32,
    /// Only those that come after this one: older, as the newest come first.
    pub after: Option<RunCursor>,
}

impl RunFilter {
    pub(crate) fn matches(&self, head: &RunHead) -> bool {
        self.agent.as_ref().is_none_or(|it| *it == head.agent)
            && self.status.is_none_or(|it| it == head.status)
            && (self.outcome.is_none() || self.outcome == head.outcome)
            && self.closed.is_none_or(|it| it == head.closed)
            && (self.conversation.is_none() || self.conversation == head.conversation)
            && (self.contact.is_none() || self.contact == head.contact)
            && self.since.is_none_or(|it| it <= head.started_at)
            && self.after.as_ref().is_none_or(|it| head.cursor() < *it)
    }
}

/// The most that one listing returns.
pub const PAGE_MAX: u32 = 1_000;

pub(crate) fn page(limit: u32) -> u32 {
    if limit == 0 { PAGE_MAX } else { limit.min(PAGE_MAX) }
}

/// A place in the list of runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunCursor {
    /// When the last run shown was opened.
    pub started_at: Timestamp,
    /// The last run shown.
    pub run: RunId,
}

/// Which open holds to list. Everything that is not set matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoldFilter {
    /// Of this agent's runs.
    pub agent: Option<String>,
    /// Of this run.
    pub run: Option<RunId>,
    /// Of this tool.
    pub tool: Option<String>,
    /// Of this contact.
    pub contact: Option<ContactId>,
    /// Calls or actions only.
    pub kind: Option<HoldKind>,
    /// Opened before this moment: those that wait for long.
    pub opened_before: Option<Timestamp>,
    /// At most so many; 0 stands for [`PAGE_MAX`], which is also the most.
    pub limit: u32,
    /// Only those that come after this one: younger, as the oldest come first.
    pub after: Option<HoldCursor>,
}

impl HoldFilter {
    pub(crate) fn matches(&self, open: &OpenHold) -> bool {
        self.agent.as_ref().is_none_or(|it| *it == open.agent)
            && self.run.as_ref().is_none_or(|it| *it == open.hold.binding.run_id)
            && self.tool.as_ref().is_none_or(|it| *it == open.hold.name)
            && (self.contact.is_none() || self.contact == open.contact)
            && self.kind.is_none_or(|it| it == open.hold.kind)
            && self.opened_before.is_none_or(|it| open.opened_at < it)
            && self.after.as_ref().is_none_or(|it| open.cursor() > *it)
    }
}

/// A place in the list of holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HoldCursor {
    /// When the last hold shown was opened.
    pub opened_at: Timestamp,
    /// Its run.
    pub run: RunId,
    /// Its call.
    pub call: CallId,
}

/// A hold that waits, with what is needed to show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenHold {
    /// The hold.
    pub hold: Hold,
    /// The agent whose run it is.
    pub agent: String,
    /// The conversation, where the run belongs to one.
    pub conversation: Option<ConversationId>,
    /// Who is at the other end.
    pub contact: Option<ContactId>,
    /// When it was opened.
    pub opened_at: Timestamp,
}

impl OpenHold {
    /// Where a listing goes on after this hold.
    pub fn cursor(&self) -> HoldCursor {
        HoldCursor { opened_at: self.opened_at, run: self.hold.binding.run_id.clone(), call: self.hold.id.clone() }
    }
}

/// What is known of a conversation without reading its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationHead {
    /// The conversation.
    pub conversation: ConversationId,
    /// The agent of its last run.
    pub agent: String,
    /// Who is at the other end.
    pub contact: Option<ContactId>,
    /// How many turns its history has.
    pub turns: u64,
    /// The run that has it now: open, parked, or failed in a way that can go on.
    pub run: Option<RunId>,
    /// When something last changed in it.
    pub updated_at: Timestamp,
}

/// One exchange with a model, as it went over the wire. Kept only where its capture is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireRecord {
    /// The trip it belongs to.
    pub trip: u32,
    /// Which attempt of that trip, from 0.
    pub attempt: u32,
    /// When the request was sent.
    pub at: Timestamp,
    /// The request: method, address and body. No key stands in it; that is the recorder's duty.
    pub request: String,
    /// The answer, as far as it came.
    pub response: String,
}
