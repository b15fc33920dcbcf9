//! `gesta serve` and `gesta keys`: the program as it is started, and stopped by signals.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{Home, example, signal};

/// A server that was started, and where it listens.
pub(crate) struct Served {
    child: Child,
    pub(crate) at: String,
    err: BufReader<std::process::ChildStderr>,
}

impl Served {
    pub(crate) fn start(home: &Home, words: &[&str]) -> Self {
        let words: Vec<&str> = ["serve"].into_iter().chain(words.iter().copied()).collect();
        let mut child = home.command(&words).stdout(Stdio::null()).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        let at = line.trim_end().rsplit_once("http://").unwrap_or_else(|| panic!("{line}")).1.to_owned();
        Self { child, at, err }
    }

    /// Asks by hand, as a program without any library would.
    pub(crate) fn ask(&self, request: &str, headers: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n{headers}\r\n{body}",
            self.at
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// Ends it by a signal. Gives its exit code and the rest of what it said.
    pub(crate) fn end(mut self, by: &str) -> (Option<i32>, String) {
        signal(&self.child, by);
        let code = self.child.wait().unwrap().code();
        let mut said = String::new();
        self.err.read_to_string(&mut said).unwrap();
        (code, said)
    }
}

#[test]
fn a_run_that_was_parked_over_http_is_answered_on_the_command_line_and_the_other_way_round() {
    let home = Home::new();
    let served = Served::start(&home, &[&example("desk"), "--listen", "127.0.0.1:0"]);
    let body = r#"{"input":"Refund order 7, 250 dollars"}"#;
    let (status, run) = served.ask("POST /v1/agents/desk/runs", "", body);
    assert_eq!((status, run["status"].as_str()), (200, Some("parked")));
    home.gesta(&["resume", "last", "--approve", "r1"]).ended(0);
    let id = run["report"]["run_id"].as_str().unwrap();
    assert_eq!(served.ask(&format!("GET /v1/runs/{id}"), "", "").1["outcome"], "completed");
    home.gesta(&["run", &example("desk"), "Refund order 7, 250 dollars"]).ended(3);
    let (_, holds) = served.ask("GET /v1/holds", "", "");
    let hold = &holds["items"][0]["hold"];
    let answer = serde_json::json!({ "answers": [{ "binding": hold["binding"], "deny": "no" }] });
    let path = format!("POST /v1/runs/{}/answers", hold["binding"]["run_id"].as_str().unwrap());
    assert_eq!(served.ask(&path, "", &answer.to_string()).1["outcome"], "completed");
    let (code, said) = served.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("without a key") && said.contains("stopping"), "{said}");
}

