//! `gesta resume`.

use std::io::{BufRead, BufReader};

use serde_json::json;

use crate::support::{Home, Said, World, calls, example, says, signal};

fn parked() -> Home {
    let home = Home::new();
    home.gesta(&["run", &example("desk"), "Refund order 7, 250 dollars"]).ended(3);
    home
}

#[test]
fn another_process_approves_with_other_arguments_once() {
    let home = parked();
    home.gesta(&["runs", "--status", "parked"]).ended(0).has(&["desk", "refund_order (r1)"]);
    let edited = r#"{"order":"7","amount":50}"#;
    let approve = ["resume", "last", "--approve", "r1", "--arguments", edited];
    home.gesta(&approve).ended(0).has(&["was approved with", "A colleague has decided"]);
    let result = home.result("last");
    let refunds: Vec<_> =
        result["tool_calls"].as_array().unwrap().iter().filter(|it| it["name"] == "refund_order").collect();
    assert_eq!(refunds.len(), 1);
    assert_eq!(refunds[0]["arguments"], json!({"order": "7", "amount": 50}));
    assert_eq!(refunds[0]["arguments_by"], json!("approver"));
    assert!(result["transcript"].to_string().contains(r#"\"amount\":250"#), "the transcript has the model's own");
    home.gesta(&approve).ended(0).has(&["r1 was answered like this before: nothing ran again (completed)"]);
    let again = home.gesta(&[&approve[..], &["--json"]].concat()).ended(0).json();
    assert_eq!((&again["already_answered"], &again["tool_calls"]), (&json!(["r1"]), &result["tool_calls"]));
    home.gesta(&["resume", "last", "--approve", "r1"])
        .ended(1)
        .has(&["`r1` was answered before, and the first answer counts: it was approved with", "help: "]);
    assert_eq!(home.result("last"), result, "repeated answers change nothing");
}

#[test]
fn a_bad_answer_changes_nothing() {
    let home = parked();
    let before = home.result("last");
    for (words, code, text) in [
        (vec!["--approve", "zz"], 1, "no hold `zz`; open: r1"),
        (vec!["--approve", "r1", "--arguments", r#"{"order":"7","amount":-1}"#], 2, "do not fit"),
        (vec!["--result", "r1", "1"], 2, "does not take"),
        (vec!["--approve", "r1", "--deny", "zz", "--reason", "x"], 1, "no hold `zz`"),
        (vec!["--approve", "r1", "--arguments", "[]"], 2, "must be a JSON object"),
        (vec!["--deny", "r1"], 2, "needs --reason"),
        (vec!["--trips", "x"], 2, "invalid value"),
    ] {
        let all: Vec<&str> = ["resume", "last"].into_iter().chain(words).collect();
        home.gesta(&all).ended(code).has(&[text]);
    }
    assert_eq!(home.result("last"), before);
    home.gesta(&["resume", "last"]).ended(3).has(&["--approve r1"]);
    home.gesta(&["resume", "nothing", "--approve", "r1"]).ended(2).has(&["there is no run `nothing`"]);
}

#[test]
fn programs_read_why_an_answer_was_refused() {
    let edited = r#"{"order":"7"}"#;
    let home = parked();
    let refused = |words: &[&str], exit: i32, code: &str| {
        let said = home.gesta(&[&["resume", "last", "--json"], words].concat()).ended(exit);
        let error = said.json()["error"].clone();
        assert_eq!(error["code"], json!(code), "{said:?}");
        assert!(!error["message"].as_str().unwrap().is_empty() && said.err.contains("error: "), "{said:?}");
        said
    };
    refused(&["--approve", "zz"], 1, "no_such_hold").has(&["open: r1"]);
    refused(&["--result", "r1", "1"], 2, "not_accepted");
    refused(&["--approve", "r1", "--arguments", edited], 2, "arguments_invalid").has(&["\"amount\" is a required"]);
    refused(&["--approve", "r1", "--deny", "r1", "--reason", "x"], 2, "conflict").has(&["two different answers"]);
    refused(&["--deny", "r1", "--reason", " "], 2, "no_reason");
    refused(&["--deny", "r1"], 2, "no_reason").has(&["needs --reason", "gesta resume --help"]);
    assert_eq!(home.result("last")["status"], json!("parked"));
    home.gesta(&["resume", "last", "--deny", "r1", "--reason", "ask first"]).ended(0);
    refused(&["--approve", "r1"], 1, "conflict").has(&["the first answer counts: it was denied: ask first"]);
    let run = home.gesta(&["run", &example("desk"), "x", "--json", "--model", "foo:x"]).ended(2);
    assert!(run.json()["error"]["message"].is_string(), "{run:?}");
    home.gesta(&["show", "none", "--json"]).ended(2);
}

#[test]
fn what_a_run_said_is_said_again_to_whoever_answers_late() {
    let home = parked();
    let said = home.gesta(&["resume", "last", "--approve", "r1"]).ended(0);
    assert!(said.out.contains("A colleague has decided"), "{said:?}");
    let again = home.gesta(&["resume", "last", "--approve", "r1"]).ended(0);
    assert_eq!(again.out, said.out);
    let over = home.gesta(&["resume", "last"]).ended(0).has(&["the run had ended: nothing ran again"]);
    assert_eq!(over.out, said.out);
}

#[test]
fn a_hold_that_ran_out_is_said_to_have_and_nobody_is_sent_to_look_for_it() {
    let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "pay")]), says("paid")]));
    let rule = "[[decisions]]\ntool = \"pay\"\naction = \"defer\"\n";
    home.write("a/agent.toml", &(world.agent(&[("pay", "once")], "hold_ttl = \"1ms\"\n") + rule));
    home.gesta(&["run", "a", "pay"]).ended(3);
    home.gesta(&["runs"]).ended(0).has(&["pay (c1), has expired"]);
    let said = home.gesta(&["resume", "last", "--approve", "c1", "--json"]).ended(1);
    assert_eq!(said.json()["error"]["code"], json!("hold_expired"));
    said.has(&["has expired; the run is closed", "help: start anew"]);
    home.gesta(&["runs"]).ended(0).has(&["ended", "expired"]);
    let said = home.gesta(&["resume", "last", "--approve", "c1", "--json"]).ended(1);
    assert_eq!(said.json()["error"]["code"], json!("run_ended"));
    assert!(world.calls("pay").is_empty());
}

