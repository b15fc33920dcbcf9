//! The checker of logs is checked: each kind of corruption, made by hand, must be seen.

mod sim;
mod told;

use gesta_run::{
    ActWhenAsked, Answer, Attempt, BackstopSpec, Block, ContractSpec, Decision, Effect, Event, EventKind, HoldReply,
    Intervention, Limits, Met, OnToolRefusal, Outcome, PatternSpec, Phase, PlanSpec, Ran, Require, Timestamp,
    ToolEffect, ToolSpec,
};
use serde_json::json;
use told::World;

fn tool(name: &str, effect: ToolEffect) -> ToolSpec {
    ToolSpec { effect, ..ToolSpec::new(name, "", json!({"type": "object", "properties": {"n": {"type": "integer"}}})) }
}

fn spec() -> PlanSpec {
    let act = ActWhenAsked {
        intents: vec![PatternSpec::Substring("refund".to_owned())],
        required_tools: vec!["book".to_owned()],
        require: Require::Any,
        hint: None,
        max_reprompts: 1,
    };
    let backstops = [("early", Phase::Before), ("late", Phase::After)].map(|(name, phase)| BackstopSpec {
        name: name.to_owned(),
        phase,
        time_limit_ms: 1000,
    });
    let contract = ContractSpec {
        act_when_asked: Some(act),
        on_tool_refusal: Some(OnToolRefusal::default()),
        backstops: backstops.to_vec(),
    };
    let tools = vec![
        tool("refund", ToolEffect::Once),
        tool("look", ToolEffect::ReadsOnly),
        tool("tag", ToolEffect::Staged),
        ToolSpec { needs_approval: true, ..tool("credit", ToolEffect::Staged) },
        tool("book", ToolEffect::Once),
    ];
    let limits = Limits { actions_max: 3, calls_parallel_max: 2, ..Limits::default() };
    PlanSpec { tools, hook: true, contract, limits, ..PlanSpec::default() }
}

/// A run in which nearly everything happens once: held and approved, denied, staged, prompted, performed.
fn rich() -> World {
    let mut world = World::new(spec());
    world.meet(|it| *it == Effect::Detect(0), Met::Detected(Ok(true)));
    world.meet(
        |it| *it == Effect::RunBackstop(0),
        Met::Ran(Ok(Ran { prompt: Some("Be kind.".to_owned()), state: None })),
    );
    world.now = 10;
    let names = [("c1", "refund"), ("c2", "look"), ("c3", "tag"), ("c4", "refund"), ("c5", "credit"), ("c6", "tag")];
    // The second tag is another: equal ones are one action.
    let arguments = |id| if id == "c6" { "{\"n\":2}" } else { "{\"n\":1}" };
    world.reply(names.map(|(id, name)| Block::call(id, name, arguments(id))).to_vec());
    world.decide("c1", Decision::Defer { reason: None });
    world.decide("c2", Decision::run());
    world.decide("c3", Decision::run());
    world.decide("c4", Decision::deny("no"));
    world.decide("c5", Decision::run());
    world.decide("c6", Decision::run());
    world.answer("c2", Answer::Ok(json!({"ok": false, "reason": "closed"})));
    world.now = 20;
    world.person("c1", HoldReply::Approve { arguments: None });
    world.answer("c1", Answer::Ok(json!(1)));
    world.reply(vec![Block::text("Shall I?")]);
    world.meet(|it| *it == Effect::Detect(1), Met::Detected(Ok(false)));
    world.reply(vec![Block::text("I will not.")]);
    world.meet(|it| *it == Effect::Detect(1), Met::Detected(Ok(false)));
    world.reply(vec![Block::text("Really not.")]);
    world.meet(|it| *it == Effect::Detect(1), Met::Detected(Ok(true)));
    world.meet(|it| *it == Effect::RunBackstop(1), Met::Ran(Ok(Ran { prompt: None, state: None })));
    world.meet(|it| *it == Effect::Deliver, Met::Delivered { path: "inline".to_owned() });
    world.meet(|it| *it == Effect::Perform("c3".into()), Met::Performed(Attempt::Performed));
    world.meet(|it| *it == Effect::Perform("c6".into()), Met::Performed(Attempt::Performed));
    world.person("c5", HoldReply::Approve { arguments: None });
    world.meet(|it| *it == Effect::Perform("c5".into()), Met::Performed(Attempt::Performed));
    world
}

