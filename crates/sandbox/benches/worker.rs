//! What a document costs in a worker, beside the same engine in this process: `cargo bench -p gesta-sandbox`.
//!
//! Times are those of one call after another, in interleaved rounds, so that both sides meet the same machine.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};

use gesta_document::{AddedTools, GrantName, GrantSpec, Host, Record, Terms};
use gesta_run::json::Object;
use gesta_sandbox::{Call, GrantFuture, Grants, Pool, PoolSettings, Session};
use serde_json::{Value, json};

const BASE: &str = "
notes: []
kept: 0
tools: {
    #[tool('Lists the newest orders of the customer')]
    fn recent_orders(limit: int = 10) -> list { await App.orders(limit) }
    #[tool('Adds numbers')]
    fn sum(a: int, b: int) -> int { a + b }
    #[tool('Keeps a note')]
    fn remember(note: str) -> str { root.notes = [note]; root.kept += 1; 'kept' }
}
";

const TOTAL_SPENT: &str = "#[tool('Total a customer has spent')]
fn total_spent(customer: str) -> float {
    let total = 0;
    for (const order in await App.orders(customer)) total += order.get('total');
    total
}";

/// Calls of one measurement; in rounds of a hundred.
const CALLS: usize = 2_000;

struct Shop;

fn orders() -> Value {
    json!([{"id": "o_1", "total": 40.0}, {"id": "o_2", "total": 250.0}])
}

impl Grants for Shop {
    fn call(&self, _n: u32, _grant: GrantName, _arguments: Object) -> GrantFuture<'_> {
        Box::pin(async { Ok(orders()) })
    }
}

impl Host for Shop {
    fn grant(&mut self, _grant: &GrantName, _arguments: Object) -> Result<Value, String> {
        Ok(orders())
    }
}

fn terms() -> Terms {
    let name = GrantName { library: "App".to_owned(), name: "orders".to_owned() };
    let grants = vec![GrantSpec { name, params: vec!["limit".to_owned()] }];
    Terms { grants, added_tools: AddedTools::On, ..Terms::default() }
}

fn record(base: &str) -> Record {
    Record { base: base.to_owned(), ..Record::default() }
}

/// A base with this many tools.
fn tools(count: usize) -> String {
    let tool = |n| format!("#[tool('Tool number {n}')]\nfn tool_{n}(a: int, b: str = 'x') -> str {{ b + a }}\n");
    format!("tools: {{\n{}}}\n", (0..count).map(tool).collect::<String>())
}

async fn call(session: &mut Session, tool: &str, arguments: &Object) {
    let call = Call { tool, arguments, time_limit_ms: 30_000, author: None, at: None };
    session.call(call, &Shop).await.unwrap();
}

fn line(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let (best, median, p90) = (times[0], times[times.len() / 2], times[times.len() * 9 / 10]);
    println!("{what:<58} best {best:>9.1?}   median {median:>9.1?}   p90 {p90:>9.1?}");
    median
}

fn object(value: Value) -> Object {
    value.as_object().unwrap().clone()
}

/// A warm call in a worker and in process, in turns.
async fn warm(pool: &Pool, what: &str, tool: &str, arguments: Value) -> (Duration, Duration) {
    let arguments = object(arguments);
    let mut session = pool.session(what, record(BASE), terms());
    let mut document = gesta_document::open(&record(BASE), &terms()).unwrap();
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..CALLS / 100 {
        for _ in 0..100 {
            let began = Instant::now();
            call(&mut session, tool, &arguments).await;
            outside.push(began.elapsed());
        }
        for _ in 0..100 {
            let began = Instant::now();
            document.call(tool, &arguments, &mut Shop).unwrap();
            inside.push(began.elapsed());
        }
    }
    (line(&format!("{what}, in a worker"), outside), line(&format!("{what}, in process"), inside))
}

