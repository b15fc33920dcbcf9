//! Workers that die: each is one failed call, says which limit was met, and costs nobody else anything.

use std::time::Instant;

use gesta_sandbox::{Cause, Failure, GrantOutcome, Pool, Session};
use libtest_mimic::Trial;
use serde_json::json;

use crate::told::{ANSWERED_MS, LIMIT_MS, Shop, call, call_with, pool, resident_bytes, timed, toy};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("every_death_is_one_failed_call_that_says_which_limit_was_met", every_death),
        trial("the_memory_of_the_parent_does_not_grow", memory),
        trial("effects_of_grants_stand_and_are_named_after_a_death", effects),
        trial("a_worker_killed_in_a_call_fails_the_call_and_nothing_else", killed_in_a_call),
        trial("a_worker_killed_between_calls_is_not_noticed", killed_between_calls),
        trial("a_call_that_is_dropped_has_not_happened", dropped),
        trial("no_process_is_left_behind", none_left),
        trial("workers_die_with_their_parent", with_the_parent),
    ]
}

fn is(cause: &Cause, how: &str) -> bool {
    match how {
        "time" => *cause == Cause::TimedOut { limit_ms: LIMIT_MS },
        "memory" => *cause == Cause::Memory,
        "stack" => *cause == Cause::Stack,
        "output" => matches!(cause, Cause::Output { .. }),
        _ => matches!(cause, Cause::Crash { .. }),
    }
}

/// A tool, and the limit that it meets.
const DEATHS: [(&str, &str); 10] = [
    ("spin", "time"),
    ("deadlock", "time"),
    ("grant_flood", "time"),
    ("bomb", "memory"),
    ("one_large_allocation", "memory"),
    ("recurse", "stack"),
    ("flood", "output"),
    ("abort", "crash"),
    ("panic", "crash"),
    ("exit", "crash"),
];

async fn dies(session: &mut Session, tool: &str) -> Failure {
    let (outcome, took) = timed(call_with(session, tool, json!({}), &Shop::default())).await;
    let why = outcome.unwrap_err();
    assert!(took.as_millis() < ANSWERED_MS, "{tool} took {took:?}: {why}");
    why
}

async fn every_death() {
    let pool = pool();
    let mut session = toy(&pool, "a");
    for (n, (tool, how)) in DEATHS.into_iter().enumerate() {
        assert_eq!(call(&mut session, "count", json!({})).await.unwrap().result, n + 1, "before {tool}");
        let why = dies(&mut session, tool).await;
        assert!(is(&why.cause, how), "{tool}: {why}");
        assert_eq!(why.cause.is_timed_out(), how == "time");
        assert!(why.log.len() <= 16 * 1024, "{tool}");
        assert_eq!(session.record().data, Some(vec![n as u8 + 1]), "after {tool}");
    }
}

/// The argument that makes this program do [`measure_memory`], with no other test beside it.
pub(crate) const MEASURE: &str = "measure-memory";

pub(crate) async fn measure_memory() {
    let pool = pool();
    let mut session = toy(&pool, "a");
    dies(&mut session, "flood").await;
    let before = resident_bytes();
    for (tool, _) in DEATHS {
        dies(&mut session, tool).await;
    }
    println!("{}", resident_bytes().saturating_sub(before));
}

async fn memory() {
    let output = std::process::Command::new("/proc/self/exe").arg(MEASURE).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let grown: usize = text.trim().parse().unwrap_or_else(|_| panic!("{text} {:?}", output.stderr));
    println!("the parent grew by {} kB", grown / 1024);
    assert!(grown < 5 * 1024 * 1024, "{grown} bytes");
}

async fn effects() {
    let (pool, shop) = (pool(), Shop::default());
    let mut session = toy(&pool, "a");
    let why = call_with(&mut session, "ask_then_die", json!({"grant": "orders"}), &shop).await.unwrap_err();
    assert_eq!(why.grants[0].outcome, GrantOutcome::Done);
    assert_eq!(
        why.to_string(),
        "the process that the tool ran in has died (signal 6); what it had called stands: App.orders"
    );
}

