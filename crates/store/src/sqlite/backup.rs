//! A copy of the store, taken while others write it, and put back where nobody has it open. A copy is a data folder
//! itself: every command that reads takes it with `--data`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::failure::{of_io, of_sql};
use super::open::{reading_alone, recognise};
use super::{FILE_NAME, StoreOptions, owners};
use crate::error::StoreError;
use crate::folder::{make_private, new_private_file};
use crate::secret;

/// What a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Runs of all tenants.
    pub runs: u64,
    /// Conversations of all tenants.
    pub conversations: u64,
    /// The size of the copied file, in bytes.
    pub bytes: u64,
}

/// Copies the store of a data folder to another folder, as it stands at one moment, while other processes may write
/// it; and with it the key that signs documents and saved runs, where there is one. The copy is checked, and appears
/// under its name only when it is whole and on disk. Takes as long as reading and writing the file does, and blocks.
///
/// # Errors
/// [`StoreError::Exists`] when `to` has a store; those of [`super::Sqlite::open_blocking`] when either folder can't be
/// used; [`StoreError::Damaged`] when what was copied is not sound.
pub fn backup(data: &Path, to: &Path) -> Result<Copied, StoreError> {
    if recognise(&data.join(FILE_NAME))?.is_none() {
        let reason = "it is empty: nothing was ever written to it".to_owned();
        return Err(StoreError::Damaged { path: data.join(FILE_NAME), reason });
    }
    make_private(to)?;
    let copied = copy(data, to)?;
    copy_secret(data, to)?;
    Ok(copied)
}

/// Puts a copy that [`backup`] made into a data folder. What is there already is moved into a folder beside it, whose
/// path comes back, where `replace` says so. Blocks.
///
/// # Errors
/// [`StoreError::Exists`] when the folder has a store and `replace` is not set; [`StoreError::InUse`] when another
/// process has it open; and those of [`backup`]. The folder then stands as it was.
pub fn restore(from: &Path, data: &Path, replace: bool) -> Result<(Copied, Option<PathBuf>), StoreError> {
    recognise(&from.join(FILE_NAME))?;
    make_private(data)?;
    let there = data.join(FILE_NAME).exists();
    if there && !replace {
        return Err(StoreError::Exists { path: data.join(FILE_NAME) });
    }
    if owners::anybody(data) {
        return Err(StoreError::InUse { path: data.to_owned() });
    }
    if !there {
        let copied = copy(from, data)?;
        copy_secret(from, data)?;
        return Ok((copied, None));
    }
    // Beside what is there until it is known to be whole: a copy that is bad takes nothing away.
    let fresh = data.join(format!("restored-{}", uuid::Uuid::now_v7()));
    make_private(&fresh)?;
    let copied = copy(from, &fresh).and_then(|copied| copy_secret(from, &fresh).map(|()| copied));
    let copied = copied.inspect_err(|_| {
        // What was begun there is of no use to anybody.
        let _ = fs::remove_dir_all(&fresh);
    })?;
    let aside = data.join(format!("replaced-{}", uuid::Uuid::now_v7()));
    make_private(&aside)?;
    settle(&data.join(FILE_NAME));
    for step in STEPS {
        take(step, data, &fresh, &aside)?;
    }
    fs::remove_dir(&fresh).map_err(|cause| of_io(&fresh, &cause))?;
    synced(data)?;
    Ok((copied, Some(aside)))
}

const LOG: &str = "gesta.db-wal";
const INDEX: &str = "gesta.db-shm";

