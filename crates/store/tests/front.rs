//! What a server keeps beside runs: requests are done once, keys are good until they are taken back, deeds are chained.

#![allow(clippy::unwrap_used, reason = "a test that can't go on is to stop where it stands")]

use gesta_run::time::Timestamp;
use gesta_store::{
    ApiKey, Audit, AuditRecord, Deed, Dispatch, Dispatches, FILE_NAME, Keys, RequestName, Requests, Reserved, Sqlite,
    StoreOptions, StoredAnswer, TENANT_LOCAL, Tenants,
};
use serde_json::json;
use tempfile::TempDir;

async fn opened() -> (Sqlite, TempDir) {
    let folder = TempDir::new().unwrap();
    (Sqlite::open(folder.path(), StoreOptions::default()).await.unwrap(), folder)
}

fn named(owner: &str, name: &str) -> RequestName {
    RequestName { owner: owner.to_owned(), name: name.to_owned() }
}

fn answer(text: &str) -> StoredAnswer {
    StoredAnswer { status: 201, content_type: "application/json".to_owned(), body: text.into() }
}

#[tokio::test]
async fn a_request_is_done_once_and_answered_the_same_again() {
    let (store, _folder) = opened().await;
    let one = named("k", "one");
    let asked = async |request: &RequestName, fingerprint: &str, run: &str| {
        store.reserve(request, fingerprint, &run.into(), Timestamp(5)).await.unwrap()
    };
    assert_eq!(asked(&one, "f", "r1").await, Reserved::New { run: "r1".into() });
    assert_eq!(asked(&one, "f", "r2").await, Reserved::Begun { run: "r1".into() });
    assert_eq!(asked(&one, "g", "r2").await, Reserved::Other);
    assert_eq!(asked(&named("j", "one"), "g", "r3").await, Reserved::New { run: "r3".into() });
    store.settle(&one, answer("first")).await.unwrap();
    store.settle(&one, answer("second")).await.unwrap();
    assert_eq!(asked(&one, "f", "r2").await, Reserved::Answered(answer("first")));
    assert_eq!(asked(&one, "g", "r2").await, Reserved::Other);
    // What was answered is not let go of; what was not is as if it had never come.
    store.let_go(&one).await.unwrap();
    assert_eq!(asked(&one, "f", "r2").await, Reserved::Answered(answer("first")));
    store.let_go(&named("j", "one")).await.unwrap();
    assert_eq!(asked(&named("j", "one"), "h", "r4").await, Reserved::New { run: "r4".into() });
    assert_eq!(store.of_tenant("other").forget_requests(Timestamp(9)).await.unwrap(), 0);
    assert_eq!(store.forget_requests(Timestamp(5)).await.unwrap(), 0);
    assert_eq!(store.forget_requests(Timestamp(6)).await.unwrap(), 2);
    assert_eq!(asked(&one, "g", "r5").await, Reserved::New { run: "r5".into() });
}

