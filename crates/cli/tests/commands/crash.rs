//! `kill -9` at each step that leaves the process: nothing with effects runs twice, nothing is lost without a word.

#![cfg(unix)]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Home, Said, World, calls, example, says};

/// Two trips with three tools, one of which may be repeated: six requests leave the process.
fn world() -> World {
    World::start(vec![calls(&[("c1", "pay"), ("c2", "look")]), calls(&[("c3", "ship")]), says("done")])
}

const TOOLS: [(&str, &str); 3] = [("pay", "once"), ("look", "reads_only"), ("ship", "once")];

fn checked(home: &Home, world: &World, at: usize) -> Value {
    let result = home.result("last");
    for tool in ["pay", "ship"] {
        assert!(world.calls(tool).len() <= 1, "{tool} ran twice when killed at {at}");
    }
    let ends: BTreeMap<&str, &str> = result["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| (call["id"].as_str().unwrap(), call["status"].as_str().unwrap()))
        .collect();
    for (id, tool) in [("c1", "pay"), ("c3", "ship")] {
        // What reached the tool is never said to have not happened.
        let ran = world.calls(tool).len() == 1;
        match ends.get(id) {
            Some(&"completed") => assert!(ran, "{tool} at {at}: {ends:?}"),
            Some(&"outcome_unknown") => {}
            other => panic!("{tool} at {at} ended {other:?}"),
        }
    }
    assert_eq!(ends.get("c2"), Some(&"completed"), "{at}: what only reads is read again");
    result
}

#[test]
fn killed_at_each_request_a_run_goes_on_and_no_effect_is_doubled_or_lost() {
    for at in 1..=6 {
        let (home, world) = (Home::new(), world());
        home.write("a/agent.toml", &world.agent(&TOOLS, ""));
        world.stop_at(at);
        let mut child = home.start(&["run", "a", "go"]);
        world.wait();
        child.kill().unwrap();
        child.wait().unwrap();
        world.release();
        home.gesta(&["resume", "last"]).ended(0).has(&["done"]);
        let result = checked(&home, &world, at);
        assert_eq!(result["outcome"], json!("completed"), "{at}");
        let hidden = result["tool_calls"].as_array().unwrap().iter().any(|it| it["status"] == "outcome_unknown");
        let shown = home.gesta(&["show", "last"]).ended(0);
        assert_eq!(shown.out.contains("is unknown: it is not run again"), hidden, "{at}: {}", shown.out);
    }
}

#[test]
fn killed_again_and_again_it_still_comes_to_its_end() {
    let (home, world) = (Home::new(), world());
    home.write("a/agent.toml", &world.agent(&TOOLS, ""));
    world.stop_at(2);
    let mut child = home.start(&["run", "a", "go", "--conversation", "k"]);
    for _ in 0..3 {
        world.wait();
        child.kill().unwrap();
        child.wait().unwrap();
        world.stop_at(1);
        child = home.start(&["resume", "last"]);
    }
    world.wait();
    world.release();
    let said: Said = child.wait_with_output().unwrap().into();
    said.ended(0);
    checked(&home, &world, 0);
    home.gesta(&["run", "a", "next", "--conversation", "k"]).ended(0);
}

#[test]
fn the_next_turn_takes_up_what_a_crash_left() {
    let (home, world) = (Home::new(), world());
    home.write("a/agent.toml", &world.agent(&TOOLS, ""));
    world.stop_at(5);
    let mut child = home.start(&["run", "a", "go", "--conversation", "k"]);
    world.wait();
    child.kill().unwrap();
    child.wait().unwrap();
    world.release();
    home.gesta(&["run", "a", "next", "--conversation", "k"]).ended(0);
    let sent = world.seen().pop().unwrap().body["messages"].to_string();
    assert!(sent.contains("go") && sent.contains("next"), "both turns are in the history: {sent}");
}

#[test]
fn what_a_turn_that_was_taken_up_says_is_no_answer_to_the_next_one() {
    for (words, stdin) in [
        (&["run", "a", "next", "--conversation", "chat/worker"][..], ""),
        (&["run", "a", "next", "--conversation", "chat/worker", "--json"], ""),
        (&["chat", "a"], "next\n"),
    ] {
        let (home, world) = (Home::new(), World::start(Vec::new()));
        let toml =
            world.agent(&[("pay", "once")], "").replace("\"work:m\"", "\"script\"").replace("stream = false", "");
        home.write("a/agent.toml", &toml);
        let script = "user matches \"go\":\nmodel: calls c1 pay {\"n\":1}\nmodel: The first is unknown.\n\n\
                      otherwise:\nmodel: The second is here.\n";
        home.write("a/model.script", script);
        world.stop_at(1);
        let mut child = home.start(&["run", "a", "go", "--conversation", "chat/worker"]);
        world.wait();
        child.kill().unwrap();
        child.wait().unwrap();
        world.release();
        home.gesta(&["runs"]).ended(0).has(&["open", "somebody to go on: gesta resume "]);
        let said = home.gesta_with(words, stdin).ended(0);
        if words[0] == "chat" {
            let told =
                ["was left unfinished, and is taken up first", "it says: The first", "that was completed, 2 trips"];
            let mut at = 0;
            for text in told.iter().chain(&["now to what was said", "\nThe second is here.\n"]) {
                at += said.out[at..].find(text).unwrap_or_else(|| panic!("`{text}` is missing: {}", said.out));
            }
        } else if words.contains(&"--json") {
            assert_eq!(said.json()["text"], "The second is here.");
            said.has(&["is taken up first", "what came of pay (c1) is unknown", "it says: The first is unknown."]);
        } else {
            assert_eq!(said.out, "The second is here.\n");
            said.has(&[
                "is taken up first",
                "it says: The first is unknown.",
                "that was completed",
                "now to what was said",
            ]);
        }
        assert_eq!(world.calls("pay").len(), 1);
    }
}

#[test]
fn an_approved_call_that_a_crash_hid_is_asked_about() {
    let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "pay")]), says("done")]));
    let rule = "[[decisions]]\ntool = \"pay\"\naction = \"defer\"\n";
    home.write("a/agent.toml", &(world.agent(&TOOLS, "") + rule));
    home.gesta(&["run", "a", "go"]).ended(3);
    world.stop_at(1);
    let mut child = home.start(&["resume", "last", "--approve", "c1"]);
    world.wait();
    child.kill().unwrap();
    child.wait().unwrap();
    world.release();
    let unknown = "what came of pay (c1) is unknown: somebody has to say it";
    home.gesta(&["resume", "last"]).ended(3).has(&[unknown, "nobody knows what came of it", "--unknown c1"]);
    home.gesta(&["show", "last"]).ended(0).has(&[unknown]);
    let again = home.gesta(&["resume", "last", "--approve", "c1", "--json"]).ended(3).json();
    assert_eq!((&again["already_answered"], &again["status"]), (&json!(["c1"]), &json!("parked")));
    home.gesta(&["resume", "last", "--result", "c1", "{\"paid\":true}"]).ended(0).has(&["done"]);
    assert_eq!(world.calls("pay").len(), 1);
    assert_eq!(home.result("last")["tool_calls"][0]["result"], json!({"paid": true}));
}

#[test]
fn a_talk_that_is_killed_while_it_waits_for_a_person_loses_nothing() {
    use std::io::{BufRead, BufReader, Write};
    let home = Home::new();
    let mut child = home.start(&["chat", &example("desk")]);
    writeln!(child.stdin.as_mut().unwrap(), "Refund order 7, 250 dollars").unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(out.any(|line| line.contains("parked, 2 trips")));
    child.kill().unwrap();
    child.wait().unwrap();
    home.gesta(&["runs", "--status", "parked"]).ended(0).has(&["refund_order (r1)"]);
    let edited = r#"{"order":"7","amount":50}"#;
    home.gesta(&["resume", "last", "--approve", "r1", "--arguments", edited]).ended(0);
    assert_eq!(home.result("last")["tool_calls"][1]["arguments"]["amount"], json!(50));
}
