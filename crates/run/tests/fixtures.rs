//! Logs of each version of their form: they load, and replay to the result that was recorded with them.
//!
//! `GESTA_RECORD=1` writes those that are not there yet; one that is there is never written again.

// Tests stand outside of the machine: they have files, threads and a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(clippy::unwrap_used)]

mod told;

use std::path::{Path, PathBuf};

use gesta_run::{
    ActWhenAsked, Answer, Attempt, Block, ContractSpec, Decision, Effect, Event, Functions, GrantSpec, HoldReply,
    InputKind, Met, OnToolRefusal, PatternSpec, Plan, PlanSpec, Require, Run, RunResult, ToolEffect, ToolSpec,
};
use serde_json::{Value, json};
use told::World;

fn tool(name: &str, effect: ToolEffect) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]});
    ToolSpec { effect, ..ToolSpec::new(name, "For the tests.", schema) }
}

fn spec(hook: bool) -> PlanSpec {
    let tools = vec![
        tool("refund", ToolEffect::Once),
        tool("look", ToolEffect::ReadsOnly),
        tool("tag", ToolEffect::Staged),
        ToolSpec { needs_approval: true, ..tool("credit", ToolEffect::Staged) },
    ];
    PlanSpec { agent: "desk".to_owned(), version: "1".to_owned(), tools, hook, ..PlanSpec::default() }
}

fn call(id: &str, name: &str, order: u32) -> Block {
    Block::call(id, name, format!("{{\"order\":{order}}}"))
}

fn deliver(world: &mut World) {
    world.meet(|it| *it == Effect::Deliver, Met::Delivered { path: "inline".to_owned() });
}

fn say(world: &mut World, text: &str) {
    world.now += 5;
    world.reply(vec![Block::text(text)]);
}

fn plain() -> World {
    let mut world = World::new(spec(false));
    world.reply(vec![Block::text("Let me see."), call("c1", "look", 7), call("c2", "refund", 7)]);
    world.answer("c2", Answer::Ok(json!({"refunded": 19.99})));
    world.answer("c1", Answer::Error("the shop is closed".to_owned()));
    say(&mut world, "It is refunded.");
    deliver(&mut world);
    world
}

fn hint() -> World {
    let act = ActWhenAsked {
        intents: vec![PatternSpec::Substring("refund".to_owned())],
        required_tools: vec!["refund".to_owned()],
        require: Require::Any,
        hint: None,
        max_reprompts: 1,
    };
    let contract = ContractSpec { act_when_asked: Some(act), ..ContractSpec::default() };
    let mut world = World::new(PlanSpec { contract, ..spec(false) });
    say(&mut world, "Shall I refund it?");
    world.reply(vec![call("c1", "refund", 7)]);
    world.answer("c1", Answer::Ok(json!({"ok": true})));
    say(&mut world, "It is refunded.");
    deliver(&mut world);
    world
}

fn refusal() -> World {
    let contract = ContractSpec { on_tool_refusal: Some(OnToolRefusal::default()), ..ContractSpec::default() };
    let mut world = World::new(PlanSpec { contract, ..spec(false) });
    world.reply(vec![call("c1", "refund", 9), Block::call("c2", "refund", "{\"order\":\"x\"}")]);
    world.answer("c1", Answer::Ok(json!({"ok": false, "reason": "no order 9"})));
    say(&mut world, "I could not.");
    say(&mut world, "There is no such order.");
    deliver(&mut world);
    world
}

fn parked_and_resumed() -> World {
    let mut world = World::new(spec(true));
    world.reply(vec![call("c1", "refund", 7), call("c2", "refund", 8), call("c3", "look", 7)]);
    world.decide("c1", Decision::Defer { reason: Some("over 100".to_owned()) });
    world.decide("c2", Decision::Defer { reason: None });
    world.decide("c3", Decision::run());
    world.answer("c3", Answer::Ok(json!({"total": 250})));
    world.now = 86_400_000;
    world.person("c1", HoldReply::Approve { arguments: json!({"order": 70}).as_object().cloned() });
    world.answer("c1", Answer::Ok(json!({"refunded": true})));
    world.person("c2", HoldReply::Deny { reason: "too late".to_owned() });
    say(&mut world, "One is refunded.");
    deliver(&mut world);
    world
}

fn undecided() -> World {
    let mut world = World::new(spec(true));
    world.reply(vec![call("c1", "refund", 7)]);
    world.decide("c1", Decision::Defer { reason: None });
    world.person("c1", HoldReply::Approve { arguments: None });
    world.feed(InputKind::Recovered).unwrap();
    world
}

fn staged() -> World {
    let mut world = World::new(spec(true));
    world.reply(vec![call("c1", "tag", 1), call("c2", "credit", 2), call("c3", "tag", 3)]);
    for id in ["c1", "c2", "c3"] {
        world.decide(id, Decision::run());
    }
    say(&mut world, "It will be done.");
    deliver(&mut world);
    world.meet(|it| *it == Effect::Perform("c1".into()), Met::Performed(Attempt::Performed));
    world.feed(InputKind::Recovered).unwrap();
    world.person("c2", HoldReply::Approve { arguments: None });
    world.meet(|it| *it == Effect::Perform("c2".into()), Met::Performed(Attempt::Failed { error: "gone".to_owned() }));
    world
}

