//! `gesta chat` at a terminal: what a person is asked, and what comes of each answer.

#![cfg(unix)]

use serde_json::{Value, json};

use crate::support::{Home, Terminal, World, calls, example, says};

const REFUND: &str = "Refund order 7, 250 dollars";
const ASKED: &str = "[a]pprove, [e]dit, [d]eny, [p]ark? ";
const UNDECIDED: &str = "[r]esult, [f]ailed, [u]nknown, [p]ark? ";
const JSON: &str = "result (JSON): ";
const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;

/// A talk with the desk in which a refund waits for a person.
fn asked(home: &Home, columns: u16) -> Terminal {
    let mut terminal = Terminal::start(home, &["chat", &example("desk")], columns);
    terminal.until("> ").line(REFUND).until(ASKED);
    terminal
}

fn refund(home: &Home) -> Value {
    home.result("last")["tool_calls"][1].clone()
}

#[test]
fn each_answer_does_what_its_letter_says() {
    for (keys, told, status) in [
        (&["a", ""][..], "A colleague has decided", "completed"),
        (&["approve", ""], "A colleague has decided", "completed"),
        (&["e", "arguments: ", r#"{"order":"7","amount":50}"#, ""], "was approved with", "completed"),
        (&["d", "reason: ", "not today", ""], "was denied: not today", "denied"),
    ] {
        let home = Home::new();
        let mut talk = asked(&home, 100);
        for it in keys.chunks(2) {
            talk.line(it[0]).until(it[1]);
        }
        talk.until(told).until("completed, 3 trips").until("> ").line("/quit");
        assert_eq!(talk.end().0, Some(0), "{keys:?}");
        assert_eq!(refund(&home)["status"], status, "{keys:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_used_is_asked_for_again() {
    let home = Home::new();
    let mut talk = asked(&home, 100);
    talk.line("?").until("[e] it runs with the arguments that you type").until("[p] it goes on waiting").until(ASKED);
    // A text that only begins like an approval is none.
    talk.line("and now?").until("type one of the letters").until(ASKED);
    talk.line("e").until("arguments: ").line("{").until("no JSON").until(ASKED);
    talk.line("e").until("arguments: ").line(r#"{"order":7}"#).until("do not fit the tool's schema");
    talk.until("\"amount\" is a required property").until("is not of type \"string\"");
    talk.until("help: mend the arguments").until("refund_order").until(ASKED);
    talk.line("d").until("reason: ").line(" ").until(ASKED);
    talk.line("e").until("arguments: ").line(r#"{"order":"7","amount":50}"#).until("A colleague has decided");
    talk.until("> ").key(CTRL_D);
    assert_eq!(talk.end().0, Some(0));
    assert_eq!(
        (&refund(&home)["arguments"]["amount"], &refund(&home)["arguments_by"]),
        (&json!(50), &json!("approver"))
    );
}

#[test]
fn what_is_left_waits_and_a_message_says_what_it_closes() {
    for leave in ["p", "park", ""] {
        let home = Home::new();
        let mut talk = asked(&home, 100);
        if leave.is_empty() {
            talk.key(CTRL_C);
        } else {
            talk.line(leave);
        }
        talk.until("left as it is").until("--approve r1").until("parked, 2 trips").until("> ");
        talk.line("Hello")
            .until("closes what waited in run ")
            .until("refund_order (r1)")
            .until("completed")
            .until("> ");
        talk.line("/approve r1").until("no call `r1` waits").until("> ").line("/quit");
        let (code, shown) = talk.end();
        assert_eq!((code, shown.matches("gesta resume").count()), (Some(0), 3), "the ways out are told once: {shown}");
        let waits = shown.matches("waits for a person").count();
        assert_eq!(waits, 1, "{shown}");
    }
}

#[test]
fn the_talk_can_be_left_where_a_call_is_asked_about() {
    for leave in ["/quit", ""] {
        let home = Home::new();
        let mut talk = asked(&home, 100);
        if leave.is_empty() {
            talk.key(CTRL_D);
        } else {
            talk.line(leave);
        }
        talk.until("--approve r1").until("parked, 2 trips");
        assert_eq!(talk.end().0, Some(0), "{leave}");
        assert_eq!(home.result("last")["status"], "parked", "{leave}");
    }
}

#[test]
fn a_key_that_is_no_utf_8_costs_one_line_and_not_the_talk() {
    let home = Home::new();
    let mut talk = Terminal::start(&home, &["chat", &example("coach")], 100);
    talk.until("> ").key(b'a').key(0xff).key(b'b').until("press Enter").line("c").until("not said").until("> ");
    talk.line("Swap squats for lunges").until("I have swapped").until("> ").line("/quit");
    assert_eq!(talk.end().0, Some(0));
    assert_eq!(home.result("last")["text"], "I have swapped squats for lunges.");
}

#[test]
fn what_another_process_answered_meanwhile_is_told() {
    let (approve, deny) = (&["--approve", "r1"][..], &["--deny", "r1", "--reason", "ask first"][..]);
    for (other, typed, told) in [
        (approve, &["a", ""][..], &["somebody has said the same before", "A colleague has decided"][..]),
        (
            approve,
            &["d", "reason: ", "no", ""],
            &["the first answer counts: it was approved", "A colleague has decided"],
        ),
        (deny, &["a", ""], &["the first answer counts: it was denied: ask first", "A colleague has decided"]),
    ] {
        let home = Home::new();
        let mut talk = asked(&home, 100);
        home.gesta(&[&["resume", "last"], other].concat()).ended(0);
        for it in typed.chunks(2) {
            talk.line(it[0]).until(it[1]);
        }
        for text in told {
            talk.until(text);
        }
        talk.until("completed, 3 trips").until("> ").line("/quit");
        assert_eq!(talk.end().0, Some(0));
    }
}

#[test]
fn what_was_left_is_asked_about_at_the_next_start() {
    let home = Home::new();
    home.gesta_with(&["chat", &example("desk")], format!("{REFUND}\n")).ended(3);
    let mut talk = Terminal::start(&home, &["chat", &example("desk")], 100);
    talk.until("waits for a person:").until(ASKED).line("a").until("A colleague has decided").until("> ").line("/quit");
    assert_eq!(talk.end().0, Some(0));
}

#[test]
fn a_call_whose_outcome_a_crash_hid_is_asked_about() {
    for (keys, told) in [
        (&["r", JSON, "{", UNDECIDED, "r", JSON, r#"{"paid":true}"#, ""][..], "was done elsewhere: {\"paid\":true}"),
        (&["f", "what went wrong: ", "the bank was closed", ""], "failed elsewhere: the bank was closed"),
        (&["a", UNDECIDED, "u", ""], "is given up: nobody knows"),
    ] {
        let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "pay")]), says("done")]));
        let rule = "[[decisions]]\ntool = \"pay\"\naction = \"defer\"\n";
        home.write("a/agent.toml", &(world.agent(&[("pay", "once")], "") + rule));
        home.gesta(&["run", "a", "go", "--conversation", "chat/worker"]).ended(3);
        world.stop_at(1);
        let mut child = home.start(&["resume", "last", "--approve", "c1"]);
        world.wait();
        child.kill().unwrap();
        child.wait().unwrap();
        world.release();
        home.gesta(&["resume", "last"]).ended(3);
        let mut talk = Terminal::start(&home, &["chat", "a"], 100);
        talk.until(UNDECIDED);
        for it in keys.chunks(2) {
            talk.line(it[0]).until(it[1]);
        }
        talk.until(told).until("done").until("> ").line("/quit");
        assert_eq!(talk.end().0, Some(0));
        assert_eq!(world.calls("pay").len(), 1);
    }
}

#[test]
fn on_a_narrow_terminal_nothing_that_matters_is_cut_off() {
    let home = Home::new();
    let mut talk = asked(&home, 20);
    talk.line("a").until("> ").line("/quit");
    let (_, shown) = talk.end();
    assert!(shown.contains("is left to a person: refunds"), "{shown}");
    assert!(shown.contains("refund_order returned {"), "{shown}");
}
