//! What a case is given: a store, a clock that it may move, and events to append.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use gesta_run::event::{Event, EventKind};
use gesta_run::hold::{Binding, Hold, HoldKind, HoldReply, HoldState};
use gesta_run::id::RunId;
use gesta_run::message::{Message, Part};
use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use gesta_run::tool::Accepts;
use gesta_store::{
    Clock, HeadChange, HoldClosed, Lease, Memory, NewRun, Postgres, PostgresOptions, Sqlite, Store, StoreError,
    StoreOptions, Turn, new_run_id,
};

/// The lease's length in the cases.
pub(crate) const TTL_MS: i64 = 30_000;

/// A store under test.
pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    /// The same store, seen by another tenant.
    pub(crate) neighbour: Arc<dyn Store>,
    now: Arc<AtomicI64>,
    _folder: Option<tempfile::TempDir>,
}

impl Bench {
    /// Moves the store's clock.
    pub(crate) fn wait_ms(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::SeqCst);
    }

    /// Opens a run in conversation `k`.
    pub(crate) async fn open(&self, run: &str) -> Result<Lease, StoreError> {
        self.store.open(new_run(run, Some("k"), 1_000), &[]).await
    }

    /// Opens a run without a conversation.
    pub(crate) async fn open_alone(&self, run: &str) -> Lease {
        self.store.open(new_run(run, None, 1_000), &[]).await.unwrap()
    }

    /// Ends a run whose log is empty, with a turn of one message, and gives it back.
    pub(crate) async fn end(&self, lease: &Lease, text: &str) -> Result<(), StoreError> {
        let change = HeadChange { turn: Some(turn(text)), release: true, closed: true, ..ended() };
        self.store.append(lease, 0, &[event(1_500, "done")], change).await
    }
}

fn options() -> (StoreOptions, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(1_000_000));
    let told = now.clone();
    let clock = Clock::new(move || Timestamp(told.load(Ordering::SeqCst)));
    (StoreOptions { lease_ttl_ms: TTL_MS.unsigned_abs(), clock, ..StoreOptions::default() }, now)
}

pub(crate) async fn memory() -> Option<Bench> {
    let (options, now) = options();
    let store = Memory::new(options);
    let neighbour = Arc::new(store.of_tenant("neighbour"));
    Some(Bench { store: Arc::new(store), neighbour, now, _folder: None })
}

pub(crate) async fn sqlite() -> Option<Bench> {
    let folder = tempfile::tempdir().unwrap();
    let (options, now) = options();
    let store = Sqlite::open_blocking(folder.path(), options).unwrap();
    let neighbour = Arc::new(store.of_tenant("neighbour"));
    Some(Bench { store: Arc::new(store), neighbour, now, _folder: Some(folder) })
}

/// The server that `GESTA_TEST_POSTGRES` names: `cargo xtask test --only postgres` sets one up.
pub(crate) async fn postgres() -> Option<Bench> {
    on_server(true).await
}

pub(crate) async fn postgres_that_waits() -> Option<Bench> {
    on_server(false).await
}

/// A tenant for each case: an empty store without making a database anew.
async fn on_server(claims_skip_locked: bool) -> Option<Bench> {
    let address = xtask::outside("GESTA_TEST_POSTGRES", "postgres")?.into_string().unwrap();
    let (options, now) = options();
    let options = PostgresOptions { claims_skip_locked, connections_max: 4, ..options.into() };
    let server = Postgres::open(&address, options).await.unwrap();
    let store = Arc::new(server.of_tenant(new_run_id().as_str()));
    let neighbour = Arc::new(server.of_tenant(new_run_id().as_str()));
    Some(Bench { store, neighbour, now, _folder: None })
}

pub(crate) fn new_run(run: &str, conversation: Option<&str>, at: i64) -> NewRun {
    NewRun {
        run: run.into(),
        agent: "coach".to_owned(),
        conversation: conversation.map(Into::into),
        contact: conversation.map(|it| format!("contact of {it}").as_str().into()),
        config: "hash".to_owned(),
        at: Timestamp(at),
    }
}

/// An event that carries a text.
pub(crate) fn event(at: i64, text: &str) -> Event {
    let what = EventKind::FunctionFailed { function: "f".to_owned(), error: text.to_owned() };
    Event { at: Timestamp(at), what }
}

pub(crate) fn open() -> HeadChange {
    HeadChange::to(Status::Open)
}

pub(crate) fn ended() -> HeadChange {
    HeadChange::ended(Outcome::Completed)
}

pub(crate) fn turn(text: &str) -> Turn {
    Turn { messages: vec![Message::User { parts: vec![Part::text(text)], prompted: false }], tokens: 7 }
}

pub(crate) fn hold(run: &RunId, call: &str, tool: &str) -> Hold {
    Hold {
        id: call.into(),
        kind: HoldKind::Call,
        name: tool.to_owned(),
        arguments: serde_json::Map::new(),
        reason: None,
        trip: 1,
        index: 0,
        accepts: Accepts::Any,
        expires_at: None,
        state: HoldState::Open,
        binding: Binding {
            run_id: run.clone(),
            call_id: call.into(),
            tool: tool.to_owned(),
            fingerprint: "f".to_owned(),
            config_version: "hash".to_owned(),
        },
    }
}

pub(crate) fn closed(call: &str, answer: Option<HoldReply>) -> HoldClosed {
    HoldClosed { call: call.into(), answer, at: Timestamp(2_000) }
}

pub(crate) fn approve() -> HoldReply {
    HoldReply::Approve { arguments: None }
}
