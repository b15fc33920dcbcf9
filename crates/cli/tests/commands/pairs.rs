//! Mixed batches of three calls with real processes: rows that cover each pair of what may come together.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{Home, World, calls, says};

/// The ways of each dimension: what is decided about each of three calls, in which order the answers come, by which
/// requests, and what disturbs them.
const WAYS: [usize; 6] = [4, 4, 4, 3, 5, 6];
const DECISIONS: [&str; 4] = ["run", "deny", "approval", "external"];
const REQUESTS: [&str; 5] = ["one", "several", "20 at once", "twice", "wrong first"];
const DISTURBANCES: [&str; 6] =
    ["none", "expiry", "other folder", "killed before the answer", "killed before the model", "killed in a tool"];
const CALLS: [(&str, &str); 3] = [("c1", "t1"), ("c2", "t2"), ("c3", "t3")];
const ROWS_MAX: usize = 40;
const WAIT: Duration = Duration::from_secs(60);

type Row = [usize; 6];
/// Two dimensions, each with its way.
type Pair = (usize, usize, usize, usize);

/// Where the rows keep their runs.
pub(crate) struct Place<'a> {
    /// The address of a Postgres server; without one, the file of each home.
    pub(crate) database: Option<&'a str>,
    /// Lets the lease of a run that nobody works on run out.
    pub(crate) lapse: &'a (dyn Fn(&str) + Sync),
}

fn pairs_of(row: &Row) -> impl Iterator<Item = Pair> + '_ {
    (0..row.len()).flat_map(move |a| (a + 1..row.len()).map(move |b| (a, row[a], b, row[b])))
}

/// Rows that together have each pair, and how many pairs those are: each row begins with a pair that is missing, and
/// takes in each other dimension the way that brings most of those that are missing.
fn rows() -> (Vec<Row>, usize) {
    let mut missing = BTreeSet::<Pair>::new();
    for (a, ways) in WAYS.iter().enumerate() {
        for (b, others) in WAYS.iter().enumerate().skip(a + 1) {
            missing.extend((0..*ways).flat_map(|x| (0..*others).map(move |y| (a, x, b, y))));
        }
    }
    let (count, mut rows) = (missing.len(), Vec::new());
    while let Some(&(a, x, b, y)) = missing.last() {
        let mut row: [Option<usize>; 6] = [None; 6];
        (row[a], row[b]) = (Some(x), Some(y));
        for at in (0..WAYS.len()).rev().filter(|at| *at != a && *at != b) {
            let brings = |way: usize| {
                let with = |other: usize, of: usize| {
                    missing.contains(&if other < at { (other, of, at, way) } else { (at, way, other, of) })
                };
                row.iter().enumerate().filter(|(other, of)| of.is_some_and(|of| with(*other, of))).count()
            };
            let turned = |n: usize| (n + rows.len()) % WAYS[at];
            row[at] = (0..WAYS[at]).map(turned).max_by_key(|way| brings(*way));
        }
        let row = row.map(Option::unwrap_or_default);
        for pair in pairs_of(&row) {
            missing.remove(&pair);
        }
        rows.push(row);
    }
    (rows, count)
}

/// Plays all rows, two at a time.
#[allow(clippy::print_stdout)]
pub(crate) fn play(place: &Place<'_>) {
    let (rows, pairs) = rows();
    let covered: BTreeSet<Pair> = rows.iter().flat_map(pairs_of).collect();
    println!("{} rows cover {} pairs", rows.len(), covered.len());
    assert!(covered.len() == pairs && rows.len() <= ROWS_MAX, "{} rows, {} of {pairs}", rows.len(), covered.len());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    Case::begin(*row, place).play();
                }
            });
        }
    });
}

struct Case<'a> {
    row: Row,
    place: &'a Place<'a>,
    home: Home,
    world: World,
    served: Served,
    run: String,
    /// The run as it was when it stopped for the first time.
    first: Value,
}

