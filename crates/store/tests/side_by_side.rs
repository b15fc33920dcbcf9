//! Dice use the store in memory, the one on disk and the one on a server in the same way: they must answer the same, and hold the same.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that can't go on is to stop where it stands")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fastrand::Rng;
use gesta_run::event::{Event, EventKind};
use gesta_run::hold::{Binding, Hold, HoldKind, HoldReply, HoldState};
use gesta_run::id::RunId;
use gesta_run::message::{Message, Part};
use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use gesta_run::tool::Accepts;
use gesta_store::{
    Clock, DocumentChange, HeadChange, HoldClosed, HoldFilter, Lease, Memory, NewRun, Postgres, PostgresOptions,
    RunFilter, Sqlite, Store, StoreError, StoreOptions, Turn, new_run_id,
};

const SEEDS: u64 = 24;
const STEPS: usize = 80;
const RUNS: usize = 5;
const CONVERSATIONS: usize = 2;

/// One store with the leases its user holds, the oldest first.
struct Side {
    store: Arc<dyn Store>,
    leases: Vec<Lease>,
    /// An id is never used again, not even that of an erased run: each erasing begins new ones.
    generation: u32,
}

/// What a step does, rolled once and done on both sides.
#[derive(Debug, Clone)]
enum Step {
    Open(NewRun, Vec<Event>),
    Append { lease: usize, at: u64, events: Vec<Event>, change: HeadChange },
    Claim(RunId),
    Renew(usize),
    Release(usize),
    Erase(usize),
    Put { conversation: usize, from: u64, image: Vec<u8> },
    Wait(i64),
}

fn conversation(n: usize) -> String {
    format!("k{n}")
}

fn events(dice: &mut Rng) -> Vec<Event> {
    let number = dice.usize(0..3);
    let what = |text: u32| EventKind::FunctionFailed { function: "f".to_owned(), error: text.to_string() };
    (0..number).map(|_| Event { at: Timestamp(dice.i64(0..1_000)), what: what(dice.u32(..)) }).collect()
}

fn hold(run: &RunId, dice: &mut Rng) -> Hold {
    let call = format!("c{}", dice.u8(0..3));
    Hold {
        id: call.as_str().into(),
        kind: if dice.bool() { HoldKind::Call } else { HoldKind::Action },
        name: "refund".to_owned(),
        arguments: serde_json::Map::new(),
        reason: None,
        trip: 1,
        index: 0,
        accepts: Accepts::Any,
        expires_at: None,
        state: if dice.u8(0..4) == 0 { HoldState::Undecided } else { HoldState::Open },
        binding: Binding {
            run_id: run.clone(),
            call_id: call.as_str().into(),
            tool: "refund".to_owned(),
            fingerprint: String::new(),
            config_version: String::new(),
        },
    }
}

fn change(run: &RunId, dice: &mut Rng) -> HeadChange {
    let outcomes = [Outcome::Completed, Outcome::ModelFailed, Outcome::Cancelled];
    let mut change = match dice.u8(0..3) {
        0 => HeadChange::to(Status::Open),
        1 => HeadChange::to(Status::Parked),
        _ => HeadChange::ended(outcomes[dice.usize(0..outcomes.len())]),
    };
    change.release = dice.u8(0..4) == 0;
    change.closed = change.status == Status::Ended && dice.bool();
    if dice.u8(0..3) == 0 {
        change.holds = vec![hold(run, dice)];
    }
    if dice.u8(0..3) == 0 {
        let call = format!("c{}", dice.u8(0..3));
        let answer = dice.bool().then_some(HoldReply::Approve { arguments: None });
        change.holds_closed = vec![HoldClosed { call: call.as_str().into(), answer, at: Timestamp(dice.i64(0..9)) }];
    }
    if change.status == Status::Ended && dice.bool() {
        let messages = vec![Message::User { parts: vec![Part::text(dice.u32(..).to_string())], prompted: false }];
        change.turn = Some(Turn { messages, tokens: dice.u64(0..100) });
    }
    change.working = (dice.u8(0..3) == 0).then(|| vec![dice.u8(..), dice.u8(..)]);
    change.document = match dice.u8(0..5) {
        0 => DocumentChange::Adopt { from: dice.u64(0..4) },
        1 => DocumentChange::Drop,
        _ => DocumentChange::Keep,
    };
    change
}

async fn roll(dice: &mut Rng, side: &Side) -> Step {
    let run: RunId = format!("r{}.{}", dice.usize(0..RUNS), side.generation).as_str().into();
    let lease = dice.usize(0..side.leases.len().max(1));
    match dice.u8(0..20) {
        0..=4 => {
            let conversation = dice.bool().then(|| conversation(dice.usize(0..CONVERSATIONS)).as_str().into());
            let at = Timestamp(dice.i64(0..1_000));
            let (agent, config) = ("a".to_owned(), "h".to_owned());
            Step::Open(NewRun { run, agent, conversation, contact: None, config, at }, events(dice))
        }
        5..=13 if !side.leases.is_empty() => {
            let run = side.leases[lease].run().clone();
            let there = side.store.head(&run).await.map_or(0, |head| head.events);
            let at = if dice.u8(0..8) == 0 { there + 1 } else { there };
            Step::Append { lease, at, events: events(dice), change: change(&run, dice) }
        }
        14 if !side.leases.is_empty() => Step::Renew(lease),
        15 if !side.leases.is_empty() => Step::Release(lease),
        16 => Step::Erase(dice.usize(0..CONVERSATIONS)),
        18 => {
            let conversation = dice.usize(0..CONVERSATIONS);
            Step::Put { conversation, from: dice.u64(0..4), image: vec![dice.u8(..)] }
        }
        17 => Step::Wait(dice.i64(0..40)),
        _ => Step::Claim(run),
    }
}