#[test]
fn with_a_key_nobody_is_answered_without_one() {
    let home = Home::new();
    home.gesta(&["serve", &example("desk"), "--listen", "0.0.0.0:0"])
        .ended(2)
        .has(&["there is no key to it", "gesta keys new"]);
    let key = home.gesta(&["keys", "new", "shop", "--scope", "run", "--bare"]).ended(0).out.trim().to_owned();
    let served = Served::start(&home, &[&example("desk"), "--listen", "127.0.0.1:0"]);
    let body = r#"{"input":"Refund order 8"}"#;
    let (status, problem) = served.ask("POST /v1/agents/desk/runs", "", body);
    assert_eq!((status, problem["code"].as_str()), (401, Some("unauthorized")));
    let bearer = format!("authorization: Bearer {key}\r\n");
    assert_eq!(served.ask("POST /v1/agents/desk/runs", &bearer, body).0, 200);
    let listed: Value = home.gesta(&["keys", "list", "--json"]).ended(0).json();
    assert_eq!((&listed["name"], listed.get("hash")), (&Value::from("shop"), None));
    home.gesta(&["keys", "revoke", listed["id"].as_str().unwrap()]).ended(0).has(&["opens nothing"]);
    assert_eq!(served.ask("POST /v1/agents/desk/runs", &bearer, body).0, 401);
    home.gesta(&["keys", "revoke", listed["id"].as_str().unwrap()]).ended(2);
    home.gesta(&["keys", "list"]).ended(0).has(&["shop", "taken back"]);
    let (code, said) = served.end("INT");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn without_a_key_nothing_leads_to_the_server_from_outside_and_never_again_when_there_was_one() {
    let home = Home::new();
    let desk = example("desk");
    for (name, value) in [
        ("--host", "desk.example.com"),
        ("--host", "10.0.0.7"),
        ("--origin", "https://app.example.com"),
        ("--origin", "http://[2001:db8::1]:80"),
        ("--proxy", "127.0.0.1"),
    ] {
        let refused = home.gesta(&["serve", &desk, "--listen", "127.0.0.1:0", name, value]);
        refused.ended(2).has(&[&format!("with {name} {value} it can be reached from outside"), "gesta keys new"]);
    }
    let here = ["--host", "localhost", "--origin", "http://localhost:3000", "--origin", "http://[::1]:3000"];
    let words = [&[desk.as_str(), "--listen", "127.0.0.1:0"], &here[..]].concat();
    let served = Served::start(&home, &words);
    assert_eq!(served.ask("GET /v1/runs", "", "").0, 200);
    // Made while it runs, and taken back: it stays closed, also at the next start, which says why.
    home.gesta(&["keys", "add", "shop"]).ended(0);
    assert_eq!(served.ask("GET /v1/runs", "", "").0, 401);
    let id = home.gesta(&["keys", "list", "--json"]).ended(0).json()["id"].as_str().unwrap().to_owned();
    home.gesta(&["keys", "revoke", &id]).ended(0);
    served.end("TERM");
    let served = Served::start(&home, &[&desk, "--listen", "127.0.0.1:0"]);
    assert_eq!(served.ask("GET /v1/runs", "", "").0, 401);
    let (_, said) = served.end("TERM");
    assert!(said.contains("all keys were taken back, so nobody is answered"), "{said}");
    home.gesta(&["keys", "link"]).ended(2).has(&["there is no key"]);
}

#[test]
fn a_link_into_the_console_is_printed_at_the_start_and_when_asked_for() {
    let home = Home::new();
    home.gesta(&["keys", "new", "eyes", "--scope", "read"]).ended(0);
    home.gesta(&["keys", "new", "boss", "--scope", "admin"]).ended(0);
    home.gesta(&["keys", "new", "acme", "--scope", "admin", "--tenant", "acme"]).ended(0).has(&["tenant acme"]);
    home.gesta(&["keys", "new", "x", "--tenant", "a/b"]).ended(2).has(&["a tenant's name has"]);
    let mut served = Served::start(&home, &[&example("desk"), "--listen", "127.0.0.1:0"]);
    let mut said = String::new();
    served.err.read_line(&mut said).unwrap();
    served.err.read_line(&mut said).unwrap();
    assert!(said.contains("the console, once and within ten minutes, as boss"), "{said}");
    let server = format!("http://{}", served.at);
    let printed = said.split_whitespace().last().unwrap().to_owned();
    let asked = home.gesta(&["keys", "link", "--key", "eyes", "--at", &server]).ended(0).out.trim().to_owned();
    for link in [printed, asked] {
        let path = link.strip_prefix(&server).unwrap_or_else(|| panic!("{link} leads elsewhere"));
        assert_eq!(served.ask(&format!("HEAD {path}"), "", "").0, 200);
        assert_eq!(served.ask(&format!("GET {path}"), "", "").0, 200);
    }
    home.gesta(&["keys", "link", "--key", "nobody"]).ended(2).has(&["there is no good key `nobody`"]);
    // A link is no key: it is not among them.
    assert_eq!(home.gesta(&["keys", "list"]).ended(0).out.lines().count(), 3);
    served.end("TERM");
}

/// What each tenant's key did, in its own chain; and a hand that reaches into the file.
#[test]
fn the_audit_is_exported_and_whoever_edits_it_is_found_out() {
    let home = Home::new();
    let mut bearers = Vec::new();
    for tenant in ["local", "acme"] {
        let words = ["keys", "new", tenant, "--scope", "admin", "--tenant", tenant, "--bare"];
        bearers.push(format!("authorization: Bearer {}\r\n", home.gesta(&words).ended(0).out.trim()));
    }
    let served = Served::start(&home, &[&example("desk"), "--listen", "127.0.0.1:0"]);
    for (bearer, times) in bearers.iter().zip([4, 2]) {
        for _ in 0..times {
            let made = served.ask("POST /v1/keys", bearer, r#"{"name":"x","scopes":["read"]}"#);
            assert_eq!(made.0, 201, "{made:?}");
        }
    }
    served.end("TERM");
    let whole = home.gesta(&["audit", "verify"]).ended(0).has(&["4 records, the chain is whole"]);
    let hash = whole.out.trim().rsplit_once(' ').unwrap().1.to_owned();
    home.gesta(&["audit", "verify", "--tenant", "acme", "--has", &hash]).ended(1).has(&["no record with the hash"]);
    home.gesta(&["audit", "verify", "--tenant", "acme"]).ended(0).has(&["2 records"]);
    home.gesta(&["audit", "verify", "--tenant", "nobody"]).ended(0).has(&["0 records"]);
    let export = home.gesta(&["audit", "export"]).ended(0).out;
    assert_eq!(export.lines().count(), 4);
    let file = home.path("audit.jsonl");
    let verified = |text: &str| {
        std::fs::write(&file, text).unwrap();
        home.gesta(&["audit", "verify", file.to_str().unwrap(), "--has", &hash])
    };
    verified(&export).ended(0).has(&["4 records"]);
    let without = |n: usize| {
        let lines = export.lines().enumerate().filter(|(at, _)| *at != n).map(|(_, line)| format!("{line}\n"));
        lines.collect::<String>()
    };
    verified(&without(1)).ended(1).has(&["broken at record 2: record 3 stands in its place"]);
    verified(&without(3)).ended(1).has(&["no record with the hash", "records were cut off"]);
    verified(&export.replacen("key_made", "key_lost", 1)).ended(1).has(&["broken at record 1: what it says"]);
    // By hand in the file itself: of the records that lie in it one after another, one of this tenant's is changed.
    let stored = home.path("gesta").join("gesta.db");
    let bytes = std::fs::read(&stored).unwrap();
    let of_third = export.lines().nth(2).unwrap().split_once("\"hash\":\"").unwrap().1[..64].to_owned();
    let find = |from: usize, what: &str| {
        let found = bytes[from..].windows(what.len()).position(|it| it == what.as_bytes());
        from + found.unwrap_or_else(|| panic!("{what} is not in the file"))
    };
    let body = find(0, &format!("\"hash\":\"{of_third}\""));
    let what = find(body, "key_made");
    let mut edited = bytes.clone();
    edited[what..what + 8].copy_from_slice(b"key_lost");
    std::fs::write(&stored, edited).unwrap();
    home.gesta(&["audit", "verify"]).ended(1).has(&["the audit is broken at record 3: what it says is not"]);
    home.gesta(&["audit", "verify", "--tenant", "acme"]).ended(0).has(&["2 records, the chain is whole"]);
    let mut edited = bytes.clone();
    edited[what - 1] = b' ';
    std::fs::write(&stored, edited).unwrap();
    home.gesta(&["audit", "verify"]).ended(1).has(&["the audit is broken at record 3"]);
    std::fs::write(&stored, bytes).unwrap();
    home.gesta(&["audit", "verify"]).ended(0);
}

#[test]
fn what_cannot_be_served_is_told_at_the_start() {
    let home = Home::new();
    home.gesta(&["serve"]).ended(2);
    home.gesta(&["serve", "nowhere"]).ended(2).has(&["is not there"]);
    let desk = example("desk");
    home.gesta(&["serve", &desk, &desk, "--listen", "127.0.0.1:0"]).ended(2).has(&["two agents are called `desk`"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    home.gesta(&["serve", &desk, "--listen", &at]).ended(2).has(&["cannot be listened on"]);
}

#[test]
fn the_commands_ask_a_server_as_they_ask_the_data_folder() {
    let home = Home::new();
    let served = Served::start(&home, &[&example("desk"), "--listen", "127.0.0.1:0"]);
    let server = format!("http://{}", served.at);
    let asked = |words: &[&str]| home.gesta(&[words, &["--server", &server]].concat());
    asked(&["runs"]).ended(0).has(&["no runs"]);
    asked(&["holds"]).ended(0).has(&["nothing waits"]);
    asked(&["show", "last"]).ended(2).has(&["there is no run `last`"]);
    served.ask("POST /v1/agents/desk/runs", "", r#"{"input":"Refund order 7, 250 dollars","contact":"maria"}"#);
    for command in [&["runs", "--status", "parked"][..], &["holds"], &["show", "last"]] {
        let flag = format!(" --server {server}");
        let (there, here) = (asked(command).ended(0).out, home.gesta(command).ended(0).out);
        assert_eq!(there.replace(&flag, ""), here, "{command:?}");
        assert!(there.contains(&flag) || command[0] == "runs", "{there}");
    }
    served.ask("POST /v1/agents/desk/runs", "", r#"{"input":"Hello"}"#);
    for words in
        [&["runs", "--outcome", "completed"][..], &["runs", "--outcome", "cancelled"], &["runs", "--limit", "1"]]
    {
        assert_eq!(asked(words).ended(0).out, home.gesta(words).ended(0).out, "{words:?}");
    }
    assert_eq!(asked(&["runs", "--outcome", "completed", "--json"]).ended(0).json()["outcome"], "completed");
    asked(&["runs", "--outcome", "cancelled"]).ended(0).has(&["no run is like that"]);
    asked(&["runs", "--outcome", "well"]).ended(2).has(&["unknown variant `well`", "`completed`"]);
    served.ask("POST /v1/agents/desk/runs", "", r#"{"input":"Refund order 7, 250 dollars"}"#);
    for form in ["--json", "--scene", "--events"] {
        let words = ["show", "last", form];
        assert_eq!(asked(&words).ended(0).out, home.gesta(&words).ended(0).out, "{form}");
    }
    for command in ["runs", "holds"] {
        assert_eq!(asked(&[command, "--json"]).ended(0).out, home.gesta(&[command, "--json"]).ended(0).out);
    }
    asked(&["show", "last", "--wire"]).ended(2).has(&["not told over HTTP"]);
    asked(&["resume", "last", "--result", "r1", "1"]).ended(2).has(&["does not take `result`"]);
    let ended = asked(&["resume", "last", "--approve", "r1", "--json"]).ended(0).json();
    assert_eq!((&ended["outcome"], &ended["already_answered"]), (&Value::from("completed"), &serde_json::json!([])));
    asked(&["resume", "last", "--approve", "r1"]).ended(0).has(&["nothing ran again", "A colleague has decided"]);
    let late = asked(&["resume", "last", "--deny", "r1", "--reason", "no", "--json"]).ended(1).json();
    assert_eq!(late["error"]["code"], "conflict");
    served.end("TERM");
    asked(&["runs"]).ended(1).has(&["does not answer", "gesta serve"]);
    home.gesta(&["runs", "--server", "localhost"]).ended(2).has(&["is no server"]);
}

#[test]
fn the_commands_show_their_key_to_a_server_that_needs_one() {
    let home = Home::new();
    let key = home.gesta(&["keys", "new", "all", "--scope", "read", "--bare"]).ended(0).out;
    let served = Served::start(&home, &[&example("desk"), "--listen", "127.0.0.1:0"]);
    let server = format!("http://{}", served.at);
    home.gesta(&["runs", "--server", &server]).ended(2).has(&["needs a key"]);
    let run = |key: &str| {
        let mut command = home.command(&["runs"]);
        command.env("GESTA_SERVER", &server).env("GESTA_API_KEY", key).output().unwrap()
    };
    assert_eq!(run(&key).status.code(), Some(0));
    assert_eq!(run("gesta_x_y").status.code(), Some(2));
    served.end("TERM");
}

#[test]
fn the_tools_of_a_conversations_document_are_listed_with_who_wrote_them() {
    let home = Home::new();
    let shop = example("shop");
    let mut bearers = Vec::new();
    for scope in ["run", "read"] {
        let key = home.gesta(&["keys", "new", scope, "--scope", scope, "--bare"]).ended(0).out;
        bearers.push(format!("authorization: Bearer {}\r\n", key.trim()));
    }
    let (runs, reads) = (&bearers[0], &bearers[1]);
    let served = Served::start(&home, &[&shop, &example("desk"), "--listen", "127.0.0.1:0"]);
    let body = r#"{"input":"How much did I spend in all?","conversation":"anna"}"#;
    let (_, run) = served.ask("POST /v1/agents/shop/runs", runs, body);
    let listed =
        |agent: &str, query: &str, who: &str| served.ask(&format!("GET /v1/agents/{agent}/tools{query}"), who, "");
    let tool = |answer: (u16, Value)| answer.1["document"][0].clone();
    let written = tool(listed("shop", "?conversation=anna", reads));
    assert_eq!(written["name"], "total_spent");
    assert_eq!(written["description"], "Adds up the totals of all orders of the customer");
    assert!(written["source"].as_str().unwrap().contains("fn total_spent() -> float"), "{written}");
    assert_eq!(written["author"], serde_json::json!({ "by": "agent", "run": run["report"]["run_id"] }));
    assert_eq!((&written["enabled"], &written["set_aside"]), (&Value::from(true), &Value::Null));
    home.gesta(&["document", "tools", &shop, "--conversation", "anna", "--disable", "total_spent"]).ended(0);
    let off = tool(listed("shop", "?conversation=anna", reads));
    assert_eq!((&off["enabled"], &off["set_aside"]), (&Value::from(false), &Value::from("switched off by a person")));
    assert_eq!(listed("shop", "", runs).1.get("document"), None);
    for (agent, query, who, status, code) in [
        ("shop", "?conversation=anna", runs, 403, "not_permitted"),
        ("shop", "?conversation=eve", reads, 404, "no_document"),
        ("desk", "?conversation=anna", reads, 404, "no_document"),
        ("shop", "?talk=anna", reads, 400, "query_invalid"),
    ] {
        let (found, problem) = listed(agent, query, who);
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{agent}{query}");
    }
    served.end("TERM");
}

/// The runs of other agents are left out of a page, which has the fewer of its own: the next one is asked for.
#[test]
fn runs_are_listed_up_to_the_limit_also_where_a_key_is_not_for_all_agents() {
    let home = Home::new();
    let made = |words: &[&str]| {
        let key = home.gesta(&[&["keys", "new", "--bare"], words].concat()).ended(0).out;
        key.trim().to_owned()
    };
    let (all, two) =
        (made(&["all", "--scope", "run"]), made(&["two", "--scope", "read", "--agent", "desk", "--agent", "coach"]));
    let agents = ["coach", "desk", "shop"].map(example);
    let served = Served::start(&home, &[&agents[0], &agents[1], &agents[2], "--listen", "127.0.0.1:0"]);
    for agent in ["desk", "coach", "shop", "shop"] {
        let bearer = format!("authorization: Bearer {all}\r\n");
        let (status, run) = served.ask(&format!("POST /v1/agents/{agent}/runs"), &bearer, r#"{"input":"Hello"}"#);
        assert_eq!(status, 200, "{run}");
    }
    let mut command = home.command(&["runs", "--limit", "2", "--json", "--server", &format!("http://{}", served.at)]);
    let said = crate::support::Said::from(command.env("GESTA_API_KEY", two).output().unwrap()).ended(0);
    let listed: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed.iter().map(|run| run["agent"].as_str().unwrap()).collect::<Vec<_>>(), ["coach", "desk"]);
    served.end("TERM");
}
