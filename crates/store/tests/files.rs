//! What stands in the way on disk is said by name, and leaves everything as it was.

#![allow(clippy::unwrap_used, reason = "a test that can't go on is to stop where it stands")]

use std::fs;
use std::path::{Path, PathBuf};

use gesta_run::event::{Event, EventKind};
use gesta_run::message::{Message, Part};
use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use gesta_store::{
    Conversations, DocumentChange, FILE_NAME, HeadChange, NewRun, RunFilter, RunLog, Sqlite, StoreError, StoreOptions,
    Turn,
};
use rusqlite::Connection;

fn new_run(run: &str, conversation: Option<&str>) -> NewRun {
    NewRun {
        run: run.into(),
        agent: "coach".to_owned(),
        conversation: conversation.map(Into::into),
        contact: None,
        config: "hash".to_owned(),
        at: Timestamp(1),
    }
}

fn event(text: &str) -> Event {
    let what = EventKind::FunctionFailed { function: "f".to_owned(), error: text.to_owned() };
    Event { at: Timestamp(2), what }
}

fn open() -> HeadChange {
    HeadChange::to(Status::Open)
}

async fn opened(folder: &Path) -> Result<Sqlite, StoreError> {
    Sqlite::open(folder, StoreOptions::default()).await
}

/// Opens a folder whose file is `bytes`; gives the refusal, and checks that the file stayed as it was.
async fn refusal_of(bytes: &[u8]) -> StoreError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    fs::write(&path, bytes).unwrap();
    let refused = opened(folder.path()).await.unwrap_err();
    assert!(fs::read(&path).unwrap() == bytes, "the file was changed");
    assert!(refused.to_string().contains(FILE_NAME), "{refused}");
    refused
}

/// The bytes of a sound file with one run in it.
async fn sound() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path()).await.unwrap();
    let lease = store.open(new_run("r1", Some("k")), &[]).await.unwrap();
    for n in 0..50 {
        store.append(&lease, n, &[event(&"x".repeat(900))], open()).await.unwrap();
    }
    store.close().await;
    fs::read(folder.path().join(FILE_NAME)).unwrap()
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_untouched() {
    for bytes in [&b"hello"[..], &[0_u8; 5_000], "SQLite format 2\0".as_bytes()] {
        let refused = refusal_of(bytes).await;
        assert!(matches!(refused, StoreError::Foreign { .. }), "{refused:?}");
    }
}

