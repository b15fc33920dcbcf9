//! The machine alone: events a second, and what one event costs after a short and a long history.

// A bench stands outside of the machine: it has files, threads and a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gesta_run::{
    Answer, Block, Decision, Effect, Event, Functions, Input, InputKind, Limits, Met, Opening, Part, Plan, PlanSpec,
    Reply, Run, Timestamp, ToolSpec,
};
use serde_json::json;

/// Events of one trip with one decided call: replied, decided, started, answered, trip ended.
const EVENTS_PER_TRIP: usize = 5;

fn plan() -> Arc<Plan> {
    let schema = json!({"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]});
    let limits = Limits { trips_max: u32::MAX, ..Limits::default() };
    let tools = vec![ToolSpec::new("move_visit", "Moves a visit.", schema)];
    Plan::new(PlanSpec { tools, limits, hook: true, ..PlanSpec::default() }, Functions::default())
        .expect("a sound plan")
}

fn opened(plan: &Arc<Plan>) -> (Run, Vec<Event>) {
    let mut run = Run::new(plan.clone());
    let input = vec![Part::text("Move my visit")];
    let opening =
        Opening { run: "r".into(), conversation: None, contact: None, input, now: String::new(), trace: None };
    let log = run.feed(Input { at: Timestamp(0), kind: InputKind::Opened(opening) }).expect("it opens").to_vec();
    (run, log)
}

/// One whole trip; gives the number of its events.
fn trip(run: &mut Run, log: &mut Vec<Event>, keep: bool) -> usize {
    let mut events = 0;
    for _ in 0..3 {
        let want = run.wants().into_iter().next().expect("something is wanted");
        let met = match want.effect {
            Effect::CallModel => {
                let id = format!("call-{}", run.trip());
                let call = Block::call(&id, "move_visit", "{\"day\":\"fri\"}");
                Met::Replied(Reply { blocks: vec![call], ..Reply::default() })
            }
            Effect::Decide(_) => Met::Decided(Ok(Decision::run())),
            _ => Met::Answered(Answer::Ok(json!({"moved": "fri"}))),
        };
        let input = Input { at: Timestamp(1), kind: InputKind::Met { want: want.id, met } };
        let fresh = run.feed(input).expect("it is in turn");
        events += fresh.len();
        if keep {
            log.extend_from_slice(fresh);
        }
    }
    events
}

fn history(plan: &Arc<Plan>, events: usize) -> (Run, Vec<Event>) {
    let (mut run, mut log) = opened(plan);
    while log.len() + EVENTS_PER_TRIP <= events {
        trip(&mut run, &mut log, true);
    }
    (run, log)
}

fn machine(criterion: &mut Criterion) {
    let plan = plan();
    let mut feed = criterion.benchmark_group("feed");
    feed.throughput(Throughput::Elements(100 * EVENTS_PER_TRIP as u64));
    for events in [10, 100, 1_000, 10_000] {
        let (run, _) = history(&plan, events);
        feed.bench_function(BenchmarkId::new("100 trips after", events), |bencher| {
            let fresh = || run.clone();
            bencher.iter_batched_ref(
                fresh,
                |run| (0..100).map(|_| trip(run, &mut Vec::new(), false)).sum::<usize>(),
                criterion::BatchSize::LargeInput,
            );
        });
    }
    feed.finish();
    let mut replay = criterion.benchmark_group("replay");
    for events in [10, 1_000, 10_000] {
        let (_, log) = history(&plan, events);
        replay.throughput(Throughput::Elements(log.len() as u64));
        replay.bench_function(BenchmarkId::new("events", events), |bencher| {
            bencher.iter(|| black_box(Run::replay(plan.clone(), &log)));
        });
    }
    replay.finish();
}

criterion_group!(benches, machine);
criterion_main!(benches);