/// One line there and back through two pipes to a process that does nothing with it.
fn pipe_round_trip() -> Duration {
    use std::io::{BufRead, BufReader, Write};
    let mut child = std::process::Command::new("/proc/self/exe");
    let mut child =
        child.arg(ECHO).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut times = Vec::new();
    let mut heard = String::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        to.write_all(b"{\"call\":{\"tool\":\"sum\",\"arguments\":{}}}\n").unwrap();
        heard.clear();
        from.read_line(&mut heard).unwrap();
        times.push(began.elapsed());
    }
    drop(to);
    child.wait().unwrap();
    line("one round trip through a pair of pipes, blocking", times)
}

/// The same with this side on the runtime: what is added is its waiting for events.
async fn async_round_trip() {
    use std::os::fd::OwnedFd;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::unix::pipe::{Receiver, Sender};
    let mut child = std::process::Command::new("/proc/self/exe");
    let mut child =
        child.arg(ECHO).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut to = Sender::from_owned_fd(OwnedFd::from(child.stdin.take().unwrap())).unwrap();
    let mut from = Receiver::from_owned_fd(OwnedFd::from(child.stdout.take().unwrap())).unwrap();
    let mut times = Vec::new();
    let mut heard = [0; 4_096];
    for _ in 0..CALLS {
        let began = Instant::now();
        to.write_all(b"{\"call\":{\"tool\":\"sum\",\"arguments\":{}}}\n").await.unwrap();
        assert!(from.read(&mut heard).await.unwrap() > 0);
        times.push(began.elapsed());
    }
    drop(to);
    child.wait().unwrap();
    line("one round trip through a pair of pipes, asynchronous", times);
}

const ECHO: &str = "echo";

fn echo() {
    use std::io::{BufRead, Write};
    let mut line = String::new();
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    while input.read_line(&mut line).unwrap() > 0 {
        output.write_all(line.as_bytes()).unwrap();
        output.flush().unwrap();
        line.clear();
    }
}

async fn cold() {
    let mut times = Vec::new();
    let arguments = object(json!({"a": 1, "b": 2}));
    for _ in 0..60 {
        let began = Instant::now();
        let pool = Pool::new(PoolSettings { warm: 0, ..PoolSettings::default() });
        call(&mut pool.session("cold", record(BASE), terms()), "sum", &arguments).await;
        times.push(began.elapsed());
    }
    line("start of a worker, document opened, first call", times);
    let pool = Pool::new(PoolSettings { warm: 8, workers_max: 9, ..PoolSettings::default() });
    let mut times = Vec::new();
    for n in 0..60 {
        while pool.counts().warm == 0 {
            pool.start().await.unwrap();
        }
        let began = Instant::now();
        call(&mut pool.session(&n.to_string(), record(BASE), terms()), "sum", &arguments).await;
        times.push(began.elapsed());
    }
    line("worker started ahead, document opened, first call", times);
}

async fn adding(pool: &Pool) {
    let arguments = object(json!({"source": TOTAL_SPENT}));
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    for n in 0..60 {
        let mut session = pool.session(&format!("add {n}"), record(BASE), terms());
        call(&mut session, "sum", &object(json!({"a": 1, "b": 2}))).await;
        let began = Instant::now();
        call(&mut session, "add_tool", &arguments).await;
        outside.push(began.elapsed());
        let mut document = gesta_document::open(&record(BASE), &terms()).unwrap();
        let began = Instant::now();
        document.call("add_tool", &arguments, &mut Shop).unwrap();
        inside.push(began.elapsed());
    }
    line("add_tool, in a worker", outside);
    line("add_tool, in process", inside);
}

async fn specs(pool: &Pool, count: usize) {
    let base = tools(count) + "\nnotes: []\n#[tool('x')] fn unused() -> int { 1 }\n";
    let mut document = gesta_document::open(&record(&base), &terms()).unwrap();
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    for n in 0..40 {
        // A session describes anew only what has changed: a new one with the same record always asks the worker.
        let mut session = pool.session(&format!("specs {count}"), record(&base), terms());
        let began = Instant::now();
        assert!(session.specs().await.unwrap().len() >= count);
        if n > 0 {
            outside.push(began.elapsed());
        }
        let began = Instant::now();
        document.specs().unwrap();
        inside.push(began.elapsed());
    }
    line(&format!("specs of {count} tools, in a worker"), outside);
    line(&format!("specs of {count} tools, in process"), inside);
}