#[tokio::test]
async fn the_database_of_another_program_is_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE runs (a); INSERT INTO runs VALUES (1)").unwrap();
    drop(connection);
    let refused = refusal_of(&fs::read(&path).unwrap()).await;
    assert!(matches!(refused, StoreError::Foreign { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_left_untouched() {
    let mut bytes = sound().await;
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    let refused = refusal_of(&bytes).await;
    assert!(matches!(refused, StoreError::Newer { found: 99, .. }), "{refused:?}");
    assert!(refused.to_string().contains("update"), "{refused}");
}

#[tokio::test]
async fn a_file_cut_within_its_header_is_damaged() {
    let bytes = sound().await;
    for length in [3, 15, 16, 70] {
        let refused = refusal_of(&bytes[..length]).await;
        assert!(matches!(refused, StoreError::Damaged { .. }), "{length}: {refused:?}");
    }
}

/// Wherever a file is cut or overwritten, the store opens or says what is wrong; what it reads is right or an error.
#[tokio::test]
async fn a_damaged_file_is_an_error_and_never_a_panic() {
    let bytes = sound().await;
    let expected: Vec<Event> = (0..50).map(|_| event(&"x".repeat(900))).collect();
    let mut dice = fastrand::Rng::with_seed(3);
    let (mut errors, mut whole) = (0, 0);
    for round in 0..40 {
        let mut bytes = bytes.clone();
        if round % 2 == 0 {
            bytes.truncate(dice.usize(100..bytes.len()));
        } else {
            let start = dice.usize(100..bytes.len() - 600);
            bytes[start..start + 600].iter_mut().for_each(|byte| *byte = dice.u8(..));
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE_NAME), &bytes).unwrap();
        let loaded = match opened(folder.path()).await {
            Ok(store) => {
                let loaded = store.load(&"r1".into()).await;
                let _ = store.runs(&RunFilter::default()).await;
                let _ = store.claim(&"r1".into()).await;
                let _ = store.open(new_run("r2", None), &[event("after")]).await;
                store.close().await;
                loaded
            }
            Err(refused) => Err(refused),
        };
        match loaded {
            Ok(stored) => {
                whole += 1;
                assert_eq!(stored.events, expected, "round {round}");
            }
            Err(refused) => {
                errors += 1;
                let known = matches!(
                    refused,
                    StoreError::Damaged { .. }
                        | StoreError::DamagedEvents { .. }
                        | StoreError::DamagedRow { .. }
                        | StoreError::NoSuchRun { .. }
                        | StoreError::LogNewer { .. }
                        | StoreError::Foreign { .. }
                        | StoreError::Newer { .. }
                );
                assert!(known, "round {round}: {refused:?}");
            }
        }
    }
    assert!(errors >= 20 && errors + whole == 40, "{errors} errors, {whole} whole");
}

#[tokio::test]
async fn a_damaged_event_names_its_run_and_position_and_spares_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path()).await.unwrap();
    for run in ["r1", "r2"] {
        let lease = store.open(new_run(run, None), &[event("one"), event("two")]).await.unwrap();
        store.append(&lease, 2, &[event("three")], open()).await.unwrap();
    }
    let other = Connection::open(store.path()).unwrap();
    let spoil = [
        ("UPDATE events SET body = '[{\"at\":1}]' WHERE run_id = 'r1' AND position = 2", "missing field"),
        ("UPDATE events SET body = x'ff00' WHERE run_id = 'r1' AND position = 2", "expected value"),
        ("UPDATE events SET number = 'many' WHERE run_id = 'r1' AND position = 2", "a number is missing"),
        ("DELETE FROM events WHERE run_id = 'r1' AND position = 2", "2 events are there, the head counts 3"),
    ];
    for (sql, reason) in spoil {
        other.execute(sql, []).unwrap();
        match store.load(&"r1".into()).await.unwrap_err() {
            StoreError::DamagedEvents { run, position: 2, reason: found } if run.as_str() == "r1" => {
                assert!(found.contains(reason), "{sql}: {found}");
            }
            unexpected => panic!("{sql}: {unexpected:?}"),
        }
    }
    assert_eq!(store.load(&"r2".into()).await.unwrap().events.len(), 3);
}

#[tokio::test]
async fn an_event_of_a_newer_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path()).await.unwrap();
    store.open(new_run("r1", None), &[event("one")]).await.unwrap();
    Connection::open(store.path()).unwrap().execute("UPDATE events SET version = 99", []).unwrap();
    let refused = store.load(&"r1".into()).await.unwrap_err();
    assert!(matches!(refused, StoreError::LogNewer { found: 99, position: 0, .. }), "{refused:?}");
}

#[tokio::test]
async fn an_empty_file_is_a_store_that_was_not_finished() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE_NAME), "").unwrap();
    opened(folder.path()).await.unwrap().open(new_run("r1", None), &[]).await.unwrap();
}

#[tokio::test]
async fn what_stands_in_the_place_of_folder_or_file_is_said_by_name() {
    let outer = tempfile::tempdir().unwrap();
    let taken = outer.path().join("taken");
    fs::write(&taken, "").unwrap();
    let inside = outer.path().join("inside");
    fs::create_dir_all(inside.join(FILE_NAME)).unwrap();
    for folder in [taken.clone(), taken.join("deeper"), inside] {
        let refused = opened(&folder).await.unwrap_err();
        assert!(refused.to_string().contains(folder.file_name().unwrap().to_str().unwrap()), "{refused}");
        assert!(matches!(refused, StoreError::Folder { .. } | StoreError::Io { .. }), "{refused:?}");
    }
}

