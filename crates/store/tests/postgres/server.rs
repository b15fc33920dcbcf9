//! Servers and databases for the tests, and what is appended in them.

use std::path::Path;

use gesta_run::event::{Event, EventKind};
use gesta_run::outcome::Status;
use gesta_run::time::Timestamp;
use gesta_store::{HeadChange, NewRun, Postgres, PostgresOptions, new_run_id};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use url::Url;
use xtask::postgres::Cluster;

pub(crate) const STEP_EVENTS: u64 = 3;

/// The server that every test may use, and none may break.
pub(crate) fn address() -> Option<String> {
    xtask::outside("GESTA_TEST_POSTGRES", "postgres")?.into_string().ok()
}

/// A server that is the test's alone.
pub(crate) fn own_server() -> Option<Cluster> {
    let programs = xtask::outside("GESTA_TEST_POSTGRES_BIN", "postgres")?;
    Some(Cluster::start(Path::new(&programs)).unwrap())
}

/// The same address with something else in it.
pub(crate) fn changed(address: &str, change: impl FnOnce(&mut Url)) -> String {
    let mut url = Url::parse(address).unwrap();
    change(&mut url);
    url.into()
}

/// An empty database, which is taken away again by [`Database::remove`].
pub(crate) struct Database {
    pub(crate) address: String,
    name: String,
    server: String,
}

impl Database {
    pub(crate) async fn new() -> Option<Self> {
        let server = address()?;
        let name = format!("gesta_test_{}", new_run_id().as_str().replace('-', ""));
        run(&server, &format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")).await;
        let address = changed(&server, |url| url.set_path(&name));
        Some(Self { address, name, server })
    }

    /// Runs a statement in it.
    pub(crate) async fn run(&self, sql: &str) {
        run(&self.address, sql).await;
    }

    pub(crate) async fn remove(self) {
        run(&self.server, &format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }
}

/// Runs a statement on a connection of its own.
pub(crate) async fn run(address: &str, sql: &str) {
    let mut connection = PgConnection::connect(address).await.unwrap();
    connection.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
    connection.close().await.unwrap();
}

/// One number.
pub(crate) async fn number(address: &str, sql: &str) -> i64 {
    let mut connection = PgConnection::connect(address).await.unwrap();
    let number = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    number
}

/// Opens a store with few connections.
pub(crate) async fn opened(address: &str) -> Postgres {
    Postgres::open(address, PostgresOptions { connections_max: 4, ..PostgresOptions::default() }).await.unwrap()
}

pub(crate) fn new_run(run: &str, conversation: Option<&str>) -> NewRun {
    NewRun {
        run: run.into(),
        agent: "coach".to_owned(),
        conversation: conversation.map(Into::into),
        contact: None,
        config: "hash".to_owned(),
        at: Timestamp(1),
    }
}

/// The events of one step: numbered, so that order and wholeness show.
pub(crate) fn step(at: u64) -> Vec<Event> {
    let event = |n: u64| EventKind::FunctionFailed { function: "f".to_owned(), error: n.to_string() };
    (at..at + STEP_EVENTS).map(|n| Event { at: Timestamp(1), what: event(n) }).collect()
}

/// So many events, in whole steps.
pub(crate) fn steps(events: u64) -> Vec<Event> {
    (0..events / STEP_EVENTS).flat_map(|n| step(n * STEP_EVENTS)).collect()
}

pub(crate) fn open() -> HeadChange {
    HeadChange::to(Status::Open)
}
