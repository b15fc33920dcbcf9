//! A copy is whole, whoever writes meanwhile, and nothing is lost where one is put back.

#![allow(clippy::unwrap_used, reason = "a test that can't go on is to stop where it stands")]

use std::fs;
use std::path::Path;

use gesta_run::event::{Event, EventKind};
use gesta_run::outcome::Status;
use gesta_run::time::Timestamp;
use gesta_store::{
    FILE_NAME, HeadChange, NewRun, RunFilter, RunLog, Secrets, Sqlite, StoreError, StoreOptions, backup, restore,
};

fn new_run(run: &str) -> NewRun {
    NewRun {
        run: run.into(),
        agent: "coach".to_owned(),
        conversation: Some(run.into()),
        contact: None,
        config: "hash".to_owned(),
        at: Timestamp(1),
    }
}

fn event(text: &str) -> Event {
    let what = EventKind::FunctionFailed { function: "f".to_owned(), error: text.to_owned() };
    Event { at: Timestamp(2), what }
}

async fn opened(folder: &Path) -> Sqlite {
    Sqlite::open(folder, StoreOptions::default()).await.unwrap()
}

/// A store with these runs, closed.
async fn filled(folder: &Path, runs: &[&str]) {
    let store = opened(folder).await;
    for run in runs {
        let lease = store.open(new_run(run), &[event(run)]).await.unwrap();
        store.release(&lease).await.unwrap();
    }
    store.close().await;
}

async fn runs(folder: &Path) -> Vec<String> {
    let store = opened(folder).await;
    let mut names: Vec<String> = store
        .runs(&RunFilter { limit: 100, ..RunFilter::default() })
        .await
        .unwrap()
        .into_iter()
        .map(|it| it.run.to_string())
        .collect();
    names.sort();
    store.close().await;
    names
}

#[tokio::test]
async fn a_copy_that_is_taken_while_others_write_holds_whole_appends() {
    let outer = tempfile::tempdir().unwrap();
    let (data, copies) = (outer.path().join("data"), outer.path().join("copies"));
    let store = opened(&data).await;
    let lease = store.open(new_run("busy"), &[]).await.unwrap();
    let writes = tokio::spawn(async move {
        for n in 0..400 {
            let pair = [event(&format!("{n} {}", "x".repeat(2_000))), event("its second half")];
            store.append(&lease, n * 2, &pair, HeadChange::to(Status::Open)).await.unwrap();
        }
        store.close().await;
    });
    let mut sizes = Vec::new();
    for n in 0..4 {
        let copy = copies.join(n.to_string());
        let (from, to) = (data.clone(), copy.clone());
        let copied = tokio::task::spawn_blocking(move || backup(&from, &to)).await.unwrap().unwrap();
        assert_eq!((copied.runs, copied.conversations), (1, 1));
        assert_eq!(copied.bytes, fs::metadata(copy.join(FILE_NAME)).unwrap().len());
        let store = opened(&copy).await;
        let events = store.load(&"busy".into()).await.unwrap().events.len();
        assert_eq!(events % 2, 0, "half an append was copied");
        sizes.push(events);
    }
    writes.await.unwrap();
    assert!(sizes.is_sorted(), "{sizes:?}");
    let last = copies.join("last");
    backup(&data, &last).unwrap();
    assert_eq!(opened(&last).await.load(&"busy".into()).await.unwrap().events.len(), 800);
    let mut left: Vec<String> =
        fs::read_dir(&last).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    left.retain(|name| name.starts_with("partial"));
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn a_copy_is_put_back_with_the_key_and_what_was_there_is_kept_aside() {
    let outer = tempfile::tempdir().unwrap();
    let (data, copy) = (outer.path().join("data"), outer.path().join("copy"));
    filled(&data, &["a", "b"]).await;
    let sealed = Secrets::load(None, &data).unwrap().seal("test", "hello");
    backup(&data, &copy).unwrap();
    filled(&data, &["c"]).await;

    let elsewhere = outer.path().join("elsewhere");
    assert_eq!(restore(&copy, &elsewhere, false).unwrap().1, None);
    assert_eq!(runs(&elsewhere).await, ["a", "b"]);
    assert_eq!(Secrets::load(None, &elsewhere).unwrap().unseal("test", &sealed), Ok("hello"));

    let refused = restore(&copy, &data, false).unwrap_err();
    assert!(matches!(refused, StoreError::Exists { .. }), "{refused}");
    assert_eq!(runs(&data).await, ["a", "b", "c"]);
    let (copied, aside) = restore(&copy, &data, true).unwrap();
    assert_eq!(copied.runs, 2);
    assert_eq!(runs(&data).await, ["a", "b"]);
    assert_eq!(runs(&aside.unwrap()).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn nothing_is_replaced_while_somebody_has_it_open_or_by_what_is_no_copy() {
    let outer = tempfile::tempdir().unwrap();
    let (data, copy) = (outer.path().join("data"), outer.path().join("copy"));
    filled(&data, &["a"]).await;
    backup(&data, &copy).unwrap();

    let store = opened(&data).await;
    let refused = restore(&copy, &data, true).unwrap_err();
    assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
    store.close().await;
    drop(store);

    let sound = fs::read(copy.join(FILE_NAME)).unwrap();
    let mut torn = sound.clone();
    torn.iter_mut().skip(4_096).step_by(3).for_each(|byte| *byte ^= 0xff);
    for (bytes, code) in [(torn, "store_damaged"), (b"hello, world".to_vec(), "store_foreign")] {
        fs::write(copy.join(FILE_NAME), bytes).unwrap();
        assert_eq!(restore(&copy, &data, true).unwrap_err().code(), code);
        assert_eq!(runs(&data).await, ["a"]);
        let names: Vec<_> = fs::read_dir(&data).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert!(!names.iter().any(|it| it.to_string_lossy().contains("re")), "{names:?}");
    }
    let nowhere = restore(&outer.path().join("nowhere"), &data, true).unwrap_err();
    assert!(nowhere.to_string().contains("nowhere"), "{nowhere}");
    let taken = backup(&data, &copy).unwrap_err();
    assert!(matches!(taken, StoreError::Exists { .. }), "{taken}");
}