#[test]
fn one_of_many_who_answer_at_once_is_first_and_the_others_read_what_it_said() {
    let home = parked();
    let words =
        |n: usize| if n.is_multiple_of(2) { vec!["--approve", "r1"] } else { vec!["--deny", "r1", "--reason", "no"] };
    let answers: Vec<_> = (0..6).map(|n| home.start(&[vec!["resume", "last", "-q"], words(n)].concat())).collect();
    let said: Vec<Said> = answers.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect();
    let status = home.result("last")["tool_calls"][1]["status"].clone();
    let first = if status == "completed" { "it was approved" } else { "it was denied: no" };
    for said in said {
        match said.code {
            Some(0) => assert_eq!(said.err, ""),
            Some(1) => assert!(said.err.contains(first), "{said:?}"),
            _ => panic!("{said:?}"),
        }
    }
}

#[test]
fn what_has_ended_needs_no_key_to_be_said_again() {
    let (home, world) = (Home::new(), World::start(vec![says("done")]));
    let agent = world.agent(&[], "").replacen("protocol = ", "api_key_env = \"W_KEY\"\nprotocol = ", 1);
    home.write("a/agent.toml", &agent);
    assert!(home.command(&["run", "a", "x"]).env("W_KEY", "k").output().unwrap().status.success());
    let said = home.gesta(&["resume", "last"]).ended(0).has(&["the run had ended: nothing ran again"]);
    assert_eq!(said.out, "done\n");
    let refused = home.gesta(&["resume", "last", "--trips", "4"]);
    assert!(!refused.err.contains("still waits"), "{refused:?}");
}

#[test]
fn after_its_last_trip_a_run_says_how_it_gets_more_and_a_failure_is_no_repetition() {
    let home = Home::new();
    home.write(
        "a/agent.toml",
        "name = \"a\"\n[[tools]]\nname = \"t\"\nanswers = [{ result = 1 }]\n[limits]\ntrips_max = 2\n",
    );
    let script = "user matches \"fail\":\nmodel: fails overloaded, for good: busy\n\n\
                  otherwise:\nmodel: calls - t {}\n";
    home.write("a/model.script", script);
    home.gesta(&["run", "a", "loop"]).ended(1);
    home.gesta(&["resume", "last"]).ended(1).has(&["gesta resume last --trips N"]);
    home.gesta(&["run", "a", "fail"]).ended(4);
    let again = home.gesta(&["resume", "last"]).ended(4).has(&["goes on, with at most 2 trips"]);
    assert!(!again.err.contains("nothing ran again"), "{again:?}");
}

#[cfg(unix)]
#[test]
fn whoever_waits_for_another_is_told_and_may_leave() {
    let (home, world) = (Home::new(), World::start(vec![says("late")]));
    home.write("a/agent.toml", &world.agent(&[], ""));
    world.stop_at(1);
    let first = home.start(&["run", "a", "hello"]);
    world.wait();
    let mut waiting = [home.start(&["resume", "last"]), home.start(&["resume", "last"])];
    let mut told = waiting.each_mut().map(|it| BufReader::new(it.stderr.take().unwrap()));
    for reader in &mut told {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains("another process works on run") && line.contains("Ctrl-C"), "{line}");
    }
    let [leaves, stays] = waiting;
    signal(&leaves, "INT");
    assert_eq!(leaves.wait_with_output().unwrap().status.code(), Some(130));
    world.release();
    let said: Said = first.wait_with_output().unwrap().into();
    assert_eq!(said.ended(0).out, "late\n");
    let output = stays.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stdout).unwrap().as_str()), (Some(0), "late\n"));
}

