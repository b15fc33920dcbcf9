//! Grants of a folder that are endpoints: what is sent, what is thrown, and what a kill leaves in the middle of one.

#![cfg(target_os = "linux")]

use serde_json::json;

use crate::support::{Home, World, calls, says};

const TOOLS: &str =
    "tools: {\n    #[tool('Pays')]\n    fn pay(n: int) -> unknown { await App.refund(n, 'surplus') }\n}\n";

/// An agent whose document pays through a grant, and the world that it pays in.
fn agent(more: &str) -> (Home, World) {
    let home = Home::new();
    let world = World::start(vec![calls(&[("c1", "pay")]), says("done")]);
    let port = world.port;
    let grant = format!("[grants.App.refund]\nurl = \"http://127.0.0.1:{port}/refund\"\nparams = [\"n\"]\n{more}");
    home.write("a/agent.toml", &format!("{}{grant}", world.agent(&[], "")));
    home.write("a/tools.stof", TOOLS);
    (home, world)
}

/// The processes that this one has started, by what the system says of every process.
fn children(of: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    pids.filter(|pid| parent(pid) == Some(of)).collect()
}

#[test]
fn an_endpoint_is_told_whose_call_it_is_and_gets_its_arguments_by_name() {
    let (home, world) = agent("");
    home.gesta(&["run", "a", "go", "--conversation", "anna"]).ended(0).has(&["done"]);
    let asked = world.calls("refund");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].body, json!({"arguments": {"n": 1}}), "surplus arguments are dropped");
    let run = home.result("last")["report"]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(asked[0].headers["idempotency-key"], format!("{run}/c1/0"));
    assert_eq!(asked[0].headers["gesta-conversation"], "anna");
    let result = home.result("last");
    assert_eq!(result["tool_calls"][0]["result"], json!({"done": "/refund"}), "{result}");
    // The model was told of the document's tool, and of its parameter.
    let tools = world.seen()[0].body["tools"].to_string();
    assert!(tools.contains("\"pay\"") && tools.contains("\"integer\""), "{tools}");
}

#[test]
fn a_rule_denies_a_grant_before_anything_is_sent() {
    let rule = "[[decisions]]\ntool = \"App.*\"\nwhen = { n = 1 }\naction = \"deny\"\nreason = \"not today\"\n";
    let (home, world) = agent(rule);
    home.gesta(&["run", "a", "go"]).ended(0);
    assert_eq!(world.calls("refund").len(), 0);
    let call = home.result("last")["tool_calls"][0].clone();
    assert_eq!((&call["status"], &call["result"]), (&json!("failed"), &json!("not today")), "{call}");
}

#[test]
fn killed_in_the_middle_of_a_grant_the_effect_is_there_once_and_called_unknown() {
    let (home, world) = agent("");
    // The model, then the grant.
    world.stop_at(2);
    let mut child = home.start(&["run", "a", "go", "--conversation", "anna"]);
    world.wait();
    child.kill().unwrap();
    child.wait().unwrap();
    world.release();
    home.gesta(&["resume", "last"]).ended(0).has(&["done"]);
    assert_eq!(world.calls("refund").len(), 1, "an effect is not repeated");
    let call = home.result("last")["tool_calls"][0].clone();
    assert_eq!(call["status"], "outcome_unknown", "{call}");
    assert!(call.to_string().contains("unknown"), "{call}");
}

#[test]
fn a_worker_that_is_killed_in_the_middle_of_a_grant_costs_one_call() {
    let (home, world) = agent("");
    world.stop_at(2);
    let child = home.start(&["run", "a", "go", "--conversation", "anna"]);
    world.wait();
    let workers = children(child.id());
    assert!(!workers.is_empty());
    for worker in &workers {
        std::process::Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap();
    }
    world.release();
    let said: crate::support::Said = child.wait_with_output().unwrap().into();
    said.ended(0).has(&["done"]);
    assert_eq!(world.calls("refund").len(), 1);
    let call = home.result("last")["tool_calls"][0].clone();
    assert_eq!(call["is_error"], true, "{call}");
    assert!(call["result"].as_str().unwrap().contains("App.refund"), "it says which grant ran: {call}");
    // The next call goes on in a fresh worker.
    home.gesta(&["run", "a", "again", "--conversation", "anna"]).ended(0).has(&["done"]);
    assert_eq!(home.result("last")["tool_calls"][0]["status"], "completed");
}
