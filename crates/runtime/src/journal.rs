//! Keeps a run's events: gathers those of a step, and writes them before what they lead to is performed.

use std::collections::BTreeSet;
use std::sync::Arc;

use gesta_run::{CallId, Event, EventKind, Outcome, Run, Timestamp};
use gesta_store::{DocumentChange, HeadChange, HoldClosed, Lease, NewRun, Store, StoreError};

use crate::history;

/// The log of one run on its way into the store.
pub(crate) struct Journal {
    store: Arc<dyn Store>,
    place: Place,
    /// Events that the store has.
    stored: u64,
    /// Shared with whoever listens.
    pending: Vec<Arc<Event>>,
    /// The working copy of the document, where it is to be kept with the next append.
    working: Option<Vec<u8>>,
    /// The version of the conversation's document that the turn began with, where there is a document.
    document_from: Option<u64>,
    /// Holds that the store shows.
    holds: BTreeSet<CallId>,
    /// The run's own store is memory, and nobody else looks at it: it is written down only if the run is left.
    lazy: bool,
}

enum Place {
    /// Not yet in the store.
    New(Box<NewRun>),
    Leased(Lease),
    Released,
}

impl Journal {
    pub(crate) fn new(store: Arc<dyn Store>, run: NewRun, lazy: bool) -> Self {
        let place = Place::New(Box::new(run));
        Self {
            store,
            place,
            stored: 0,
            pending: Vec::new(),
            working: None,
            document_from: None,
            holds: BTreeSet::new(),
            lazy,
        }
    }

    pub(crate) fn taken_up(store: Arc<dyn Store>, lease: Lease, run: &Run, stored: u64) -> Self {
        let holds = run.holds().into_iter().map(|hold| hold.id).collect();
        Self {
            store,
            place: Place::Leased(lease),
            stored,
            pending: Vec::new(),
            working: None,
            document_from: None,
            holds,
            lazy: false,
        }
    }

    pub(crate) fn gather(&mut self, event: Arc<Event>) {
        self.pending.push(event);
    }

    /// The turn has a working copy of the document, taken from this version of the conversation's.
    pub(crate) fn has_document(&mut self, from: u64) {
        self.document_from = Some(from);
    }

    /// Keeps the working copy with the next append, which tells of the call that changed it.
    pub(crate) fn keep(&mut self, image: Vec<u8>) {
        self.working = Some(image);
    }

    /// Whether there is a lease to be kept.
    pub(crate) fn is_leased(&self) -> bool {
        matches!(self.place, Place::Leased(_))
    }

    /// Takes the run's conversation now, in the transaction that stores its first events: a run that is left behind
    /// can always be taken up. A lazy journal waits for [`Journal::gather_first`].
    pub(crate) async fn open(&mut self, first: &[Event]) -> Result<(), StoreError> {
        if let Place::New(new) = &self.place
            && !self.lazy
        {
            let lease = self.store.open(NewRun::clone(new), first).await?;
            self.place = Place::Leased(lease);
            self.stored = first.len() as u64;
        }
        Ok(())
    }

    /// Keeps one of the first events, where they were not stored when the journal was opened.
    pub(crate) fn gather_first(&mut self, event: Arc<Event>) {
        if matches!(self.place, Place::New(_)) {
            self.pending.push(event);
        }
    }

    /// Writes what was gathered, in one append.
    pub(crate) async fn flush(&mut self, run: &Run) -> Result<(), StoreError> {
        if self.pending.is_empty() || self.lazy {
            return Ok(());
        }
        self.write(run, false).await
    }

    /// Writes what was gathered and gives the run back: it is closed, or waits for someone.
    pub(crate) async fn leave(&mut self, run: &Run) -> Result<(), StoreError> {
        if self.lazy && run.closed() && !run.can_go_on() {
            self.place = Place::Released;
            return Ok(());
        }
        self.write(run, true).await
    }

