//! What a server keeps beside runs: requests are done once, keys are good until they are taken back, deeds are chained.
//! Each case is played on every backend.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that can't go on is to stop where it stands")]

use std::sync::Arc;

use gesta_run::outcome::Outcome;
use gesta_run::time::Timestamp;
use gesta_store::{
    ApiKey, Audit, AuditRecord, Deed, Dispatch, FILE_NAME, Front, HeadChange, NewRun, Postgres, PostgresOptions,
    RequestName, Reserved, Sqlite, Store, StoreOptions, StoredAnswer, TENANT_LOCAL, Tenants, new_run_id,
};
use serde_json::json;
use tempfile::TempDir;

/// A store, seen by a tenant of its own and by that one's neighbour.
struct Bench {
    store: Arc<dyn Store>,
    front: Arc<dyn Front>,
    neighbour: Arc<dyn Front>,
    /// Kept while the store is used.
    _folder: Option<TempDir>,
}

fn bench(of: &dyn Tenants, folder: Option<TempDir>) -> Bench {
    let [own, other] = [new_run_id(), new_run_id()];
    let (store, front, neighbour) = (of.store_of(own.as_str()), of.front_of(own.as_str()), of.front_of(other.as_str()));
    Bench { store, front, neighbour, _folder: folder }
}

async fn sqlite() -> Option<Bench> {
    let (store, folder) = opened().await;
    Some(bench(&store, Some(folder)))
}

/// The server that `GESTA_TEST_POSTGRES` names: `cargo xtask test --only postgres` sets one up.
async fn postgres() -> Option<Bench> {
    let address = xtask::outside("GESTA_TEST_POSTGRES", "postgres")?.into_string().unwrap();
    let options = PostgresOptions { connections_max: 8, ..PostgresOptions::default() };
    Some(bench(&Postgres::open(&address, options).await.unwrap(), None))
}

/// Plays the cases on every backend there is.
macro_rules! on_each {
    ($($case:ident)*) => {
        mod sqlite {
            $(#[tokio::test] async fn $case() { crate::$case(crate::sqlite().await.unwrap()).await; })*
        }
        mod postgres {
            $(#[tokio::test] async fn $case() {
                if let Some(bench) = crate::postgres().await {
                    crate::$case(bench).await;
                }
            })*
        }
    };
}

on_each! {
    a_request_is_done_once_and_answered_the_same_again
    of_fifty_equal_requests_at_once_one_is_done
    what_was_answered_about_a_run_is_erased_with_its_conversation
    a_key_is_good_until_it_is_taken_back
    of_those_who_use_a_link_at_once_one_is_let_in
    each_tenants_rows_are_reached_by_itself_alone
    a_dispatch_is_due_until_it_is_settled_and_is_put_once
    of_many_who_take_dispatches_each_gets_others
    deeds_of_many_at_once_make_one_chain
}

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

async fn a_request_is_done_once_and_answered_the_same_again(bench: Bench) {
    let store = &bench.front;
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
    assert_eq!(bench.neighbour.forget_requests(Timestamp(9)).await.unwrap(), 0);
    assert_eq!(store.forget_requests(Timestamp(5)).await.unwrap(), 0);
    assert_eq!(store.forget_requests(Timestamp(6)).await.unwrap(), 2);
    assert_eq!(asked(&one, "g", "r5").await, Reserved::New { run: "r5".into() });
}

