//! `gesta run`.

use serde_json::json;

#[cfg(unix)]
use crate::support::Terminal;
use crate::support::{Home, World, example, says, signal};

#[test]
fn the_text_goes_to_stdout_and_what_happens_to_stderr() {
    let home = Home::new();
    let said = home.gesta(&["run", &example("coach"), "Swap squats for lunges"]).ended(0);
    assert_eq!(said.out, "Want me to swap squats for lunges?\nI have swapped squats for lunges.\n");
    assert!(said.err.contains("prompts the model (act when asked") && !said.err.contains('\u{1b}'), "{said:?}");
    let quiet = home.gesta(&["run", "-q", &example("coach"), "Swap squats for lunges"]).ended(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), (said.out.as_str(), ""));
}

#[test]
fn json_is_the_result_object_on_one_line_and_nothing_else() {
    let home = Home::new();
    let said = home.gesta(&["run", &example("coach"), "--json", "Swap squats for lunges"]).ended(0);
    let result = said.json();
    assert_eq!(said.err, "");
    assert_eq!(result["outcome"], json!("completed"));
    assert_eq!(result["text"], json!("I have swapped squats for lunges."));
    assert_eq!(result["contract"]["acted"], json!(true));
    let id = result["report"]["run_id"].as_str().unwrap();
    assert_eq!(home.result(id), result, "what is shown later is what was handed back");
}

#[test]
fn each_way_to_end_has_its_exit_code() {
    let home = Home::new();
    home.write(
        "a/agent.toml",
        "name = \"a\"\n[[tools]]\nname = \"t\"\nanswers = [{ result = 1 }]\n[limits]\ntrips_max = 2\n",
    );
    let script = "user matches \"fail\":\nmodel: fails overloaded, for good: busy\n\n\
                  user matches \"loop\":\nmodel: calls - t {}\n\notherwise:\nmodel: Hi.\n";
    home.write("a/model.script", script);
    for (text, code) in [("hello", 0), ("loop", 1), ("fail", 4)] {
        home.gesta(&["run", "a", text]).ended(code);
    }
    home.gesta(&["run", &example("desk"), "Refund order 7, 250 dollars"]).ended(3).has(&["--approve r1"]);
    home.gesta(&["run", "a", ""]).ended(2).has(&["the input is empty", "help: "]);
    home.gesta(&["run"]).ended(2);
    home.gesta(&["run", "nowhere", "x"]).ended(2).has(&["nowhere is not there", "help: agents near it: a"]);
    home.write("file", "");
    home.gesta(&["run", "file", "x"]).ended(2).has(&["file is no folder"]);
    home.gesta(&["run", ".", "x"]).ended(2).has(&["has no agent.toml", "help: agents near it: a"]);
    home.write("bad/agent.toml", "nmae = \"x\"\n");
    home.gesta(&["run", "bad", "x"]).ended(2).has(&["agent.toml:1:1", "help: mend it"]);
    home.gesta(&["run", "a", "hello", "--model", "openai:x"]).ended(2).has(&["OPENAI_API_KEY"]);
    home.write("taken", "");
    home.gesta(&["--data", "taken", "run", "a", "hello"]).ended(5).has(&["taken", "help: "]);
}

#[test]
fn the_input_may_come_through_a_pipe() {
    let home = Home::new();
    for words in [vec!["run", "a"], vec!["run", "a", "-"]] {
        home.write("a/agent.toml", "name = \"a\"\n");
        home.write("a/model.script", "user matches \"schön\":\nmodel: 日本語 🎉\n\notherwise:\nmodel: no\n");
        let said = home.gesta_with(&words, "schön\n").ended(0);
        assert_eq!(said.out, "日本語 🎉\n");
        home.gesta_with(&words, b"\xff\xfe").ended(2).has(&["not UTF-8"]);
        home.gesta_with(&words, "").ended(2).has(&["the input is empty"]);
        home.gesta_with(&words, "x".repeat(2_000_000)).ended(2).has(&["2000000 bytes, the limit is 1048576"]);
        home.gesta_with(&words, "x".repeat(17 << 20)).ended(2).has(&["longer than"]);
    }
}

#[test]
fn pictures_and_files_are_parts_of_the_message() {
    let (home, world) = (Home::new(), World::start(vec![says("a cat")]));
    home.write("a/agent.toml", &world.agent(&[], ""));
    std::fs::write(home.path("cat.PNG"), b"\x89PNG\r\n\x1a\n").unwrap();
    home.write("notes.txt", "hello");
    home.gesta(&["run", "a", "What is it?", "--image", "cat.PNG", "--file", "notes.txt"]).ended(0).has(&["a cat"]);
    let sent = world.seen()[0].body.to_string();
    assert!(sent.contains("data:image/png;base64,iVBORw0KGgo=") && sent.contains("notes.txt"), "{sent}");
    home.gesta(&["run", "a", "x", "--image", "notes.txt"]).ended(2).has(&["no picture"]);
    home.gesta(&["run", "a", "x", "--file", "gone"]).ended(2).has(&["gone"]);
}