type Corrupt = fn(&mut Vec<Event>);

fn at(log: &[Event], which: impl Fn(&EventKind) -> bool) -> usize {
    log.iter().position(|event| which(&event.what)).expect("the event is in the log")
}

fn started(call: &'static str) -> impl Fn(&EventKind) -> bool {
    move |what| *what == EventKind::Started { call: call.into() }
}

fn twice(log: &mut Vec<Event>, which: impl Fn(&EventKind) -> bool) {
    let n = at(log, which);
    log.insert(n, log[n].clone());
}

fn insert_before(log: &mut Vec<Event>, which: impl Fn(&EventKind) -> bool, what: EventKind) {
    let n = at(log, which);
    let at = log[n].at;
    log.insert(n, Event { at, what });
}

fn remove(log: &mut Vec<Event>, which: impl Fn(&EventKind) -> bool) {
    let n = at(log, which);
    log.remove(n);
}

fn is_reply(trip: u32) -> impl Fn(&EventKind) -> bool {
    move |what| matches!(what, EventKind::Replied { trip: it, .. } if *it == trip)
}

fn prompt(change: fn(&mut Intervention)) -> impl Fn(&mut Vec<Event>) {
    move |log| {
        let sent = |what: &EventKind| matches!(what, EventKind::Intervened(it) if it.phase == Phase::After && it.prompt.is_some());
        let n = at(log, sent);
        if let EventKind::Intervened(it) = &mut log[n].what {
            change(it);
        }
    }
}

fn of_calls() -> Vec<(&'static str, Corrupt)> {
    vec![
        ("began twice", |log| twice(log, started("c1"))),
        ("had ended", |log| twice(log, |it| matches!(it, EventKind::Answered { call, .. } if call.as_str() == "c2"))),
        ("c4 had ended", |log| {
            insert_before(log, |it| matches!(it, EventKind::TripEnded { .. }), EventKind::Started { call: "c4".into() })
        }),
        ("began without approval", |log| {
            remove(log, |it| matches!(it, EventKind::HoldAnswered { call, .. } if call.as_str() == "c1"));
        }),
        ("is decided", |log| {
            let n = at(log, |it| matches!(it, EventKind::Decided { call, .. } if call.as_str() == "c6"));
            let late = log.remove(n);
            let n = at(log, started("c2"));
            log.insert(n + 1, late);
        }),
        ("was decided twice", |log| {
            twice(log, |it| matches!(it, EventKind::Decided { call, .. } if call.as_str() == "c2"))
        }),
        ("was not deferred", |log| {
            insert_before(log, started("c2"), EventKind::Held { call: "c2".into(), expires_at: None })
        }),
        ("answered again", |log| {
            twice(log, |it| matches!(it, EventKind::HoldAnswered { call, .. } if call.as_str() == "c1"))
        }),
        ("ends with", |log| remove(log, |it| matches!(it, EventKind::Answered { call, .. } if call.as_str() == "c1"))),
        ("never ran", |log| remove(log, started("c1"))),
        ("in the wrong way", |log| {
            let n = at(log, |it| matches!(it, EventKind::Staged { .. }));
            log[n].what = EventKind::Started { call: "c3".into() };
        }),
        ("no call", |log| insert_before(log, started("c1"), EventKind::Started { call: "c9".into() })),
        ("arguments that break its schema", |log| {
            let n = at(log, |it| matches!(it, EventKind::Decided { call, .. } if call.as_str() == "c2"));
            let arguments = json!({"n": "one"}).as_object().cloned();
            let ruling = Ok(Decision::Run { arguments, reason: None });
            log[n].what = EventKind::Decided { call: "c2".into(), ruling };
        }),
        ("without a reason", |log| {
            let n = at(log, |it| matches!(it, EventKind::Decided { call, .. } if call.as_str() == "c4"));
            log[n].what = EventKind::Decided { call: "c4".into(), ruling: Ok(Decision::deny(" ")) };
        }),
        ("the approval of", |log| {
            let n = at(log, |it| matches!(it, EventKind::HoldAnswered { call, .. } if call.as_str() == "c1"));
            let answer = HoldReply::Approve { arguments: json!({"n": "one"}).as_object().cloned() };
            log[n].what = EventKind::HoldAnswered { call: "c1".into(), answer, now: String::new() };
        }),
        ("said not to have", |log| {
            let n = at(log, |it| matches!(it, EventKind::Answered { call, .. } if call.as_str() == "c1"));
            if let EventKind::Answered { end, .. } = &mut log[n].what {
                end.status = gesta_run::CallStatus::Cancelled;
            }
        }),
    ]
}