#[tokio::test]
async fn of_fifty_equal_requests_at_once_one_is_done() {
    let (store, _folder) = opened().await;
    let asked: Vec<_> = (0..50)
        .map(|n| {
            let store = store.clone();
            let run = format!("r{n}");
            tokio::spawn(async move { store.reserve(&named("k", "n"), "f", &run.as_str().into(), Timestamp(1)).await })
        })
        .collect();
    let mut done = Vec::new();
    let mut repeated = Vec::new();
    for asked in asked {
        match asked.await.unwrap().unwrap() {
            Reserved::New { run } => done.push(run),
            Reserved::Begun { run } => repeated.push(run),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((done.len(), repeated.len()), (1, 49));
    assert!(repeated.iter().all(|run| *run == done[0]));
}

#[tokio::test]
async fn a_key_is_good_until_it_is_taken_back() {
    let (store, _folder) = opened().await;
    let key = |id: &str, at: i64| ApiKey {
        id: id.to_owned(),
        name: format!("key {id}"),
        hash: "ab".repeat(32),
        scopes: vec!["run".to_owned(), "read".to_owned()],
        agents: Some(vec!["desk".to_owned()]),
        tenant: TENANT_LOCAL.to_owned(),
        link_to: None,
        expires_at: None,
        created_at: Timestamp(at),
        revoked_at: None,
    };
    store.put_key(key("b", 2)).await.unwrap();
    store.put_key(key("a", 1)).await.unwrap();
    store.put_key(ApiKey { name: "other".to_owned(), ..key("a", 7) }).await.unwrap();
    assert_eq!(store.keys().await.unwrap(), [key("a", 1), key("b", 2)]);
    assert_eq!(store.of_tenant("other").keys().await.unwrap(), []);
    assert!(store.revoke_key("a", Timestamp(9)).await.unwrap());
    assert!(
        !store.revoke_key("a", Timestamp(10)).await.unwrap() && !store.revoke_key("c", Timestamp(9)).await.unwrap()
    );
    let revoked = ApiKey { revoked_at: Some(Timestamp(9)), ..key("a", 1) };
    assert_eq!(store.key("a").await.unwrap(), Some(revoked));
    assert_eq!(store.key("b").await.unwrap(), Some(key("b", 2)));
    assert_eq!(store.key("c").await.unwrap(), None);
}

#[tokio::test]
async fn a_key_says_whose_rows_it_opens_and_how_long() {
    let (store, _folder) = opened().await;
    let old = json!({
        "id": "a", "name": "old", "hash": "h", "scopes": ["run"], "agents": null, "created_at": 1, "revoked_at": null,
    });
    let old: ApiKey = serde_json::from_value(old).unwrap();
    assert_eq!((old.tenant.as_str(), &old.link_to, old.expires_at), (TENANT_LOCAL, &None, None));
    assert!(old.is_good(Timestamp(i64::MAX)));
    let link = ApiKey { link_to: Some("a".to_owned()), expires_at: Some(Timestamp(9)), ..old.clone() };
    assert!(link.is_good(Timestamp(8)) && !link.is_good(Timestamp(9)));
    assert!(!ApiKey { revoked_at: Some(Timestamp(2)), ..link.clone() }.is_good(Timestamp(8)));
    // Of those who use a link at once, one is let in.
    let link = ApiKey { id: "l".to_owned(), tenant: "shop".to_owned(), ..link };
    store.put_key(link.clone()).await.unwrap();
    assert_eq!(store.key("l").await.unwrap(), Some(link));
    let used: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.revoke_key("l", Timestamp(3)).await.unwrap() })
        })
        .collect();
    let mut let_in = 0;
    for used in used {
        let_in += usize::from(used.await.unwrap());
    }
    assert_eq!(let_in, 1);
}

#[tokio::test]
async fn each_tenants_rows_are_reached_by_itself_alone() {
    let (store, _folder) = opened().await;
    let [one, other] = ["one", "other"].map(|tenant| (store.store_of(tenant), store.front_of(tenant)));
    one.0.put_config("h", "{}").await.unwrap();
    one.1.note(vec![deed("r1")]).await.unwrap();
    other.1.note(vec![deed("r2"), deed("r3")]).await.unwrap();
    assert_eq!((one.0.config("h").await.unwrap(), other.0.config("h").await.unwrap()), (Some("{}".to_owned()), None));
    let chains = (one.1.audit(0, 0).await.unwrap(), other.1.audit(0, 0).await.unwrap());
    assert_eq!((chains.0.len(), chains.1.len(), broken(&chains.0), broken(&chains.1)), (1, 2, None, None));
    assert_eq!(store.audit(0, 0).await.unwrap(), []);
}

fn dispatch(id: &str, due: i64) -> Dispatch {
    Dispatch {
        id: id.to_owned(),
        kind: "run.ended".to_owned(),
        run: "r1".into(),
        call: Some("c1".into()),
        at: Timestamp(1),
        due: Timestamp(due),
        attempts: 0,
    }
}

