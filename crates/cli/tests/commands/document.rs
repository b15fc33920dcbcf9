//! `gesta document`: real workers, started by the real binary.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::Home;

const DESK: &str = "\
tools: {
    #[tool('Lists the newest orders')]
    fn recent_orders(limit: int = 10) -> list { await App.orders(limit) }

    /// amount: in dollars
    #[tool('Refunds an order')]
    fn refund(order_id: str, amount: float) -> unknown { await App.refund(order_id, amount) }

    #[tool('Turns for ever')]
    fn spin() -> int { let n = 0; while (true) { n += 1; } n }

    #[tool('Needs more and more memory')]
    fn swell() -> int { let s = 'aaaaaaaaaaaaaaaa'; for (let i = 0; i < 40; i += 1) { s = s + s; } s.len() }

    #[tool('Says something')]
    fn say(text: str) -> str { pln(text); 'said' }
}
";

const TOTAL: &str = "\
#[tool('Adds up the totals of the newest orders')]
fn total_spent(limit: int = 20) -> float {
    let total = 0.0;
    for (const order in await App.orders(limit)) { total += order.get('total'); }
    total
}
";

const ORDERS: &str = r#"App.orders(limit)=[{"id": "o_1", "total": 40}, {"id": "o_2", "total": 250}]"#;

fn home() -> Home {
    let home = Home::new();
    home.write("tools.stof", DESK);
    home.write("total.stof", TOTAL);
    home
}

/// The document that documents began with, byte for byte, where it is at hand.
fn seed() -> Option<String> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    let mut entries = std::fs::read_dir(folder).ok()?.flatten();
    let entry = entries.find(|entry| entry.file_name().to_string_lossy().starts_with("002"))?;
    let text = std::fs::read_to_string(entry.path()).unwrap();
    let from = text.find("tools: {")?;
    let main = from + text[from..].find("fn main()")?;
    let end = main + text[main..].find("\n}")? + 2;
    Some(text[from..end].to_owned())
}

#[test]
fn the_seeds_document_runs_as_it_stands() {
    let Some(seed) = seed() else { return println!("not run: ../shared/seeds is not beside the repository") };
    let home = Home::new();
    home.write("agent.stof", &seed);
    let said = home.gesta(&["document", "run", "agent.stof"]).ended(0).has(&["ms in the document"]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[..2], ["added total_spent", "290"], "{said:?}");
    assert!(lines[2].starts_with("that tool did not parse: line 1, column "), "{said:?}");
    home.gesta(&["document", "check", "agent.stof"]).ended(0).has(&[
        "recent_orders(customer_id)",
        "needs App.orders, App.refund",
        "an agent can add tools",
    ]);
}

#[test]
fn a_call_is_answered_from_the_command_line() {
    let home = home();
    let said = home.gesta(&["document", "call", "tools.stof", "recent_orders", "{\"limit\": 2}", "--grant", ORDERS]);
    let said = said.ended(0).has(&["ms in the document", "1 grant call", "MB"]);
    let orders: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(orders[1]["total"], 250);
    let words = ["document", "call", "tools.stof", "total_spent", "--add", "total.stof", "--grant", ORDERS, "--json"];
    let line = home.gesta(&words).ended(0).json();
    assert_eq!(line["result"], json!(290.0));
    assert_eq!(line["grants"][0], json!({"name": "App.orders", "arguments": {"limit": 20}, "outcome": "done"}));
    assert!(line["peak_bytes"].as_u64().unwrap() > 1_000_000, "{line}");
    assert!(line["running_us"].as_u64().unwrap() <= line["whole_us"].as_u64().unwrap(), "{line}");
    let throws = "App.refund(order_id, amount)=error:refunds over $100 are approved by a person";
    let call = ["document", "call", "tools.stof", "refund", "{\"order_id\": \"o_2\", \"amount\": 250}"];
    home.gesta(&[&call[..], &["--grant", throws]].concat())
        .ended(1)
        .has(&["error: refunds over $100 are approved by a person"]);
    home.gesta(&call).ended(1).has(&["grant App.refund is not available"]);
    home.gesta(&["document", "call", "tools.stof", "say", "{\"text\": \"hello\"}"])
        .ended(0)
        .has(&["hello", "\"said\""]);
}

#[test]
fn the_limit_that_was_met_is_told_with_the_workers_memory() {
    let home = home();
    let spin = ["document", "call", "tools.stof", "spin", "--call-time-max", "300ms", "--json"];
    let line = home.gesta(&spin).ended(1).json();
    assert_eq!((&line["error"]["code"], &line["limit"]), (&json!("timed_out"), &json!("call_time")), "{line}");
    assert!(line["whole_us"].as_u64().unwrap() < 2_000_000, "{line}");
    assert!(line["peak_bytes"].as_u64().unwrap() > 1_000_000, "{line}");
    let line = home.gesta(&["document", "call", "tools.stof", "swell", "--json"]).ended(1).json();
    assert!(line["limit"].is_string(), "{line}");
    assert!(line["peak_bytes"].as_u64().unwrap() < 300_000_000, "{line}");
}

