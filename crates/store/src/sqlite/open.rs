//! Opening the file: recognised before it is touched, brought to the newest form, ready to write.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::StoreOptions;
use super::failure::{of_io, of_sql};
use super::schema::{APPLICATION_ID, MIGRATIONS, version};
use crate::error::StoreError;
use crate::folder::{make_private, new_private_file};

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const PAGE_BYTES: u64 = 4_096;

/// Opens the file for writing, making it where it is not there.
pub(super) fn connect(path: &Path, options: &StoreOptions) -> Result<Connection, StoreError> {
    match new_private_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(of_io(path, &cause)),
        Ok(_) | Err(_) => {}
    }
    recognise(path)?;
    let failed = |cause: rusqlite::Error| of_sql(path, options.lock_wait_ms, &cause);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(Duration::from_millis(options.lock_wait_ms)).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(64);
    claim_file(&connection, path, options)?;
    patient(options, || set_modes(&connection, options)).map_err(failed)?;
    patient(options, || migrate(&connection)).map_err(failed)?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(failed)?;
    if mode != "wal" {
        let reason = format!("its file system can't share memory between processes (journal mode is {mode})");
        return Err(StoreError::Folder { path: path.to_owned(), reason });
    }
    Ok(connection)
}

/// How a file is read that nobody can write: SQLite then wants nothing beside it.
pub(super) fn reading_alone(path: &Path) -> Result<String, StoreError> {
    if recognise(path)?.is_none_or(|found| found < version()) || has_last_writes(path) {
        let reason = "it is of an older form, or was not finished; copy the folder to a place that can be written, and \
                      name that with --data";
        return Err(StoreError::Io { path: path.to_owned(), reason: reason.to_owned() });
    }
    let text = path.to_str().ok_or_else(|| StoreError::Folder {
        path: path.to_owned(),
        reason: "its name is not UTF-8, and it can't be written".to_owned(),
    })?;
    let escaped = text.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Ok(format!("file:{escaped}?immutable=1"))
}

/// Whether the last writes still lie beside the file, because whoever wrote them did not close it.
fn has_last_writes(path: &Path) -> bool {
    std::fs::metadata(path.with_extension("db-wal")).is_ok_and(|about| about.len() > 0)
}

/// A copy of a file that was not closed well and cannot be written, in a folder that can; none where it needs no copy.
/// Gone when this is dropped.
#[derive(Debug)]
pub(super) struct ReadingCopy(PathBuf);

impl ReadingCopy {
    pub(super) fn of(path: &Path) -> Result<Option<Self>, StoreError> {
        if recognise(path)?.is_none() || !has_last_writes(path) {
            return Ok(None);
        }
        let copy = Self(std::env::temp_dir().join(format!("gesta-{}", uuid::Uuid::now_v7())));
        make_private(&copy.0)?;
        for from in [path.to_owned(), path.with_extension("db-wal")] {
            let to = copy.path().with_extension(from.extension().unwrap_or_default());
            let copied = new_private_file(&to).and_then(|mut to| io::copy(&mut File::open(&from)?, &mut to));
            copied.map_err(|cause| of_io(&from, &cause))?;
        }
        Ok(Some(copy))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.join(super::FILE_NAME)
    }
}

impl Drop for ReadingCopy {
    fn drop(&mut self) {
        // Whatever is left lies where the system clears up.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Looks at the header alone, so that a file which is not ours is not even opened by SQLite. Gives the version of its
/// form, where it has one yet.
pub(super) fn recognise(path: &Path) -> Result<Option<u32>, StoreError> {
    let mut header = Vec::with_capacity(100);
    let file = File::open(path).map_err(|cause| of_io(path, &cause))?;
    file.take(100).read_to_end(&mut header).map_err(|cause| of_io(path, &cause))?;
    let unfinished = path.with_extension("db-journal").exists();
    if header.is_empty() || unfinished {
        return Ok(None);
    }
    let path = path.to_owned();
    if !header.starts_with(MAGIC) {
        return Err(if MAGIC.starts_with(&header) {
            StoreError::Damaged { path, reason: "its header is cut off".to_owned() }
        } else {
            StoreError::Foreign { path, found: "it is no SQLite file".to_owned() }
        });
    }
    match (header_number(&header, 60), header_number(&header, 68)) {
        (Some(version), Some(id)) => check(&path, version, id).map(|()| Some(version)),
        _ => Err(StoreError::Damaged { path, reason: "its header is cut off".to_owned() }),
    }
}

fn header_number(header: &[u8], at: usize) -> Option<u32> {
    header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
}

fn check(path: &Path, found: u32, id: u32) -> Result<(), StoreError> {
    let path = path.to_owned();
    if i64::from(id) != i64::from(APPLICATION_ID) {
        return Err(StoreError::Foreign { path, found: "it is the database of another program".to_owned() });
    }
    let known = version();
    if found > known { Err(StoreError::Newer { path, found, known }) } else { Ok(()) }
}

/// Puts our mark into an empty file with the very first write, or checks it again as SQLite sees it: the newest header
/// may still lie in the write-ahead log.
fn claim_file(connection: &Connection, path: &Path, options: &StoreOptions) -> Result<(), StoreError> {
    let failed = |cause: rusqlite::Error| of_sql(path, options.lock_wait_ms, &cause);
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).map_err(failed);
    if number("page_count")? == 0 {
        return patient(options, || connection.pragma_update(None, "application_id", APPLICATION_ID)).map_err(failed);
    }
    check(path, number("user_version")?, number("application_id")?)
}

fn set_modes(connection: &Connection, options: &StoreOptions) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    // Without it a mark could vanish in a power failure and its effect happen twice (`spec/durability.md`, 5.1).
    connection.pragma_update(None, "synchronous", "full")?;
    // Where `fsync` alone does not reach the disk (macOS); elsewhere it changes nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    // What was erased is overwritten, not only unlinked.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    if let Some(bytes_max) = options.bytes_max {
        let pages = i64::try_from(bytes_max.div_ceil(PAGE_BYTES)).unwrap_or(i64::MAX);
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(())
}

/// Also finds out that the file can be written at all.
fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let result = migrate_steps(connection).and_then(|()| connection.execute_batch("COMMIT"));
    if result.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    result
}

fn migrate_steps(connection: &Connection) -> rusqlite::Result<()> {
    let from: usize = connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))? as usize;
    for step in MIGRATIONS.iter().skip(from) {
        connection.execute_batch(step)?;
    }
    if from < MIGRATIONS.len() { connection.pragma_update(None, "user_version", version()) } else { Ok(()) }
}

/// Some locks are refused at once, whatever the time-out says: those of the first start, when several processes make
/// the file together. Runs at the opening only, on a thread that may wait.
fn patient<T>(options: &StoreOptions, mut step: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let begun = Instant::now();
    loop {
        match step() {
            Err(cause)
                if matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
                    && begun.elapsed() < Duration::from_millis(options.lock_wait_ms) =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}