#[tokio::test]
async fn a_dispatch_is_due_until_it_is_settled_and_is_put_once() {
    let (store, _folder) = opened().await;
    let taken = async |now: i64, until: i64, limit: u32| {
        let mut taken = store.take_dispatches(Timestamp(now), Timestamp(until), limit).await.unwrap();
        taken.sort_by(|a, b| a.id.cmp(&b.id));
        taken.into_iter().map(|it| (it.id, it.attempts)).collect::<Vec<_>>()
    };
    let named = |names: &[(&str, u32)]| names.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect::<Vec<_>>();
    store.put_dispatches(vec![dispatch("a", 5), dispatch("b", 4), dispatch("c", 9)]).await.unwrap();
    assert_eq!(store.of_tenant("other").take_dispatches(Timestamp(99), Timestamp(99), 0).await.unwrap(), []);
    assert_eq!(taken(5, 20, 1).await, named(&[("b", 1)]));
    assert_eq!(taken(5, 20, 0).await, named(&[("a", 1)]));
    assert_eq!(taken(5, 20, 0).await, []);
    // Whoever took it died: it is due again when its time has passed. One that was settled is not, however often it is put.
    store.settle_dispatch("a", None).await.unwrap();
    store.settle_dispatch("b", Some(Timestamp(15))).await.unwrap();
    store.put_dispatches(vec![dispatch("a", 1), dispatch("b", 1)]).await.unwrap();
    assert_eq!(taken(14, 30, 0).await, named(&[("c", 1)]));
    assert_eq!(taken(40, 50, 0).await, named(&[("b", 2), ("c", 2)]));
    store.settle_dispatch("b", None).await.unwrap();
    assert_eq!(
        (store.forget_dispatches(Timestamp(1)).await.unwrap(), store.forget_dispatches(Timestamp(2)).await.unwrap()),
        (0, 2)
    );
    assert_eq!(taken(60, 70, 0).await, named(&[("c", 3)]));
    let whole = store.take_dispatches(Timestamp(80), Timestamp(90), 0).await.unwrap();
    assert_eq!(whole, [Dispatch { due: Timestamp(90), attempts: 4, ..dispatch("c", 9) }]);
}

fn deed(subject: &str) -> Deed {
    Deed {
        at: Timestamp(7),
        who: "k1".to_owned(),
        from: "127.0.0.1".to_owned(),
        what: "approve".to_owned(),
        subject: subject.to_owned(),
        agent: Some("desk".to_owned()),
        call: Some("c1".to_owned()),
        tool: Some("refund".to_owned()),
        fingerprint: Some("f".to_owned()),
        config: Some("c".to_owned()),
    }
}

/// The first place where a chain breaks.
fn broken(records: &[AuditRecord]) -> Option<usize> {
    let mut last = None;
    for (at, record) in records.iter().enumerate() {
        if !record.follows(last) {
            return Some(at);
        }
        last = Some((record.seq, record.hash.as_str()));
    }
    None
}

#[tokio::test]
async fn deeds_are_chained_so_that_a_change_anywhere_shows() {
    let (store, folder) = opened().await;
    let noted: Vec<_> = (0..20)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { store.note(vec![deed(&format!("r{n}")), deed(&format!("s{n}"))]).await })
        })
        .collect();
    for noted in noted {
        noted.await.unwrap().unwrap();
    }
    let records = store.audit(0, 0).await.unwrap();
    assert_eq!((records.len(), broken(&records)), (40, None));
    assert_eq!(store.audit(10, 3).await.unwrap(), records[10..13]);
    assert_eq!(store.of_tenant("other").audit(0, 0).await.unwrap(), []);
    let mut changed = records.clone();
    changed[5].deed.what = "deny".to_owned();
    assert_eq!(broken(&changed), Some(5));
    let mut shorter = records.clone();
    shorter.remove(5);
    assert_eq!(broken(&shorter), Some(5));
    let mut swapped = records.clone();
    swapped.swap(5, 6);
    assert_eq!(broken(&swapped), Some(5));
    // Whoever mends the changed record's own hash breaks the next.
    let mut mended = records.clone();
    mended[5] = AuditRecord::after(Some((5, records[4].hash.clone())), changed[5].deed.clone());
    assert_eq!(broken(&mended), Some(6));
    store.close().await;
    let file = rusqlite::Connection::open(folder.path().join(FILE_NAME)).unwrap();
    file.execute("UPDATE audit SET body = 'x' WHERE seq = 3", []).unwrap();
    let store = Sqlite::open(folder.path(), StoreOptions::default()).await.unwrap();
    assert_eq!(store.audit(0, 0).await.unwrap_err().code(), "record_damaged");
}
