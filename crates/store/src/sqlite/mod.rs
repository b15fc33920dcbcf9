//! The embedded store: one SQLite file in the data folder, written by one thread, read by a few connections.

mod backup;
mod documents;
mod failure;
mod front;
mod log;
mod open;
mod owners;
mod reader;
mod retention;
mod rows;
pub(crate) mod schema;
pub(crate) mod statements;
mod steps;
mod talks;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gesta_run::time::Timestamp;
use tokio::sync::oneshot;

pub use backup::{Copied, backup, restore};
pub(crate) use failure::of_io;
use owners::Owners;
use reader::Readers;
use writer::Writer;

use crate::clock::Clock;
use crate::error::StoreError;
use crate::folder::make_private;
use crate::place::{TENANT_LOCAL, Tenant};

/// The file's name in the data folder.
pub const FILE_NAME: &str = "gesta.db";

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// How long a lease holds without being renewed, in milliseconds. Other processes wait so long for a run whose
    /// owner hangs; one whose owner is gone is free at once.
    pub lease_ttl_ms: u64,
    /// How long to wait for another process that is writing, in milliseconds.
    pub lock_wait_ms: u64,
    /// The size that the file may reach, in bytes; then it is full, as a disk would be. None by default.
    pub bytes_max: Option<u64>,
    /// What leases go by.
    pub clock: Clock,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { lease_ttl_ms: 30_000, lock_wait_ms: 10_000, bytes_max: None, clock: Clock::system() }
    }
}

/// A store in one SQLite file. Cheap to clone; all clones share one writing thread. Several processes may have the
/// same folder open.
#[derive(Debug, Clone)]
pub struct Sqlite {
    shared: Arc<Shared>,
    tenant: Tenant,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    options: StoreOptions,
    owners: Arc<Owners>,
    readers: Readers,
    /// There never was a writer.
    reads_only: bool,
    /// Taken out when the store is closed.
    writer: Mutex<Option<Writer>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    /// What is read in its place, kept for as long as it is.
    _copy: Option<open::ReadingCopy>,
}

impl Sqlite {
    /// Opens the store in a data folder, which is made where it is not there, without blocking the caller's thread.
    ///
    /// # Errors
    /// As [`Self::open_blocking`].
    pub async fn open(folder: impl Into<PathBuf>, options: StoreOptions) -> Result<Self, StoreError> {
        let folder = folder.into();
        let path = folder.join(FILE_NAME);
        let task = tokio::task::spawn_blocking(move || Self::open_blocking(&folder, options));
        task.await.unwrap_or(Err(StoreError::Closed { path }))
    }

    /// Opens the store in a data folder, which is made where it is not there. For programs that have not begun to be
    /// async yet.
    ///
    /// # Errors
    /// [`StoreError::Foreign`], [`StoreError::Newer`] and [`StoreError::Damaged`] leave the file as it was;
    /// [`StoreError::Folder`], [`StoreError::NoPermission`], [`StoreError::ReadOnly`] and [`StoreError::DiskFull`] name
    /// what is in the way.
    pub fn open_blocking(folder: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        make_private(folder)?;
        let path = folder.join(FILE_NAME);
        let connection = open::connect(&path, &options)?;
        let owners = Arc::new(Owners::enter(folder)?);
        let (writer, ended) = Writer::start(connection, path.clone(), options.lock_wait_ms)?;
        let readers = Readers::new(path.clone(), options.lock_wait_ms);
        let writer = Mutex::new(Some(writer));
        let ended = Mutex::new(Some(ended));
        let shared = Shared { path, options, owners, readers, reads_only: false, writer, ended, _copy: None };
        Ok(Self { shared: Arc::new(shared), tenant: Tenant::new(TENANT_LOCAL) })
    }

    /// Opens the store of a data folder that can't be written, such as one on a full or a read-only disk: what was kept
    /// is read, and nothing can be. No other process may write it meanwhile. Makes no file there; one that the last process
    /// did not close is copied to the system's folder for temporary files. Blocks for a moment.
    ///
    /// # Errors
    /// As [`Self::open_blocking`], and [`StoreError::Io`] where it is of an older form.
    pub fn open_to_read(folder: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let path = folder.join(FILE_NAME);
        let copy = open::ReadingCopy::of(&path)?;
        let readers = match &copy {
            // Opened once for writing, so that the last writes and the newest form are in the copy.
            Some(copy) => {
                drop(open::connect(&copy.path(), &options)?);
                Readers::new(copy.path(), options.lock_wait_ms)
            }
            None => Readers::named(path.clone(), open::reading_alone(&path)?.into(), options.lock_wait_ms),
        };
        let owners = Arc::new(Owners::watch(folder));
        let (writer, ended) = (Mutex::new(None), Mutex::new(None));
        let shared = Shared { path, options, owners, readers, reads_only: true, writer, ended, _copy: copy };
        Ok(Self { shared: Arc::new(shared), tenant: Tenant::new(TENANT_LOCAL) })
    }

    /// Whether the file is sound from beginning to end. Reads all of it, which takes its time where it is large.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with what is wrong first.
    pub async fn check(&self) -> Result<(), StoreError> {
        let path = self.shared.path.clone();
        let read = move |connection: &rusqlite::Connection| {
            let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            let found = found.lines().last().unwrap_or_default().to_owned();
            if found == "ok" { Ok(()) } else { Err(StoreError::Damaged { path, reason: found }.into()) }
        };
        self.readers().read(read).await
    }

    /// The same store, seen by another tenant: nothing of one is reached from the other.
    #[must_use]
    pub fn of_tenant(&self, tenant: &str) -> Self {
        Self { shared: self.shared.clone(), tenant: Tenant::new(tenant) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Ends the writing thread when all that was handed to it is done, and closes the file. Every other clone is closed
    /// too. A store that is only dropped does the same, but nobody waits for it.
    pub async fn close(&self) {
        drop(self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.shared.readers.close();
        let ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            // An error means that the thread is gone already.
            let _ = ended.await;
        }
    }

    fn writer(&self) -> Result<Writer, StoreError> {
        let writer = self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let path = || self.shared.path.clone();
        writer.clone().ok_or_else(|| match self.shared.reads_only {
            true => StoreError::ReadOnly { path: path() },
            false => StoreError::Closed { path: path() },
        })
    }

    fn readers(&self) -> Readers {
        self.shared.readers.clone()
    }

    fn owners(&self) -> Arc<Owners> {
        self.shared.owners.clone()
    }

    /// Now, and when a lease that is given now lapses.
    fn lease_times(&self) -> (Timestamp, Timestamp) {
        let now = self.shared.options.clock.now();
        (now, now.plus_ms(self.shared.options.lease_ttl_ms))
    }
}