async fn pid(session: &mut Session) -> rustix::process::Pid {
    let pid = call(session, "pid", json!({})).await.unwrap().result.as_i64().unwrap();
    rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

fn kill(pid: rustix::process::Pid) {
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Waits until a process has ended, by reading its state until it is a zombie or gone.
async fn ended(pid: rustix::process::Pid) {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    while std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z")) {
        tokio::task::yield_now().await;
    }
}

async fn killed_in_a_call() {
    let (pool, shop) = (pool(), Shop::default());
    let mut session = toy(&pool, "a");
    let mut other = toy(&pool, "b");
    call(&mut session, "count", json!({})).await.unwrap();
    let pid = pid(&mut session).await;
    // In its grant the worker waits and the parent is at work.
    let call = call_with(&mut session, "ask", json!({"grant": "wait"}), &shop);
    let killing = async {
        while shop.asked.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        kill(pid);
        crate::told::call(&mut other, "echo", json!({"b": 1})).await.unwrap().result
    };
    let (why, other) = futures_util::future::join(call, killing).await;
    let why = why.unwrap_err();
    assert_eq!(why.cause, Cause::Crash { how: "signal 9".to_owned() });
    assert_eq!(why.grants[0].outcome, GrantOutcome::Done, "the host waited for its end");
    assert_eq!(other, json!({"b": 1}));
    assert_eq!(crate::told::call(&mut session, "count", json!({})).await.unwrap().result, 2);
}

async fn killed_between_calls() {
    let pool = pool();
    let mut session = toy(&pool, "a");
    call(&mut session, "count", json!({})).await.unwrap();
    let pid = pid(&mut session).await;
    kill(pid);
    ended(pid).await;
    assert_eq!(call(&mut session, "count", json!({})).await.unwrap().result, 2);
}

async fn dropped() {
    let pool = pool();
    let mut session = toy(&pool, "a");
    call(&mut session, "count", json!({})).await.unwrap();
    let pid = pid(&mut session).await;
    let shop = Shop::default();
    {
        let call = std::pin::pin!(call_with(&mut session, "ask", json!({"grant": "stuck"}), &shop));
        let asked = async {
            while shop.asked.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        futures_util::future::select(call, std::pin::pin!(asked)).await;
    }
    ended(pid).await;
    assert_eq!(call(&mut session, "echo", json!({"next": 1})).await.unwrap().result, json!({"next": 1}));
    assert_eq!(call(&mut session, "count", json!({})).await.unwrap().result, 2);
}

/// The states of this process's children.
fn children() -> Vec<String> {
    let own = format!(" {} ", std::process::id());
    let stats = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let rest = stat.rsplit_once(')')?.1.to_owned();
        rest.get(2..)?.starts_with(&own).then_some(rest)
    });
    stats.collect()
}

async fn none_left() {
    let before = children().len();
    let pool: Pool = pool();
    for tool in ["spin", "abort", "exit"] {
        dies(&mut toy(&pool, tool), tool).await;
    }
    drop(pool);
    let until = Instant::now() + std::time::Duration::from_secs(5);
    while children().len() > before {
        assert!(Instant::now() < until, "{:?}", children());
        tokio::task::yield_now().await;
    }
}

/// The argument that makes this program start a worker, tell its id, and wait to be killed.
pub(crate) const HOLD: &str = "hold-a-worker";

pub(crate) async fn hold() {
    let pool = pool();
    println!("{}", pid(&mut toy(&pool, "a")).await.as_raw_nonzero());
    std::future::pending::<()>().await;
}

async fn with_the_parent() {
    use std::io::BufRead;
    let mut holder = std::process::Command::new("/proc/self/exe");
    let mut holder = holder.arg(HOLD).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let worker = rustix::process::Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    assert!(rustix::process::test_kill_process(worker).is_ok());
    holder.kill().unwrap();
    holder.wait().unwrap();
    ended(worker).await;
}