#[test]
fn every_answer_that_cannot_be_used_has_its_word() {
    let home = parked();
    let deep = format!("{}1{}", "[".repeat(150), "]".repeat(150));
    for (words, code) in [
        (&["--result", "r1", &deep][..], "too_deep"),
        (&["--result", "r1", "{"], "usage"),
        (&["--deny", "r1"], "no_reason"),
        (&["--error", "r1", ""], "usage"),
    ] {
        let said = home.gesta(&[&["resume", "last", "--json"], words].concat()).ended(2);
        assert_eq!(said.json()["error"]["code"], code, "{said:?}");
    }
}

#[test]
fn a_denial_is_read_by_the_model() {
    let home = parked();
    home.gesta(&["resume", "last", "--deny", "r1", "--reason", "ask for a receipt", "--json"]).ended(0);
    let result = home.result("last");
    assert_eq!(result["tool_calls"][1]["status"], json!("denied"));
    assert!(result["transcript"].to_string().contains("ask for a receipt"));
}

#[test]
fn a_folder_that_was_edited_or_is_gone_does_not_matter() {
    let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "pay")]), says("paid")]));
    let rule = "[[decisions]]\ntool = \"pay\"\naction = \"defer\"\n";
    home.write("a/agent.toml", &(world.agent(&[("pay", "once")], "") + rule));
    home.gesta(&["run", "a", "pay"]).ended(3);
    std::fs::remove_dir_all(home.path("a")).unwrap();
    home.gesta(&["resume", "last", "--approve", "c1"]).ended(0).has(&["paid"]);
    assert_eq!(world.calls("pay").len(), 1);
}

#[test]
fn several_calls_are_answered_one_after_another() {
    let (home, world) =
        (Home::new(), World::start(vec![calls(&[("a", "one"), ("b", "two"), ("c", "three")]), says("ok")]));
    let rule = "[[decisions]]\ntool = \"*\"\naction = \"defer\"\n";
    let tools = [("one", "once"), ("two", "once"), ("three", "once")];
    home.write("a/agent.toml", &(world.agent(&tools, "") + rule));
    home.gesta(&["run", "a", "go"]).ended(3);
    home.gesta(&["resume", "last", "--deny", "b", "--reason", "no"]).ended(3).has(&["--approve a", "--approve c"]);
    home.gesta(&["resume", "last", "--error", "c", "it is closed", "--approve", "a"]).ended(0).has(&["ok"]);
    let result = home.result("last");
    let ends: Vec<_> = result["tool_calls"].as_array().unwrap().iter().map(|call| &call["status"]).collect();
    assert_eq!(ends, ["completed", "denied", "failed"]);
    assert_eq!((world.calls("one").len(), world.calls("two").len(), world.calls("three").len()), (1, 0, 0));
}

#[test]
fn a_run_that_failed_goes_on_where_it_was() {
    let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "pay")])]));
    home.write("a/agent.toml", &world.agent(&[("pay", "once")], "[limits]\ntrips_max = 2\n"));
    home.gesta(&["run", "a", "pay"]).ended(1).has(&["max_trips"]);
    home.gesta(&["resume", "last"]).ended(1).has(&["trips_max must be more than the 2 trips used"]);
    home.gesta(&["resume", "last", "--trips", "3"]).ended(1);
    assert_eq!(home.result("last")["trips"], json!(3));
    home.gesta(&["run", &example("coach"), "hello"]).ended(0);
    home.gesta(&["resume", "last"]).ended(0).has(&["completed"]);
}

#[test]
fn secrets_that_are_missing_leave_the_run_parked() {
    let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "pay")]), says("paid")]));
    let rule = "[[decisions]]\ntool = \"pay\"\naction = \"defer\"\n";
    let toml = world.agent(&[("pay", "once")], "").replace("protocol =", "api_key_env = \"WORK_KEY\"\nprotocol =");
    home.write("a/agent.toml", &(toml + rule));
    home.write("a/.env", "WORK_KEY=not-shown\n");
    home.gesta(&["run", "a", "pay"]).ended(3);
    let refused = home.gesta(&["resume", "last", "--approve", "c1"]).ended(2);
    assert!(refused.err.contains("WORK_KEY") && refused.err.contains("--env-file"), "{refused:?}");
    assert!(!refused.err.contains("not-shown"));
    assert_eq!(home.result("last")["status"], json!("parked"));
    home.gesta(&["resume", "last", "--approve", "c1", "--env-file", "a/.env"]).ended(0).has(&["paid"]);
}
