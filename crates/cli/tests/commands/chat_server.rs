//! `gesta chat --server`: the binary talks to the binary.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::serve::Served;
use crate::support::{Home, Said, Terminal, World, calls, example, says, signal};

/// A talk with an agent of a server, through a pipe.
fn chat(home: &Home, served: &Served, more: &[&str], text: &str) -> Said {
    let server = format!("http://{}", served.at);
    home.gesta_with(&[&["chat", "--server", &server], more].concat(), text)
}

#[test]
fn a_talk_over_http_is_told_as_one_with_a_folder_and_goes_on_at_the_next_start() {
    let (home, here) = (Home::new(), Home::new());
    let served = Served::start(&home, &[&example("coach"), "--listen", "127.0.0.1:0"]);
    let said = chat(&home, &served, &["coach"], "Swap squats for lunges\n/why\n").ended(0);
    let said = said.has(&[
        "coach, model script, conversation chat/coach",
        &format!("kept by http://{}", served.at),
        "> Swap squats for lunges",
        "Want me to swap squats for lunges?",
        "prompts the model (act when asked, 1 of 1): Call update_plan now.",
        "calls update_plan {\"from\":\"squats\",\"to\":\"lunges\"}",
        "completed, 3 trips, 1 call",
        "because the message matches /\\b(swap|replace|change|add|remove)\\b/i, and update_plan did not succeed",
    ]);
    assert_eq!(said.out.matches("I have swapped squats for lunges.\n").count(), 2, "said, and told by /why: {said:?}");
    let local = here.gesta_with(&["chat", &example("coach")], "Swap squats for lunges\n").ended(0).out;
    let lines = |out: &str| {
        let lines = out.lines().skip(2).take_while(|line| !line.contains("completed,"));
        // How long a call took is no part of it, and is told only where it took a while.
        lines
            .map(|line| {
                line.split_once("} (").filter(|it| it.1.ends_with("ms)")).map_or(line, |it| &line[..=it.0.len()])
            })
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(lines(&said.out), lines(&local));
    chat(&home, &served, &["coach"], "").ended(0).has(&["1 turn so far"]);
    chat(&home, &served, &["coach", "--new"], "/new\n").ended(0).has(&["conversation chat/coach/"]);
    chat(&home, &served, &["desk"], "").ended(2).has(&["serves no agent `desk`", "agents there: coach"]);
    chat(&home, &served, &["coach", "--watch"], "").ended(2).has(&["about an agent's folder"]);
    served.end("TERM");
}

#[test]
fn what_waits_is_answered_in_the_talk_and_somebody_elses_answer_counts() {
    let home = Home::new();
    let key = home
        .gesta(&["keys", "new", "me", "--scope", "run", "--scope", "read", "--scope", "answer", "--bare"])
        .ended(0)
        .out;
    let served = Served::start(&home, &[&example("desk"), "--listen", "127.0.0.1:0"]);
    let server = format!("http://{}", served.at);
    let with_key = |words: &[&str], text: &str| -> Said {
        let mut command = home.command(words);
        command.env("GESTA_SERVER", &server).env("GESTA_API_KEY", key.trim()).stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    };
    chat(&home, &served, &["desk"], "Hello\n").ended(2).has(&["needs a key"]);
    let refund = "Refund order 7, 250 dollars\n";
    let said =
        with_key(&["chat", "desk"], &format!("{refund}/deny r9 no\n/approve r1 {{\"order\":\"7\",\"amount\":50}}\n"));
    said.ended(0).has(&[
        "refund_order (r1) is left to a person: refunds of more than 100 dollars",
        "no call `r9` waits",
        "refund_order (r1) was approved with {\"order\":\"7\",\"amount\":50}",
        "A colleague has decided on the refund for order 7.",
    ]);
    let refund_made = &home.result("last")["tool_calls"][1];
    assert_eq!((&refund_made["arguments"]["amount"], &refund_made["status"]), (&json!(50), &json!("completed")));
    // Left parked, shown at the next start, and closed by a new message.
    with_key(&["chat", "desk"], refund).ended(3).has(&[&format!("--approve r1 --server {server}")]);
    let said = with_key(&["chat", "desk"], &format!("{refund}/approve r1 []\n")).ended(2);
    said.has(&["waits for a person:", "closes what waited in run", "refund_order (r1)", "JSON object"]);
    let mut terminal = Terminal::start_with(
        &home,
        &["chat", "desk"],
        100,
        &[("GESTA_SERVER", &server), ("GESTA_API_KEY", key.trim())],
    );
    terminal.until("[a]pprove");
    home.gesta(&["resume", "last", "--deny", "r1", "--reason", "no"]).ended(0);
    terminal.line("a").until("error: ").until("> ").line("/quit");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(home.result("last")["tool_calls"][1]["status"], "denied");
    served.end("TERM");
}

#[test]
fn ctrl_c_cancels_the_run_on_the_server_and_keeps_the_talk() {
    let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "work")]), says("done")]));
    home.write("a/agent.toml", &world.agent(&[("work", "once")], ""));
    let served = Served::start(&home, &["a", "--listen", "127.0.0.1:0"]);
    let mut child = home.start(&["chat", "worker", "--server", &format!("http://{}", served.at)]);
    let mut stdin = child.stdin.take().unwrap();
    world.stop_at(2);
    writeln!(stdin, "do it").unwrap();
    world.wait();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(out.any(|line| line.contains("calls work")));
    signal(&child, "INT");
    assert!(out.any(|line| line.contains("cancelling")));
    assert!(out.any(|line| line.contains("cancelled, 1 trip")));
    world.release();
    let (_, runs) = served.ask("GET /v1/runs?outcome=cancelled", "", "");
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
    writeln!(stdin, "again").unwrap();
    drop(stdin);
    assert!(out.any(|line| line == "done"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    served.end("TERM");
}

/// The server is stopped while the model is being asked, and started anew on the same address.
#[test]
fn a_talk_goes_on_over_a_restart_of_the_server_in_the_middle_of_a_turn() {
    let (home, world) = (Home::new(), World::start(vec![calls(&[("c1", "work")]), says("done at last")]));
    home.write("a/agent.toml", &world.agent(&[("work", "once")], ""));
    let served = Served::start(&home, &["a", "--listen", "127.0.0.1:0", "--stop-wait", "0"]);
    let at = served.at.clone();
    let mut child = home.start(&["chat", "worker", "--server", &format!("http://{at}")]);
    let mut stdin = child.stdin.take().unwrap();
    // The first request is the model's, the second the tool's, the third the model's again.
    world.stop_at(3);
    writeln!(stdin, "do it").unwrap();
    world.wait();
    served.end("TERM");
    world.release();
    let served = Served::start(&home, &["a", "--listen", &at]);
    drop(stdin);
    let said =
        Said::from(child.wait_with_output().unwrap()).ended(0).has(&["calls work", "completed, 2 trips, 1 call"]);
    for once in ["calls work", "done at last"] {
        assert_eq!(said.out.matches(once).count(), 1, "{once}: {said:?}");
    }
    assert_eq!(world.calls("work").len(), 1);
    let (_, runs) = served.ask("GET /v1/runs", "", "");
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(1), "one turn: {runs:?}");
    assert_eq!(runs["items"][0]["outcome"], Value::from("completed"));
    served.end("TERM");
}