/// Does a step. What came of it is told without the owner's name, which differs.
async fn perform(side: &mut Side, step: &Step) -> Result<String, StoreError> {
    match step.clone() {
        Step::Open(new, first) => {
            let lease = side.store.open(new, &first).await?;
            side.leases.push(lease);
            Ok("opened".to_owned())
        }
        Step::Append { lease, at, events, change } => {
            side.store.append(&side.leases[lease], at, &events, change).await.map(|()| "appended".to_owned())
        }
        Step::Claim(run) => {
            let lease = side.store.claim(&run).await?;
            let said = format!("claimed {} until {:?}", lease.fence(), lease.until());
            side.leases.push(lease);
            Ok(said)
        }
        Step::Renew(lease) => side.store.renew(&side.leases[lease]).await.map(|()| "renewed".to_owned()),
        Step::Release(lease) => side.store.release(&side.leases[lease]).await.map(|()| "released".to_owned()),
        Step::Erase(n) => {
            side.generation += 1;
            let erased = side.store.erase(&conversation(n).as_str().into()).await?;
            Ok(format!("erased: {erased}"))
        }
        Step::Put { conversation: n, from, image } => {
            let version = side.store.put_document(&conversation(n).as_str().into(), from, image).await?;
            Ok(format!("put: {version}"))
        }
        Step::Wait(_) => Ok(String::new()),
    }
}

/// Everything that a store shows.
async fn all(side: &Side) -> String {
    let mut shown = String::new();
    for mut head in side.store.runs(&RunFilter::default()).await.unwrap() {
        if let Some(holder) = &mut head.held_by {
            holder.owner.clear();
        }
        let events = side.store.load(&head.run).await.unwrap().events;
        shown += &format!("{head:?} {events:?}\n");
        shown += &format!("working copy: {:?}\n", side.store.working(&head.run).await.unwrap());
        for call in ["c0", "c1", "c2"] {
            let closed = side.store.hold_closed(&head.run, &call.into()).await.unwrap();
            shown += &format!("{call}: {closed:?}\n");
        }
    }
    shown += &format!("{:?}\n", side.store.holds(&HoldFilter::default()).await.unwrap());
    shown += &format!("{:?}\n", side.store.conversations(0).await.unwrap());
    shown += &format!("{:?}\n", side.store.documents(0).await.unwrap());
    for n in 0..CONVERSATIONS {
        shown += &format!("{:?}\n", side.store.document(&conversation(n).as_str().into()).await.unwrap());
        shown += &format!("{:?}\n", side.store.history(&conversation(n).as_str().into(), 5).await.unwrap());
    }
    shown
}

/// What leases go by, and how it is told.
fn options() -> (StoreOptions, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(0));
    let told = now.clone();
    let clock = Clock::new(move || Timestamp(told.load(Ordering::SeqCst)));
    (StoreOptions { lease_ttl_ms: 50, clock, ..StoreOptions::default() }, now)
}

#[tokio::test]
async fn memory_and_sqlite_answer_the_same_and_hold_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (options, now) = options();
    let disk = Sqlite::open(folder.path(), options.clone()).await.unwrap();
    // A tenant for each seed: an empty store without making a file anew.
    play(&options, &now, |seed| Arc::new(disk.of_tenant(&seed.to_string()))).await;
}

#[tokio::test]
async fn memory_and_postgres_answer_the_same_and_hold_the_same() {
    let Some(address) = xtask::outside("GESTA_TEST_POSTGRES", "postgres") else { return };
    let address = address.into_string().unwrap();
    let (options, now) = options();
    let server = PostgresOptions { connections_max: 2, ..options.clone().into() };
    let server = Postgres::open(&address, server).await.unwrap();
    let play_on = new_run_id();
    play(&options, &now, |seed| Arc::new(server.of_tenant(&format!("{play_on} {seed}")))).await;
    server.close().await;
}

async fn play(options: &StoreOptions, now: &AtomicI64, other: impl Fn(u64) -> Arc<dyn Store>) {
    for seed in 0..SEEDS {
        let mut dice = Rng::with_seed(seed);
        let disk = other(seed);
        let memory: Arc<dyn Store> = Arc::new(Memory::new(options.clone()));
        let mut sides = [memory, disk].map(|store| Side { store, leases: Vec::new(), generation: 0 });
        for n in 0..STEPS {
            let step = roll(&mut dice, &sides[0]).await;
            if let Step::Wait(ms) = step {
                now.fetch_add(ms, Ordering::SeqCst);
            }
            let [memory, disk] = &mut sides;
            let answers = (perform(memory, &step).await, perform(disk, &step).await);
            assert_eq!(answers.0, answers.1, "seed {seed}, step {n}: {step:?}");
        }
        assert_eq!(all(&sides[0]).await, all(&sides[1]).await, "seed {seed}");
    }
}
