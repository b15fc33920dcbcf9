//! Hostile tools in the real engine: the tools of the shared data where that is there, and those of the fixtures.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use gesta_document::{AddedTools, Limits, Record, Terms};
use gesta_sandbox::{Failure, Pool, PoolSettings, Session};
use libtest_mimic::Trial;
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
    ["spin", "orphans", "str_double", "regex_quad", "list_append_self", "recurse_catch"];

/// Name and source of every tool.
fn tools() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = std::fs::read_to_string(root.join("../../../shared/data/hostile-tools.json"));
    let mut tools: BTreeMap<String, String> =
        shared.map(|text| serde_json::from_str(&text).unwrap()).unwrap_or_default();
    let own = std::fs::read_dir(root.join("../document/fixtures/hostile")).into_iter().flatten().flatten();
    for file in own.filter(|file| file.path().extension().is_some_and(|it| it == "stof")) {
        let name = file.path().file_stem().unwrap().to_string_lossy().into_owned();
        tools.insert(name, std::fs::read_to_string(file.path()).unwrap());
    }
    tools
}

fn terms(call_time_max_ms: u64) -> Terms {
    Terms { limits: Limits { call_time_max_ms, ..Limits::default() }, added_tools: AddedTools::On, ..told::terms() }
}

const DESK: &str = "
notes: []
tools: {
    #[tool('Lists orders')]
    fn recent_orders(id: str = 'c') -> list { await App.orders(id) }
    #[tool('Keeps a note')]
    fn remember(note: str) -> int { root.notes.push_back(note); root.notes.len() }
}
";

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

/// Adds a tool to a conversation that has a note, calls it, and sees that the conversation goes on.
async fn added(pool: &Pool, name: &str, source: &str, limit_ms: u64) -> String {
    let mut session = desk(pool, name, DESK, limit_ms);
    assert_eq!(call(&mut session, "remember", json!({"note": "x"}), limit_ms).await.unwrap(), 1);
    let said = match call(&mut session, "add_tool", json!({"source": source}), limit_ms).await {
        Ok(said) if session.record().added.is_empty() => format!("not added: {said}"),
        Err(why) => format!("not added: {why}"),
        Ok(_) => {
            let tool = session.record().added[0].name.clone();
            told(call(&mut session, &tool, json!({}), limit_ms).await)
        }
    };
    assert_eq!(
        call(&mut session, "remember", json!({"note": "y"}), limit_ms).await.unwrap(),
        2,
        "after {name}: {said}"
    );
    assert_eq!(session.specs().await.unwrap().len(), 3 + session.record().added.len());
    said
}

/// The same where the operator himself has written it, so that no guard stands before it.
async fn in_the_base(pool: &Pool, name: &str, source: &str, limit_ms: u64) -> String {
    let base = DESK.replace("tools: {", &format!("tools: {{\n{source}\n"));
    let mut session = desk(pool, &format!("base {name}"), &base, limit_ms);
    let called = call(&mut session, "t", json!({}), limit_ms).await;
    let opens = !called.as_ref().is_err_and(|why| matches!(why.cause, gesta_sandbox::Cause::Open(_)));
    let said = told(called);
    if opens {
        let note = call(&mut session, "remember", json!({"note": "x"}), limit_ms).await;
        assert_eq!(note.unwrap(), 1, "after {name}: {said}");
    }
    said
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
        let orders = call_with(&mut other, "recent_orders", json!({}), &Shop::default()).await.unwrap();
        assert_eq!(orders.result[0]["id"], "o_1");
        longest.set(longest.get().max(began.elapsed()));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn alone() {
    let pool = Pool::new(PoolSettings::default());
    println!("in force: {}", pool.start().await.unwrap());
    added(&pool, "warm", "#[tool('x')] fn t() -> int { 1 }", 300).await;
    let before = resident_bytes();
    let longest = std::cell::Cell::new(Duration::ZERO);
    let all = async {
        for (name, source) in tools() {
            let said = added(&pool, &name, &source, 300).await;
            assert!(name != "ok" || said == "gives 290.0", "{said}");
            println!("{name}: {said}");
            if said.starts_with("not added") {
                println!("    in the base: {}", in_the_base(&pool, &name, &source, 300).await);
            }
        }
        for (name, source) in tools().into_iter().filter(|(name, _)| AT_THE_FULL_LIMIT.contains(&name.as_str())) {
            println!("{name}, full limit: {}", in_the_base(&pool, &name, &source, 2_000).await);
        }
    };
    let other = answered_throughout(&pool, &longest);
    let (all, other) = (std::pin::pin!(all), std::pin::pin!(other));
    assert!(matches!(futures_util::future::select(all, other).await, futures_util::future::Either::Left(_)));
    let grown = resident_bytes().saturating_sub(before);
    println!("a second conversation waited {:?} at most; the parent grew by {} kB", longest.get(), grown / 1024);
    assert!(longest.get() < Duration::from_secs(1), "{longest:?}");
    assert!(grown < 5 * 1024 * 1024, "{grown} bytes");
}
