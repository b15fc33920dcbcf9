//! The store as the server's agents see it: whatever it has taken is told to those who listen. Nobody hears of an event
//! that is not stored.

use std::sync::Arc;
use std::time::Instant;

use gesta_run::{CallId, ConversationId, Event, RunId, Timestamp};
use gesta_store::{
    Configs, ConversationHead, Conversations, DocumentHead, Documents, HeadChange, HoldClosed, HoldFilter, Holds,
    Lease, NewRun, Old, OpenHold, Pending, Retention, RunFilter, RunHead, RunLog, Store, StoreError, StoredDocument,
    StoredRun, Turn, Wire, WireRecord,
};

use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::webhook::Bell;

/// A store, and who is told.
pub(crate) struct Watched {
    store: Arc<dyn Store>,
    hub: Arc<Hub>,
    metrics: Arc<Metrics>,
    bell: Option<Arc<Bell>>,
}

impl Watched {
    pub(crate) fn new(store: Arc<dyn Store>, hub: Arc<Hub>, metrics: Arc<Metrics>, bell: Option<Arc<Bell>>) -> Self {
        Self { store, hub, metrics, bell }
    }

    /// Does something with the store, and measures how long that takes.
    async fn measured<T>(&self, operation: &str, work: Pending<'_, T>) -> Result<T, StoreError> {
        let begun = Instant::now();
        let done = work.await;
        self.metrics.store(operation, begun);
        done
    }

    fn stored(&self, run: &RunId, at: u64, events: &[Event]) {
        self.metrics.stored(events);
        self.hub.stored(run, at, events);
    }
}

impl RunLog for Watched {
    fn open<'a>(&'a self, new: NewRun, first: &'a [Event]) -> Pending<'a, Lease> {
        Box::pin(async move {
            let lease = self.measured("open", self.store.open(new, first)).await?;
            self.stored(lease.run(), 0, first);
            Ok(lease)
        })
    }

    fn append<'a>(&'a self, lease: &'a Lease, at: u64, events: &'a [Event], change: HeadChange) -> Pending<'a, ()> {
        Box::pin(async move {
            let rings = match &self.bell {
                Some(bell) => bell.write(lease.run(), events, &change).await?.then_some(bell),
                None => None,
            };
            self.measured("append", self.store.append(lease, at, events, change)).await?;
            self.stored(lease.run(), at, events);
            if let Some(bell) = rings {
                bell.hurry.notify_one();
            }
            Ok(())
        })
    }

    fn load<'a>(&'a self, run: &'a RunId) -> Pending<'a, StoredRun> {
        Box::pin(self.measured("load", self.store.load(run)))
    }

    fn head<'a>(&'a self, run: &'a RunId) -> Pending<'a, RunHead> {
        self.store.head(run)
    }

    fn claim<'a>(&'a self, run: &'a RunId) -> Pending<'a, Lease> {
        self.store.claim(run)
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> Pending<'a, ()> {
        self.store.renew(lease)
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, ()> {
        self.store.release(lease)
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> Pending<'a, Vec<RunHead>> {
        self.store.runs(filter)
    }
}

impl Conversations for Watched {
    fn history<'a>(&'a self, conversation: &'a ConversationId, turns_max: u32) -> Pending<'a, Vec<Turn>> {
        self.store.history(conversation, turns_max)
    }

    fn conversation<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, Option<ConversationHead>> {
        self.store.conversation(conversation)
    }

    fn conversations(&self, limit: u32) -> Pending<'_, Vec<ConversationHead>> {
        self.store.conversations(limit)
    }

    fn erase<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, bool> {
        self.store.erase(conversation)
    }
}

impl Documents for Watched {
    fn document<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, Option<StoredDocument>> {
        self.store.document(conversation)
    }

    fn working<'a>(&'a self, run: &'a RunId) -> Pending<'a, Option<Vec<u8>>> {
        self.store.working(run)
    }

    fn put_document<'a>(&'a self, conversation: &'a ConversationId, from: u64, image: Vec<u8>) -> Pending<'a, u64> {
        self.store.put_document(conversation, from, image)
    }

    fn documents(&self, limit: u32) -> Pending<'_, Vec<DocumentHead>> {
        self.store.documents(limit)
    }
}

impl Holds for Watched {
    fn holds<'a>(&'a self, filter: &'a HoldFilter) -> Pending<'a, Vec<OpenHold>> {
        self.store.holds(filter)
    }

    fn hold_closed<'a>(&'a self, run: &'a RunId, call: &'a CallId) -> Pending<'a, Option<HoldClosed>> {
        self.store.hold_closed(run, call)
    }
}

impl Configs for Watched {
    fn put_config<'a>(&'a self, hash: &'a str, json: &'a str) -> Pending<'a, ()> {
        self.store.put_config(hash, json)
    }

    fn config<'a>(&'a self, hash: &'a str) -> Pending<'a, Option<String>> {
        self.store.config(hash)
    }
}

impl Wire for Watched {
    fn put_wire<'a>(&'a self, run: &'a RunId, record: WireRecord) -> Pending<'a, ()> {
        self.store.put_wire(run, record)
    }

    fn wire<'a>(&'a self, run: &'a RunId) -> Pending<'a, Vec<WireRecord>> {
        self.store.wire(run)
    }
}

impl Retention for Watched {
    fn old<'a>(&'a self, agent: &'a str, before: Timestamp, limit: u32) -> Pending<'a, Vec<Old>> {
        self.store.old(agent, before, limit)
    }

    fn erase_old<'a>(&'a self, old: &'a Old, before: Timestamp) -> Pending<'a, bool> {
        self.store.erase_old(old, before)
    }
}