fn of_runs() -> Vec<(&'static str, Corrupt)> {
    vec![
        ("not begun, or begun twice", |log| twice(log, |it| matches!(it, EventKind::Opened { .. }))),
        ("not begun, or begun twice", |log| remove(log, |it| matches!(it, EventKind::Opened { .. }))),
        ("time goes backwards", |log| log[4].at = Timestamp(-1)),
        ("while calls were open", |log| remove(log, |it| matches!(it, EventKind::TripEnded { .. }))),
        ("is out of order", |log| remove(log, is_reply(1))),
        ("is not unique", |log| {
            let n = at(log, is_reply(0));
            if let EventKind::Replied { calls, .. } = &mut log[n].what {
                calls[1].id = "c1".into();
            }
        }),
        ("was lost", |log| {
            let n = at(log, is_reply(0));
            if let EventKind::Replied { calls, .. } = &mut log[n].what {
                calls.pop();
            }
        }),
        ("out of place", |log| twice(log, |it| matches!(it, EventKind::Ended { .. }))),
        ("out of place", |log| insert_before(log, is_reply(1), EventKind::Delivered { path: String::new() })),
        ("delivered twice", |log| twice(log, |it| matches!(it, EventKind::Delivered { .. }))),
        ("a stopped run goes on", |log| {
            let message = String::new();
            insert_before(log, is_reply(1), EventKind::Stopped { outcome: Outcome::Cancelled, message });
        }),
        ("could not go on", |log| {
            let resumed = EventKind::Resumed { trips_max: 20, now: String::new() };
            insert_before(log, |it| matches!(it, EventKind::Delivered { .. }), resumed);
        }),
        ("parked is no end", |log| {
            let n = at(log, |it| matches!(it, EventKind::Ended { .. }));
            log[n].what = EventKind::Ended { outcome: Outcome::StoppedByHook, message: String::new(), data: None };
        }),
        ("do not change", |log| {
            let offered = EventKind::Offered { trip: 1, hash: String::new(), added: Vec::new() };
            insert_before(log, is_reply(1), offered);
        }),
    ]
}

fn of_actions_and_prompts() -> Vec<(&'static str, Corrupt)> {
    fn attempting(call: &'static str) -> impl Fn(&EventKind) -> bool {
        move |it| *it == EventKind::Attempting { call: call.into() }
    }
    vec![
        ("before its reply was delivered", |log| remove(log, |it| matches!(it, EventKind::Delivered { .. }))),
        ("is attempted and is over", |log| twice(log, attempting("c3"))),
        ("attempted without approval", |log| {
            remove(log, |it| matches!(it, EventKind::HoldAnswered { call, .. } if call.as_str() == "c5"));
        }),
        ("at the same time", |log| {
            remove(log, |it| matches!(it, EventKind::Performed { call, .. } if call.as_str() == "c3"))
        }),
        ("performed and not attempted", |log| remove(log, attempting("c6"))),
        ("is discarded and is over", |log| {
            log.push(Event {
                at: Timestamp(99),
                what: EventKind::Discarded { call: "c3".into(), reason: String::new() },
            });
        }),
        ("was staged twice", |log| twice(log, |it| matches!(it, EventKind::Staged { .. }))),
        ("ran twice", |log| twice(log, |it| matches!(it, EventKind::BackstopRan { backstop: 1, .. }))),
        ("has run and is looked at", |log| {
            let again = EventKind::Detected { backstop: 1, wanted: false, error: None, duration_ms: 0 };
            insert_before(log, |it| matches!(it, EventKind::Ended { .. }), again);
        }),
        ("twice on one answer", |log| {
            twice(log, |it| matches!(it, EventKind::Intervened(it) if it.phase == Phase::After));
        }),
        ("a skip without a reason", |log| prompt(|it| it.skipped = Some(gesta_run::Skipped::Denied))(log)),
        ("a prompt that was not sent", |log| prompt(|it| it.outcome = gesta_run::InterventionOutcome::NoPrompt)(log)),
        ("an intervention on trip", |log| prompt(|it| it.trip = 7)(log)),
        ("is off", |log| {
            prompt(|it| {
                it.kind = gesta_run::InterventionKind::Backstop;
                it.name = Some("unheard of".to_owned());
            })(log);
        }),
        ("more prompts than permitted", |log| {
            let again = |it: &EventKind| matches!(it, EventKind::Intervened(it) if it.phase == Phase::After && it.prompt.is_some());
            let Some(found) = log.iter().find(|it| again(&it.what)).cloned() else { return };
            let EventKind::Intervened(mut third) = found.what else { return };
            third.trip = 3;
            insert_before(log, |it| matches!(it, EventKind::Ended { .. }), EventKind::Intervened(third));
        }),
    ]
}

