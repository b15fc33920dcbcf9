//! Conversations: one run at a time, and a history of whole turns.

use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use gesta_store::{Busy, HeadChange, HoldFilter, Lease, Old, RunFilter, StoreError, Turn, WireRecord};

use crate::bench::{Bench, TTL_MS, ended, event, hold, new_run, open, turn};

fn how<T: std::fmt::Debug>(result: Result<T, StoreError>) -> (String, Busy) {
    match result.unwrap_err() {
        StoreError::ConversationBusy { run, busy, .. } => (run.to_string(), busy),
        other => panic!("{other:?}"),
    }
}

async fn history(bench: &Bench, turns_max: u32) -> Vec<Turn> {
    bench.store.history(&"k".into(), turns_max).await.unwrap()
}

pub(crate) async fn a_conversation_has_one_run_at_a_time(bench: Bench) {
    let lease = bench.open("r1").await.unwrap();
    assert_eq!(how(bench.open("r2").await), ("r1".to_owned(), Busy::Open));
    assert!(matches!(bench.store.head(&"r2".into()).await, Err(StoreError::NoSuchRun { .. })));
    bench.store.open(new_run("elsewhere", Some("other"), 1), &[]).await.unwrap();
    bench.end(&lease, "hello").await.unwrap();
    bench.open("r2").await.unwrap();
}

pub(crate) async fn of_many_runs_opened_at_once_one_has_the_conversation(bench: Bench) {
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let store = bench.store.clone();
            tokio::spawn(async move { store.open(new_run(&format!("r{n}"), Some("k"), 1), &[event(1, "x")]).await })
        })
        .collect();
    let mut opened = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            Ok(lease) => opened.push(lease.run().clone()),
            Err(refused) => assert!(matches!(refused, StoreError::ConversationBusy { .. }), "{refused:?}"),
        }
    }
    let head = bench.store.conversation(&"k".into()).await.unwrap().unwrap();
    assert_eq!((opened.len(), head.run.as_ref()), (1, opened.first()));
    assert_eq!(bench.store.runs(&RunFilter::default()).await.unwrap().len(), 1);
}

pub(crate) async fn a_busy_conversation_says_how_it_is_held(bench: Bench) {
    let lease = bench.open("r1").await.unwrap();
    bench.wait_ms(TTL_MS);
    assert_eq!(how(bench.open("r2").await).1, Busy::Left);
    let parks = HeadChange { release: true, ..HeadChange::to(Status::Parked) };
    bench.store.append(&lease, 0, &[event(1, "parks")], parks).await.unwrap();
    assert_eq!(how(bench.open("r2").await).1, Busy::Parked);
    let lease = bench.store.claim(&"r1".into()).await.unwrap();
    assert_eq!(how(bench.open("r2").await).1, Busy::Open);
    let fails = HeadChange { release: true, ..HeadChange::ended(Outcome::ModelFailed) };
    bench.store.append(&lease, 1, &[event(2, "fails")], fails).await.unwrap();
    assert_eq!(how(bench.open("r2").await).1, Busy::CanGoOn);
}

pub(crate) async fn a_turn_enters_the_history_with_the_append_that_ends_it(bench: Bench) {
    let lease = bench.open("r1").await.unwrap();
    bench.store.append(&lease, 0, &[event(1, "one")], open()).await.unwrap();
    assert!(history(&bench, 10).await.is_empty());
    let refused = HeadChange { turn: Some(turn("never")), ..ended() };
    bench.store.append(&lease, 7, &[], refused).await.unwrap_err();
    assert!(history(&bench, 10).await.is_empty());
    let ends = HeadChange { turn: Some(turn("once")), ..ended() };
    bench.store.append(&lease, 1, &[event(9, "two")], ends).await.unwrap();
    assert_eq!(history(&bench, 10).await, [turn("once")]);
    let head = bench.store.conversation(&"k".into()).await.unwrap().unwrap();
    assert_eq!((head.turns, head.run, head.updated_at), (1, None, Timestamp(9)));
    // What still comes after the end, such as the delivery, leaves the conversation to others.
    bench.open("r2").await.unwrap();
    bench.store.append(&lease, 2, &[event(10, "delivered")], ended()).await.unwrap();
    assert_eq!(how(bench.open("r3").await).0, "r2");
}

pub(crate) async fn the_history_is_the_last_turns_in_order(bench: Bench) {
    for n in 0..5 {
        let lease = bench.open(&format!("r{n}")).await.unwrap();
        bench.end(&lease, &format!("turn {n}")).await.unwrap();
    }
    assert_eq!(history(&bench, 2).await, [turn("turn 3"), turn("turn 4")]);
    assert_eq!(history(&bench, 0).await, []);
    assert_eq!(history(&bench, u32::MAX).await.len(), 5);
}

