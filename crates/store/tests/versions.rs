//! Files of earlier versions still load, and what a file holds comes back when it is opened again.

#![allow(clippy::unwrap_used, reason = "a test that can't go on is to stop where it stands")]

use std::fs;
use std::path::{Path, PathBuf};

use gesta_run::event::{Event, EventKind};
use gesta_run::message::{Message, Part};
use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use gesta_store::{
    ApiKey, Audit, Configs, Conversations, Dispatch, Dispatches, DocumentChange, Documents, FILE_NAME, HeadChange,
    HoldFilter, Holds, Keys, NewRun, RequestName, Requests, Reserved, RunFilter, RunLog, Sqlite, StoreOptions,
    StoredAnswer, TENANT_LOCAL, Turn,
};
use rusqlite::Connection;

/// The version that this program writes.
const NEWEST: u32 = 4;

fn new_run(run: &str) -> NewRun {
    NewRun {
        run: run.into(),
        agent: "coach".to_owned(),
        conversation: Some("talk".into()),
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

/// The file of a version, as it was released. A change of form adds a file of its own and leaves those before it.
fn fixture(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(format!("v{version}.sqlite"))
}

/// `GESTA_WRITE_FIXTURE=1` writes the newest anew, which is right only until that version is released.
#[tokio::test]
async fn the_file_of_every_version_still_loads() {
    if std::env::var_os("GESTA_WRITE_FIXTURE").is_some() {
        write_fixture(&fixture(NEWEST)).await;
    }
    for version in 1..=NEWEST {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(fixture(version), folder.path().join(FILE_NAME)).unwrap();
        let store = opened(folder.path()).await;
        let runs = store.runs(&RunFilter::default()).await.unwrap();
        let ids: Vec<&str> = runs.iter().map(|head| head.run.as_str()).collect();
        assert_eq!(ids, ["parked", "ended"], "version {version}");
        assert_eq!((runs[0].status, runs[1].outcome), (Status::Parked, Some(Outcome::Completed)));
        assert_eq!(store.load(&"ended".into()).await.unwrap().events, [event("one"), event("two")]);
        assert_eq!(store.history(&"talk".into(), 10).await.unwrap().len(), 1);
        let holds = store.holds(&HoldFilter::default()).await.unwrap();
        assert_eq!((holds.len(), holds[0].hold.name.as_str()), (1, "refund"));
        assert_eq!(store.config("hash").await.unwrap().as_deref(), Some("{\"agent\":\"coach\"}"));
        let has_documents = version >= 2;
        let document = store.document(&"talk".into()).await.unwrap().map(|it| (it.version, it.image));
        assert_eq!(document, has_documents.then(|| (1, b"image one".to_vec())));
        let working = store.working(&"parked".into()).await.unwrap();
        assert_eq!(working, has_documents.then(|| b"image two".to_vec()));
        let request = RequestName { owner: "k1".to_owned(), name: "n1".to_owned() };
        let kept = store.reserve(&request, "f", &"fresh".into(), Timestamp(9)).await.unwrap();
        let (has_front, answer) =
            (version >= 3, StoredAnswer { status: 200, content_type: "text/plain".to_owned(), body: b"yes".to_vec() });
        assert_eq!(kept, if has_front { Reserved::Answered(answer) } else { Reserved::New { run: "fresh".into() } });
        assert_eq!(store.keys().await.unwrap(), if has_front { vec![api_key()] } else { Vec::new() });
        let audit = store.audit(0, 0).await.unwrap();
        assert!(audit.len() == usize::from(has_front) && audit.iter().all(|record| record.follows(None)));
        let due = store.take_dispatches(Timestamp(99), Timestamp(100), 0).await.unwrap();
        assert_eq!(
            due.iter().map(|it| it.kind.as_str()).collect::<Vec<_>>(),
            if has_front { vec!["run.ended"] } else { Vec::new() }
        );
        // The process that wrote it is gone, so what it left is claimed at once and goes on, with documents too.
        let lease = store.claim(&"parked".into()).await.unwrap();
        let from = u64::from(has_documents);
        let (working, document) = (Some(b"image three".to_vec()), DocumentChange::Adopt { from });
        let ends = HeadChange { working, document, ..HeadChange::ended(Outcome::Completed) };
        store.append(&lease, 1, &[event("three")], ends).await.unwrap();
        assert_eq!(store.document(&"talk".into()).await.unwrap().unwrap().version, from + 1);
        store.close().await;
        let file = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        let found: u32 = file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(found, NEWEST);
    }
}

fn api_key() -> ApiKey {
    ApiKey {
        id: "k1".to_owned(),
        name: "desk".to_owned(),
        hash: "00".to_owned(),
        scopes: vec!["run".to_owned()],
        agents: None,
        tenant: TENANT_LOCAL.to_owned(),
        link_to: None,
        expires_at: None,
        created_at: Timestamp(1),
        revoked_at: None,
    }
}

async fn write_fixture(fixture: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path()).await;
    store.put_config("hash", "{\"agent\":\"coach\"}").await.unwrap();
    let lease = store.open(new_run("ended"), &[event("one")]).await.unwrap();
    let messages = vec![Message::User { parts: vec![Part::text("hello")], prompted: false }];
    let turn = Some(Turn { messages, tokens: 3 });
    let (working, document) = (Some(b"image one".to_vec()), DocumentChange::Adopt { from: 0 });
    let ends = HeadChange::ended(Outcome::Completed);
    let ends = HeadChange { turn, working, document, closed: true, release: true, ..ends };
    store.append(&lease, 1, &[event("two")], ends).await.unwrap();
    let lease = store.open(new_run("parked"), &[]).await.unwrap();
    let hold = serde_json::json!({
        "id": "c1", "kind": "call", "name": "refund", "arguments": {"order": 7}, "trip": 1, "index": 0,
        "accepts": "any", "state": "open",
        "binding": {"run_id": "parked", "call_id": "c1", "tool": "refund", "fingerprint": "f", "config_version": "hash"},
    });
    let holds = vec![serde_json::from_value(hold).unwrap()];
    let parks = HeadChange { holds, working: Some(b"image two".to_vec()), ..HeadChange::to(Status::Parked) };
    store.append(&lease, 0, &[event("parks")], parks).await.unwrap();
    let request = RequestName { owner: "k1".to_owned(), name: "n1".to_owned() };
    store.reserve(&request, "f", &"r9".into(), Timestamp(1)).await.unwrap();
    let answer = StoredAnswer { status: 200, content_type: "text/plain".to_owned(), body: b"yes".to_vec() };
    store.settle(&request, answer).await.unwrap();
    store.put_key(api_key()).await.unwrap();
    let dispatch = Dispatch {
        id: "n1".to_owned(),
        kind: "run.ended".to_owned(),
        run: "ended".into(),
        call: None,
        at: Timestamp(1),
        due: Timestamp(1),
        attempts: 0,
    };
    store.put_dispatches(vec![dispatch]).await.unwrap();
    let deed = serde_json::json!({ "at": 1, "who": "k1", "from": "127.0.0.1", "what": "approve", "subject": "parked" });
    store.note(vec![serde_json::from_value(deed).unwrap()]).await.unwrap();
    store.close().await;
    fs::copy(folder.path().join(FILE_NAME), fixture).unwrap();
}

#[tokio::test]
async fn a_parked_run_has_its_working_copy_when_the_store_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path()).await;
    store.put_document(&"talk".into(), 0, b"base".to_vec()).await.unwrap();
    let lease = store.open(new_run("parked"), &[]).await.unwrap();
    let parks = HeadChange { working: Some(b"parked".to_vec()), release: true, ..HeadChange::to(Status::Parked) };
    store.append(&lease, 0, &[event("parks")], parks).await.unwrap();
    store.close().await;
    let store = opened(folder.path()).await;
    assert_eq!(store.working(&"parked".into()).await.unwrap().unwrap(), b"parked");
    assert_eq!(store.document(&"talk".into()).await.unwrap().unwrap().image, b"base");
    let lease = store.claim(&"parked".into()).await.unwrap();
    let ends = HeadChange { document: DocumentChange::Adopt { from: 1 }, ..HeadChange::ended(Outcome::Completed) };
    store.append(&lease, 1, &[event("ends")], ends).await.unwrap();
    store.close().await;
    let document = opened(folder.path()).await.document(&"talk".into()).await.unwrap().unwrap();
    assert_eq!((document.version, document.image), (2, b"parked".to_vec()));
}