async fn throughput(pool: &Pool, conversations: usize) {
    let each = 4_000 / conversations;
    let each = if conversations > 8 { 20 } else { each };
    let arguments = object(json!({"limit": 5}));
    let conversing = (0..conversations).map(|n| {
        let mut session = pool.session(&format!("{conversations}/{n}"), record(BASE), terms());
        let arguments = &arguments;
        async move {
            for _ in 0..each {
                call(&mut session, "recent_orders", arguments).await;
            }
        }
    });
    let began = Instant::now();
    futures_util::future::join_all(conversing).await;
    let took = began.elapsed();
    let rate = (conversations * each) as f64 / took.as_secs_f64();
    println!(
        "{:<58} {rate:>9.0} calls a second",
        format!("throughput at {conversations} conversations, one grant a call")
    );
}

fn resident_kb() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4
}

/// Conversations that have each made a call and wait: what they hold in the parent, and how many workers there are.
async fn idle() {
    let pool = Pool::new(PoolSettings { idle_max_ms: 50, wait_max_ms: 60_000, ..PoolSettings::default() });
    pool.start().await.unwrap();
    let arguments = object(json!({"a": 1, "b": 2}));
    let before = resident_kb();
    let mut sessions: Vec<_> = (0..1_000).map(|n| pool.session(&format!("idle {n}"), record(BASE), terms())).collect();
    for session in &mut sessions {
        call(session, "sum", &arguments).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let held = resident_kb().saturating_sub(before);
    println!("1,000 idle conversations: {held} kB in the parent, {:?}", pool.counts());
    let usage = sessions[0].usage().await.unwrap();
    println!("a worker: {} kB resident, {} kB at most", usage.resident_bytes / 1024, usage.peak_bytes / 1024);
}

async fn all() {
    let pool = Pool::new(PoolSettings { wait_max_ms: 60_000, ..PoolSettings::default() });
    println!("walls: {}", pool.start().await.unwrap());
    let trip = pipe_round_trip();
    async_round_trip().await;
    warm(&pool, "warm call without a grant", "sum", json!({"a": 1, "b": 2})).await;
    let (outside, inside) = warm(&pool, "warm call with one grant", "recent_orders", json!({"limit": 5})).await;
    let target = inside * 2 + trip;
    println!("    target: 2 x in process + one round trip = {target:.1?}; it takes {outside:.1?}");
    warm(&pool, "warm call that changes the data", "remember", json!({"note": "x"})).await;
    cold().await;
    adding(&pool).await;
    specs(&pool, 3).await;
    specs(&pool, 35).await;
    for conversations in [1, 8, 64] {
        throughput(&pool, conversations).await;
    }
    idle().await;
}

/// Warm calls alone, many of them: for a profiler.
async fn warm_alone() {
    pipe_round_trip();
    async_round_trip().await;
    let pool = Pool::new(PoolSettings::default());
    for (tool, arguments) in [("sum", json!({"a": 1, "b": 2})), ("recent_orders", json!({"limit": 5}))] {
        let mut session = pool.session(tool, record(BASE), terms());
        let arguments = object(arguments);
        let mut times = Vec::new();
        for _ in 0..CALLS * 10 {
            let began = Instant::now();
            call(&mut session, tool, &arguments).await;
            times.push(began.elapsed());
        }
        line(tool, times);
        println!("    CPU of its worker: {} us", session.usage().await.unwrap().cpu_us);
    }
}

fn main() {
    gesta_sandbox::worker_main();
    if std::env::args().nth(1).is_some_and(|first| first == ECHO) {
        return echo();
    }
    let warm_alone_wanted = std::env::args().any(|argument| argument == "warm");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if warm_alone_wanted { runtime.block_on(warm_alone()) } else { runtime.block_on(all()) }
}
