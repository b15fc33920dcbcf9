//! Two stores on one database, and dice that use them at the same time: what each rule promises holds all the same.

use std::sync::Arc;

use fastrand::Rng;
use gesta_run::message::{Message, Part};
use gesta_run::outcome::Outcome;
use gesta_run::time::Timestamp;
use gesta_store::{
    Conversations, DocumentChange, Documents, HeadChange, Postgres, PostgresOptions, RunFilter, RunLog, StoreError,
    Turn, Wire, WireRecord, new_run_id,
};

use crate::server::{address, new_run, number, open, opened, step};

const TASKS: u64 = 6;
const TURNS: u64 = 12;
const CONVERSATIONS: usize = 2;

/// Tables with the rows of one run, or of one conversation.
const OF_RUNS: [&str; 4] = ["events", "holds", "wire", "working_copies"];

fn conversation(dice: &mut Rng) -> String {
    format!("k{}", dice.usize(0..CONVERSATIONS))
}

/// What the rules may say to one of many.
fn allowed(why: &StoreError) -> bool {
    matches!(
        why,
        StoreError::ConversationBusy { .. }
            | StoreError::NoSuchRun { .. }
            | StoreError::Leased { .. }
            | StoreError::Fenced { .. }
            | StoreError::Conflict { .. }
            | StoreError::DocumentConflict { .. }
    )
}

fn checked<T>(result: Result<T, StoreError>) -> Option<T> {
    result.inspect_err(|why| assert!(allowed(why), "{why:?}")).ok()
}

/// Takes a turn in a conversation where it is free; now and then erases one, puts a document, takes a run from another.
async fn use_it(store: Arc<Postgres>, seed: u64) {
    let mut dice = Rng::with_seed(seed);
    for n in 0..TURNS {
        let talk = conversation(&mut dice);
        match dice.u8(0..8) {
            0 => {
                checked(store.erase(&talk.as_str().into()).await);
            }
            1 => {
                let version = checked(store.document(&talk.as_str().into()).await).flatten().map_or(0, |it| it.version);
                checked(store.put_document(&talk.as_str().into(), version, vec![1]).await);
            }
            2 => {
                let runs = checked(store.runs(&RunFilter::default()).await).unwrap_or_default();
                if let Some(head) = runs.first()
                    && let Some(lease) = checked(store.claim(&head.run).await)
                {
                    checked(store.append(&lease, head.events, &step(0), open()).await);
                    checked(store.release(&lease).await);
                }
            }
            _ => {
                take_turn(&store, &talk, &format!("r{seed}.{n}")).await;
            }
        }
    }
}

async fn take_turn(store: &Postgres, talk: &str, run: &str) -> Option<()> {
    let lease = checked(store.open(new_run(run, Some(talk)), &step(0)).await)?;
    let from = checked(store.document(&talk.into()).await)?.map_or(0, |it| it.version);
    checked(store.append(&lease, 3, &step(3), HeadChange { working: Some(vec![2]), ..open() }).await)?;
    checked(store.append(&lease, 6, &step(6), open()).await)?;
    let record = WireRecord { trip: 1, attempt: 0, at: Timestamp(1), request: String::new(), response: String::new() };
    checked(store.put_wire(lease.run(), record).await)?;
    let messages = vec![Message::User { parts: vec![Part::text(run)], prompted: false }];
    let turn = Some(Turn { messages, tokens: 1 });
    let document = DocumentChange::Adopt { from };
    let ends = HeadChange { turn, document, release: true, closed: true, ..HeadChange::ended(Outcome::Completed) };
    if checked(store.append(&lease, 9, &step(9), ends).await).is_none() {
        // Its document was changed from outside, or it was taken: then it leaves the conversation to others.
        checked(
            store.append(&lease, 9, &[], HeadChange { release: true, ..HeadChange::ended(Outcome::Cancelled) }).await,
        )?;
    }
    Some(())
}

#[tokio::test]
async fn many_at_once_keep_every_rule_and_leave_nothing_behind_that_was_erased() {
    let Some(address) = address() else { return };
    let tenant = new_run_id().as_str().to_owned();
    let mut stores = Vec::new();
    for skips in [true, false] {
        let options = PostgresOptions { claims_skip_locked: skips, connections_max: 4, ..PostgresOptions::default() };
        stores.push(Arc::new(Postgres::open(&address, options).await.unwrap().of_tenant(&tenant)));
    }
    let tasks: Vec<_> = (0..TASKS).map(|seed| tokio::spawn(use_it(stores[seed as usize % 2].clone(), seed))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    let store = &stores[0];
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    for head in &runs {
        // Loading checks that the events are all there, in order and without a gap.
        assert_eq!(store.load(&head.run).await.unwrap().events.len() as u64, head.events);
    }
    for talk in store.conversations(0).await.unwrap() {
        let turns = store.history(&talk.conversation, u32::MAX).await.unwrap().len() as u64;
        assert_eq!(turns, talk.turns, "{talk:?}");
        assert!(talk.run.is_none_or(|run| runs.iter().any(|head| head.run == run)));
    }
    for table in OF_RUNS {
        let orphans = format!(
            "SELECT count(*) FROM gesta.{table} AS it WHERE it.tenant = '{tenant}' AND NOT EXISTS \
             (SELECT 1 FROM gesta.runs WHERE runs.tenant = it.tenant AND runs.run_id = it.run_id)"
        );
        assert_eq!(number(&address, &orphans).await, 0, "{table}");
    }
    for n in 0..CONVERSATIONS {
        store.erase(&format!("k{n}").as_str().into()).await.unwrap();
    }
    for table in OF_RUNS.iter().chain(&["runs", "turns", "conversations", "documents"]) {
        let left = format!("SELECT count(*) FROM gesta.{table} WHERE tenant = '{tenant}'");
        assert_eq!(number(&address, &left).await, 0, "{table}");
    }
    for store in stores {
        store.close().await;
    }
}

/// The clocks of hosts differ; leases must not (`spec/durability.md`, H5).
#[tokio::test]
async fn leases_go_by_the_servers_clock() {
    let Some(address) = address() else { return };
    let store = opened(&address).await.of_tenant(new_run_id().as_str());
    let now = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
    let ttl_ms = i64::try_from(PostgresOptions::default().lease_ttl_ms).unwrap();
    let before = number(&address, now).await;
    let lease = store.open(new_run("r1", None), &[]).await.unwrap();
    let after = number(&address, now).await;
    assert!((before..=after).contains(&(lease.until().0 - ttl_ms)), "{before}, {}, {after}", lease.until().0);
    assert!(matches!(store.claim(&"r1".into()).await, Err(StoreError::Leased { .. })));
    store.close().await;
}