impl<'a> Case<'a> {
    /// Has the model ask for the three calls.
    fn begin(row: Row, place: &'a Place<'a>) -> Self {
        let (home, world) = (Home::new(), World::start(vec![calls(&CALLS), says("done")]));
        let ttl = if DISTURBANCES[row[5]] == "expiry" { "hold_ttl = \"1s\"\n" } else { "" };
        let mut toml = world.agent(&[], ttl);
        let (mut tools, mut rules) = (String::new(), String::new());
        for ((_, tool), decision) in CALLS.iter().zip(row) {
            let body = match DECISIONS[decision] {
                "external" => "external = true".to_owned(),
                _ => format!("effect = \"once\"\nurl = \"http://127.0.0.1:{}/{tool}\"", world.port),
            };
            tools += &format!(
                "[[tools]]\nname = \"{tool}\"\ndescription = \"Does {tool}.\"\n{body}\nparameters = {{ type = \"object\" }}\n"
            );
            let action = match DECISIONS[decision] {
                "deny" => "action = \"deny\"\nreason = \"never\"",
                "approval" => "action = \"defer\"",
                _ => continue,
            };
            rules += &format!("[[decisions]]\ntool = \"{tool}\"\n{action}\n");
        }
        toml += &(tools + &rules);
        home.write("a/agent.toml", &toml);
        let served = Served::start(&home, place);
        let (status, run) = served.ask("POST /v1/agents/worker/runs", &json!({ "input": "go" }));
        assert_eq!(status, 200, "{row:?}: {run}");
        let id = run["report"]["run_id"].as_str().unwrap().to_owned();
        Self { row, place, home, world, served, run: id, first: run }
    }

    fn is(&self, disturbance: &str) -> bool {
        DISTURBANCES[self.row[5]] == disturbance
    }

    fn count(&self, decision: &str) -> usize {
        self.row[..3].iter().filter(|it| DECISIONS[**it] == decision).count()
    }

    fn read(&self) -> Value {
        self.served.ask(&format!("GET /v1/runs/{}", self.run), &Value::Null).1
    }

    /// Kills the server as a crash would, and starts another.
    fn restart(&mut self) {
        self.served.kill();
        self.world.release();
        self.served = Served::start(&self.home, self.place);
    }

    fn play(mut self) {
        let parked = self.first.clone();
        let waits = self.count("approval") + self.count("external") > 0;
        if self.is("expiry") && waits {
            // Whether it is the server that finds it expired or whoever answers first is all the same.
            std::thread::sleep(Duration::from_millis(1100));
        } else {
            assert_eq!(parked["status"], if waits { "parked" } else { "ended" }, "{:?}: {parked}", self.row);
        }
        if self.is("other folder") {
            let other = self.world.agent(&[("elsewhere", "once")], "");
            self.home.write("a/agent.toml", &other);
        }
        if self.is("other folder") || self.is("killed before the answer") {
            self.restart();
        }
        if waits {
            self.answer(&parked);
        }
        self.check();
    }

    /// The answers of this row, in its order.
    fn answers(&self, parked: &Value) -> Vec<Value> {
        let mut answers: Vec<Value> = parked["deferred"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hold| {
                let binding = &hold["binding"];
                let at = CALLS.iter().position(|(id, _)| binding.to_string().contains(&format!("\"{id}\""))).unwrap();
                match DECISIONS[self.row[at]] {
                    "external" => json!({ "binding": binding, "result": { "by": "hand" } }),
                    _ => json!({ "binding": binding, "approve": true }),
                }
            })
            .collect();
        match self.row[3] {
            1 => answers.reverse(),
            2 => answers.rotate_left(1),
            _ => {}
        }
        answers
    }

    fn answer(&mut self, parked: &Value) {
        let (row, answers, path) = (self.row, self.answers(parked), format!("POST /v1/runs/{}/answers", self.run));
        let killed = self.is("killed in a tool") || self.is("killed before the model");
        if killed {
            self.world.stop_at(if self.is("killed in a tool") { 1 } else { self.count("approval") + 1 });
        }
        let how = REQUESTS[row[4]];
        let all = json!({ "answers": answers });
        if how == "wrong first" {
            let mut wrong = all.clone();
            wrong["answers"][0]["binding"]["run_id"] = json!("another");
            let (status, said) = self.served.ask(&path, &wrong);
            assert!((400..500).contains(&status), "{row:?}: {status} {said}");
        }
        let bodies = match how {
            "several" => answers.iter().map(|it| json!({ "answers": [it] })).collect(),
            "20 at once" => vec![all.clone(); 20],
            _ => vec![all.clone()],
        };
        let said: Vec<(u16, Value)> = std::thread::scope(|scope| {
            let ask = |body: &Value| self.served.ask(&path, body);
            let asking: Vec<_> = if how == "several" {
                vec![scope.spawn(move || bodies.iter().map(ask).collect::<Vec<_>>())]
            } else {
                bodies.into_iter().map(|body| scope.spawn(move || vec![ask(&body)])).collect()
            };
            if killed {
                self.world.wait();
                self.served.kill();
            }
            asking.into_iter().flat_map(|it| it.join().unwrap()).collect()
        });
        let expected: &[u16] = if killed {
            &[0, 200, 409]
        } else if self.is("expiry") {
            &[409]
        } else {
            &[200, 409]
        };
        assert!(said.iter().all(|(status, _)| expected.contains(status)), "{row:?}: {said:?}");
        if killed {
            // Ahead of the next start: a lease that was taken over since is somebody's who works.
            (self.place.lapse)(&self.run);
            self.restart();
        }
        self.settle(&all);
        // Whoever says something else is too late, whatever the disturbance was.
        let other = json!({ "answers": [{ "binding": answers[0]["binding"], "deny": "too late" }] });
        let (status, said) = self.served.ask(&path, &other);
        assert_eq!(status, 409, "{row:?}: {said}");
        if how == "twice" {
            let (status, again) = self.served.ask(&path, &all);
            let used = again["already_answered"].as_array().map_or(0, Vec::len);
            assert!(
                status == 409 || (status == 200 && used == answers.len()),
                "{row:?}: {status} {used} {}",
                again["already_answered"]
            );
        }
    }

