//! Holds and the answers to them.

use gesta_run::hold::{HoldKind, HoldReply, HoldState};
use gesta_run::outcome::Status;
use gesta_run::time::Timestamp;
use gesta_store::{HeadChange, HoldFilter, Lease, OpenHold, StoreError};

use crate::bench::{Bench, approve, closed, event, hold, new_run, open};

fn parked() -> HeadChange {
    HeadChange::to(Status::Parked)
}

/// Opens a run that parks with these calls held.
async fn park(bench: &Bench, run: &str, calls: &[&str]) -> Lease {
    let lease = bench.open_alone(run).await;
    let holds = calls.iter().map(|call| hold(lease.run(), call, "refund")).collect();
    bench.store.append(&lease, 0, &[event(1, "parks")], HeadChange { holds, ..parked() }).await.unwrap();
    lease
}

async fn waiting(bench: &Bench, filter: HoldFilter) -> Vec<String> {
    let holds = bench.store.holds(&filter).await.unwrap();
    holds.iter().map(|open| format!("{}/{}", open.hold.binding.run_id, open.hold.id)).collect()
}

pub(crate) async fn holds_are_listed_oldest_first_filtered_and_in_pages(bench: Bench) {
    for (n, (agent, tool, kind)) in
        [("coach", "refund", HoldKind::Call), ("desk", "mail", HoldKind::Action), ("coach", "mail", HoldKind::Call)]
            .into_iter()
            .enumerate()
    {
        let mut new = new_run(&format!("r{n}"), Some(&format!("k{n}")), 1);
        new.agent = agent.to_owned();
        let lease = bench.store.open(new, &[]).await.unwrap();
        let mut held = hold(lease.run(), "c1", tool);
        held.kind = kind;
        let at = 100 - i64::try_from(n).unwrap();
        let change = HeadChange { holds: vec![held], ..parked() };
        bench.store.append(&lease, 0, &[event(at, "parks")], change).await.unwrap();
    }
    let all = HoldFilter::default;
    assert_eq!(waiting(&bench, all()).await, ["r2/c1", "r1/c1", "r0/c1"]);
    assert_eq!(waiting(&bench, HoldFilter { agent: Some("coach".to_owned()), ..all() }).await, ["r2/c1", "r0/c1"]);
    assert_eq!(waiting(&bench, HoldFilter { tool: Some("mail".to_owned()), ..all() }).await, ["r2/c1", "r1/c1"]);
    assert_eq!(waiting(&bench, HoldFilter { kind: Some(HoldKind::Action), ..all() }).await, ["r1/c1"]);
    assert_eq!(waiting(&bench, HoldFilter { run: Some("r0".into()), ..all() }).await, ["r0/c1"]);
    assert_eq!(waiting(&bench, HoldFilter { contact: Some("contact of k1".into()), ..all() }).await, ["r1/c1"]);
    assert_eq!(waiting(&bench, HoldFilter { opened_before: Some(Timestamp(100)), ..all() }).await, ["r2/c1", "r1/c1"]);
    let page = bench.store.holds(&HoldFilter { limit: 2, ..all() }).await.unwrap();
    let first = &page[0];
    assert_eq!((first.agent.as_str(), first.opened_at), ("coach", Timestamp(98)));
    assert_eq!((first.conversation.clone(), first.contact.clone()), (Some("k2".into()), Some("contact of k2".into())));
    let after = page.last().map(OpenHold::cursor);
    assert_eq!(waiting(&bench, HoldFilter { limit: 2, after, ..all() }).await, ["r0/c1"]);
}