#[test]
fn what_does_not_open_is_told_with_line_column_and_caret() {
    let home = home();
    home.write("bad.stof", "tools: {\n    #[tool('x')]\n    fn a( {\n}\n");
    let said = home.gesta(&["document", "check", "bad.stof"]).ended(2).has(&["bad.stof:3:", "3 |     fn a( {", "^"]);
    assert!(said.out.is_empty(), "{said:?}");
    let line = home.gesta(&["document", "check", "bad.stof", "--json"]).ended(2).json();
    assert_eq!(line["error"]["code"], "document_invalid");
    home.write("two.stof", "#[tool('a')]\nfn a() -> int { 1 }\n#[tool('b')]\nfn b() -> int { 2 }\n");
    let refused = home.gesta(&["document", "check", "tools.stof", "--add", "two.stof"]).ended(2);
    refused.has(&["two.stof:3:1: ", "3 | #[tool('b')]", "^", "nothing of it has run"]);
    home.gesta(&["document", "check", "tools.stof", "--add", "total.stof"]).ended(0).has(&["total_spent can be added"]);
    home.gesta(&["document", "call", "tools.stof", "nobody"]).ended(2).has(&["no tool `nobody`", "specs"]);
    home.gesta(&["document", "call", "tools.stof", "say", "[]"]).ended(2).has(&["no JSON object"]);
    home.gesta(&["document", "run", "tools.stof"]).ended(2).has(&["#[main]"]);
    home.gesta(&["document", "run", "gone.stof"]).ended(2).has(&["gone.stof", "help: "]);
    home.gesta(&["document", "specs", "tools.stof", "--grant", "orders=[]"]).ended(2).has(&["App.orders"]);
}

#[test]
fn specs_are_what_the_model_is_told() {
    let said = home().gesta(&["document", "specs", "tools.stof", "--add", "total.stof"]).ended(0);
    let specs: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let names: Vec<&str> = specs.as_array().unwrap().iter().map(|spec| spec["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["recent_orders", "refund", "spin", "swell", "say", "total_spent"]);
    assert_eq!(specs[1]["parameters"]["required"], json!(["order_id", "amount"]));
    assert_eq!(specs[1]["parameters"]["properties"]["amount"]["description"], "in dollars");
}

#[test]
fn a_file_is_watched_and_looked_at_again() {
    let home = home();
    let file = home.write("watched.stof", "tools: {\n    #[tool('One')]\n    fn one() -> int { 1 }\n}\n");
    let mut child = home.start(&["document", "check", "watched.stof", "--watch"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("one()")));
    std::fs::write(file, "tools: {\n    #[tool('Two')]\n    fn another() -> int { 2 }\n}\n").unwrap();
    assert!(lines.any(|line| line.unwrap().contains("another()")));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_document_can_run_without_walls_where_somebody_insists() {
    let words = ["document", "call", "tools.stof", "recent_orders", "--grant", ORDERS, "--unsafe-in-process", "-v"];
    home().gesta(&words).ended(0).has(&["o_2", "walls: none"]);
    home().gesta(&["document", "check", "tools.stof", "-v"]).ended(0).has(&["walls: ", "limits"]);
}

#[test]
fn the_worker_is_no_command_for_people() {
    let said = Home::new().gesta(&["document-worker"]).ended(0);
    assert!(!said.out.contains("error"), "{said:?}");
    let help = Home::new().gesta(&["--help"]).ended(0);
    assert!(!help.out.contains("document-worker"), "{help:?}");
    Home::new().gesta(&["document", "--help"]).ended(0).has(&["check", "specs", "call", "run", "docs/guides"]);
    for command in ["check", "specs", "call", "run"] {
        Home::new().gesta(&["document", command, "--help"]).ended(0).has(&["Examples:", "Exit codes: "]);
    }
}

#[test]
fn what_a_model_is_told_can_be_read() {
    Home::new().gesta(&["document", "guidance"]).ended(0).has(&["add_tool", "#[tool("]);
}

#[test]
fn a_folders_document_is_opened_by_check() {
    let home = home();
    home.write("a/agent.toml", "name = \"a\"\nmodel = \"script\"\n[grants.App.orders]\nanswers = [{ result = [] }]\n");
    home.write("a/model.script", "model: Hello.\n");
    home.write("a/prompt.md", "You are brief.\n");
    home.write("a/tools.stof", DESK);
    let said = home.gesta(&["check", "a"]).ended(0);
    let said = said.has(&["tools.stof has 5 tools; walls: ", "calls App.refund, which is not lent to it"]);
    assert!(!said.out.contains("App.orders, which"), "{said:?}");
    home.write("a/tools.stof", "tools: {\n    #[tool('x')]\n    fn a( {\n}\n");
    home.gesta(&["check", "a"]).ended(2).has(&["tools.stof:3:"]);
    let report = home.gesta(&["check", "a", "--json"]).ended(2).json();
    assert_eq!(report["problems"][0]["file"], "tools.stof");
    home.gesta(&["doctor", "--offline"]).ended(0).has(&["document workers"]);
}
