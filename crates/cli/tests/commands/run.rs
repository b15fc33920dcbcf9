//! `gesta run`.

use serde_json::json;

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
    home.write("cat.PNG", "png");
    home.write("notes.txt", "hello");
    home.gesta(&["run", "a", "What is it?", "--image", "cat.PNG", "--file", "notes.txt"]).ended(0).has(&["a cat"]);
    let sent = world.seen()[0].body.to_string();
    assert!(sent.contains("data:image/png;base64,cG5n") && sent.contains("notes.txt"), "{sent}");
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
fn ctrl_c_cancels_the_run() {
    let (home, world) = (Home::new(), World::start(vec![says("late")]));
    home.write("a/agent.toml", &world.agent(&[], ""));
    world.stop_at(1);
    let child = home.start(&["run", "a", "hello", "--json"]);
    world.wait();
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["outcome"], json!("cancelled"));
    world.release();
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

#[test]
fn what_steers_a_terminal_is_shown_by_its_number() {
    let home = Home::new();
    home.write("a/agent.toml", "name = \"a\"\n");
    home.write("a/model.script", "model: says \u{1b}]0;title\u{7}ok\nmodel: x\n");
    let said = home.gesta(&["run", "a", "x"]).ended(0);
    assert_eq!(said.out, "says \\u{1b}]0;title\\u{7}ok\n");
    // What programs read is the same value, and shows as little.
    let result = home.gesta(&["show", "last", "--json"]).ended(0);
    assert_eq!(result.json()["text"], "says \u{1b}]0;title\u{7}ok");
}
