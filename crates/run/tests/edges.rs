//! Corners of the contract that a plain conversation does not reach.

mod told;

use std::sync::Arc;

use gesta_run::{
    Answer, Attempt, BackstopSpec, Block, CallStatus, ContractSpec, Decision, Effect, Event, EventKind, FeedError,
    Functions, HoldAnswer, HoldReply, Input, InputKind, Limits, Met, Outcome, Phase, Plan, PlanSpec, Ran, Reply, Run,
    Status, Timestamp, ToolEffect, ToolSpec,
};
use serde_json::{Value, json};
use told::{World, opening};

fn tool(name: &str, effect: ToolEffect) -> ToolSpec {
    ToolSpec { effect, ..ToolSpec::new(name, "", json!({"type": "object", "properties": {"n": {"type": "number"}}})) }
}

fn spec() -> PlanSpec {
    PlanSpec {
        tools: vec![
            tool("refund", ToolEffect::Once),
            tool("look", ToolEffect::ReadsOnly),
            tool("tag", ToolEffect::Staged),
        ],
        hook: true,
        ..PlanSpec::default()
    }
}

fn defer() -> Decision {
    Decision::Defer { reason: None }
}

fn approve() -> HoldReply {
    HoldReply::Approve { arguments: None }
}

/// One call deferred and approved, so that it executes, beside one that stays held.
fn one_executes_one_waits(spec: PlanSpec) -> World {
    let mut world = World::new(spec);
    world.reply(vec![Block::call("a", "refund", "{}"), Block::call("b", "refund", "{\"n\":1}")]);
    world.decide("a", defer());
    world.decide("b", defer());
    world.person("a", approve());
    world
}

#[test]
fn white_space_counts_towards_the_length_of_an_input() {
    let spec = PlanSpec { limits: Limits { input_bytes_max: 10, ..Limits::default() }, ..PlanSpec::default() };
    let mut run = Run::new(Plan::new(spec, Functions::default()).unwrap());
    let long = opening(&format!("Hi{}", " ".repeat(20)));
    let refused = run.feed(Input { at: Timestamp(0), kind: InputKind::Opened(long) }).unwrap_err();
    assert_eq!(refused, FeedError::InputTooLong { bytes: 22, max: 10 });
    let blank = run.feed(Input { at: Timestamp(0), kind: InputKind::Opened(opening(" \n ")) }).unwrap_err();
    assert_eq!(blank, FeedError::InputEmpty);
}

#[test]
fn an_approved_call_that_executes_is_finished_before_the_run_expires() {
    let mut world = one_executes_one_waits(PlanSpec { hold_ttl_ms: Some(1000), ..spec() });
    world.now = 2000;
    world.feed(InputKind::Tick).unwrap();
    assert_eq!(world.run.outcome(), None);
    assert_eq!(world.run.next_deadline(), None, "nothing is left to tick for");
    world.restart();
    world.answer("a", Answer::Ok(json!({"refunded": true})));
    assert_eq!(world.run.outcome(), Some(&Outcome::Expired));
    assert_eq!(world.status_of("a"), Some(CallStatus::Completed));
    assert_eq!(world.status_of("b"), Some(CallStatus::Expired));
}

#[test]
fn a_call_that_had_begun_is_never_said_not_to_have() {
    let mut world = World::new(spec());
    world.reply(vec![Block::call("a", "look", "{}"), Block::call("b", "refund", "{}")]);
    world.decide("a", Decision::run());
    world.decide("b", Decision::run());
    world.feed(InputKind::Cancelled).unwrap();
    assert_eq!(world.status_of("a"), Some(CallStatus::OutcomeUnknown));
    assert_eq!(world.status_of("b"), Some(CallStatus::OutcomeUnknown));
}

#[test]
fn a_call_that_did_not_run_is_shown_with_the_models_arguments() {
    let mut world = World::new(spec());
    world.reply(vec![Block::call("a", "refund", "{\"n\":1}"), Block::call("b", "refund", "{}")]);
    let edited = json!({"n": 2}).as_object().cloned().unwrap();
    world.decide("a", Decision::run_with(edited));
    world
        .meet(|it| matches!(it, Effect::Decide(_)), Met::Decided(Err(gesta_run::HookError("it fell over".to_owned()))));
    assert_eq!(world.run.outcome(), Some(&Outcome::HookFailed));
    let record = &world.run.result().tool_calls[0];
    assert_eq!((record.status, &record.arguments), (CallStatus::NotRun, &json!({"n": 1})));
}