pub(crate) async fn a_run_adds_its_turn_once(bench: Bench) {
    let lease = bench.open("r1").await.unwrap();
    let ends = || HeadChange { turn: Some(turn("once")), ..ended() };
    bench.store.append(&lease, 0, &[event(1, "one")], ends()).await.unwrap();
    let refused = bench.store.append(&lease, 1, &[event(2, "two")], ends()).await.unwrap_err();
    assert_eq!(refused, StoreError::TurnRecorded { run: "r1".into() });
    assert_eq!(history(&bench, 10).await.len(), 1);
    assert_eq!(bench.store.load(&"r1".into()).await.unwrap().events.len(), 1);
}

async fn fail(bench: &Bench, lease: &Lease) {
    let fails = HeadChange::ended(Outcome::ModelFailed);
    bench.store.append(lease, 0, &[event(1, "fails")], fails).await.unwrap();
}

pub(crate) async fn a_run_that_failed_keeps_its_conversation_until_it_is_settled(bench: Bench) {
    let lease = bench.open("r1").await.unwrap();
    fail(&bench, &lease).await;
    assert!(bench.open("r2").await.is_err());
    let settles = HeadChange { turn: Some(turn("failed")), ..HeadChange::ended(Outcome::ModelFailed) };
    bench.store.append(&lease, 1, &[event(2, "settled")], settles).await.unwrap();
    assert_eq!(history(&bench, 10).await, [turn("failed")]);
    bench.open("r2").await.unwrap();
}

pub(crate) async fn a_run_that_goes_on_after_its_end_needs_its_conversation_back(bench: Bench) {
    let lease = bench.open("r1").await.unwrap();
    fail(&bench, &lease).await;
    bench.store.append(&lease, 1, &[event(2, "goes on")], open()).await.unwrap();
    bench.store.append(&lease, 2, &[event(3, "ends")], ended()).await.unwrap();
    bench.store.append(&lease, 3, &[event(4, "goes on")], open()).await.unwrap();
    assert_eq!(how(bench.open("r2").await).0, "r1");
    bench.store.append(&lease, 4, &[event(5, "ends")], ended()).await.unwrap();
    bench.open("r2").await.unwrap();
    assert_eq!(how(bench.store.append(&lease, 5, &[event(6, "goes on")], open()).await).0, "r2");
    assert_eq!(bench.store.head(&"r1".into()).await.unwrap().events, 5);
}

pub(crate) async fn a_run_without_a_conversation_has_no_history(bench: Bench) {
    for run in ["r1", "r2"] {
        let lease = bench.open_alone(run).await;
        bench.end(&lease, "nowhere").await.unwrap();
    }
    assert!(bench.store.conversations(0).await.unwrap().is_empty());
}

pub(crate) async fn conversations_are_listed_by_their_last_change(bench: Bench) {
    for (run, conversation, at) in [("r1", "a", 10), ("r2", "b", 30), ("r3", "c", 20)] {
        bench.store.open(new_run(run, Some(conversation), at), &[]).await.unwrap();
    }
    let listed = async |limit| -> Vec<String> {
        let heads = bench.store.conversations(limit).await.unwrap();
        heads.iter().map(|head| head.conversation.to_string()).collect()
    };
    assert_eq!(listed(0).await, ["b", "c", "a"]);
    assert_eq!(listed(2).await, ["b", "c"]);
    let head = bench.store.conversation(&"a".into()).await.unwrap().unwrap();
    assert_eq!((head.agent.as_str(), head.run, head.turns), ("coach", Some("r1".into()), 0));
    assert_eq!(head.contact, Some("contact of a".into()));
    assert!(bench.store.conversation(&"none".into()).await.unwrap().is_none());
}

pub(crate) async fn erasing_a_conversation_leaves_nothing_of_it_and_all_of_the_others(bench: Bench) {
    for conversation in ["k", "other"] {
        let run = format!("run of {conversation}");
        let lease = bench.store.open(new_run(&run, Some(conversation), 1), &[event(1, "x")]).await.unwrap();
        let holds = vec![hold(lease.run(), "c1", "refund")];
        let change = HeadChange { holds, turn: Some(turn("x")), ..ended() };
        bench.store.append(&lease, 1, &[event(2, "y")], change).await.unwrap();
        let record =
            WireRecord { trip: 1, attempt: 0, at: Timestamp(1), request: String::new(), response: String::new() };
        bench.store.put_wire(lease.run(), record).await.unwrap();
    }
    assert!(bench.store.erase(&"k".into()).await.unwrap());
    assert!(!bench.store.erase(&"k".into()).await.unwrap());
    assert!(matches!(bench.store.load(&"run of k".into()).await, Err(StoreError::NoSuchRun { .. })));
    assert!(history(&bench, 10).await.is_empty());
    assert!(bench.store.wire(&"run of k".into()).await.unwrap().is_empty());
    assert_eq!(bench.store.conversations(0).await.unwrap().len(), 1);
    assert_eq!(bench.store.holds(&HoldFilter::default()).await.unwrap().len(), 1);
    assert_eq!(bench.store.load(&"run of other".into()).await.unwrap().events.len(), 2);
    assert_eq!(bench.store.history(&"other".into(), 9).await.unwrap().len(), 1);
    assert_eq!(bench.store.wire(&"run of other".into()).await.unwrap().len(), 1);
}

