//! What a store promises, in six small traits: every backend keeps to them, and one conformance suite checks it.

use std::future::Future;
use std::pin::Pin;

use gesta_run::event::Event;
use gesta_run::id::{CallId, ConversationId, RunId};
use gesta_run::time::Timestamp;

use crate::document::{DocumentHead, StoredDocument};
use crate::error::StoreError;
use crate::types::{
    ConversationHead, HeadChange, HoldClosed, HoldFilter, Lease, NewRun, OpenHold, RunFilter, RunHead, StoredRun, Turn,
    WireRecord,
};

/// What a store answers with, some time later.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The log of events: one for each run, appended to by whoever holds the run's lease.
///
/// A future that is dropped before it is ready may still take effect: read again by the run's id.
pub trait RunLog: Send + Sync {
    /// Opens a run, takes its conversation and stores its first events, all in one transaction. The lease is the
    /// caller's. A run that is left behind without an event cannot be taken up: nothing is known of it.
    ///
    /// # Errors
    /// [`StoreError::ConversationBusy`] when another run has the conversation; it says which and whether it is being
    /// worked on, was left behind, is parked or may still go on, so that the caller can refuse, wait, take it up or
    /// supersede it. [`StoreError::RunExists`] when the id was used before. Nothing has changed then.
    fn open<'a>(&'a self, new: NewRun, first: &'a [Event]) -> Pending<'a, Lease>;

    /// Appends the events of one step and what they change, in one transaction: all of it or nothing. `at` is how many
    /// events the run has so far. The lease is renewed by the way, or given back ([`HeadChange::release`]).
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when the run was taken by someone else or the lease was given back, and
    /// [`StoreError::Conflict`] when the run has not `at` events: stop, discard, tell whoever listens.
    /// [`StoreError::HoldSettled`] when a hold that is to be closed was closed before: the first answer has won.
    /// [`StoreError::DocumentConflict`] when the conversation's document is not the one that the turn began with, and
    /// [`StoreError::DocumentTooLarge`]. [`StoreError::CommitUnknown`] when nobody knows whether it was stored: load the run and look, never repeat it.
    fn append<'a>(&'a self, lease: &'a Lease, at: u64, events: &'a [Event], change: HeadChange) -> Pending<'a, ()>;

    /// Reads a run: its head and all its events.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`]; [`StoreError::DamagedEvents`] or [`StoreError::LogNewer`] when it can't be read.
    fn load<'a>(&'a self, run: &'a RunId) -> Pending<'a, StoredRun>;

    /// Reads a run's head alone.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`].
    fn head<'a>(&'a self, run: &'a RunId) -> Pending<'a, RunHead>;

    /// Takes a run that nobody works on, in whatever status, and raises its fence. Succeeds at once where the lease
    /// was given back or the process that held it is gone, else when it has lapsed.
    ///
    /// # Errors
    /// [`StoreError::Leased`] while someone works on it; [`StoreError::NoSuchRun`].
    fn claim<'a>(&'a self, run: &'a RunId) -> Pending<'a, Lease>;

    /// Keeps a lease for another while. To be called every `lease_renew_ms` while nothing is appended.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is lost: stop, discard.
    fn renew<'a>(&'a self, lease: &'a Lease) -> Pending<'a, ()>;

    /// Gives a lease back, so that the run can be claimed at once. Giving back a lease that is lost does nothing.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, ()>;

    /// Lists runs, the newest first.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn runs<'a>(&'a self, filter: &'a RunFilter) -> Pending<'a, Vec<RunHead>>;
}

/// Conversations and their history. Turns are added by [`RunLog::append`] alone.
pub trait Conversations: Send + Sync {
    /// The last `turns_max` turns, the oldest of them first. Empty for a conversation that nobody has begun.
    ///
    /// # Errors
    /// [`StoreError::DamagedTurn`] when one can't be read.
    fn history<'a>(&'a self, conversation: &'a ConversationId, turns_max: u32) -> Pending<'a, Vec<Turn>>;

    /// One conversation's head.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn conversation<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, Option<ConversationHead>>;

    /// Lists conversations, those changed last first; at most [`crate::PAGE_MAX`].
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn conversations(&self, limit: u32) -> Pending<'_, Vec<ConversationHead>>;