    /// Waits for the end. Says what came of a call whose outcome a crash has hidden.
    fn settle(&self, all: &Value) {
        let since = Instant::now();
        loop {
            let run = self.read();
            if run["status"] == "ended" {
                return;
            }
            assert!(since.elapsed() < WAIT, "{:?}: it does not end: {run}; {all}", self.row);
            for hold in run["deferred"].as_array().into_iter().flatten() {
                let answer = json!({ "answers": [{ "binding": hold["binding"], "result": { "by": "who looked" } }] });
                self.served.ask(&format!("POST /v1/runs/{}/answers", self.run), &answer);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn check(&self) {
        let (row, run) = (self.row, self.read());
        let waits = self.count("approval") + self.count("external") > 0;
        let expired = self.is("expiry") && waits;
        assert_eq!(run["outcome"], if expired { "expired" } else { "completed" }, "{row:?}: {run}");
        for ((id, tool), decision) in CALLS.iter().zip(row) {
            let (effects, decision) = (self.world.calls(tool).len(), DECISIONS[decision]);
            let call = run["tool_calls"].as_array().unwrap().iter().find(|it| it["id"] == *id);
            let status = call.map_or("", |it| it["status"].as_str().unwrap());
            if decision == "external" && !expired {
                // What was accepted ahead of a kill is kept: nobody was asked again.
                assert_eq!(call.map(|it| &it["result"]), Some(&json!({ "by": "hand" })), "{row:?} {tool}: {run}");
            }
            match decision {
                "run" => assert_eq!((effects, status), (1, "completed"), "{row:?} {tool}: {run}"),
                "deny" => assert_eq!((effects, status), (0, "denied"), "{row:?} {tool}: {run}"),
                "approval" if !expired && self.is("killed in a tool") => {
                    assert!(effects <= 1, "{row:?} {tool}: {effects}")
                }
                "approval" if !expired => assert_eq!((effects, status), (1, "completed"), "{row:?} {tool}: {run}"),
                _ => assert_eq!(effects, 0, "{row:?} {tool}: {run}"),
            }
        }
        // One for the batch, and one behind it, which whoever killed the server in the middle of it made be asked anew.
        let model = self.world.calls("v1/chat/completions").len();
        let before_model =
            self.is("killed before the model") || self.is("killed in a tool") && self.count("approval") == 0;
        let expected = if expired { 1 } else { 2 + usize::from(before_model && waits) };
        assert_eq!(model, expected, "{row:?}: {run}");
    }
}

/// A server that was started, and where it listens.
struct Served {
    child: std::sync::Mutex<Child>,
    at: String,
}

impl Served {
    fn start(home: &Home, place: &Place<'_>) -> Self {
        let mut command = home.command(&["serve", "a", "--listen", "127.0.0.1:0"]);
        if let Some(database) = place.database {
            command.env("DATABASE_URL", database).env("GESTA_SECRET", "a key for tests!");
        }
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let at = line.trim_end().rsplit_once("http://").unwrap_or_else(|| panic!("{line}")).1.to_owned();
        // What it says later is taken from it, so that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { child: child.into(), at }
    }

    /// Asks, and waits for the whole answer; 0 where the server was killed ahead of it.
    fn ask(&self, request: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let Ok(mut stream) = TcpStream::connect(&self.at) else { return (0, Value::Null) };
        let head = format!("{request} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.at);
        let kind = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        let _ = stream.write_all((head + &kind + &body).as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let Some((head, body)) = answer.split_once("\r\n\r\n") else { return (0, Value::Null) };
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
    }

    fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}
