//! The command line and servers on a Postgres server: parked on one machine, answered on another. Needs
//! `GESTA_TEST_POSTGRES_BIN`, the programs of a server that the test may kill: `cargo xtask test --only postgres`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "commands/pairs.rs"]
mod pairs;
#[path = "commands/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the other tests of the commands need all of it")]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::postgres::Cluster;

const REFUND: &str = "Refund order 7, 250 dollars";
/// As long as keys have to be at least.
const SECRET: &str = "a key for tests!";

/// A machine of its own: nothing is shared with another but the server.
struct Machine {
    home: TempDir,
    server: String,
}

impl Machine {
    fn new(server: &Cluster) -> Self {
        Self { home: TempDir::new().unwrap(), server: server.address() }
    }

    /// Runs a command to its end with these variables; what it said on both outputs, where it ended so.
    fn gesta(&self, words: &[&str], variables: &[(&str, &str)], code: i32) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gesta"));
        command.args(words).current_dir(self.home.path()).stdin(Stdio::null()).env_remove("GESTA_SECRET");
        command.env("HOME", self.home.path()).env("XDG_DATA_HOME", self.home.path()).env("DATABASE_URL", &self.server);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(!said.contains("gesta:gesta"), "the password is shown: {said}");
        said
    }

    fn has_file(&self) -> bool {
        self.home.path().join("gesta/gesta.db").exists()
    }
}

fn example(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    path.canonicalize().unwrap().display().to_string()
}

fn server() -> Option<Cluster> {
    let programs = xtask::outside("GESTA_TEST_POSTGRES_BIN", "postgres")?;
    Some(Cluster::start(Path::new(&programs)).unwrap())
}

fn has(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "no `{word}` in: {said}");
    }
}

#[test]
fn a_run_that_was_parked_on_one_machine_is_answered_on_another() {
    let Some(server) = server() else { return };
    let (here, there) = (Machine::new(&server), Machine::new(&server));
    here.gesta(&["run", &example("desk"), REFUND], &[], 3);
    has(&there.gesta(&["runs"], &[], 0), &["desk", "refund_order (r1)"]);
    has(&there.gesta(&["doctor", "--offline"], &[], 0), &["PostgreSQL", "it was not asked"]);
    has(
        &there.gesta(&["doctor"], &[("OPENAI_API_KEY", ""), ("ANTHROPIC_API_KEY", "")], 0),
        &["PostgreSQL at postgres://gesta@127.0.0.1:", "reachable, 1 run", "GESTA_SECRET"],
    );
    there.gesta(&["resume", "last", "--approve", "r1"], &[], 0);
    has(&here.gesta(&["show", "last"], &[], 0), &[REFUND, "completed"]);
    // The first answer counts, wherever it was given.
    has(&here.gesta(&["resume", "last", "--deny", "r1", "--reason", "no"], &[], 1), &["the first answer counts"]);
    assert!(!here.has_file() && !there.has_file());
    // A folder that is named goes before the server.
    has(&here.gesta(&["runs", "--data", "elsewhere"], &[], 2), &["the data folder elsewhere is not there"]);
}

#[test]
fn what_is_signed_on_a_server_needs_a_key_that_all_share() {
    let Some(server) = server() else { return };
    let (here, there) = (Machine::new(&server), Machine::new(&server));
    let ask = ["run", &example("shop"), "Hello", "--conversation", "k"];
    has(&here.gesta(&ask, &[], 2), &["GESTA_SECRET is not set", "help: "]);
    for machine in [&here, &there] {
        let said = machine.gesta(
            &["document", "tools", &example("shop"), "--conversation", "k"],
            &[("GESTA_SECRET", SECRET)],
            0,
        );
        assert!(!said.is_empty());
        assert!(!machine.home.path().join("gesta/secret").exists());
    }
}

#[test]
fn a_server_that_is_away_is_said_by_name() {
    let Some(mut server) = server() else { return };
    let here = Machine::new(&server);
    here.gesta(&["runs"], &[], 0);
    server.kill();
    for words in [&["runs"][..], &["show", "last"], &["run", &example("desk"), REFUND]] {
        has(&here.gesta(words, &[], 5), &["postgres://gesta@127.0.0.1:", "can't be reached", "help: start it"]);
    }
    has(&here.gesta(&["doctor"], &[], 1), &["missing  store", "can't be reached"]);
    has(
        &here.gesta(&["runs"], &[("DATABASE_URL", "postgres://a:s3cret@b:c/d")], 5),
        &["postgres://USER:PASSWORD@HOST"],
    );
}