#[test]
fn a_denial_is_cut_like_any_other_error() {
    let mut world = World::new(spec());
    world.reply(vec![Block::call("a", "refund", "{}")]);
    world.decide("a", Decision::deny("x".repeat(10_000)));
    let record = world.run.result().tool_calls[0].result.as_str().map(str::len);
    assert_eq!(record, Some(4 * 1024));
}

#[test]
fn null_as_state_or_output_survives_the_log() {
    let note = BackstopSpec { name: "note".to_owned(), phase: Phase::Before, time_limit_ms: 1000 };
    let more = BackstopSpec { name: "more".to_owned(), ..note.clone() };
    let contract = ContractSpec { backstops: vec![note, more], ..ContractSpec::default() };
    let mut world =
        World::new(PlanSpec { contract, output_schema: Some(json!({"type": "null"})), ..PlanSpec::default() });
    for state in [json!({"seen": 1}), Value::Null] {
        world.meet(|it| matches!(it, Effect::Detect(_)), Met::Detected(Ok(true)));
        world.meet(|it| matches!(it, Effect::RunBackstop(_)), Met::Ran(Ok(Ran { prompt: None, state: Some(state) })));
    }
    world.restart();
    assert_eq!(world.run.shared_state(), Some(&Value::Null));
    world.reply(vec![Block::text("null")]);
    world.restart();
    assert_eq!(world.run.result().data, Some(Value::Null));
}

#[test]
fn numbers_come_back_from_the_log_exactly() {
    let mut world = World::new(spec());
    for n in 0..200 {
        let number = f64::from(n).sqrt() * 1.0e-7 + 2.0_f64.powi(n - 100);
        let read: f64 = serde_json::from_str(&serde_json::to_string(&number).unwrap()).unwrap();
        assert_eq!(read.to_bits(), number.to_bits());
    }
    world.reply(vec![Block::call("a", "refund", "{\"n\":0.1234567890123456789}")]);
    world.decide("a", Decision::run());
    world.restart();
}

#[test]
fn whoever_approved_a_call_has_approved_what_it_stages() {
    let mut spec = spec();
    spec.tools[2].needs_approval = true;
    let mut world = World::new(spec);
    world.reply(vec![Block::call("a", "tag", "{}"), Block::call("b", "tag", "{}")]);
    world.decide("a", defer());
    world.decide("b", Decision::run());
    world.person("a", approve());
    let held: Vec<String> = world.run.holds().iter().map(|it| it.id.to_string()).collect();
    assert_eq!(held, ["b"]);
    world.reply(vec![Block::text("Done.")]);
    world.meet(|it| *it == Effect::Deliver, Met::Delivered { path: "inline".to_owned() });
    world.meet(|it| *it == Effect::Perform("a".into()), Met::Performed(Attempt::Performed));
    assert!(!world.run.closed());
    world.person("b", approve());
    world.meet(|it| *it == Effect::Perform("b".into()), Met::Performed(Attempt::Performed));
    assert!(world.run.closed());
}

#[test]
fn the_time_between_an_end_and_its_resumption_is_not_counted() {
    let limits = Limits { trips_max: 1, seconds_max: Some(10), ..Limits::default() };
    let mut world = World::new(PlanSpec { hook: false, limits, ..spec() });
    world.now = 4000;
    world.reply(vec![Block::call("a", "refund", "{}")]);
    world.answer("a", Answer::Ok(Value::Null));
    assert_eq!(world.run.outcome(), Some(&Outcome::MaxTrips));
    world.now = 1_000_000;
    world.feed(InputKind::Resumed { trips_max: Some(3), now: String::new() }).unwrap();
    assert_eq!(world.run.status(), Status::Open);
    assert_eq!(world.run.next_deadline(), Some(Timestamp(1_006_001)));
    world.reply(vec![Block::text("Done.")]);
    assert_eq!(world.run.outcome(), Some(&Outcome::Completed));
    assert_eq!(world.run.result().report.duration_ms, 4000);
}

#[test]
fn resuming_never_lowers_the_limit_of_trips() {
    let fault = gesta_run::Fault {
        kind: gesta_run::FaultKind::Network,
        message: "gone".to_owned(),
        retryable: true,
        status: None,
        retry_after_ms: None,
        usage: gesta_run::Usage::default(),
    };
    let mut world = World::new(PlanSpec { tools_change: true, ..spec() });
    world.meet(|it| *it == Effect::Offer, Met::Offered { added: Vec::new() });
    world.meet(|it| *it == Effect::CallModel, Met::Failed(fault));
    let events = world.feed(InputKind::Resumed { trips_max: Some(1), now: String::new() }).unwrap();
    assert!(matches!(events[0].what, EventKind::Resumed { trips_max: 10, .. }));
    assert_eq!(world.run.wants()[0].effect, Effect::Offer, "the tools are read anew");
}