/// Who signed an image finds out that it is damaged; a store that hid it would hide that.
#[tokio::test]
async fn a_damaged_image_comes_back_as_it_is() {
    let cases = [
        ("x'00ff'", &b"\x00\xff"[..]),
        ("x''", b""),
        ("'a text'", b"a text"),
        ("zeroblob(3)", &[0; 3]),
        ("CAST(x'ff' AS TEXT)", b"\xff"),
        ("7", b""),
    ];
    for (value, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let store = opened(folder.path()).await;
        store.put_document(&"talk".into(), 0, b"sound".to_vec()).await.unwrap();
        let lease = store.open(new_run("r1"), &[]).await.unwrap();
        let works = HeadChange { working: Some(b"sound".to_vec()), ..HeadChange::to(Status::Open) };
        store.append(&lease, 0, &[], works).await.unwrap();
        let file = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        let damage = format!("UPDATE documents SET image = {value}; UPDATE working_copies SET image = {value}");
        file.execute_batch(&damage).unwrap();
        assert_eq!(store.document(&"talk".into()).await.unwrap().unwrap().image, expected, "{value}");
        assert_eq!(store.working(&"r1".into()).await.unwrap().unwrap(), expected, "{value}");
        assert_eq!(store.documents(0).await.unwrap()[0].version, 1);
        let ends = HeadChange { document: DocumentChange::Adopt { from: 1 }, ..HeadChange::ended(Outcome::Completed) };
        store.append(&lease, 0, &[], ends).await.unwrap();
        assert_eq!(store.document(&"talk".into()).await.unwrap().unwrap().image, expected, "{value}");
    }
}
