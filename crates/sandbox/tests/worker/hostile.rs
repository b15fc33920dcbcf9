//! Hostile tools in the real engine: the tools of the shared data where that is there, and those of the fixtures.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::{Either, join, select};
use gesta_document::{AddedTools, Limits, Record, Terms};
use gesta_sandbox::{Cause, Failure, Pool, PoolSettings, Session};
use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::told::{self, Shop, call_with, resident_bytes};
use crate::trial;

/// The argument that makes this program run all hostile tools with no other test beside it.
pub(crate) const ALONE: &str = "hostile-tools";

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("every_hostile_tool_is_answered_in_time_and_costs_nobody_else_anything", in_a_process_of_its_own)]
}

async fn in_a_process_of_its_own() {
    let output = std::process::Command::new("/proc/self/exe").arg(ALONE).output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Those that run at the full limit too.
const AT_THE_FULL_LIMIT: [&str; 6] =
    ["spin", "sort_spin", "strings", "pattern_quadratic", "list_doubles", "sorts_long"];

/// The document that they are added to.
const DESK: &str = include_str!("../../../document/fixtures/orders.stof");

/// The running time of a document here, in milliseconds; one of these for each kind of list.
const SHARED_LIMIT_MS: u64 = 300;
const OWN_LIMIT_MS: u64 = 150;

/// A tool, its arguments, and whether it is one that works.
#[derive(Debug, Clone, Deserialize)]
struct Case {
    name: String,
    source: String,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    ends: String,
}

fn shared() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/hostile-tools.json");
    let Ok(text) = std::fs::read_to_string(path) else { return Vec::new() };
    let tools: BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
    let case = |(name, source): (String, String)| {
        let ends = if name == "ok" { "works" } else { "" };
        Case { name: format!("shared {name}"), source, arguments: None, ends: ends.to_owned() }
    };
    tools.into_iter().map(case).collect()
}

fn own() -> Vec<Case> {
    serde_json::from_str(include_str!("../../../document/fixtures/hostile.json")).unwrap()
}

fn terms(call_time_max_ms: u64) -> Terms {
    Terms { limits: Limits { call_time_max_ms, ..Limits::default() }, added_tools: AddedTools::On, ..told::terms() }
}

fn desk(pool: &Pool, conversation: &str, base: &str, call_time_max_ms: u64) -> Session {
    pool.session(conversation, Record { base: base.to_owned(), ..Record::default() }, terms(call_time_max_ms))
}

/// What a hostile call came to; fails where it took too long.
async fn call(session: &mut Session, tool: &str, arguments: Value, limit_ms: u64) -> Result<Value, Failure> {
    let began = Instant::now();
    let outcome = call_with(session, tool, arguments, &Shop::default()).await;
    let took = began.elapsed();
    assert!(took < Duration::from_millis(limit_ms + 300 + 200), "`{tool}` took {took:?}: {outcome:?}");
    outcome.map(|called| {
        assert!(called.log.len() <= 16 * 1024);
        called.result
    })
}

async fn notes(session: &mut Session) -> Value {
    // Its answer is no matter of the clock that the hostile ones run against.
    call_with(session, "recall", json!({}), &Shop::default()).await.unwrap().result
}

/// Adds a tool to a conversation that has a note, calls it, and sees that the conversation goes on as it was.
async fn added(pool: &Pool, case: &Case, limit_ms: u64) {
    let mut session = desk(pool, &case.name, DESK, limit_ms);
    call_with(&mut session, "remember", json!({"note": "x"}), &Shop::default()).await.unwrap();
    let said = match call(&mut session, "add_tool", json!({"source": case.source}), limit_ms).await {
        Ok(said) if session.record().added.is_empty() => format!("not added: {said}"),
        Err(why) => format!("not added: {why}"),
        Ok(_) => {
            let tool = session.record().added[0].name.clone();
            let arguments = case.arguments.clone().unwrap_or_else(|| json!({}));
            let outcome = call(&mut session, &tool, arguments, limit_ms).await;
            assert!(outcome.is_ok() || case.ends != "works", "{}: {outcome:?}", case.name);
            told(outcome)
        }
    };
    println!("{}: {said}", case.name);
    let kept = notes(&mut session).await;
    assert_eq!(kept[0], "x", "after {}: {said}", case.name);
    assert_eq!(session.specs().await.unwrap().len(), 5 + session.record().added.len());
    if said.starts_with("not added") && case.ends.is_empty() {
        in_the_base(pool, case, limit_ms).await;
    }
}

/// The same where the operator himself has written it, so that no guard stands before it.
async fn in_the_base(pool: &Pool, case: &Case, limit_ms: u64) {
    let base = DESK.replacen("tools: {", &format!("tools: {{\n{}\n", case.source), 1);
    let mut session = desk(pool, &format!("base {}", case.name), &base, limit_ms);
    let called = call(&mut session, "t", json!({}), limit_ms).await;
    let opens = !called.as_ref().is_err_and(|why| matches!(why.cause, Cause::Open(_)));
    println!("{}, in the base: {}", case.name, told(called));
    if opens {
        assert_eq!(notes(&mut session).await, json!([]), "after {}", case.name);
    }
}

fn told(outcome: Result<Value, Failure>) -> String {
    let mut text = match outcome {
        Ok(result) => format!("gives {result}"),
        Err(why) => format!("fails: {why}"),
    };
    text.truncate(text.floor_char_boundary(120));
    text.replace('\n', " ")
}

/// Calls of a second conversation, until it is dropped. The longest that one took.
async fn answered_throughout(pool: &Pool, longest: &std::cell::Cell<Duration>) {
    let mut other = desk(pool, "other", DESK, 2_000);
    loop {
        let began = Instant::now();
        let orders = call_with(&mut other, "recent_orders", json!({"limit": 3}), &Shop::default()).await.unwrap();
        assert_eq!(orders.result[0]["id"], "o_1");
        longest.set(longest.get().max(began.elapsed()));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn alone() {
    let pool = Pool::new(PoolSettings::default());
    println!("in force: {}", pool.start().await.unwrap());
    let full: Vec<_> = own().into_iter().filter(|case| AT_THE_FULL_LIMIT.contains(&case.name.as_str())).collect();
    let cases = shared().into_iter().map(|case| (case, SHARED_LIMIT_MS));
    let cases = cases.chain(own().into_iter().map(|case| (case, OWN_LIMIT_MS)));
    let cases: Vec<_> = cases.chain(full.into_iter().map(|case| (case, 2_000))).collect();
    added(&pool, &cases[0].0, SHARED_LIMIT_MS).await;
    let before = resident_bytes();
    let longest = std::cell::Cell::new(Duration::ZERO);
    // Two at a time: most of them wait for a clock.
    let lane = |first: usize| {
        let (pool, cases) = (&pool, &cases);
        async move {
            for (case, limit_ms) in cases.iter().skip(first).step_by(2) {
                added(pool, case, *limit_ms).await;
            }
        }
    };
    let all = std::pin::pin!(join(lane(0), lane(1)));
    let other = std::pin::pin!(answered_throughout(&pool, &longest));
    assert!(matches!(select(all, other).await, Either::Left(_)));
    let grown = resident_bytes().saturating_sub(before);
    println!("{} tools; a second conversation waited {:?} at most", cases.len(), longest.get());
    println!("the parent grew by {} kB", grown / 1024);
    assert!(longest.get() < Duration::from_secs(1), "{longest:?}");
    assert!(grown < 5 * 1024 * 1024, "{grown} bytes");
}
