//! Connections that only read, each used by one caller at a time, away from the async threads.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::failure::Failure;
use crate::error::StoreError;

/// How many read at the same time at most.
const READERS_MAX: usize = 4;

/// The readers of one file.
#[derive(Debug, Clone)]
pub(super) struct Readers {
    pool: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    path: PathBuf,
    /// The name under which SQLite opens it.
    name: PathBuf,
    lock_wait_ms: u64,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// Readers of this file, which the writer keeps open. Connections are made when they are needed.
    pub(super) fn new(path: PathBuf, lock_wait_ms: u64) -> Self {
        Self::named(path.clone(), path, lock_wait_ms)
    }

    /// Readers of a file that SQLite opens under this name.
    pub(super) fn named(path: PathBuf, name: PathBuf, lock_wait_ms: u64) -> Self {
        let permits = Arc::new(Semaphore::new(READERS_MAX));
        Self { pool: Arc::new(Pool { path, name, lock_wait_ms, permits, idle: Mutex::new(Vec::new()) }) }
    }

    /// Reads within one transaction, so that all it sees is of one moment.
    pub(super) async fn read<T, R>(&self, work: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let pool = self.pool.clone();
        let closed = || StoreError::Closed { path: self.pool.path.clone() };
        let permit = pool.permits.clone().acquire_owned().await.map_err(|_| closed())?;
        let task = tokio::task::spawn_blocking(move || {
            let result = pool.read(work);
            drop(permit);
            result.map_err(|failure| failure.explain(&pool.path, pool.lock_wait_ms))
        });
        task.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Lets no further reader in and closes the idle connections.
    pub(super) fn close(&self) {
        self.pool.permits.close();
        self.pool.lock_idle().clear();
    }
}

impl Pool {
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, Failure> {
        let idle = self.lock_idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let transaction = connection.unchecked_transaction()?;
        let value = work(&transaction)?;
        transaction.finish()?;
        // Only a connection that had no trouble is used again.
        if !self.permits.is_closed() {
            self.lock_idle().push(connection);
        }
        Ok(value)
    }

    fn connect(&self) -> Result<Connection, Failure> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if self.name != self.path {
            flags |= OpenFlags::SQLITE_OPEN_URI;
        }
        let connection = Connection::open_with_flags(&self.name, flags)?;
        connection.busy_timeout(Duration::from_millis(self.lock_wait_ms))?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(connection)
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
