//! Who is alive: each opened store keeps a locked file in the data folder for as long as it lives, and the system drops
//! the lock when its process dies, however it dies.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::failure::of_io;
use crate::error::StoreError;
use crate::types::RunHead;

const TRIES_MAX: u32 = 8;

/// This store among those that have the same folder open.
#[derive(Debug)]
pub(super) struct Owners {
    folder: PathBuf,
    id: String,
    /// Locked while this lives.
    lock: Option<File>,
}

impl Owners {
    /// Enters the folder under a new id, and clears away what dead ones left.
    pub(super) fn enter(data: &Path) -> Result<Self, StoreError> {
        let folder = data.join("owners");
        fs::create_dir_all(&folder).map_err(|cause| of_io(&folder, &cause))?;
        clear(&folder);
        // Someone who clears may take the new file for a dead one's before it is locked: then another is made.
        for _ in 0..TRIES_MAX {
            let id = Uuid::now_v7().to_string();
            let path = lock_path(&folder, &id);
            let lock = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&path)
                .map_err(|cause| of_io(&folder, &cause))?;
            if lock.try_lock().is_ok() && path.exists() {
                return Ok(Self { folder, id, lock: Some(lock) });
            }
        }
        Err(StoreError::Folder { path: folder, reason: "its file system does not lock files".to_owned() })
    }

    /// Looks at the folder from outside, where it can't be written.
    pub(super) fn watch(data: &Path) -> Self {
        Self { folder: data.join("owners"), id: Uuid::now_v7().to_string(), lock: None }
    }

    /// The id of this store.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Whether the store of that id is surely gone. What can't be told counts as alive: its lease will lapse.
    pub(super) fn is_gone(&self, owner: &str) -> bool {
        // The id comes from a file that anyone may have written: only a UUID becomes part of a path.
        if owner == self.id || Uuid::parse_str(owner).is_err() {
            return false;
        }
        match File::open(lock_path(&self.folder, owner)) {
            Ok(file) => is_unlocked(&file),
            Err(cause) => cause.kind() == io::ErrorKind::NotFound,
        }
    }
}

impl Owners {
    /// A head as it is: one who is gone works on nothing.
    pub(super) fn seen(&self, head: RunHead) -> RunHead {
        let held_by = head.held_by.filter(|holder| !self.is_gone(&holder.owner));
        RunHead { held_by, ..head }
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        if self.lock.is_none() {
            return;
        }
        // Removed while it is still locked, so that nobody finds it unlocked and new.
        let _ = fs::remove_file(lock_path(&self.folder, &self.id));
        self.lock = None;
    }
}

/// Whether any store has this data folder open now.
pub(super) fn anybody(data: &Path) -> bool {
    let Ok(entries) = fs::read_dir(data.join("owners")) else { return false };
    let locks =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "lock"));
    locks.into_iter().any(|path| File::open(path).is_ok_and(|file| !is_unlocked(&file)))
}

fn lock_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.lock"))
}

/// Shared, so that two who ask at the same time don't take each other for the owner.
fn is_unlocked(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

fn clear(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|it| it != "lock") {
            continue;
        }
        if let Ok(file) = File::open(&path)
            && is_unlocked(&file)
        {
            // Still locked, shared, while it is removed: its maker sees that and makes another.
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_left_is_gone_and_one_who_is_there_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let here = Owners::enter(folder.path()).unwrap();
        let other = Owners::enter(folder.path()).unwrap();
        let id = other.id().to_owned();
        assert!(!here.is_gone(&id));
        assert!(!here.is_gone(here.id()));
        drop(other);
        assert!(here.is_gone(&id));
    }

    #[test]
    fn what_the_dead_left_is_cleared_and_never_a_path_of_another_folder() {
        let folder = tempfile::tempdir().unwrap();
        let here = Owners::enter(folder.path()).unwrap();
        let dead = lock_path(&folder.path().join("owners"), &Uuid::now_v7().to_string());
        fs::write(&dead, "").unwrap();
        assert!(!here.is_gone("../../etc/passwd"));
        let _third = Owners::enter(folder.path()).unwrap();
        assert!(!dead.exists());
        assert!(lock_path(&folder.path().join("owners"), here.id()).exists());
    }
}
