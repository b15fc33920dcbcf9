//! What SQLite and the file system say, in our words.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::error::StoreError;
use crate::folder::writable;

/// Why a piece of work inside a transaction failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// SQLite failed.
    Sql(rusqlite::Error),
    /// The rules of the store say no, or a row can't be read.
    Store(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(cause: rusqlite::Error) -> Self {
        Self::Sql(cause)
    }
}

impl From<StoreError> for Failure {
    fn from(cause: StoreError) -> Self {
        Self::Store(cause)
    }
}

impl Failure {
    /// In our words.
    pub(super) fn explain(self, path: &Path, lock_wait_ms: u64) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sql(cause) => of_sql(path, lock_wait_ms, &cause),
        }
    }
}

/// What a failed statement, or a failed opening, means. Blocks where only the disk itself can tell.
pub(super) fn of_sql(path: &Path, lock_wait_ms: u64, cause: &rusqlite::Error) -> StoreError {
    match by_code(path, lock_wait_ms, cause) {
        StoreError::Io { path, reason } => of_device(path, reason),
        other => other,
    }
}

/// SQLite says of a full disk and of a read-only one no more than that the device failed: what its folder takes tells.
fn of_device(path: PathBuf, reason: String) -> StoreError {
    match path.parent().map(writable) {
        Some(Err(StoreError::DiskFull { .. })) => StoreError::DiskFull { path },
        Some(Err(StoreError::ReadOnly { .. })) => StoreError::ReadOnly { path },
        Some(Err(StoreError::NoPermission { .. })) => StoreError::NoPermission { path },
        _ => StoreError::Io { path, reason },
    }
}

fn by_code(path: &Path, lock_wait_ms: u64, cause: &rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    let reason = cause.to_string();
    match cause.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::DiskFull { path },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Locked { path, waited_ms: lock_wait_ms }
        }
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            StoreError::NoPermission { path }
        }
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory) => {
            StoreError::Io { path, reason }
        }
        // A row of another form than ours, a missing table, a broken page: the file is not what it should be.
        _ => StoreError::Damaged { path, reason },
    }
}

/// What a failed commit means: after an error of the device nobody knows how much of it arrived.
pub(super) fn of_commit(path: &Path, lock_wait_ms: u64, cause: &rusqlite::Error) -> StoreError {
    match by_code(path, lock_wait_ms, cause) {
        StoreError::Io { path, reason } => match of_device(path, reason.clone()) {
            StoreError::Io { path, reason } => StoreError::CommitUnknown { path, reason },
            StoreError::DiskFull { path } => {
                StoreError::CommitUnknown { path, reason: format!("{reason}: no room is left on the disk") }
            }
            StoreError::ReadOnly { path } | StoreError::NoPermission { path } => {
                StoreError::CommitUnknown { path, reason: format!("{reason}: its folder can't be written any more") }
            }
            other => other,
        },
        other => other,
    }
}

/// What a failed operation on a file or folder means.
pub(crate) fn of_io(path: &Path, cause: &io::Error) -> StoreError {
    let path = path.to_owned();
    match cause.kind() {
        io::ErrorKind::PermissionDenied => StoreError::NoPermission { path },
        io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { path },
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreError::DiskFull { path }
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound => {
            StoreError::Folder { path, reason: cause.to_string() }
        }
        _ => StoreError::Io { path, reason: cause.to_string() },
    }
}
