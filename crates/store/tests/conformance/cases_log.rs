//! The event log: what is appended, loaded and listed.

use gesta_run::event::{Event, EventKind, Resolved};
use gesta_run::outcome::{Outcome, Status};
use gesta_run::reply::Reply;
use gesta_run::time::Timestamp;
use gesta_store::{HeadChange, RunFilter, StoreError, WireRecord};

use crate::bench::{Bench, ended, event, new_run, open, turn};

pub(crate) async fn what_was_appended_is_loaded_in_order(bench: Bench) {
    let first = [event(1_000, "one"), event(1_000, "two")];
    let lease = bench.store.open(new_run("r1", Some("k"), 900), &first).await.unwrap();
    bench.store.append(&lease, 2, &[event(1_100, "three")], open()).await.unwrap();
    bench.store.append(&lease, 3, &[event(1_200, "four"), event(1_300, "five")], ended()).await.unwrap();
    let stored = bench.store.load(&"r1".into()).await.unwrap();
    let [one, two] = first;
    let rest = [event(1_100, "three"), event(1_200, "four"), event(1_300, "five")];
    assert_eq!(stored.events, [vec![one, two], rest.to_vec()].concat());
    let head = stored.head;
    assert_eq!((head.status, head.outcome, head.events), (Status::Ended, Some(Outcome::Completed), 5));
    assert_eq!((head.started_at, head.updated_at), (Timestamp(900), Timestamp(1_300)));
    assert_eq!((head.agent.as_str(), head.config.as_str(), head.fence), ("coach", "hash", 1));
    assert_eq!(bench.store.head(&"r1".into()).await.unwrap(), head);
}

pub(crate) async fn an_append_at_another_position_is_refused_and_changes_nothing(bench: Bench) {
    let lease = bench.open_alone("r1").await;
    bench.store.append(&lease, 0, &[event(1, "one")], open()).await.unwrap();
    let before = bench.store.load(&"r1".into()).await.unwrap();
    for at in [0, 2, 100] {
        let refused = bench.store.append(&lease, at, &[event(2, "two")], ended()).await.unwrap_err();
        assert_eq!(refused, StoreError::Conflict { run: "r1".into(), at, found: 1 });
    }
    assert_eq!(bench.store.load(&"r1".into()).await.unwrap(), before);
}

pub(crate) async fn of_many_appends_at_one_position_one_is_kept(bench: Bench) {
    let lease = bench.open_alone("r1").await;
    let mut tasks = Vec::new();
    for n in 0..20 {
        let (store, lease) = (bench.store.clone(), lease.clone());
        tasks.push(tokio::spawn(async move { store.append(&lease, 0, &[event(n, "mine")], open()).await }));
    }
    let mut kept = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(()) => kept += 1,
            Err(refused) => assert!(matches!(refused, StoreError::Conflict { found: 1, .. }), "{refused:?}"),
        }
    }
    assert_eq!((kept, bench.store.load(&"r1".into()).await.unwrap().events.len()), (1, 1));
}

pub(crate) async fn an_append_without_events_changes_the_head_alone(bench: Bench) {
    let lease = bench.store.open(new_run("r1", None, 5), &[event(6, "one")]).await.unwrap();
    bench.store.append(&lease, 1, &[], HeadChange::to(Status::Parked)).await.unwrap();
    let stored = bench.store.load(&"r1".into()).await.unwrap();
    assert_eq!((stored.events.len(), stored.head.status), (1, Status::Parked));
}

pub(crate) async fn an_id_is_used_for_one_run(bench: Bench) {
    bench.open_alone("r1").await;
    let refused = bench.store.open(new_run("r1", None, 2), &[event(1, "x")]).await.unwrap_err();
    assert_eq!(refused, StoreError::RunExists { run: "r1".into() });
    let refused = bench.store.open(new_run("r1", Some("elsewhere"), 2), &[]).await.unwrap_err();
    assert_eq!(refused, StoreError::RunExists { run: "r1".into() });
    assert!(bench.store.load(&"r1".into()).await.unwrap().events.is_empty());
}

pub(crate) async fn an_unknown_run_is_said_by_name(bench: Bench) {
    let run = "nobody".into();
    let unknown = StoreError::NoSuchRun { run: "nobody".into() };
    assert_eq!(bench.store.load(&run).await.unwrap_err(), unknown);
    assert_eq!(bench.store.head(&run).await.unwrap_err(), unknown);
    assert_eq!(bench.store.claim(&run).await.unwrap_err(), unknown);
    assert_eq!(bench.store.put_wire(&run, exchange(1, 0)).await.unwrap_err(), unknown);
    assert!(bench.store.wire(&run).await.unwrap().is_empty());
    assert!(bench.store.hold_closed(&run, &"c1".into()).await.unwrap().is_none());
}