/// What the model says: slowly, a word at a time.
const SCRIPT: &str = r#"user matches /order 7/i:
model: calls r1 refund_order {"order":"7","amount":250}
model: I have paid back 250 dollars for order 7.
user matches /opening hours/i:
model: We are here from nine in the morning until six in the evening on every day of the week but Sunday, and on the telephone until eight, also on most holidays, and whoever writes at night is answered in the morning, before anybody else is.
"#;

/// A program that runs until the test ends, and the address that its first line names.
struct Running {
    child: Child,
    at: String,
}

impl Running {
    fn start(command: &mut Command, line_of: fn(&mut Child) -> Box<dyn Read + Send>) -> Self {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(line_of(&mut child));
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let at = line.trim_end().rsplit_once("http://").unwrap_or_else(|| panic!("{line}")).1.to_owned();
        // What it says later is taken from it, so that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { child, at }
    }

    fn model(folder: &Path) -> Self {
        let script = folder.join("model.script");
        std::fs::write(&script, SCRIPT).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gesta"));
        command.arg("fake-model").arg(script).args(["--faults", "pace=40ms"]).stdout(Stdio::piped());
        Self::start(&mut command, |child| Box::new(child.stdout.take().unwrap()))
    }

    /// A server for the desk, on a machine of its own.
    fn serve(machine: &Machine, desk: &Path, model: &Self) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gesta"));
        command.arg("serve").arg(desk).args(["--listen", "127.0.0.1:0"]).current_dir(machine.home.path());
        command.env("HOME", machine.home.path()).env("XDG_DATA_HOME", machine.home.path());
        command.env("DATABASE_URL", &machine.server).env("OPENAI_API_KEY", "a-key");
        command.env("OPENAI_BASE_URL", format!("http://{}/v1", model.at)).env_remove("GESTA_WEBHOOK_URL");
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Self::start(&mut command, |child| Box::new(child.stderr.take().unwrap()))
    }

    /// Asks, and waits for the whole answer.
    fn asked(&self, request: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        let (at, length) = (&self.at, body.len());
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut answer = Vec::new();
        // One that is killed in the middle resets the connection.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let Some((head, body)) = answer.split_once("\r\n\r\n") else { return (0, answer) };
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn ask(&self, request: &str, headers: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, said) = self.asked(request, headers, &body);
        (status, serde_json::from_str(&said).unwrap_or(Value::Null))
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(&format!("GET {path}"), "", &Value::Null);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// The only run of a conversation, once it is as it should be.
    fn run_of(&self, conversation: &str, is: fn(&Value) -> bool) -> Value {
        loop {
            let found = self.get(&format!("/v1/runs?conversation={conversation}"));
            match found["items"].as_array().unwrap().as_slice() {
                [one] if is(one) => return one.clone(),
                [] | [_] => std::thread::sleep(Duration::from_millis(50)),
                more => panic!("{more:?}"),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The desk with a model behind HTTP.
fn desk(folder: &Path) -> PathBuf {
    let (from, to) = (PathBuf::from(example("desk")), folder.join("desk"));
    std::fs::create_dir(&to).unwrap();
    std::fs::copy(from.join("prompt.md"), to.join("prompt.md")).unwrap();
    let text = std::fs::read_to_string(from.join("agent.toml")).unwrap();
    std::fs::write(to.join("agent.toml"), text.replace("model = \"script\"", "model = \"openai:any\"")).unwrap();
    to
}

const BEGIN: &str = "POST /v1/agents/desk/runs";

#[test]
fn two_servers_on_one_postgres_work_together() {
    let Some(server) = server() else { return };
    let folder = TempDir::new().unwrap();
    let (desk, model) = (desk(folder.path()), Running::model(folder.path()));
    let machines = (Machine::new(&server), Machine::new(&server));
    let (a, b) = (Running::serve(&machines.0, &desk, &model), Running::serve(&machines.1, &desk, &model));

    // Parked on one and answered on both at once: one answer counts, and whoever follows on the first hears the end.
    let (status, parked) = a.ask(BEGIN, "", &json!({ "input": REFUND, "conversation": "one" }));
    assert_eq!((status, &parked["status"]), (200, &json!("parked")), "{parked}");
    let run = parked["report"]["run_id"].as_str().unwrap();
    let hold = &b.get("/v1/holds")["items"][0]["hold"];
    let answer = json!({ "answers": [{ "binding": hold["binding"], "approve": true }] });
    let path = format!("POST /v1/runs/{run}/answers");
    std::thread::scope(|scope| {
        let heard = scope.spawn(|| a.asked(&format!("GET /v1/runs/{run}/events"), "", ""));
        let answers = [&a, &b].map(|it| scope.spawn(|| it.ask(&path, "", &answer)));
        let answers = answers.map(|it| it.join().unwrap());
        assert!(answers.iter().any(|(status, _)| *status == 200), "{answers:?}");
        assert!(answers.iter().all(|(status, _)| [200, 409].contains(status)), "{answers:?}");
        has(&heard.join().unwrap().1, &["hold.opened", "run.ended"]);
    });
    let ended = b.get(&format!("/v1/runs/{run}"));
    assert_eq!((&ended["outcome"], &ended["tool_calls"].as_array().unwrap().len()), (&json!("completed"), &1));

    // The same message under the same key at both at once is one turn.
    let ask = json!({ "input": "What are your opening hours?", "conversation": "two" });
    std::thread::scope(|scope| {
        let both = [&a, &b].map(|it| scope.spawn(|| it.ask(BEGIN, "idempotency-key: k1\r\n", &ask)));
        let both = both.map(|it| it.join().unwrap());
        assert!(both.iter().any(|(status, _)| *status == 200), "{both:?}");
        assert!(both.iter().all(|(status, _)| [200, 409].contains(status)), "{both:?}");
    });
    let one = a.run_of("two", |run| run["status"] == "ended");
    let again = b.ask(BEGIN, "idempotency-key: k1\r\n", &ask);
    assert_eq!((again.0, &again.1["report"]["run_id"]), (200, &one["run"]), "{again:?}");
    assert_eq!(a.get("/v1/conversations/two")["turns"], 1);

    // A second run in the conversation of one that works elsewhere is refused by its name, or waits for it.
    let ask = json!({ "input": "What are your opening hours?", "conversation": "three" });
    std::thread::scope(|scope| {
        let first = scope.spawn(|| a.ask(BEGIN, "", &ask));
        let works = b.run_of("three", |run| run["status"] == "open");
        let (status, refused) = b.ask(BEGIN, "", &ask);
        assert_eq!((status, &refused["code"]), (409, &json!("conversation_busy")), "{refused}");
        assert_eq!(refused["run"], works["run"]);
        let mut waits = ask.clone();
        waits["queue"] = json!(true);
        let (status, second) = b.ask(BEGIN, "", &waits);
        assert_eq!((status, &second["outcome"]), (200, &json!("completed")), "{second}");
        assert_eq!(first.join().unwrap().0, 200);
    });
    assert_eq!(b.get("/v1/conversations/three")["turns"], 2);
}

#[test]
fn a_run_whose_server_was_killed_is_taken_over_by_the_other() {
    let Some(server) = server() else { return };
    let folder = TempDir::new().unwrap();
    let (desk, model) = (desk(folder.path()), Running::model(folder.path()));
    let machines = (Machine::new(&server), Machine::new(&server));
    let (mut a, b) = (Running::serve(&machines.0, &desk, &model), Running::serve(&machines.1, &desk, &model));
    let ask = json!({ "input": "What are your opening hours?", "conversation": "four" });
    let at = a.at.clone();
    let mut cut_off = TcpStream::connect(at).unwrap();
    let body = ask.to_string();
    let head = format!("{BEGIN} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", a.at);
    write!(cut_off, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let works = b.run_of("four", |run| run["status"] == "open");
    a.child.kill().unwrap();
    a.child.wait().unwrap();
    // The time of its lease passes.
    let psql = Path::new(&xtask::outside("GESTA_TEST_POSTGRES_BIN", "postgres").unwrap()).join("psql");
    let lapse = "UPDATE gesta.runs SET lease_until = 1 WHERE owner IS NOT NULL";
    let done = Command::new(psql).args([&server.address(), "-c", lapse]).output().unwrap();
    has(&String::from_utf8_lossy(&done.stdout), &["UPDATE 1"]);
    let ended = b.run_of("four", |run| run["status"] == "ended");
    assert_eq!((&ended["run"], &ended["outcome"]), (&works["run"], &json!("completed")));
    assert_eq!(b.get("/v1/conversations/four")["turns"], 1);
}

#[test]
fn each_pair_of_decisions_answers_and_disturbances_on_postgres() {
    let Some(server) = server() else { return };
    let psql = Path::new(&xtask::outside("GESTA_TEST_POSTGRES_BIN", "postgres").unwrap()).join("psql");
    let address = server.address();
    let lapse = |run: &str| {
        let lapse = format!("UPDATE gesta.runs SET lease_until = 1 WHERE owner IS NOT NULL AND run_id = '{run}'");
        assert!(Command::new(&psql).args([&address, "-c", &lapse]).output().unwrap().status.success());
    };
    pairs::play(&pairs::Place { database: Some(&address), lapse: &lapse });
}
