//! How work gets to the server: a pool of connections, time limits, and what is done again when one breaks.
//!
//! A transaction whose connection broke before its commit was sent has not happened and is done again; one that was
//! broken in its commit is `CommitUnknown` and never repeated (`spec/durability.md`, R14).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnection, PgPoolOptions, PgRow};
use sqlx::query::Query;
use sqlx::{Connection, PgPool, Postgres as Server};
use tokio::time::timeout;

use super::PostgresOptions;
use super::address::Address;
use super::fault::{self, Failure, Kind};
use crate::error::StoreError;
use crate::server::ServerFault;

/// How often a piece of work is tried at most.
const TRIES_MAX: u32 = 5;

/// A connection that was idle for so long is asked whether it still lives before it is used.
const IDLE_TRUSTED: Duration = Duration::from_secs(1);

/// How much longer than the server we wait for a statement that it should have given up.
const GRACE_MS: u64 = 5_000;

/// What happens inside one transaction. It may be done again from the start.
pub(super) trait Work: Sync {
    type Out: Send;
    fn perform(&self, it: &mut PgConnection) -> impl Future<Output = Result<Self::Out, Failure>> + Send;
}

/// A statement with its parameters.
pub(super) type Bound<'q> = Query<'q, Server, PgArguments>;

/// A statement with its parameters, in their order.
macro_rules! bound {
    ($sql:expr $(, $value:expr)* $(,)?) => { sqlx::query($sql)$(.bind($value))* };
}
pub(super) use bound;

/// The way to one server.
pub(super) struct Link {
    pub(super) address: Address,
    pool: PgPool,
    connect_wait_ms: u64,
    connections_max: u32,
    limit: Duration,
}

/// Why one try came to nothing.
enum Trouble {
    /// It has not happened and may be tried again.
    Again(StoreError),
    /// It is settled.
    Final(StoreError),
}

impl Trouble {
    fn of(server: &str, failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => Self::Final(error),
            Failure::Sql(cause) => match fault::kind(&cause) {
                Kind::Final => Self::Final(fault::explain(server, &cause)),
                Kind::Lost | Kind::Clash => Self::Again(fault::explain(server, &cause)),
            },
        }
    }
}

/// How often it was tried.
#[derive(Default)]
struct Tries(u32);

impl Tries {
    /// Waits a little where it is worth another try.
    async fn again(&mut self, trouble: Trouble) -> Result<(), StoreError> {
        self.0 += 1;
        match trouble {
            Trouble::Again(_) if self.0 < TRIES_MAX => {
                tokio::time::sleep(pause(self.0)).await;
                Ok(())
            }
            Trouble::Again(error) | Trouble::Final(error) => Err(error),
        }
    }
}

impl Link {
    /// Prepares the way. Connections are made when they are needed.
    pub(super) fn new(address: Address, options: &PostgresOptions) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(options.connections_max.max(1))
            .acquire_timeout(Duration::from_millis(options.connect_wait_ms))
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for > IDLE_TRUSTED {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(address.connect.clone());
        Self {
            address,
            pool,
            connect_wait_ms: options.connect_wait_ms,
            connections_max: options.connections_max.max(1),
            limit: Duration::from_millis(options.statement_ms.saturating_add(GRACE_MS)),
        }
    }