    async fn write(&mut self, run: &Run, release: bool) -> Result<(), StoreError> {
        if let Place::New(new) = &self.place {
            let first: Vec<Event> = self.pending.first().map(|event| Event::clone(event)).into_iter().collect();
            let lease = self.store.open(NewRun::clone(new), &first).await?;
            self.stored = first.len() as u64;
            self.pending.drain(..first.len());
            self.place = Place::Leased(lease);
        }
        let Place::Leased(lease) = &self.place else { return Ok(()) };
        if self.pending.is_empty() {
            if release {
                self.store.release(lease).await?;
                self.place = Place::Released;
            }
            return Ok(());
        }
        let mut change = self.change(run, release);
        change.working = self.working.take();
        let events: Vec<Event> = self.pending.drain(..).map(Arc::unwrap_or_clone).collect();
        self.store.append(lease, self.stored, &events, change).await?;
        self.stored += events.len() as u64;
        self.holds = run.holds().into_iter().map(|hold| hold.id).collect();
        if release {
            self.place = Place::Released;
        }
        Ok(())
    }

    fn change(&self, run: &Run, release: bool) -> HeadChange {
        let at = self.pending.last().map_or(Timestamp::default(), |event| event.at);
        let holds = run.holds();
        let changed =
            |what: &EventKind| matches!(what, EventKind::Held { .. } | EventKind::Staged { .. } | EventKind::Recovered);
        let opened = self.pending.iter().any(|event| changed(&event.what));
        let open: BTreeSet<&CallId> = holds.iter().map(|hold| &hold.id).collect();
        let answered = self.pending.iter().filter_map(|event| match &event.what {
            EventKind::HoldAnswered { call, .. } => Some(call),
            _ => None,
        });
        let known: BTreeSet<&CallId> = self.holds.iter().chain(answered).collect();
        let closed = known.into_iter().filter(|call| !open.contains(call));
        let holds_closed =
            closed.map(|call| HoldClosed { call: call.clone(), answer: run.hold_answers(call).last().cloned(), at });
        HeadChange {
            outcome: run.outcome().copied(),
            closed: run.closed(),
            holds_closed: holds_closed.collect(),
            holds: if opened { holds } else { Vec::new() },
            turn: self.turn(run),
            document: self.document(),
            working: None,
            release,
            ..HeadChange::to(run.status())
        }
    }

    /// A turn that completed leaves its working copy to the conversation; any other end takes it back
    /// (`spec/documents.md`, 3.12).
    fn document(&self) -> DocumentChange {
        let Some(from) = self.document_from else { return DocumentChange::Keep };
        let mut ends = self.pending.iter().filter_map(|event| match &event.what {
            EventKind::Ended { outcome: Outcome::Completed, .. } => Some(DocumentChange::Adopt { from }),
            EventKind::Ended { outcome, .. } if !outcome.can_go_on() => Some(DocumentChange::Drop),
            EventKind::Settled => Some(DocumentChange::Drop),
            _ => None,
        });
        ends.next_back().unwrap_or_default()
    }

    /// What goes into the history, with the append in which the run can no longer go on.
    fn turn(&self, run: &Run) -> Option<gesta_store::Turn> {
        run.opening()?.conversation.as_ref()?;
        let over = self.pending.iter().any(|event| match &event.what {
            EventKind::Ended { outcome, .. } => !outcome.can_go_on(),
            EventKind::Settled => true,
            _ => false,
        });
        over.then(|| history::turn_of(run.transcript()))
    }

    /// Keeps the lease while nothing is written.
    pub(crate) async fn renew(&self) -> Result<(), StoreError> {
        match &self.place {
            Place::Leased(lease) => self.store.renew(lease).await,
            Place::New(_) | Place::Released => Ok(()),
        }
    }

    /// Gives the run back without writing, after something else went wrong.
    pub(crate) async fn abandon(&mut self) {
        if let Place::Leased(lease) = &self.place {
            if let Err(why) = self.store.release(lease).await {
                tracing::warn!(run = %lease.run(), code = why.code(), "the run's lease could not be given back");
            }
            self.place = Place::Released;
        }
    }
}

/// A turn that is dropped in the middle is left as after a crash, but nobody has to wait for its lease to lapse.
impl Drop for Journal {
    fn drop(&mut self) {
        let Place::Leased(lease) = std::mem::replace(&mut self.place, Place::Released) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let store = self.store.clone();
        runtime.spawn(async move { store.release(&lease).await });
    }
}
