//! `gesta chat`.

use std::io::{BufRead, BufReader, Write};

use serde_json::json;

use crate::support::{Home, World, calls, example, says, signal};

#[test]
fn a_swap_is_made_once_and_said_truly_and_show_tells_why() {
    let home = Home::new();
    let said = home.gesta_with(&["chat", &example("coach")], "Swap squats for lunges\n").ended(0);
    said.has(&[
        "coach, model script, conversation chat/coach",
        "> Swap squats for lunges",
        "Want me to swap squats for lunges?",
        "prompts the model (act when asked, 1 of 1): Call update_plan now.",
        "calls update_plan {\"from\":\"squats\",\"to\":\"lunges\"}",
        "I have swapped squats for lunges.",
        "completed, 3 trips, 1 call",
    ]);
    let result = home.result("last");
    let made: Vec<_> = result["tool_calls"].as_array().unwrap().iter().map(|call| &call["status"]).collect();
    assert_eq!(made, ["completed"]);
    home.gesta(&["show", "last"]).ended(0).has(&[
        "prompts the model (act when asked, 1 of 1): Call update_plan now.",
        "because the message matches /\\b(swap|replace|change|add|remove)\\b/i, and update_plan did not succeed",
        "a change was asked for, and made",
    ]);
}

#[test]
fn the_talk_goes_on_at_the_next_start() {
    let home = Home::new();
    let coach = example("coach");
    home.gesta_with(&["chat", &coach], "Hello\n\n  \nShow my plan\n").ended(0);
    home.gesta_with(&["chat", &coach], "").ended(0).has(&["2 turns so far"]);
    let new = home.gesta_with(&["chat", &coach, "--new"], "Hello\n").ended(0);
    assert!(!new.out.contains("so far") && new.out.contains("conversation chat/coach/"), "{new:?}");
    home.gesta_with(&["chat", &coach, "--conversation", "maria"], "/new\n/help\n").ended(0).has(&["/approve CALL"]);
}