pub(crate) async fn runs_are_listed_newest_first_filtered_and_in_pages(bench: Bench) {
    for (n, (agent, conversation)) in
        [("coach", "a"), ("desk", "b"), ("coach", "c"), ("coach", "d")].into_iter().enumerate()
    {
        let at = 1_000 + i64::try_from(n).unwrap() * 10;
        let mut new = new_run(&format!("r{n}"), Some(conversation), at);
        new.agent = agent.to_owned();
        let lease = bench.store.open(new, &[]).await.unwrap();
        if n % 2 == 0 {
            let change = HeadChange { closed: true, turn: Some(turn("x")), ..ended() };
            bench.store.append(&lease, 0, &[], change).await.unwrap();
        }
    }
    let listed = async |filter: RunFilter| -> Vec<String> {
        let heads = bench.store.runs(&filter).await.unwrap();
        heads.iter().map(|head| head.run.to_string()).collect()
    };
    let all = RunFilter::default;
    assert_eq!(listed(all()).await, ["r3", "r2", "r1", "r0"]);
    assert_eq!(listed(RunFilter { agent: Some("coach".to_owned()), ..all() }).await, ["r3", "r2", "r0"]);
    assert_eq!(listed(RunFilter { status: Some(Status::Open), ..all() }).await, ["r3", "r1"]);
    assert_eq!(listed(RunFilter { closed: Some(true), ..all() }).await, ["r2", "r0"]);
    let completed = || RunFilter { outcome: Some(Outcome::Completed), ..all() };
    assert_eq!(listed(completed()).await, ["r2", "r0"]);
    // What does not match takes no place on a page.
    assert_eq!(listed(RunFilter { limit: 2, ..completed() }).await, ["r2", "r0"]);
    assert_eq!(listed(RunFilter { conversation: Some("c".into()), ..completed() }).await, ["r2"]);
    assert!(listed(RunFilter { conversation: Some("b".into()), ..completed() }).await.is_empty());
    assert!(listed(RunFilter { outcome: Some(Outcome::Cancelled), ..all() }).await.is_empty());
    assert_eq!(listed(RunFilter { conversation: Some("b".into()), ..all() }).await, ["r1"]);
    let with_status = RunFilter { conversation: Some("b".into()), status: Some(Status::Ended), ..all() };
    assert!(listed(with_status).await.is_empty());
    assert_eq!(listed(RunFilter { contact: Some("contact of c".into()), ..all() }).await, ["r2"]);
    assert_eq!(listed(RunFilter { since: Some(Timestamp(1_020)), ..all() }).await, ["r3", "r2"]);
    let page = bench.store.runs(&RunFilter { limit: 3, ..all() }).await.unwrap();
    let after = page.last().map(gesta_store::RunHead::cursor);
    assert_eq!(page.len(), 3);
    assert_eq!(listed(RunFilter { limit: 3, after, ..all() }).await, ["r0"]);
}

pub(crate) async fn a_large_event_comes_back_whole(bench: Bench) {
    let large = event(1, &"é\u{0}\"\\".repeat(300_000));
    let lease = bench.open_alone("r1").await;
    bench.store.append(&lease, 0, std::slice::from_ref(&large), open()).await.unwrap();
    assert_eq!(bench.store.load(&"r1".into()).await.unwrap().events, [large]);
}

pub(crate) async fn what_a_call_was_read_into_is_no_part_of_the_log(bench: Bench) {
    let resolved = |arguments| Resolved { id: "c1".into(), end: None, arguments };
    let replied = |arguments| Event {
        at: Timestamp(1),
        what: EventKind::Replied { trip: 1, reply: Reply::text("hi"), calls: vec![resolved(arguments)] },
    };
    let lease = bench.open_alone("r1").await;
    bench.store.append(&lease, 0, &[replied(Some(serde_json::Map::new().into()))], open()).await.unwrap();
    assert_eq!(bench.store.load(&"r1".into()).await.unwrap().events, [replied(None)]);
}

pub(crate) async fn tenants_never_meet(bench: Bench) {
    let lease = bench.open("r1").await.unwrap();
    bench.store.put_config("h", "{}").await.unwrap();
    assert!(matches!(bench.neighbour.load(&"r1".into()).await, Err(StoreError::NoSuchRun { .. })));
    assert!(matches!(bench.neighbour.append(&lease, 0, &[], open()).await, Err(StoreError::Fenced { .. })));
    assert!(bench.neighbour.runs(&RunFilter::default()).await.unwrap().is_empty());
    assert!(bench.neighbour.conversations(0).await.unwrap().is_empty());
    assert!(bench.neighbour.config("h").await.unwrap().is_none());
    assert!(!bench.neighbour.erase(&"k".into()).await.unwrap());
    bench.neighbour.open(new_run("r1", Some("k"), 1), &[]).await.unwrap();
    bench.end(&lease, "ours").await.unwrap();
    assert!(bench.neighbour.history(&"k".into(), 10).await.unwrap().is_empty());
}

pub(crate) async fn a_snapshot_is_kept_under_its_hash(bench: Bench) {
    assert_eq!(bench.store.config("h1").await.unwrap(), None);
    bench.store.put_config("h1", "{\"a\":1}").await.unwrap();
    bench.store.put_config("h1", "{\"a\":1}").await.unwrap();
    bench.store.put_config("h2", "{}").await.unwrap();
    assert_eq!(bench.store.config("h1").await.unwrap().as_deref(), Some("{\"a\":1}"));
}

pub(crate) async fn captured_exchanges_come_back_in_order(bench: Bench) {
    let run = "r1".into();
    bench.open_alone("r1").await;
    for (trip, attempt) in [(2, 0), (1, 1), (1, 0)] {
        bench.store.put_wire(&run, exchange(trip, attempt)).await.unwrap();
    }
    let found = bench.store.wire(&run).await.unwrap();
    assert_eq!(found, [exchange(1, 0), exchange(1, 1), exchange(2, 0)]);
}

fn exchange(trip: u32, attempt: u32) -> WireRecord {
    let request = format!("POST /v1 {trip}");
    WireRecord { trip, attempt, at: Timestamp(3), request, response: "{}".to_owned() }
}
