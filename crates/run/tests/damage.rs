//! A log that is cut, shuffled, patched or of another agent may make a run useless, but never makes it panic or spin.

mod sim;

use fastrand::Rng;
use gesta_run::{Effect, Event, HoldAnswer, Input, InputKind, Met, Opening, Part, Run, Timestamp};
use sim::dice;

const SEEDS: u64 = 3_000;

/// Takes the log apart in one of several ways.
fn damage(dice: &mut Rng, log: &mut Vec<Event>, other: &[Event]) {
    let len = log.len().max(1);
    match dice.u32(0..7) {
        0 => log.truncate(dice.usize(0..len)),
        1 => dice.shuffle(log),
        2 => drop(log.drain(..dice.usize(0..len))),
        3 => log.retain(|_| dice.bool()),
        4 => log.extend(log.clone()),
        5 => log.extend_from_slice(other),
        _ => {
            for _ in 0..5 {
                let (from, to) = (dice.usize(0..len), dice.usize(0..len));
                if let Some(event) = log.get(from).cloned() {
                    log.insert(to.min(log.len()), event);
                }
            }
        }
    }
}

/// Changes the text of a log where it still reads as one.
fn patch(dice: &mut Rng, log: &[Event]) -> Vec<Event> {
    let swaps = [("c1", "c2"), ("c3", "c1"), ("refund", "tag"), ("tag", "look"), ("\"trip\":0", "\"trip\":4294967295")];
    let (from, to) = swaps[dice.usize(0..swaps.len())];
    let times = [("\"at\":", "\"at\":-9"), ("\"at\":", "\"at\":99999999999999"), ("\"n\"", "\"m\"")];
    let (early, late) = times[dice.usize(0..times.len())];
    log.iter()
        .filter_map(|event| {
            let mut text = serde_json::to_string(event).ok()?;
            if dice.bool() {
                text = text.replace(from, to);
            }
            if dice.u32(0..6) == 0 {
                text = text.replacen(early, late, 1);
            }
            serde_json::from_str(&text).ok()
        })
        .collect()
}

/// Looks at everything and tries every kind of input.
fn exercise(dice: &mut Rng, mut run: Run) {
    for _ in 0..30 {
        let _ = (run.result(), run.next_deadline(), run.closed(), run.status(), run.holds());
        let wants = run.wants();
        let at = Timestamp([i64::MIN, 0, 1, i64::MAX][dice.usize(0..4)]);
        let kind = match dice.u32(0..12) {
            0 => InputKind::Cancelled,
            1 => InputKind::Recovered,
            2 => InputKind::Tick,
            3 => InputKind::Superseded,
            4 => InputKind::Resumed { trips_max: Some(u32::MAX), now: String::new() },
            5 => {
                let holds = run.holds().into_iter();
                let answers =
                    holds.map(|it| HoldAnswer { binding: it.binding, answer: dice::hold_reply(dice) }).collect();
                InputKind::Answers { answers, missing_tools: Vec::new(), now: String::new() }
            }
            6 => {
                let input = vec![Part::text("please")];
                let opening = Opening {
                    run: "r".into(),
                    conversation: None,
                    contact: None,
                    input,
                    now: String::new(),
                    trace: None,
                };
                InputKind::Opened(opening)
            }
            _ if wants.is_empty() => continue,
            _ => {
                let want = wants[dice.usize(0..wants.len())].clone();
                let _ = want.id.to_string();
                let met = match want.effect {
                    Effect::Offer => Met::Offered { added: dice::added(dice) },
                    Effect::CallModel => Met::Replied(dice::reply(dice)),
                    Effect::Decide(_) => Met::Decided(dice::ruling(dice)),
                    Effect::RunTool(call) => {
                        let _ = run.arguments_to_run(&call);
                        Met::Answered(dice::answer(dice))
                    }
                    Effect::DecideGrant(..) => Met::Decided(dice::ruling(dice)),
                    Effect::RunGrant(..) => Met::Answered(dice::answer(dice)),
                    Effect::Detect(_) => Met::Detected(Ok(dice.bool())),
                    Effect::RunBackstop(_) => Met::Ran(dice::ran(dice)),
                    Effect::Hold(_) => continue,
                    Effect::Deliver => Met::Delivered { path: "inline".to_owned() },
                    Effect::Perform(_) => Met::Performed(gesta_run::Attempt::Performed),
                };
                InputKind::Met { want: want.id, met }
            }
        };
        if let Ok(events) = run.feed(Input { at, kind }) {
            assert!(events.len() < 500, "the run spins: {} events of one input", events.len());
        }
    }
}

#[test]
fn no_log_makes_a_run_panic_or_spin() {
    for seed in 0..SEEDS {
        let mut dice = Rng::with_seed(seed);
        let plan = sim::plan_of(seed);
        let mut log = sim::play(seed, &plan).log;
        let other_plan = sim::plan_of(seed + 7919);
        let other = sim::play(seed + 7919, &other_plan).log;
        if dice.bool() {
            log = patch(&mut dice, &log);
        }
        damage(&mut dice, &mut log, &other);
        let plan = if dice.u32(0..3) == 0 { other_plan } else { plan };
        exercise(&mut dice, Run::replay(plan, &log));
    }
}

#[test]
fn a_damaged_log_never_gives_a_transcript_that_cannot_be_sent() {
    for seed in 0..SEEDS {
        let mut dice = Rng::with_seed(seed);
        let plan = sim::plan_of(seed);
        let mut log = sim::play(seed, &plan).log;
        damage(&mut dice, &mut log, &[]);
        let run = Run::replay(plan, &log);
        assert_eq!(sim::sent::refused(run.transcript()), None, "seed {seed}");
    }
}