#[test]
fn the_rich_run_itself_is_sound() {
    let world = rich();
    assert_eq!(sim::check::check(world.run.plan(), &world.log), Vec::<String>::new());
    assert!(world.run.closed());
}

#[test]
fn every_kind_of_corruption_is_seen() {
    let world = rich();
    let kinds: Vec<_> = [of_calls(), of_runs(), of_actions_and_prompts()].concat();
    for (fault, corrupt) in &kinds {
        let mut log = world.log.clone();
        corrupt(&mut log);
        let seen = sim::check::check(world.run.plan(), &log);
        assert!(seen.iter().any(|it| it.contains(fault)), "`{fault}` was not seen, only {seen:?}");
    }
    assert!(kinds.len() >= 20, "only {} kinds", kinds.len());
}

#[test]
fn a_log_beyond_a_limit_is_seen() {
    let world = rich();
    let limited = |change: fn(&mut PlanSpec)| {
        let mut spec = spec();
        change(&mut spec);
        let plan = gesta_run::Plan::new(spec, gesta_run::Functions::default()).unwrap();
        sim::check::check(&plan, &world.log).join("; ")
    };
    assert!(limited(|spec| spec.limits.actions_max = 2).contains("too many actions"));
    assert!(limited(|spec| spec.limits.trips_max = 2).contains("beyond the limit"));
    assert!(limited(|spec| spec.limits.calls_max = 2).contains("of an answer may run"));
    assert!(limited(|spec| spec.hook = false).contains("without a hook"));
    assert!(limited(|spec| spec.live = true).contains("a live run holds a call"));
    assert!(limited(|spec| spec.contract = ContractSpec::default()).contains("is off"));
}

#[test]
fn a_transcript_that_cannot_be_sent_is_seen() {
    let world = rich();
    let sound = world.run.transcript().to_vec();
    assert_eq!(sim::sent::refused(&sound), None);
    for n in 0..sound.len() {
        let mut cut = sound.clone();
        let left = cut.remove(n);
        let needed = match &left {
            gesta_run::Message::Tools { .. } => true,
            gesta_run::Message::Assistant { blocks } => {
                blocks.iter().any(|block| matches!(block.kind, gesta_run::BlockKind::Call(_)))
            }
            _ => false,
        };
        assert_eq!(sim::sent::refused(&cut).is_some(), needed, "without message {n}");
    }
    let twice: Vec<_> = sound.iter().chain(&sound).cloned().collect();
    assert!(sim::sent::refused(&twice).is_some());
}

#[test]
fn options_that_never_fire_leave_the_log_as_it_is_without_them() {
    for seed in 0..200 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let bare = PlanSpec { contract: ContractSpec::default(), tools_change: false, ..sim::dice::plan(&mut dice) };
        let mut never = bare.clone();
        never.contract.act_when_asked = Some(ActWhenAsked {
            intents: Vec::new(),
            required_tools: vec!["refund".to_owned()],
            require: Require::All,
            hint: None,
            max_reprompts: 2,
        });
        let logs = [bare, never].map(|spec| {
            let plan = gesta_run::Plan::new(spec, gesta_run::Functions::default()).unwrap();
            sim::play(seed, &plan).log
        });
        let told = logs.map(|log| serde_json::to_string(&log).unwrap());
        assert_eq!(told[0], told[1], "seed {seed}");
    }
}