/// Root may write where nobody else may; there remain folders that even root can't write to.
#[tokio::test]
async fn a_folder_that_can_not_be_written_is_said_by_name() {
    let outer = tempfile::tempdir().unwrap();
    let locked = outer.path().join("locked");
    drop(opened(&locked).await.unwrap());
    let mut places = vec![PathBuf::from("/proc/gesta"), PathBuf::from("/sys/gesta")];
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
        if fs::write(locked.join("probe"), "").is_ok() {
            eprintln!("this user may write everywhere: the read-only folder is left out");
        } else {
            places.push(locked.clone());
        }
    }
    for place in places {
        let refused = opened(&place).await.unwrap_err();
        assert!(refused.to_string().contains(place.to_str().unwrap()), "{refused}");
        let known = matches!(
            refused,
            StoreError::Folder { .. } | StoreError::NoPermission { .. } | StoreError::ReadOnly { .. }
        );
        assert!(known, "{refused:?}");
    }
    #[cfg(unix)]
    fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
}

/// What lies in a folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_store_that_is_only_read_makes_no_file_and_refuses_writes() {
    let outer = tempfile::tempdir().unwrap();
    // A name that would mean something else in an address.
    let folder = outer.path().join("100%?#");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(FILE_NAME), sound().await).unwrap();
    let before = entries(&folder);
    let store = Sqlite::open_to_read(&folder, StoreOptions::default()).unwrap();
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), 1);
    assert_eq!(store.load(&"r1".into()).await.unwrap().events.len(), 50);
    store.check().await.unwrap();
    let refused = store.open(new_run("r2", None), &[]).await.unwrap_err();
    assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused:?}");
    store.close().await;
    assert_eq!(entries(&folder), before);
    let empty = tempfile::tempdir().unwrap();
    fs::write(empty.path().join(FILE_NAME), "").unwrap();
    assert!(Sqlite::open_to_read(empty.path(), StoreOptions::default()).is_err());
}

