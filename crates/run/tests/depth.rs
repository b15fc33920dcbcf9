//! Values from outside that are too deep to be kept are refused by rule, and whatever got into a log is read again.

mod told;

use gesta_run::json::{DEPTH_MAX, SCHEMA_DEPTH_MAX};
use gesta_run::{
    Answer, AnswerError, BackstopSpec, Block, CallStatus, ContractSpec, Decision, Effect, FeedError, Functions,
    HoldReply, Limits, Met, Outcome, Phase, Plan, PlanError, PlanSpec, Prices, Ran, ToolSpec,
};
use serde_json::{Map, Value, json};
use told::World;

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| Value::from(vec![inner]))
}

fn arguments(levels: usize) -> Map<String, Value> {
    Map::from_iter([("a".to_owned(), nested(levels - 1))])
}

fn spec() -> PlanSpec {
    PlanSpec { tools: vec![ToolSpec::new("find", "", json!({"type": "object"}))], hook: true, ..PlanSpec::default() }
}

fn called() -> World {
    let mut world = World::new(spec());
    world.reply(vec![Block::call("c1", "find", "{}")]);
    world
}

#[test]
fn a_result_may_be_as_deep_as_it_can_be_read_again_and_a_deeper_one_fails_its_call() {
    let long_way = 100_000;
    for (levels, status) in
        [(DEPTH_MAX, CallStatus::Completed), (DEPTH_MAX + 1, CallStatus::Failed), (long_way, CallStatus::Failed)]
    {
        let mut world = called();
        world.decide("c1", Decision::run());
        world.answer("c1", Answer::Ok(nested(levels)));
        assert_eq!(world.status_of("c1"), Some(status), "{levels}");
        world.restart();
        let told = serde_json::to_string(world.run.transcript()).unwrap_or_default();
        assert_eq!(told.contains("nested more than 127 levels deep"), status == CallStatus::Failed, "{told}");
    }
}

#[test]
fn arguments_may_be_as_deep_and_deeper_ones_do_not_run() {
    for (levels, wanted) in [(DEPTH_MAX, true), (DEPTH_MAX + 1, false), (5_000, false)] {
        let mut world = World::new(spec());
        let text = format!("{{\"a\":{}1{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        world.reply(vec![Block::call("c1", "find", &text)]);
        let ended = world.status_of("c1");
        assert_eq!(ended, (!wanted).then_some(CallStatus::InvalidArguments), "{levels}");
        world.restart();
    }
}

#[test]
fn a_hook_that_replaces_arguments_with_deeper_ones_has_failed() {
    let mut world = called();
    world.decide("c1", Decision::run_with(arguments(DEPTH_MAX)));
    assert!(world.run.outcome().is_none());
    world.restart();
    let mut world = called();
    world.decide("c1", Decision::run_with(arguments(DEPTH_MAX + 1)));
    assert_eq!(world.run.outcome(), Some(&Outcome::HookFailed));
    assert!(world.run.result().error.is_some_and(|it| it.message.contains("127 levels")));
    world.restart();
}

#[test]
fn an_answer_to_a_hold_that_is_deeper_is_refused_and_the_hold_stays_open() {
    let mut world = called();
    world.decide("c1", Decision::defer());
    let deep = [
        HoldReply::Result { value: nested(DEPTH_MAX + 1) },
        HoldReply::Approve { arguments: Some(arguments(DEPTH_MAX + 1)) },
    ];
    for answer in deep {
        let refused = world.say(vec![world.hold_answer("c1", answer)]);
        assert_eq!(refused, Err(FeedError::Answers(AnswerError::TooDeep { call: "c1".into() })));
    }
    world.person("c1", HoldReply::Result { value: nested(DEPTH_MAX) });
    assert_eq!(world.status_of("c1"), Some(CallStatus::Completed));
    world.restart();
}

#[test]
fn a_backstop_with_a_deeper_state_has_failed() {
    let backstop = BackstopSpec { name: "note".to_owned(), phase: Phase::Before, time_limit_ms: 1000 };
    let contract = ContractSpec { backstops: vec![backstop], ..ContractSpec::default() };
    let mut world = World::new(PlanSpec { contract, ..spec() });
    world.meet(|it| *it == Effect::Detect(0), Met::Detected(Ok(true)));
    let ran = Ran { prompt: Some("Look again.".to_owned()), state: Some(nested(DEPTH_MAX + 1)) };
    world.meet(|it| *it == Effect::RunBackstop(0), Met::Ran(Ok(ran)));
    let interventions = world.run.result().contract.interventions;
    let reasons: Vec<Option<&str>> = interventions.iter().map(|it| it.reason.as_deref()).collect();
    assert_eq!(reasons, [Some("its state is nested more than 127 levels deep")]);
    world.restart();
}

#[test]
fn a_plan_with_a_deeper_schema_or_with_money_that_is_none_names_the_key() {
    let deep = (0..SCHEMA_DEPTH_MAX).fold(json!({"type": "object"}), |inner, _| json!({"not": inner}));
    let mut options = Map::new();
    options.insert("extra".to_owned(), nested(SCHEMA_DEPTH_MAX));
    let money = |limits: Limits| PlanSpec { limits, ..spec() };
    let prices =
        |input, output, cached| money(Limits { prices: Some(Prices { input, output, cached }), ..Limits::default() });
    let budget = |usd| money(Limits { cost_usd_max: Some(usd), ..Limits::default() });
    let cases = [
        (PlanSpec { tools: vec![ToolSpec::new("find", "", deep.clone())], ..spec() }, "tool `find`: its parameters"),
        (PlanSpec { output_schema: Some(deep), ..spec() }, "output_schema: it is nested more than 64 levels deep"),
        (PlanSpec { model_options: options, ..spec() }, "model_options: nested more than 64 levels deep"),
        (budget(f64::NAN), "limits: cost_usd_max must be a finite amount of dollars, more than 0"),
        (budget(f64::INFINITY), "limits: cost_usd_max must be"),
        (budget(0.0), "limits: cost_usd_max must be"),
        (prices(-1.0, 0.0, None), "limits: prices.input must be a finite amount of dollars, 0 or more"),
        (prices(0.0, f64::NAN, None), "limits: prices.output must be"),
        (prices(0.0, 0.0, Some(f64::NEG_INFINITY)), "limits: prices.cached must be"),
    ];
    for (spec, said) in cases {
        let wrong: Option<PlanError> = Plan::new(spec, Functions::default()).err();
        assert!(wrong.as_ref().is_some_and(|it| it.to_string().starts_with(said)), "{said}: {wrong:?}");
    }
    assert!(Plan::new(prices(0.0, 0.0, Some(0.0)), Functions::default()).is_ok());
}