#[cfg(unix)]
#[test]
fn what_has_no_end_or_nothing_in_it_is_not_sent() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\n");
    home.write("a/model.script", "model: Hi.\n");
    home.write("empty.png", "");
    home.write("folder.png/x", "");
    let long = std::fs::File::create(home.path("long.pdf")).unwrap();
    long.set_len((16 << 20) + 1).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(home.path("pipe.pdf")).status().unwrap().success());
    for (option, path, why) in [
        ("--file", "/dev/zero", "is a device or a pipe, and no file"),
        ("--file", "pipe.pdf", "is a device or a pipe, and no file"),
        ("--file", "long.pdf", "is too long to be sent"),
        ("--image", "folder.png", "is a folder"),
        ("--image", "empty.png", "is empty"),
        ("--image", "http://localhost/x.png", "is not fetched without encryption"),
    ] {
        home.gesta(&["run", "a", "x", option, path]).ended(2).has(&[path, why, "help: "]);
    }
    assert_eq!(home.gesta(&["runs", "--json"]).ended(0).out, "");
}

#[test]
fn a_message_says_what_it_closes() {
    let home = Home::new();
    let desk = example("desk");
    home.gesta(&["run", &desk, "Refund order 7, 250 dollars", "--conversation", "k"]).ended(3);
    let said = home.gesta(&["run", &desk, "Hello", "--conversation", "k"]).ended(0);
    said.has(&["closes what waited in run ", ": refund_order (r1)"]);
    let said = home.gesta(&["run", &desk, "Hello", "--conversation", "k"]).ended(0);
    assert!(!said.err.contains("closes"), "{said:?}");
}

#[cfg(unix)]
#[test]
fn a_signal_cancels_the_run() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let (home, world) = (Home::new(), World::start(vec![says("late")]));
        home.write("a/agent.toml", &world.agent(&[], ""));
        world.stop_at(1);
        let child = home.start(&["run", "a", "hello", "--json"]);
        world.wait();
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{name}");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["outcome"], json!("cancelled"), "{name}");
        assert_eq!(home.result("last")["outcome"], json!("cancelled"), "{name}: it is stored");
        world.release();
    }
}

#[test]
fn whoever_asks_for_the_answer_alone_is_told_why_there_is_none() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\n");
    home.write("a/model.script", "model: fails overloaded, for good: busy\n");
    let failed = home.gesta(&["run", "-q", "a", "x"]).ended(4);
    assert_eq!((failed.out.as_str(), failed.err.lines().count()), ("", 1), "{failed:?}");
    failed.has(&["ended model_failed: busy"]);
    let parked = home.gesta(&["run", "-q", &example("desk"), "Refund order 7, 250 dollars"]).ended(3);
    assert_eq!(parked.err.lines().count(), 1, "{parked:?}");
    parked.has(&["parked: run ", "waits for an answer to refund_order (r1)"]);
}

#[test]
fn why_a_model_failed_is_said_once_and_the_help_is_one_that_helps() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\n");
    for (fault, help, other) in [
        ("bad request", "say it anew with `gesta run", "gesta resume"),
        ("config", "say it anew with `gesta run", "gesta resume"),
        ("network", "gesta resume", "say it anew"),
        ("auth", "once the key is right", "mend the agent"),
    ] {
        home.write("a/model.script", &format!("model: fails {fault}, for good: nonesuch\n"));
        let said = home.gesta(&["run", "a", "x"]).ended(4).has(&["ends: model_failed", help]);
        assert!(!said.err.contains(other), "{said:?}");
        assert_eq!(said.err.matches("nonesuch").count(), 1, "{said:?}");
    }
}

#[test]
fn a_request_that_is_tried_again_is_told() {
    let home = Home::new();
    let more = "[requests]\nattempts_max = 2\n[network]\nallow = []\n";
    // A port that nobody listens at.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let provider = format!("[providers.w]\nprotocol = \"openai\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n");
    home.write("a/agent.toml", &format!("name = \"a\"\nmodel = \"w:m\"\n{more}{provider}"));
    let said = home.gesta(&["run", "a", "x"]).ended(4);
    said.has(&["asks it again in", "(2 of 2)", "it was tried 2 times"]);
}

#[test]
fn a_picture_is_known_by_its_bytes_and_a_mark_in_front_of_a_text_is_no_part_of_it() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\n");
    home.write("a/model.script", "user matches /^hello$/:\nmodel: Hi.\n\notherwise:\nmodel: What?\n");
    home.write("noise.png", "noise");
    home.gesta(&["run", "a", "x", "--image", "noise.png"]).ended(2).has(&["noise.png is no picture", "help: "]);
    assert_eq!(home.gesta_with(&["run", "a", "-"], "\u{feff}hello\n").ended(0).out, "Hi.\n");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure_and_the_run_goes_on() {
    let home = Home::new();
    let mut child = home.start(&["run", &example("coach"), "Swap squats for lunges"]);
    drop(child.stdout.take());
    let said: crate::support::Said = child.wait_with_output().unwrap().into();
    let said = said.ended(0);
    assert!(!said.err.contains("panicked"), "{said:?}");
    assert_eq!(home.result("last")["outcome"], json!("completed"));
}

#[cfg(unix)]
#[test]
fn what_steers_a_terminal_is_shown_by_its_number() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\n");
    home.write("a/model.script", "model: says \u{1b}]0;title\u{7}ok\nmodel: x\n");
    // At a terminal; programs read the text as it is.
    let mut terminal = Terminal::start(&home, &["run", "a", "x"], 100);
    terminal.until("says \\u{1b}]0;title\\u{7}ok");
    assert_eq!(terminal.end().0, Some(0));
    let said = home.gesta(&["run", "a", "x"]).ended(0);
    assert_eq!(said.out, "says \u{1b}]0;title\u{7}ok\n");
    // What programs read is the same value, and shows as little.
    let result = home.gesta(&["show", "last", "--json"]).ended(0);
    assert_eq!(result.json()["text"], "says \u{1b}]0;title\u{7}ok");
}