pub(crate) async fn a_run_whose_conversation_was_erased_is_fenced(bench: Bench) {
    let lease = bench.open("r1").await.unwrap();
    bench.store.erase(&"k".into()).await.unwrap();
    let fenced = StoreError::Fenced { run: "r1".into() };
    assert_eq!(bench.store.append(&lease, 0, &[event(1, "late")], open()).await.unwrap_err(), fenced);
    assert_eq!(bench.end(&lease, "late").await.unwrap_err(), fenced);
    assert!(bench.store.conversations(0).await.unwrap().is_empty());
    assert!(history(&bench, 10).await.is_empty());
}

/// Ends a run, with a turn where it has a conversation, and lets go of it.
async fn over(bench: &Bench, run: &str, conversation: Option<&str>, at: i64) -> Lease {
    let lease = bench.store.open(new_run(run, conversation, at), &[]).await.unwrap();
    let turn = conversation.map(|_| turn("x"));
    let change = HeadChange { turn, release: true, closed: true, ..ended() };
    bench.store.append(&lease, 0, &[event(at, "done")], change).await.unwrap();
    lease
}

pub(crate) async fn what_is_old_is_erased_and_nothing_that_goes_on_or_waits(bench: Bench) {
    let store = &bench.store;
    over(&bench, "old run", None, 1_000).await;
    over(&bench, "old turn", Some("old talk"), 1_000).await;
    over(&bench, "new run", None, 9_000).await;
    over(&bench, "earlier turn", Some("new talk"), 1_000).await;
    over(&bench, "new turn", Some("new talk"), 9_000).await;
    // One that goes on, one that is parked in a conversation, and one that has ended while an action of it waits.
    store.open(new_run("going", None, 1_000), &[event(1_000, "x")]).await.unwrap();
    let parks = HeadChange { release: true, ..HeadChange::to(Status::Parked) };
    let parked = store.open(new_run("parked", Some("parked talk"), 1_000), &[]).await.unwrap();
    store.append(&parked, 0, &[event(1_000, "parks")], parks).await.unwrap();
    let waits = store.open(new_run("waits", None, 1_000), &[]).await.unwrap();
    let change = HeadChange { holds: vec![hold(waits.run(), "c1", "send")], release: true, ..ended() };
    store.append(&waits, 0, &[event(1_000, "waits")], change).await.unwrap();

    let before = Timestamp(5_000);
    let old = store.old("coach", before, 10).await.unwrap();
    assert_eq!(old, [Old::Conversation("old talk".into()), Old::Run("old run".into())]);
    assert_eq!(store.old("another", before, 10).await.unwrap(), []);
    assert_eq!(bench.neighbour.old("coach", before, 10).await.unwrap(), []);
    // Whoever was listed and goes on since is left.
    for name in ["going", "waits", "new run"] {
        assert!(!store.erase_old(&Old::Run(name.into()), before).await.unwrap(), "{name}");
    }
    for name in ["parked talk", "new talk"] {
        assert!(!store.erase_old(&Old::Conversation(name.into()), before).await.unwrap(), "{name}");
    }
    assert!(!bench.neighbour.erase_old(&old[0], before).await.unwrap());
    for it in &old {
        assert!(store.erase_old(it, before).await.unwrap(), "{it:?}");
        assert!(!store.erase_old(it, before).await.unwrap(), "{it:?}");
    }
    assert_eq!(store.old("coach", before, 10).await.unwrap(), []);
    assert!(matches!(store.load(&"old run".into()).await, Err(StoreError::NoSuchRun { .. })));
    assert!(store.history(&"old talk".into(), 9).await.unwrap().is_empty());
    assert_eq!(store.history(&"new talk".into(), 9).await.unwrap().len(), 2);
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), 6);
    assert_eq!(store.holds(&HoldFilter::default()).await.unwrap().len(), 1);
}