#[test]
fn what_was_said_to_an_undecided_hold_before_counts_as_said() {
    let mut world = one_executes_one_waits(spec());
    let approval = HoldAnswer { answer: approve(), ..world.hold_answer("b", approve()) };
    let approval =
        HoldAnswer { binding: gesta_run::Binding { call_id: "a".into(), ..approval.binding }, answer: approve() };
    world.feed(InputKind::Recovered).unwrap();
    let wrong = world.say(vec![approval.clone()]).unwrap_err();
    assert!(matches!(wrong, FeedError::Answers(gesta_run::AnswerError::Binding { part: "fingerprint", .. })));
    let approval = HoldAnswer { answer: approve(), ..world.hold_answer("a", approve()) };
    world.person("a", HoldReply::Error { text: "it was not there".to_owned() });
    assert_eq!(world.say(vec![approval.clone()]).unwrap(), [], "it was answered like this once already");
    let mut elsewhere = approval;
    elsewhere.binding.run_id = "another".into();
    assert!(matches!(world.say(vec![elsewhere]), Err(FeedError::Answers(gesta_run::AnswerError::Binding { .. }))));
}

#[test]
fn a_run_that_is_being_closed_shows_no_holds() {
    let mut world = one_executes_one_waits(spec());
    world.feed(InputKind::Superseded).unwrap();
    let kinds: Vec<Effect> = world.run.wants().into_iter().map(|it| it.effect).collect();
    assert_eq!(kinds, [Effect::RunTool("a".into())]);
    assert!(world.run.holds().is_empty());
}

#[test]
fn a_deadline_is_named_only_where_a_tick_changes_something() {
    let limits = Limits { seconds_max: Some(10), trips_max: 1, ..Limits::default() };
    let mut spec = PlanSpec { hold_ttl_ms: Some(1000), limits, ..spec() };
    spec.tools[2].needs_approval = true;
    let mut world = World::new(spec);
    assert_eq!(world.run.next_deadline(), Some(Timestamp(10_001)));
    world.reply(vec![Block::call("a", "tag", "{}"), Block::call("b", "refund", "{}")]);
    world.decide("a", Decision::run());
    world.decide("b", Decision::run());
    assert_eq!(world.run.next_deadline(), Some(Timestamp(10_001)), "a held action runs out after the end alone");
    world.answer("b", Answer::Ok(Value::Null));
    assert_eq!(world.run.outcome(), Some(&Outcome::MaxTrips));
    assert_eq!(world.run.next_deadline(), Some(Timestamp(1000)));
    world.now = 1000;
    world.feed(InputKind::Tick).unwrap();
    assert!(world.run.holds().is_empty());
    assert_eq!(world.run.next_deadline(), None);
}

#[test]
fn a_second_answer_to_anything_changes_nothing() {
    let mut world = World::new(spec());
    let want = world.want(|it| *it == Effect::CallModel).id;
    world.reply(vec![Block::text("Done.")]);
    let before = world.run.result();
    let again = InputKind::Met { want, met: Met::Replied(Reply::text("Done twice.")) };
    assert!(matches!(world.feed(again), Err(FeedError::OutOfTurn(_))));
    assert_eq!(world.run.result(), before);
}

#[test]
fn a_log_that_names_one_call_twice_cannot_keep_a_run_busy() {
    let mut world = World::new(spec());
    world.reply(vec![Block::call("a", "tag", "{}"), Block::call("b", "tag", "{}")]);
    world.decide("a", Decision::run());
    world.decide("b", defer());
    let text = serde_json::to_string(&world.log).unwrap().replace("\"b\"", "\"a\"");
    let mut damaged: Vec<Event> = serde_json::from_str(&text).unwrap();
    damaged.extend(damaged.clone());
    let plan: Arc<Plan> = world.run.plan().clone();
    let mut run = Run::replay(plan, &damaged);
    let _ = run.feed(Input { at: Timestamp(1), kind: InputKind::Cancelled });
    let _ = run.feed(Input { at: Timestamp(1), kind: InputKind::Recovered });
    assert_eq!(run.status(), Status::Ended);
}