pub(crate) async fn the_first_committed_answer_wins_and_a_refused_one_stores_nothing(bench: Bench) {
    let lease = park(&bench, "r1", &["c1", "c2"]).await;
    let approves = HeadChange { holds_closed: vec![closed("c1", Some(approve()))], ..parked() };
    bench.store.append(&lease, 1, &[event(2, "approved")], approves).await.unwrap();
    assert_eq!(waiting(&bench, HoldFilter::default()).await, ["r1/c2"]);
    let deny = HoldReply::Deny { reason: "no".to_owned() };
    let both = vec![closed("c2", Some(deny.clone())), closed("c1", Some(deny))];
    let denies = HeadChange { holds_closed: both, holds: vec![hold(lease.run(), "c3", "refund")], ..parked() };
    let refused = bench.store.append(&lease, 2, &[event(3, "denied")], denies).await.unwrap_err();
    assert_eq!(refused, StoreError::HoldSettled { run: "r1".into(), call: "c1".into() });
    assert_eq!(bench.store.load(&"r1".into()).await.unwrap().events.len(), 2);
    assert_eq!(waiting(&bench, HoldFilter::default()).await, ["r1/c2"]);
    let first = bench.store.hold_closed(&"r1".into(), &"c1".into()).await.unwrap();
    assert_eq!(first, Some(closed("c1", Some(approve()))));
    let opened_again = HeadChange { holds: vec![hold(lease.run(), "c1", "refund")], ..parked() };
    let refused = bench.store.append(&lease, 2, &[], opened_again).await.unwrap_err();
    assert!(matches!(refused, StoreError::HoldSettled { .. }), "{refused:?}");
}

pub(crate) async fn of_many_answers_at_once_one_is_kept(bench: Bench) {
    let lease = park(&bench, "r1", &["c1"]).await;
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let (store, lease) = (bench.store.clone(), lease.clone());
            tokio::spawn(async move {
                let answers = HeadChange { holds_closed: vec![closed("c1", Some(approve()))], ..open() };
                store.append(&lease, 1, &[event(2, "approved")], answers).await.is_ok()
            })
        })
        .collect();
    let mut kept = 0;
    for task in tasks {
        kept += u32::from(task.await.unwrap());
    }
    assert_eq!((kept, bench.store.load(&"r1".into()).await.unwrap().events.len()), (1, 2));
}

pub(crate) async fn a_hold_that_was_opened_and_closed_in_one_append_never_waits(bench: Bench) {
    let lease = bench.open_alone("r1").await;
    let holds = vec![hold(lease.run(), "c1", "refund")];
    let change = HeadChange { holds, holds_closed: vec![closed("c1", None)], ..open() };
    bench.store.append(&lease, 0, &[event(1, "both")], change).await.unwrap();
    assert!(waiting(&bench, HoldFilter::default()).await.is_empty());
}

pub(crate) async fn a_call_that_was_lost_after_its_approval_waits_again(bench: Bench) {
    let lease = park(&bench, "r1", &["c1"]).await;
    let approves = HeadChange { holds_closed: vec![closed("c1", Some(approve()))], ..open() };
    bench.store.append(&lease, 1, &[event(2, "approved")], approves).await.unwrap();
    let mut lost = hold(lease.run(), "c1", "refund");
    lost.state = HoldState::Undecided;
    bench
        .store
        .append(&lease, 2, &[event(3, "lost")], HeadChange { holds: vec![lost.clone()], ..parked() })
        .await
        .unwrap();
    let holds = bench.store.holds(&HoldFilter::default()).await.unwrap();
    assert_eq!(holds.iter().map(|open| &open.hold).collect::<Vec<_>>(), [&lost]);
    assert!(bench.store.hold_closed(&"r1".into(), &"c1".into()).await.unwrap().is_none());
    let unknown = closed("c1", Some(HoldReply::OutcomeUnknown));
    let says = HeadChange { holds_closed: vec![unknown.clone()], ..open() };
    bench.store.append(&lease, 3, &[event(4, "said")], says).await.unwrap();
    assert_eq!(bench.store.hold_closed(&"r1".into(), &"c1".into()).await.unwrap(), Some(unknown));
}

pub(crate) async fn a_hold_that_was_never_opened_is_not_closed(bench: Bench) {
    let lease = park(&bench, "r1", &["c1"]).await;
    let change = HeadChange { holds_closed: vec![closed("c9", Some(approve()))], ..open() };
    let refused = bench.store.append(&lease, 1, &[event(2, "x")], change).await.unwrap_err();
    assert_eq!(refused, StoreError::NoSuchHold { run: "r1".into(), call: "c9".into() });
}

pub(crate) async fn a_hold_closed_without_an_answer_says_so(bench: Bench) {
    let lease = park(&bench, "r1", &["c1"]).await;
    let change = HeadChange { holds_closed: vec![closed("c1", None)], ..open() };
    bench.store.append(&lease, 1, &[event(2, "superseded")], change).await.unwrap();
    let found = bench.store.hold_closed(&"r1".into(), &"c1".into()).await.unwrap();
    assert_eq!(found, Some(closed("c1", None)));
}
