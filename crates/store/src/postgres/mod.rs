//! The store on a Postgres server, for several processes: every rule that keeps them apart is in the statements, none
//! in this process.

mod address;
mod append;
mod documents;
mod fault;
mod front;
mod log;
mod migrate;
mod retention;
mod rows;
pub(crate) mod schema;
pub(crate) mod statements;
mod steps;
mod talks;
mod work;

use std::fmt;
use std::sync::Arc;

use address::Address;
use work::Link;

use crate::clock::Clock;
use crate::error::StoreError;
use crate::place::{TENANT_LOCAL, Tenant};
use crate::sqlite::StoreOptions;

/// How a store on a Postgres server is opened.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// How long a lease holds without being renewed, in milliseconds. Others wait so long for a run whose process is
    /// gone: a server can't tell one that died from one that hangs.
    pub lease_ttl_ms: u64,
    /// How many connections are used at most. Ten by default: Postgres commits together what comes together, and more
    /// only wait for each other.
    pub connections_max: u32,
    /// How long to wait for a connection, in milliseconds: a new one, or a free one.
    pub connect_wait_ms: u64,
    /// How long the server works on one statement at most, in milliseconds, and how long a transaction may idle.
    pub statement_ms: u64,
    /// How long a statement waits for another process's transaction, in milliseconds.
    pub lock_wait_ms: u64,
    /// A claim leaves a run to whoever is writing to it at this moment (`FOR UPDATE SKIP LOCKED`) and waits for nobody.
    /// Otherwise it looks again when they are done. On by default.
    pub claims_skip_locked: bool,
    /// What leases go by: the server's clock, unless a test tells another.
    pub clock: Clock,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            lease_ttl_ms: 30_000,
            connections_max: 10,
            connect_wait_ms: 10_000,
            statement_ms: 15_000,
            lock_wait_ms: 10_000,
            claims_skip_locked: true,
            clock: Clock::system(),
        }
    }
}

impl From<StoreOptions> for PostgresOptions {
    /// What the two have in common.
    fn from(options: StoreOptions) -> Self {
        let StoreOptions { lease_ttl_ms, lock_wait_ms, clock, bytes_max: _ } = options;
        Self { lease_ttl_ms, lock_wait_ms, clock, ..Self::default() }
    }
}

/// A store in the schema `gesta` of a Postgres database, 15 or later. Cheap to clone; all clones share one pool of
/// connections. Any number of processes may use the same database.
///
/// A connection that breaks is made anew by whoever needs it next; what was not committed then is done again. Opened and
/// used within one tokio runtime with I/O and time.
#[derive(Clone)]
pub struct Postgres {
    shared: Arc<Shared>,
    tenant: Tenant,
}

struct Shared {
    link: Link,
    options: PostgresOptions,
    /// This opened store, in leases.
    owner: String,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("server", &self.server()).field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

impl Postgres {
    /// Connects to `postgres://USER:PASSWORD@HOST:PORT/DATABASE` and makes the tables where they are not there. What
    /// the address leaves out comes from `PGHOST`, `PGUSER` and their like, and from `~/.pgpass`. TLS goes by
    /// `?sslmode=` (`disable`, `prefer`, `require`, `verify-ca`, `verify-full`) and `sslrootcert`, as in libpq. Behind
    /// a pool in transaction mode that doesn't keep prepared statements add `statement-cache-capacity=0`.
    ///
    /// # Errors
    /// [`StoreError::Server`], with what is in the way and how to mend it; a database that is not ours, or of a newer
    /// version, is left as it was.
    pub async fn open(address: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let link = Link::new(Address::read(address, &options)?, &options);
        let mut connection = link.reach().await?;
        migrate::migrate(&link.address.shown, &mut connection).await?;
        // Without a good-bye: under TLS that waits for the server's, which may not come.
        drop(connection);
        let owner = uuid::Uuid::now_v7().to_string();
        Ok(Self { shared: Arc::new(Shared { link, options, owner }), tenant: Tenant::new(TENANT_LOCAL) })
    }

    /// The same store, seen by another tenant: nothing of one is reached from the other.
    #[must_use]
    pub fn of_tenant(&self, tenant: &str) -> Self {
        Self { shared: self.shared.clone(), tenant: Tenant::new(tenant) }
    }

    /// Where it is, without the password.
    pub fn server(&self) -> &str {
        &self.shared.link.address.shown
    }

    /// Whether the server can be reached and its tables are of this program's form.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn check(&self) -> Result<(), StoreError> {
        let mut connection = self.link().reach().await?;
        migrate::migrate(self.server(), &mut connection).await
    }

    /// Closes all connections when what they are doing is done. Every other clone is closed too.
    pub async fn close(&self) {
        self.link().close().await;
    }

    fn link(&self) -> &Link {
        &self.shared.link
    }

    fn owner(&self) -> &str {
        &self.shared.owner
    }

    fn lease_times(&self) -> LeaseTimes {
        let options = &self.shared.options;
        let ttl_ms = i64::try_from(options.lease_ttl_ms).unwrap_or(i64::MAX / 2);
        LeaseTimes { told: options.clock.told().map(|at| at.0), ttl_ms }
    }
}

/// What leases are reckoned with: the server's clock where none is told.
#[derive(Debug, Clone, Copy)]
struct LeaseTimes {
    told: Option<i64>,
    ttl_ms: i64,
}