/// A step on the way from the store that is there to the copy, about one file.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// It has a second name in the folder beside.
    Keep(&'static str),
    /// It goes.
    Leave(&'static str),
    /// That of the copy takes its place, in one stroke.
    Put(&'static str),
}

/// From one store to the other. Wherever this breaks off, the folder has one of them, whole: a folder without a store
/// would be taken for an empty one.
const STEPS: [Step; 8] = [
    Step::Keep(FILE_NAME),
    Step::Keep(LOG),
    Step::Keep(INDEX),
    Step::Keep(secret::FILE),
    Step::Leave(LOG),
    Step::Leave(INDEX),
    Step::Put(secret::FILE),
    Step::Put(FILE_NAME),
];

fn take(step: Step, data: &Path, fresh: &Path, aside: &Path) -> Result<(), StoreError> {
    let (name, done) = match step {
        Step::Keep(name) => (name, fs::hard_link(data.join(name), aside.join(name))),
        Step::Leave(name) => (name, fs::remove_file(data.join(name))),
        Step::Put(name) if fresh.join(name).exists() => (name, fs::rename(fresh.join(name), data.join(name))),
        // What the copy does not have, the old store alone had.
        Step::Put(name) => (name, fs::remove_file(data.join(name))),
    };
    match done {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(of_io(&data.join(name), &cause)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes what stands in the log of a store into its file, so that the file alone is the store. One that cannot be
/// opened is moved as it is: nobody can use it, and nothing of it is lost.
fn settle(path: &Path) {
    if let Ok(store) = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE) {
        let _ = store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

fn copy(from: &Path, to: &Path) -> Result<Copied, StoreError> {
    let (source, target) = (from.join(FILE_NAME), to.join(FILE_NAME));
    if target.exists() {
        return Err(StoreError::Exists { path: target });
    }
    let partial = to.join(format!("partial-{}", uuid::Uuid::now_v7()));
    // SQLite writes into an empty file that is there, and so nobody else may read the copy at any time.
    new_private_file(&partial).map_err(|cause| of_io(&partial, &cause))?;
    let copied = copy_into(&source, &partial);
    let copied = copied.and_then(|copied| {
        // A link fails where a store has appeared meanwhile; a rename would take its place.
        match fs::hard_link(&partial, &target) {
            Ok(()) => Ok(copied),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Err(StoreError::Exists { path: target }),
            Err(cause) => Err(of_io(&target, &cause)),
        }
    });
    // Where it cannot be removed it is a copy too many, and its name says so.
    let _ = fs::remove_file(&partial);
    let copied = copied?;
    synced(to)?;
    Ok(copied)
}

fn copy_into(source: &Path, partial: &Path) -> Result<Copied, StoreError> {
    let options = StoreOptions::default();
    let failed = |path: &Path, cause: rusqlite::Error| of_sql(path, options.lock_wait_ms, &cause);
    let from = reading(source, options.lock_wait_ms)?;
    let into = partial
        .to_str()
        .ok_or_else(|| StoreError::Folder { path: partial.to_owned(), reason: "its name is not UTF-8".to_owned() })?;
    from.execute("VACUUM INTO ?1", [into]).map_err(|cause| match failed(partial, cause) {
        StoreError::Damaged { reason, .. } => StoreError::Damaged { path: source.to_owned(), reason },
        other => other,
    })?;
    drop(from);
    let file = File::open(partial).map_err(|cause| of_io(partial, &cause))?;
    file.sync_all().map_err(|cause| of_io(partial, &cause))?;
    let bytes = file.metadata().map_err(|cause| of_io(partial, &cause))?.len();
    let copy = Connection::open_with_flags(partial, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let copy = copy.map_err(|cause| failed(partial, cause))?;
    let found: String =
        copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(|cause| failed(partial, cause))?;
    if found != "ok" {
        return Err(StoreError::Damaged { path: source.to_owned(), reason: found });
    }
    let count = |sql| copy.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
    let runs = count("SELECT count(*) FROM runs").map_err(|cause| failed(partial, cause))?;
    let conversations = count("SELECT count(*) FROM conversations").map_err(|cause| failed(partial, cause))?;
    Ok(Copied { runs, conversations, bytes })
}

/// A connection that reads: beside whoever writes, or alone where nobody can.
fn reading(path: &Path, lock_wait_ms: u64) -> Result<Connection, StoreError> {
    let failed = |cause: rusqlite::Error| of_sql(path, lock_wait_ms, &cause);
    let beside = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
    let readable = beside.and_then(|connection| {
        connection.busy_timeout(Duration::from_millis(lock_wait_ms))?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    });
    match readable.map_err(failed) {
        Err(StoreError::ReadOnly { .. } | StoreError::NoPermission { .. }) => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(reading_alone(path)?, flags).map_err(failed)
        }
        other => other,
    }
}

fn copy_secret(from: &Path, to: &Path) -> Result<(), StoreError> {
    let (from, to) = (from.join(secret::FILE), to.join(secret::FILE));
    let key = match fs::read(&from) {
        Ok(key) => key,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(of_io(&from, &cause)),
    };
    let mut file = new_private_file(&to).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => StoreError::Exists { path: to.clone() },
        _ => of_io(&to, &cause),
    })?;
    io::Write::write_all(&mut file, &zeroize::Zeroizing::new(key)).map_err(|cause| of_io(&to, &cause))?;
    file.sync_all().map_err(|cause| of_io(&to, &cause))
}

/// The names in a folder are on disk.
fn synced(folder: &Path) -> Result<(), StoreError> {
    if cfg!(unix) {
        let opened = File::open(folder).and_then(|folder| folder.sync_all());
        opened.map_err(|cause| of_io(folder, &cause))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a store that has so many conversations' rows in its log alone.
    fn store(folder: &Path, name: &str) {
        let store = Connection::open(folder.join(FILE_NAME)).unwrap();
        store.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE whose (name TEXT);").unwrap();
        store.execute("INSERT INTO whose VALUES (?1)", [name]).unwrap();
        // A process that died left its log behind.
        let kept = [LOG, INDEX].map(|it| (folder.join(it), fs::read(folder.join(it)).unwrap()));
        drop(store);
        fs::write(folder.join(secret::FILE), name).unwrap();
        if name == "old" {
            kept.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        }
    }

    #[test]
    fn wherever_a_restore_breaks_off_there_is_one_whole_store() {
        for until in 0..=STEPS.len() {
            let folder = tempfile::tempdir().unwrap();
            let [data, fresh, aside] = ["data", "fresh", "aside"].map(|name| folder.path().join(name));
            for it in [&data, &fresh, &aside] {
                fs::create_dir(it).unwrap();
            }
            store(&data, "old");
            store(&fresh, "new");
            settle(&data.join(FILE_NAME));
            STEPS.into_iter().take(until).for_each(|step| take(step, &data, &fresh, &aside).unwrap());
            let found = Connection::open_with_flags(data.join(FILE_NAME), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
            let whose: String = found.query_row("SELECT name FROM whose", [], |row| row.get(0)).unwrap();
            assert_eq!(whose, if until == STEPS.len() { "new" } else { "old" }, "after {until} steps");
        }
    }
}