#[test]
fn the_model_is_shown_the_turns_before() {
    let (home, world) = (Home::new(), World::start(vec![says("one"), says("two")]));
    home.write("a/agent.toml", &world.agent(&[], ""));
    home.gesta_with(&["chat", "a"], "first\nsecond\n").ended(0);
    home.gesta_with(&["chat", "a"], "third\n").ended(0);
    let users: Vec<usize> = world
        .seen()
        .iter()
        .map(|seen| seen.body["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "assistant").count())
        .collect();
    assert_eq!(users, [0, 1, 2]);
}

#[test]
fn a_held_call_can_be_answered_in_the_talk_by_commands() {
    let home = Home::new();
    let lines = "Refund order 7, 250 dollars\n/deny r9 no\n/approve r1 {\"order\":\"7\",\"amount\":50}\n/why\n";
    let said = home.gesta_with(&["chat", &example("desk")], lines).ended(0);
    assert!(
        said.err.contains("error: no call `r9` waits") && !said.out.contains("error"),
        "errors stand aside: {said:?}"
    );
    said.has(&[
        "refund_order (r1) is left to a person: refunds of more than 100 dollars",
        "no call `r9` waits",
        "refund_order (r1) was approved with {\"order\":\"7\",\"amount\":50}",
        "A colleague has decided on the refund for order 7.",
    ]);
    let result = home.result("last");
    let refund = &result["tool_calls"][1];
    assert_eq!(
        (&refund["arguments"]["amount"], &refund["arguments_by"], &refund["status"]),
        (&json!(50), &json!("approver"), &json!("completed"))
    );
}

#[test]
fn what_was_left_parked_is_shown_at_the_next_start() {
    let home = Home::new();
    let desk = example("desk");
    home.gesta_with(&["chat", &desk], "Refund order 7, 250 dollars\n").ended(3);
    home.gesta_with(&["chat", &desk], "/deny r1 not today\n").ended(0).has(&[
        "waits for a person:",
        "--approve r1",
        "refund_order (r1) was denied: not today",
    ]);
}

#[test]
fn edits_are_taken_up_at_the_next_turn_only_when_watched() {
    for (watch, expected) in [(true, "Good evening."), (false, "Good morning.")] {
        let home = Home::new();
        home.write("a/agent.toml", "name = \"a\"\n");
        home.write("a/model.script", "model: Good morning.\n");
        let words: &[&str] = if watch { &["chat", "a", "--watch"] } else { &["chat", "a"] };
        let mut child = home.start(words);
        let mut stdin = child.stdin.take().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        writeln!(stdin, "Hello").unwrap();
        assert!(out.any(|line| line == "Good morning."));
        assert!(out.any(|line| line.contains("completed")));
        home.write("a/model.script", "mdoel: Good evening.\n");
        writeln!(stdin, "Hello").unwrap();
        assert!(out.any(|line| line == "Good morning."), "a broken folder leaves the old one");
        assert!(out.any(|line| line.contains("completed")));
        home.write("a/model.script", "model: Good evening.\n");
        writeln!(stdin, "Hello").unwrap();
        drop(stdin);
        assert!(out.any(|line| line == expected), "{watch}");
        assert!(child.wait().unwrap().success());
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_a_turn_and_keeps_the_talk() {
    let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "work")]), says("done")]));
    home.write("a/agent.toml", &world.agent(&[("work", "once")], ""));
    let mut child = home.start(&["chat", "a"]);
    let mut stdin = child.stdin.take().unwrap();
    world.stop_at(2);
    writeln!(stdin, "do it").unwrap();
    world.wait();
    signal(&child, "INT");
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(out.any(|line| line.contains("cancelling")));
    assert!(out.any(|line| line.contains("cancelled, 1 trip")));
    world.release();
    writeln!(stdin, "again").unwrap();
    drop(stdin);
    assert!(out.any(|line| line == "done"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(world.calls("work").len(), 2, "one call a turn; the cancelled one is not repeated");
}

#[cfg(unix)]
#[test]
fn ctrl_c_while_nothing_goes_on_leaves() {
    let home = Home::new();
    let mut child = home.start(&["chat", &example("coach")]);
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(out.any(|line| line.contains("/quit")));
    // Pressed until it is heard: nobody can see from outside when the next line is waited for.
    while child.try_wait().unwrap().is_none() {
        signal(&child, "INT");
        std::thread::yield_now();
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[cfg(unix)]
#[test]
fn a_talk_that_is_told_to_end_cancels_what_goes_on_and_ends() {
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        let (home, world) = (Home::new(), World::start(vec![says("late")]));
        home.write("a/agent.toml", &world.agent(&[], ""));
        let mut child = home.start(&["chat", "a"]);
        let mut stdin = child.stdin.take().unwrap();
        world.stop_at(1);
        writeln!(stdin, "do it").unwrap();
        world.wait();
        signal(&child, name);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(code), "{name}");
        assert_eq!(home.result("last")["outcome"], "cancelled", "{name}");
        world.release();
    }
}

#[test]
fn a_line_that_is_no_text_is_refused_and_a_slash_can_be_said() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\n");
    home.write("a/model.script", "user matches /^.etc.passwd$/:\nmodel: A file.\n\notherwise:\nmodel: Hi.\n");
    let said = home.gesta_with(&["chat", "a"], b"caf\xff\nhello\n//etc/passwd\n/help\n").ended(0);
    let said = said.has(&["not UTF-8", "Hi.", "A file.", "//TEXT"]);
    assert_eq!(said.out.matches("Hi.").count(), 1, "{said:?}");
    home.gesta_with(&["chat", "a"], b"\xff\n").ended(2);
}

#[test]
fn a_model_that_fails_ends_the_turn_and_not_the_talk() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\n");
    home.write(
        "a/model.script",
        "user matches \"fail\":\nmodel: fails network, for good: gone\n\notherwise:\nmodel: Hi.\n",
    );
    home.gesta_with(&["chat", "a"], "fail\nhello\n").ended(0).has(&["the model failed", "Hi."]);
    home.gesta_with(&["chat", "a"], "fail\n").ended(4);
}