    /// Erases everything of a conversation: history, document, runs, events, working copies, holds, captured exchanges. A
    /// run that is going on
    /// there finds its lease gone. Returns whether there was anything.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn erase<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, bool>;
}

/// The documents of conversations, and the working copies of the runs that change them (`spec/documents.md`, 3.12).
/// Runs write both by [`RunLog::append`] alone. The bytes mean nothing to a store: damaged ones are given back as they
/// are, for whoever signed them to find out.
pub trait Documents: Send + Sync {
    /// A conversation's document: as the last turn left it that adopted one, or as it was put. None where it never had
    /// one.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn document<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, Option<StoredDocument>>;

    /// A run's working copy, where it has one. It outlasts a crash and the run's parking, and goes with the run.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn working<'a>(&'a self, run: &'a RunId) -> Pending<'a, Option<Vec<u8>>>;

    /// Puts a document from outside in the place of version `from` (0: of none), for a person who imports one or
    /// disables a tool. Gives the version it has now. The conversation need not have begun.
    ///
    /// # Errors
    /// [`StoreError::ConversationBusy`] while a run has the conversation, [`StoreError::DocumentConflict`] when the
    /// document has another version, [`StoreError::DocumentTooLarge`]. Nothing has changed then.
    fn put_document<'a>(&'a self, conversation: &'a ConversationId, from: u64, image: Vec<u8>) -> Pending<'a, u64>;

    /// Lists documents without their images, those changed last first; at most [`crate::PAGE_MAX`], which 0 stands for.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn documents(&self, limit: u32) -> Pending<'_, Vec<DocumentHead>>;
}

/// Calls and actions that wait for someone. Written by [`RunLog::append`] alone.
pub trait Holds: Send + Sync {
    /// Lists the holds that wait, the oldest first.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn holds<'a>(&'a self, filter: &'a HoldFilter) -> Pending<'a, Vec<OpenHold>>;

    /// How a hold was closed, where it was: what a second answer is told.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn hold_closed<'a>(&'a self, run: &'a RunId, call: &'a CallId) -> Pending<'a, Option<HoldClosed>>;
}

/// Snapshots of configuration, by hash: a parked run goes on with the one it was parked under
/// (`spec/contract.md`, 7.5).
pub trait Configs: Send + Sync {
    /// Keeps a snapshot. Putting one that is there changes nothing.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn put_config<'a>(&'a self, hash: &'a str, json: &'a str) -> Pending<'a, ()>;

    /// Reads a snapshot.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn config<'a>(&'a self, hash: &'a str) -> Pending<'a, Option<String>>;
}

/// The exact exchanges with a model, where their capture is on.
pub trait Wire: Send + Sync {
    /// Keeps one exchange of a run. It goes with the run when that is erased.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`].
    fn put_wire<'a>(&'a self, run: &'a RunId, record: WireRecord) -> Pending<'a, ()>;

    /// All exchanges of a run, in the order of their trips and attempts.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn wire<'a>(&'a self, run: &'a RunId) -> Pending<'a, Vec<WireRecord>>;
}

/// Something that nobody has touched for a while, and in which nothing goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Old {
    /// A conversation, all of whose runs have ended.
    Conversation(ConversationId),
    /// A run without a conversation that has ended.
    Run(RunId),
}

/// What is not kept for ever. A run that is going on or waits for somebody is never old.
pub trait Retention: Send + Sync {
    /// What of an agent was changed last before this moment, the oldest first; at most `limit` of each kind, and at most
    /// [`crate::PAGE_MAX`], which 0 stands for.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn old<'a>(&'a self, agent: &'a str, before: Timestamp, limit: u32) -> Pending<'a, Vec<Old>>;

    /// Erases everything of it, unless it is not old any more. Says whether it did.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn erase_old<'a>(&'a self, old: &'a Old, before: Timestamp) -> Pending<'a, bool>;
}

/// A whole store.
pub trait Store: RunLog + Conversations + Documents + Holds + Configs + Wire + Retention {}

impl<T: RunLog + Conversations + Documents + Holds + Configs + Wire + Retention + ?Sized> Store for T {}