async fn of_fifty_equal_requests_at_once_one_is_done(bench: Bench) {
    let store = &bench.front;
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

async fn a_key_is_good_until_it_is_taken_back(bench: Bench) {
    let store = &bench.front;
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
    assert_eq!(bench.neighbour.keys().await.unwrap(), []);
    assert!(store.revoke_key("a", Timestamp(9)).await.unwrap());
    assert!(
        !store.revoke_key("a", Timestamp(10)).await.unwrap() && !store.revoke_key("c", Timestamp(9)).await.unwrap()
    );
    let revoked = ApiKey { revoked_at: Some(Timestamp(9)), ..key("a", 1) };
    assert_eq!(store.key("a").await.unwrap(), Some(revoked));
    assert_eq!(store.key("b").await.unwrap(), Some(key("b", 2)));
    assert_eq!(store.key("c").await.unwrap(), None);
}

#[test]
fn a_key_says_whose_rows_it_opens_and_how_long() {
    let old = old_key();
    assert_eq!((old.tenant.as_str(), &old.link_to, old.expires_at), (TENANT_LOCAL, &None, None));
    assert!(old.is_good(Timestamp(i64::MAX)));
    let link = ApiKey { link_to: Some("a".to_owned()), expires_at: Some(Timestamp(9)), ..old };
    assert!(link.is_good(Timestamp(8)) && !link.is_good(Timestamp(9)));
    assert!(!ApiKey { revoked_at: Some(Timestamp(2)), ..link }.is_good(Timestamp(8)));
}

/// A key as it was kept before there were tenants and links.
fn old_key() -> ApiKey {
    let old = json!({
        "id": "a", "name": "old", "hash": "h", "scopes": ["run"], "agents": null, "created_at": 1, "revoked_at": null,
    });
    serde_json::from_value(old).unwrap()
}

async fn of_those_who_use_a_link_at_once_one_is_let_in(bench: Bench) {
    let store = &bench.front;
    let (id, tenant) = ("l".to_owned(), "shop".to_owned());
    let link = ApiKey { id, tenant, link_to: Some("a".to_owned()), expires_at: Some(Timestamp(9)), ..old_key() };
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

async fn each_tenants_rows_are_reached_by_itself_alone(bench: Bench) {
    let Bench { front, neighbour, .. } = &bench;
    front.note(vec![deed("r1")]).await.unwrap();
    neighbour.note(vec![deed("r2"), deed("r3")]).await.unwrap();
    let chains = (front.audit(0, 0).await.unwrap(), neighbour.audit(0, 0).await.unwrap());
    assert_eq!((chains.0.len(), chains.1.len(), broken(&chains.0), broken(&chains.1)), (1, 2, None, None));
}

/// What a run said is in the answers to the requests that began and answered it.
async fn what_was_answered_about_a_run_is_erased_with_its_conversation(bench: Bench) {
    let Bench { store, front, neighbour, .. } = &bench;
    let new = |run: &str, talk: &str| NewRun {
        run: run.into(),
        agent: "desk".to_owned(),
        conversation: Some(talk.into()),
        contact: None,
        config: "h".to_owned(),
        at: Timestamp(1),
    };
    for (run, talk) in [("r1", "k"), ("r2", "other")] {
        let lease = store.open(new(run, talk), &[]).await.unwrap();
        store
            .append(&lease, 0, &[], HeadChange { release: true, ..HeadChange::ended(Outcome::Completed) })
            .await
            .unwrap();
        for front in [front, neighbour] {
            let request = named("k", run);
            front.reserve(&request, "f", &run.into(), Timestamp(1)).await.unwrap();
            front.settle(&request, answer("dear Maria")).await.unwrap();
        }
    }
    assert!(store.erase(&"k".into()).await.unwrap());
    let again = async |front: &Arc<dyn Front>, run: &str| {
        front.reserve(&named("k", run), "f", &"fresh".into(), Timestamp(2)).await.unwrap()
    };
    assert_eq!(again(front, "r1").await, Reserved::New { run: "fresh".into() });
    assert_eq!(again(front, "r2").await, Reserved::Answered(answer("dear Maria")));
    assert_eq!(again(neighbour, "r1").await, Reserved::Answered(answer("dear Maria")));
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

async fn a_dispatch_is_due_until_it_is_settled_and_is_put_once(bench: Bench) {
    let store = &bench.front;
    let taken = async |now: i64, until: i64, limit: u32| {
        let mut taken = store.take_dispatches(Timestamp(now), Timestamp(until), limit).await.unwrap();
        taken.sort_by(|a, b| a.id.cmp(&b.id));
        taken.into_iter().map(|it| (it.id, it.attempts)).collect::<Vec<_>>()
    };
    let named = |names: &[(&str, u32)]| names.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect::<Vec<_>>();
    store.put_dispatches(vec![dispatch("a", 5), dispatch("b", 4), dispatch("c", 9)]).await.unwrap();
    assert_eq!(bench.neighbour.take_dispatches(Timestamp(99), Timestamp(99), 0).await.unwrap(), []);
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

async fn of_many_who_take_dispatches_each_gets_others(bench: Bench) {
    let put: Vec<_> = (0..40).map(|n| dispatch(&format!("d{n:02}"), 1)).collect();
    // Two who put the same, in two orders.
    let reversed = put.iter().rev().cloned().collect();
    let (one, other) = tokio::join!(bench.front.put_dispatches(put), bench.front.put_dispatches(reversed));
    assert!(one.is_ok() && other.is_ok());
    let taken: Vec<_> = (0..8)
        .map(|_| {
            let front = bench.front.clone();
            tokio::spawn(async move { front.take_dispatches(Timestamp(5), Timestamp(50), 5).await.unwrap() })
        })
        .collect();
    let mut all = Vec::new();
    for taken in taken {
        all.extend(taken.await.unwrap().into_iter().map(|it| it.id));
    }
    all.extend(bench.front.take_dispatches(Timestamp(5), Timestamp(50), 0).await.unwrap().into_iter().map(|it| it.id));
    all.sort();
    assert_eq!(all, (0..40).map(|n| format!("d{n:02}")).collect::<Vec<_>>());
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

async fn deeds_of_many_at_once_make_one_chain(bench: Bench) {
    let store = &bench.front;
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
    assert_eq!(bench.neighbour.audit(0, 0).await.unwrap(), []);
    a_change_anywhere_shows(&records);
}

fn a_change_anywhere_shows(records: &[AuditRecord]) {
    let mut changed = records.to_vec();
    changed[5].deed.what = "deny".to_owned();
    assert_eq!(broken(&changed), Some(5));
    let mut shorter = records.to_vec();
    shorter.remove(5);
    assert_eq!(broken(&shorter), Some(5));
    let mut swapped = records.to_vec();
    swapped.swap(5, 6);
    assert_eq!(broken(&swapped), Some(5));
    // Whoever mends the changed record's own hash breaks the next.
    let mut mended = records.to_vec();
    mended[5] = AuditRecord::after(Some((5, records[4].hash.clone())), changed[5].deed.clone());
    assert_eq!(broken(&mended), Some(6));
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_said() {
    let (store, folder) = opened().await;
    store.note((1..4).map(|n| deed(&format!("r{n}"))).collect()).await.unwrap();
    store.close().await;
    let file = rusqlite::Connection::open(folder.path().join(FILE_NAME)).unwrap();
    file.execute("UPDATE audit SET body = 'x' WHERE seq = 3", []).unwrap();
    let store = Sqlite::open(folder.path(), StoreOptions::default()).await.unwrap();
    assert_eq!(store.audit(0, 0).await.unwrap_err().code(), "record_damaged");
}