    /// Does a piece of work in a transaction and waits until that is committed.
    pub(super) async fn transact<W: Work>(&self, work: &W) -> Result<W::Out, StoreError> {
        let mut tries = Tries::default();
        loop {
            match self.transact_once(work).await {
                Ok(value) => return Ok(value),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }

    /// Reads.
    pub(super) async fn rows<'q>(
        &self,
        statement: impl Fn() -> Bound<'q> + Send + Sync,
    ) -> Result<Vec<PgRow>, StoreError> {
        let mut tries = Tries::default();
        loop {
            match self.rows_once(statement()).await {
                Ok(rows) => return Ok(rows),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }

    /// Writes with one statement, which is a transaction by itself; how many rows it changed. Where it `repeats`, having
    /// it done twice is as having it done once.
    pub(super) async fn execute<'q>(
        &self,
        statement: impl Fn() -> Bound<'q> + Send + Sync,
        repeats: bool,
    ) -> Result<u64, StoreError> {
        let mut tries = Tries::default();
        loop {
            match self.execute_once(statement(), repeats).await {
                Ok(rows) => return Ok(rows),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }

    async fn rows_once(&self, statement: Bound<'_>) -> Result<Vec<PgRow>, Trouble> {
        let mut connection = self.acquire().await?;
        match timeout(self.limit, statement.fetch_all(&mut *connection)).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(cause)) => Err(self.failed(connection, cause.into())),
            Err(_) => Err(Trouble::Final(self.hangs(connection))),
        }
    }

    async fn execute_once(&self, statement: Bound<'_>, repeats: bool) -> Result<u64, Trouble> {
        let mut connection = self.acquire().await?;
        match timeout(self.limit, statement.execute(&mut *connection)).await {
            Ok(Ok(done)) => Ok(done.rows_affected()),
            Ok(Err(cause)) if fault::kind(&cause) == Kind::Lost => {
                drop(connection.detach());
                let error = fault::unknown(&self.address.shown, fault::said(&cause));
                Err(if repeats { Trouble::Again(error) } else { Trouble::Final(error) })
            }
            Ok(Err(cause)) => Err(self.failed(connection, cause.into())),
            Err(_) => {
                drop(connection.detach());
                Err(Trouble::Final(fault::unknown(&self.address.shown, self.silence())))
            }
        }
    }

    /// Closes all connections, when those in use have done their work.
    pub(super) async fn close(&self) {
        // From its first moment on nobody gets a connection any more; an error says that a server is slow to go.
        let _ = timeout(self.limit, self.pool.close()).await;
    }

    async fn transact_once<W: Work>(&self, work: &W) -> Result<W::Out, Trouble> {
        let mut connection = self.acquire().await?;
        let committing = AtomicBool::new(false);
        let done = timeout(self.limit, transaction(&mut connection, work, &committing)).await;
        let at_commit = committing.load(Ordering::Relaxed);
        match done {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Failure::Sql(cause))) if at_commit && fault::kind(&cause) == Kind::Lost => {
                drop(connection.detach());
                Err(Trouble::Final(fault::unknown(&self.address.shown, fault::said(&cause))))
            }
            Ok(Err(failure)) => Err(self.failed(connection, failure)),
            Err(_) if at_commit => {
                drop(connection.detach());
                Err(Trouble::Final(fault::unknown(&self.address.shown, self.silence())))
            }
            Err(_) => Err(Trouble::Final(self.hangs(connection))),
        }
    }

    /// A connection that broke is not used again.
    fn failed(&self, connection: PoolConnection<Server>, failure: Failure) -> Trouble {
        if matches!(&failure, Failure::Sql(cause) if fault::kind(cause) == Kind::Lost) {
            drop(connection.detach());
        }
        Trouble::of(&self.address.shown, failure)
    }

    fn silence(&self) -> String {
        format!("no answer for {} ms", self.limit.as_millis())
    }

    fn hangs(&self, connection: PoolConnection<Server>) -> StoreError {
        drop(connection.detach());
        let fault = ServerFault::Unreachable { reason: self.silence() };
        StoreError::Server { server: self.address.shown.clone(), fault }
    }

    async fn acquire(&self) -> Result<PoolConnection<Server>, Trouble> {
        let cause = match self.pool.acquire().await {
            Ok(connection) => return Ok(connection),
            Err(cause) => cause,
        };
        Err(Trouble::Final(match cause {
            sqlx::Error::PoolClosed => StoreError::Closed { path: self.address.shown.as_str().into() },
            sqlx::Error::PoolTimedOut if self.pool.size() >= self.connections_max => {
                let fault = ServerFault::Busy { waited_ms: self.connect_wait_ms };
                StoreError::Server { server: self.address.shown.clone(), fault }
            }
            sqlx::Error::PoolTimedOut => self.reach().await.err().unwrap_or_else(|| {
                let fault = ServerFault::Busy { waited_ms: self.connect_wait_ms };
                StoreError::Server { server: self.address.shown.clone(), fault }
            }),
            cause => fault::explain(&self.address.shown, &cause),
        }))
    }

    /// Connects once, past the pool, to learn what is in the way.
    pub(super) async fn reach(&self) -> Result<PgConnection, StoreError> {
        let limit = Duration::from_millis(self.connect_wait_ms);
        match timeout(limit, PgConnection::connect_with(&self.address.connect)).await {
            Ok(connected) => connected.map_err(|cause| fault::explain(&self.address.shown, &cause)),
            Err(_) => {
                let fault = ServerFault::Unreachable { reason: format!("no answer for {} ms", self.connect_wait_ms) };
                Err(StoreError::Server { server: self.address.shown.clone(), fault })
            }
        }
    }
}

async fn transaction<W: Work>(
    connection: &mut PgConnection,
    work: &W,
    committing: &AtomicBool,
) -> Result<W::Out, Failure> {
    let mut transaction = connection.begin().await?;
    match work.perform(&mut transaction).await {
        Ok(value) => {
            committing.store(true, Ordering::Relaxed);
            transaction.commit().await?;
            Ok(value)
        }
        Err(failure) => {
            // Where that fails the connection is gone, and the transaction with it.
            let _ = transaction.rollback().await;
            Err(failure)
        }
    }
}

/// A little longer with each try, and not the same for two that were in each other's way.
fn pause(tries: u32) -> Duration {
    let dice = u64::from(uuid::Uuid::now_v7().as_bytes()[15]);
    Duration::from_millis((5 + dice / 8) << tries.min(5))
}