#[tokio::test]
async fn the_last_writes_of_a_store_that_was_not_closed_are_read_where_nothing_can_be_written() {
    let (writes, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = opened(writes.path()).await.unwrap();
    let lease = store.open(new_run("r1", Some("k")), &[]).await.unwrap();
    store.append(&lease, 0, &[event("the last")], open()).await.unwrap();
    for name in [FILE_NAME, "gesta.db-wal"] {
        fs::copy(writes.path().join(name), left.path().join(name)).unwrap();
    }
    let before = entries(left.path());
    let read = Sqlite::open_to_read(left.path(), StoreOptions::default()).unwrap();
    assert_eq!(read.load(&"r1".into()).await.unwrap().events, [event("the last")]);
    assert!(matches!(read.open(new_run("r2", None), &[]).await, Err(StoreError::ReadOnly { .. })));
    read.close().await;
    assert_eq!(entries(left.path()), before);
}

#[tokio::test]
async fn a_check_finds_damage_that_a_query_passes_over() {
    let sound = sound().await;
    for (from, every) in [(4_096, 7), (4_096, 1), (20_000, 3)] {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = sound.clone();
        bytes.iter_mut().skip(from).step_by(every).for_each(|byte| *byte ^= 0xff);
        fs::write(folder.path().join(FILE_NAME), bytes).unwrap();
        // What describes the tables reaches so far that some of it is seen at once.
        let found = match opened(folder.path()).await {
            Ok(store) => store.check().await.unwrap_err(),
            Err(why) => why,
        };
        assert!(matches!(found, StoreError::Damaged { .. }), "{from}, {every}: {found:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE_NAME), sound).unwrap();
    opened(folder.path()).await.unwrap().check().await.unwrap();
}

#[tokio::test]
async fn who_is_gone_works_on_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (opened(folder.path()).await.unwrap(), opened(folder.path()).await.unwrap());
    there.open(new_run("r1", None), &[]).await.unwrap();
    let held = || async {
        let listed = here.runs(&RunFilter::default()).await.unwrap().remove(0);
        (here.head(&"r1".into()).await.unwrap().held_by.is_some(), listed.held_by.is_some())
    };
    assert_eq!(held().await, (true, true));
    there.close().await;
    drop(there);
    assert_eq!(held().await, (false, false));
}

#[tokio::test]
async fn a_store_that_is_full_says_so_loses_nothing_and_works_again_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { bytes_max: Some(400_000), ..StoreOptions::default() };
    let store = Sqlite::open(folder.path(), options).await.unwrap();
    let kept = store.open(new_run("kept", Some("kept")), &[event("kept")]).await.unwrap();
    let lease = store.open(new_run("r1", Some("k")), &[]).await.unwrap();
    let mut stored = 0;
    let full = loop {
        match store.append(&lease, stored, &[event(&"x".repeat(5_000))], open()).await {
            Ok(()) => stored += 1,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(full, StoreError::DiskFull { .. }) && full.is_passing(), "{full:?}");
    assert!(stored > 10);
    assert_eq!(store.load(&"r1".into()).await.unwrap().events.len() as u64, stored);
    store.erase(&"k".into()).await.unwrap();
    for at in 1..20 {
        store.append(&kept, at, &[event(&"y".repeat(5_000))], open()).await.unwrap();
    }
    assert_eq!(store.load(&"kept".into()).await.unwrap().events.len(), 20);
}

#[tokio::test]
async fn what_was_erased_is_in_no_file_any_more() {
    const CANARY: &str = "canary-7f3a";
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path()).await.unwrap();
    let lease = store.open(new_run("r1", Some("k")), &[event(CANARY)]).await.unwrap();
    let messages = vec![Message::User { parts: vec![Part::text(CANARY)], prompted: false }];
    let turn = Some(Turn { messages, tokens: 1 });
    let (working, document) = (Some(CANARY.into()), DocumentChange::Adopt { from: 0 });
    let change = HeadChange { turn, working, document, ..HeadChange::ended(Outcome::Completed) };
    store.append(&lease, 1, &[event(CANARY)], change).await.unwrap();
    let lease = store.open(new_run("r2", Some("k")), &[]).await.unwrap();
    let change = HeadChange { working: Some(CANARY.into()), ..open() };
    store.append(&lease, 0, &[], change).await.unwrap();
    let found = |folder: &Path| {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        files
            .filter(|path| fs::read(path).unwrap().windows(CANARY.len()).any(|window| window == CANARY.as_bytes()))
            .count()
    };
    assert!(found(folder.path()) > 0);
    store.erase(&"k".into()).await.unwrap();
    assert_eq!(found(folder.path()), 0);
    store.close().await;
    assert_eq!(found(folder.path()), 0);
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path()).await.unwrap();
    let clone = store.clone();
    store.close().await;
    store.close().await;
    assert!(matches!(clone.load(&"r1".into()).await, Err(StoreError::Closed { .. })));
    assert!(matches!(clone.open(new_run("r1", None), &[]).await, Err(StoreError::Closed { .. })));
    assert_eq!(fs::read_dir(folder.path()).unwrap().filter(|it| it.as_ref().unwrap().path().is_file()).count(), 1);
}

#[tokio::test]
async fn the_file_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let store = opened(&data).await.unwrap();
    store.open(new_run("r1", None), &[]).await.unwrap();
    #[cfg(unix)]
    for entry in fs::read_dir(&data).unwrap().map(Result::unwrap) {
        use std::os::unix::fs::PermissionsExt;
        let mode = entry.metadata().unwrap().permissions().mode();
        assert!(entry.path().is_dir() || mode & 0o077 == 0, "{:?}: {mode:o}", entry.path());
    }
}