fn cancelled() -> World {
    let mut world = World::new(spec(true));
    world.reply(vec![call("c1", "refund", 7), call("c2", "look", 7)]);
    world.decide("c1", Decision::run());
    world.decide("c2", Decision::Defer { reason: None });
    world.feed(InputKind::Cancelled).unwrap();
    world
}

fn grants() -> World {
    let note = ToolSpec { document: true, ..tool("note", ToolEffect::Once) };
    let pay = GrantSpec::new("App", "pay", ["order", "amount"]);
    let read = GrantSpec { effect: ToolEffect::ReadsOnly, ..GrantSpec::new("App", "read", ["order"]) };
    let tools_change = true;
    let mut world =
        World::new(PlanSpec { grants: vec![pay, read], document: Some("d".repeat(64)), tools_change, ..spec(true) });
    world.meet(|it| *it == Effect::Offer, Met::Offered { added: vec![note.clone()] });
    world.reply(vec![call("c1", "note", 7)]);
    world.decide("c1", Decision::run());
    let asks = |world: &mut World, n, grant: &str| {
        let arguments = json!({"order": 7}).as_object().cloned().unwrap();
        let asked = Met::Asked { n, grant: grant.to_owned(), arguments };
        world.meet(|it| *it == Effect::RunTool("c1".into()), asked);
    };
    asks(&mut world, 0, "App.read");
    world.meet(|it| *it == Effect::DecideGrant("c1".into(), 0), Met::Decided(Ok(Decision::run())));
    world.meet(|it| *it == Effect::RunGrant("c1".into(), 0), Met::Answered(Answer::Ok(json!([7]))));
    asks(&mut world, 1, "App.pay");
    world.meet(|it| *it == Effect::DecideGrant("c1".into(), 1), Met::Decided(Ok(Decision::deny("too much"))));
    asks(&mut world, 2, "App.pay");
    world.meet(|it| *it == Effect::DecideGrant("c1".into(), 2), Met::Decided(Ok(Decision::run())));
    world.feed(InputKind::Recovered).unwrap();
    world.meet(|it| *it == Effect::Offer, Met::Offered { added: vec![note] });
    say(&mut world, "I do not know.");
    deliver(&mut world);
    world
}

fn folder(version: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/log-v{version}"))
}

#[test]
fn logs_that_are_not_there_yet_are_recorded_on_request() {
    let kinds = [
        (1, "plain", plain()),
        (1, "hint", hint()),
        (1, "refusal", refusal()),
        (1, "parked_and_resumed", parked_and_resumed()),
        (1, "undecided", undecided()),
        (1, "staged", staged()),
        (1, "cancelled", cancelled()),
        (2, "grants", grants()),
    ];
    for (version, name, world) in kinds {
        let path = folder(version).join(format!("{name}.jsonl"));
        if path.exists() || std::env::var_os("GESTA_RECORD").is_none() {
            continue;
        }
        let mut lines = vec![serde_json::to_string(&world.run.plan().spec).unwrap()];
        lines.extend(world.log.iter().map(|event| serde_json::to_string(event).unwrap()));
        lines.push(serde_json::to_string(&world.run.result()).unwrap());
        std::fs::create_dir_all(folder(version)).unwrap();
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
    }
}

/// What was recorded stands there still; fields may have come since.
fn keeps(recorded: &Value, replayed: &Value, at: &str) {
    match (recorded, replayed) {
        (Value::Object(recorded), Value::Object(replayed)) => {
            // The plan's hash is that of its present form: a field added since, at its default, changes it.
            for (key, value) in recorded.iter().filter(|(key, _)| *key != "config_version") {
                keeps(value, replayed.get(key).unwrap_or(&Value::Null), &format!("{at}/{key}"));
            }
        }
        (Value::Array(recorded), Value::Array(replayed)) => {
            assert_eq!(replayed.len(), recorded.len(), "{at}");
            recorded.iter().zip(replayed).enumerate().for_each(|(n, (old, new))| keeps(old, new, &format!("{at}/{n}")));
        }
        _ => assert_eq!(replayed, recorded, "{at}"),
    }
}

#[test]
fn every_log_of_every_version_replays_to_its_recorded_result() {
    for (version, least) in [(1, 7), (2, 1)] {
        let files: Vec<PathBuf> = std::fs::read_dir(folder(version)).unwrap().map(|it| it.unwrap().path()).collect();
        assert!(files.len() >= least, "only {} logs in {}", files.len(), folder(version).display());
        files.iter().for_each(|path| replays(path));
    }
}

fn replays(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [plan, events @ .., result] = lines.as_slice() else { panic!("{} is cut", path.display()) };
    let plan: PlanSpec = serde_json::from_str(plan).unwrap();
    let plan = Plan::new(plan, Functions::default()).unwrap();
    let events: Vec<Event> = events.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(serde_json::from_str::<RunResult>(result).is_ok(), "{} is read as a result", path.display());
    let recorded: Value = serde_json::from_str(result).unwrap();
    // The plan's hash too: a field added since, at its default, leaves it, so that answers to old holds still fit.
    let replayed = serde_json::to_value(Run::replay(plan, &events).result()).unwrap();
    keeps(&recorded, &replayed, &path.display().to_string());
}
