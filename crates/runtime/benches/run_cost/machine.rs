//! The machine alone: what an event costs, and whether a long history makes it dearer.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gesta_run::message::Block;
use gesta_run::{
    Answer, Decision, Effect, Event, Functions, Input, InputKind, Limits, Met, Opening, Part, Plan, PlanSpec, Reply,
    Run, Timestamp, ToolSpec,
};

/// How many events a run has, at most, before it is told to stop.
const LENGTHS: [usize; 4] = [10, 100, 1_000, 10_000];

fn plan() -> Arc<Plan> {
    let parameters = serde_json::json!({"type": "object", "properties": {"id": {"type": "integer"}}});
    let spec = PlanSpec {
        tools: vec![ToolSpec::new("find", "Finds.", parameters)],
        hook: true,
        limits: Limits { trips_max: u32::MAX, ..Limits::default() },
        ..PlanSpec::default()
    };
    Plan::new(spec, Functions::default()).expect("the plan is good")
}

fn open(plan: &Arc<Plan>) -> (Run, Vec<Event>) {
    let mut run = Run::new(plan.clone());
    let opening = Opening {
        run: "measured".into(),
        conversation: None,
        contact: None,
        input: vec![Part::text("Find it.")],
        now: "Monday (UTC)".to_owned(),
    };
    let events = run.feed(Input { at: Timestamp(1), kind: InputKind::Opened(opening) });
    let log = events.expect("the opening is good").to_vec();
    (run, log)
}

/// Meets what the run wants until its log has `length` events.
fn go_on(run: &mut Run, log: &mut Vec<Event>, length: usize) {
    while log.len() < length {
        let want = run.wants().pop().expect("a run that goes on wants something");
        let met = match want.effect {
            Effect::CallModel => {
                let call = Block::call(&format!("call_{}", run.trip()), "find", "{\"id\":42}");
                Met::Replied(Reply { blocks: vec![call], ..Reply::default() })
            }
            Effect::Decide(_) => Met::Decided(Ok(Decision::run())),
            _ => Met::Answered(Answer::Ok(serde_json::json!({"found": true}))),
        };
        let input = Input { at: Timestamp(2), kind: InputKind::Met { want: want.id, met } };
        log.extend_from_slice(run.feed(input).expect("what was wanted is admitted"));
    }
}

/// The cost of an event behind histories of several lengths, and of reading one back.
pub(crate) fn measure(out: &mut String) {
    let plan = plan();
    let _ = writeln!(out, "\nThe machine alone: one event, after a history of so many");
    for length in LENGTHS {
        let more = (length / 4).max(8);
        let (mut fed, mut replayed) = (Duration::MAX, Duration::MAX);
        let mut count = 0;
        for _ in 0..(40_000 / length).clamp(5, 200) {
            let (mut run, mut log) = open(&plan);
            go_on(&mut run, &mut log, length);
            let (before, begun) = (log.len(), Instant::now());
            go_on(&mut run, &mut log, length + more);
            let taken = begun.elapsed();
            let begun = Instant::now();
            let again = Run::replay(plan.clone(), &log);
            replayed = replayed.min(begun.elapsed() / u32::try_from(log.len()).unwrap_or(u32::MAX));
            assert_eq!(again.wants(), run.wants());
            count = log.len() - before;
            fed = fed.min(taken / u32::try_from(count).unwrap_or(u32::MAX));
        }
        let per_second = 1.0 / fed.as_secs_f64();
        let (fed, replayed) = (fed.as_nanos(), replayed.as_nanos());
        let _ = writeln!(
            out,
            "  {length:>6} {fed:>6} ns ({per_second:>9.0} a second, {count} of them), replayed {replayed} ns"
        );
    }
}
