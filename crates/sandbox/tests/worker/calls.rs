//! Calls that go well, grants, and what a session keeps.

use std::time::Duration;

use gesta_document::{Author, CallError, Form, Record};
use gesta_run::{Timestamp, ToolSpec};
use gesta_sandbox::{
    Call, Cause, Demand, GrantOutcome, Isolation, NoGrants, Pool, PoolSettings, StartError, Wall, WorkerCommand,
};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::told::{Shop, app, call, call_with, pool, terms, toy};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_call_gives_its_result_and_what_was_printed", result_and_log),
        trial("a_grant_is_answered_by_the_parent", grant),
        trial("an_error_of_a_grant_is_thrown_inside", grant_throws),
        trial("the_clock_of_a_document_stands_still_during_a_grant", clock_stands_still),
        trial("a_grant_that_does_not_answer_is_unknown", stuck_grant),
        trial("grants_have_limits_of_size_and_number", grant_limits),
        trial("a_grant_that_was_not_lent_is_not_available", not_lent),
        trial("the_whole_call_ends_at_the_time_limit_of_the_tool", whole_call),
        trial("a_session_keeps_what_a_call_changed_and_added", keeps),
        trial("the_next_session_of_a_conversation_finds_its_document_open", affinity),
        trial("a_session_with_another_record_is_never_given_the_open_document", other_record),
        trial("a_source_from_outside_is_refused_or_recorded", add_tool),
        trial("a_document_that_does_not_open_says_why", does_not_open),
        trial("specs_export_save_main_and_usage_are_answered", the_rest),
        trial("a_worker_is_replaced_after_its_calls_and_at_its_memory", recycled),
        trial("a_program_that_is_no_worker_is_named", no_worker),
        trial("idle_workers_are_given_back", given_back),
        trial("without_isolation_a_document_runs_in_this_process", unsafe_in_process),
    ]
}

async fn result_and_log() {
    let pool = pool();
    let mut session = toy(&pool, "a");
    assert_eq!(
        call(&mut session, "echo", json!({"x": [1, 2.5, "ä\n"]})).await.unwrap().result,
        json!({"x": [1, 2.5, "ä\n"]})
    );
    let said = call(&mut session, "say", json!({"text": "hello"})).await.unwrap();
    assert_eq!(said.log, "hello\n");
    assert_eq!(call(&mut session, "echo", json!({})).await.unwrap().log, "", "of another call");
    let why = call(&mut session, "throw", json!({"message": "no such order"})).await.unwrap_err();
    assert_eq!(why.to_string(), "no such order");
    assert!(!why.cause.is_timed_out());
}

async fn grant() {
    let (pool, shop) = (pool(), Shop::default());
    let mut session = toy(&pool, "a");
    let called = call_with(&mut session, "ask", json!({"grant": "orders", "id": 7}), &shop).await.unwrap();
    assert_eq!(called.result, json!([{"id": "o_1", "total": 40}, {"id": 7, "total": 250}]));
    let asked = shop.asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].1["id"], 7);
}

async fn grant_throws() {
    let (pool, shop) = (pool(), Shop::default());
    let mut session = toy(&pool, "a");
    let why = call_with(&mut session, "ask", json!({"grant": "refund"}), &shop).await.unwrap_err();
    assert_eq!(why.to_string(), "refunds over 100 need a person");
    assert_eq!(why.grants[0].outcome, GrantOutcome::Failed);
}

async fn clock_stands_still() {
    let (pool, shop) = (pool(), Shop::default());
    let mut session = toy(&pool, "a");
    let called = call_with(&mut session, "ask", json!({"grant": "wait"}), &shop).await.unwrap();
    assert_eq!(called.result, "late but fine");
}

async fn stuck_grant() {
    let pool = Pool::new(PoolSettings { grant_time_max_ms: 50, ..PoolSettings::default() });
    let mut session = toy(&pool, "a");
    let why = call_with(&mut session, "ask", json!({"grant": "stuck"}), &Shop::default()).await.unwrap_err();
    assert_eq!(why.grants[0].outcome, GrantOutcome::Unknown);
    assert!(why.to_string().starts_with("App.stuck did not answer within 50 ms"), "{why}");
    assert!(why.to_string().ends_with("the outcome is unknown of: App.stuck"), "{why}");
}

async fn grant_limits() {
    let (pool, shop) = (pool(), Shop::default());
    let mut session = toy(&pool, "a");
    let why = call_with(&mut session, "ask", json!({"grant": "large"}), &shop).await.unwrap_err();
    assert!(why.to_string().contains("its result is longer than 262144 bytes"), "{why}");
    let long = json!({"grant": "orders", "id": "x".repeat(70_000)});
    let why = call_with(&mut session, "ask", long, &shop).await.unwrap_err();
    assert!(why.to_string().contains("its arguments are longer than 65536 bytes"), "{why}");
    let often = call_with(&mut session, "ask_often", json!({"times": 60}), &shop).await.unwrap();
    assert_eq!(often.result, 50);
    assert_eq!(shop.asked.lock().unwrap().len(), 51, "what is above the limit does not reach the host");
}

async fn not_lent() {
    let (pool, shop) = (pool(), Shop::default());
    let mut session = toy(&pool, "a");
    let why = call_with(&mut session, "ask", json!({"grant": "everything"}), &shop).await.unwrap_err();
    assert_eq!(why.to_string(), "grant App.everything is not available");
    assert!(shop.asked.lock().unwrap().is_empty());
}

async fn whole_call() {
    let (pool, shop) = (pool(), Shop::default());
    let mut session = toy(&pool, "a");
    let arguments = json!({"grant": "stuck"});
    let arguments = arguments.as_object().unwrap();
    let short = Call { tool: "ask", arguments, time_limit_ms: 200, author: None, at: None };
    let why = session.call(short, &shop).await.unwrap_err();
    assert_eq!(why.cause, Cause::CallTimedOut { limit_ms: 200 });
    assert!(why.cause.is_timed_out());
    assert_eq!((why.grants[0].grant.clone(), why.grants[0].outcome), (app("stuck"), GrantOutcome::Unknown));
    assert_eq!(call(&mut session, "echo", json!({"after": 1})).await.unwrap().result, json!({"after": 1}));
}

async fn keeps() {
    let (pool, shop) = (pool(), Shop::default());
    let mut session = toy(&pool, "a");
    assert_eq!(call(&mut session, "count", json!({})).await.unwrap().result, 1);
    let author = Author::Agent { run: "r_1".to_owned() };
    let arguments = json!({"name": "mine", "source": "fn mine()"});
    let at = Some(Timestamp(5));
    let add = Call {
        tool: "add",
        arguments: arguments.as_object().unwrap(),
        time_limit_ms: 9_000,
        author: Some(&author),
        at,
    };
    assert!(session.specs().await.unwrap().is_empty());
    session.call(add, &NoGrants).await.unwrap();
    assert_eq!(session.specs().await.unwrap(), [ToolSpec::new("mine", "added", json!({"type": "object"}))]);
    let mine = call_with(&mut session, "mine", json!({"id": 3}), &shop).await.unwrap();
    assert_eq!(mine.result[1]["id"], 3);
    let record = session.record();
    assert_eq!(record.data, Some(vec![1]));
    assert_eq!((&record.added[0].author, record.added[0].at), (&Some(author), at));
    // Another process goes on from the record alone.
    let elsewhere = pool.clone();
    let mut elsewhere = elsewhere.session("b", record.clone(), terms());
    assert_eq!(call(&mut elsewhere, "count", json!({})).await.unwrap().result, 2);
}

async fn affinity() {
    let pool = pool();
    let mut session = toy(&pool, "a");
    let first = call(&mut session, "pid", json!({})).await.unwrap().result;
    call(&mut session, "count", json!({})).await.unwrap();
    let record = session.record().clone();
    drop(session);
    let mut session = pool.session("a", record, terms());
    assert_eq!(call(&mut session, "pid", json!({})).await.unwrap().result, first);
    assert_eq!(call(&mut session, "count", json!({})).await.unwrap().result, 2);
    let other = call(&mut toy(&pool, "b"), "pid", json!({})).await.unwrap().result;
    assert_ne!(other, first, "no process sees two conversations");
}

async fn other_record() {
    let pool = pool();
    let mut session = toy(&pool, "a");
    let first = call(&mut session, "pid", json!({})).await.unwrap().result;
    call(&mut session, "count", json!({})).await.unwrap();
    // The turn failed: the conversation goes on from before it.
    let mut session = toy(&pool, "a");
    assert_ne!(call(&mut session, "pid", json!({})).await.unwrap().result, first);
    assert_eq!(call(&mut session, "count", json!({})).await.unwrap().result, 1);
}

async fn add_tool() {
    let pool = pool();
    let mut session = toy(&pool, "a");
    let why = session.add_tool("", None, None).await.unwrap_err();
    assert!(matches!(why.cause, Cause::Refused(_)), "{why}");
    let person = Some(Author::Person { name: "ana".to_owned() });
    session.add_tool("mine", person.clone(), None).await.unwrap();
    assert_eq!(session.record().added[0].author, person);
    assert_eq!(session.specs().await.unwrap().len(), 1);
}

async fn does_not_open() {
    let pool = pool();
    let record = Record { base: "toy damaged".to_owned(), ..Record::default() };
    let why = call(&mut pool.session("a", record, terms()), "echo", json!({})).await.unwrap_err();
    assert_eq!(why.to_string(), "the document cannot be opened: the saved data is damaged");
    let record = Record { base: "toy spin".to_owned(), ..Record::default() };
    let why = call(&mut pool.session("a", record, terms()), "echo", json!({})).await.unwrap_err();
    assert!(why.cause.is_timed_out(), "{why}");
}

async fn the_rest() {
    let pool = pool();
    let mut session = toy(&pool, "a");
    assert!(session.specs().await.unwrap().is_empty());
    call(&mut session, "count", json!({})).await.unwrap();
    assert_eq!(session.save().await.unwrap(), [1]);
    assert_eq!(session.export(Form::Bstf).await.unwrap(), [1]);
    let nothing = serde_json::Map::new();
    let main = Call { tool: "", arguments: &nothing, time_limit_ms: 9_000, author: None, at: None };
    assert_eq!(session.main(main, &NoGrants).await.unwrap().log, "main\n");
    let usage = session.usage().await.unwrap();
    assert!(usage.resident_bytes > 1_000_000 && usage.peak_bytes >= usage.resident_bytes, "{usage:?}");
}

async fn recycled() {
    let pool = Pool::new(PoolSettings { calls_max: 3, ..PoolSettings::default() });
    let mut session = toy(&pool, "a");
    let mut processes = Vec::new();
    for _ in 0..7 {
        processes.push(call(&mut session, "pid", json!({})).await.unwrap().result);
    }
    processes.dedup();
    assert_eq!(processes.len(), 3);
    let small = Pool::new(PoolSettings { resident_bytes_max: 1, ..PoolSettings::default() });
    let mut session = toy(&small, "a");
    let first = call(&mut session, "pid", json!({})).await.unwrap().result;
    assert_ne!(call(&mut session, "pid", json!({})).await.unwrap().result, first);
    // A call that met a limit inside costs the worker too.
    let mut session = toy(&pool, "b");
    let first = call(&mut session, "pid", json!({})).await.unwrap().result;
    let why = call(&mut session, "sleep_then_limit", json!({})).await.unwrap_err();
    assert_eq!(why.cause, Cause::Document(CallError::TimedOut { limit_ms: 300 }));
    assert_ne!(call(&mut session, "pid", json!({})).await.unwrap().result, first);
}

async fn no_worker() {
    for (program, says) in [("/nowhere/at/all", "cannot be started"), ("/bin/true", "does not answer as one")] {
        let isolation = Isolation::Process(WorkerCommand { program: program.into(), arguments: Vec::new() });
        let pool = Pool::new(PoolSettings { isolation, ..PoolSettings::default() });
        let why = pool.start().await.unwrap_err();
        assert!(why.to_string().contains(says) && why.to_string().contains(program), "{why}");
        let called = call(&mut toy(&pool, "a"), "echo", json!({})).await;
        assert!(matches!(
            called.unwrap_err().cause,
            Cause::Start(StartError::Program { .. } | StartError::Mute { .. })
        ));
    }
}

async fn given_back() {
    let pool = Pool::new(PoolSettings { idle_max_ms: 30, ..PoolSettings::default() });
    let walls = pool.start().await.unwrap();
    assert!(walls.standing.contains(&Wall::Limits));
    let mut sessions: Vec<_> = (0..4).map(|n| toy(&pool, &format!("c{n}"))).collect();
    for session in &mut sessions {
        assert_eq!(call(session, "echo", json!({})).await.unwrap().result, Value::Object(serde_json::Map::new()));
    }
    let until = tokio::time::Instant::now() + Duration::from_secs(5);
    while pool.counts().kept > 0 || pool.counts().live != 2 {
        assert!(tokio::time::Instant::now() < until, "{:?}", pool.counts());
        tokio::task::yield_now().await;
    }
}

async fn unsafe_in_process() {
    let settings = PoolSettings { isolation: Isolation::None, ..PoolSettings::default() };
    let required = Pool::new(PoolSettings { demand: Demand::Required, ..settings.clone() });
    assert!(matches!(required.start().await, Err(StartError::NotWhole { .. })));
    let pool = Pool::new(settings);
    assert_eq!(pool.start().await.unwrap().to_string(), "none: documents run in this process");
    let base = "tools: {
        #[tool('Lists orders')] fn recent(id: str) -> list { await App.orders(id) }
        #[tool('Runs on')] fn spin() -> int { while (true) {} 1 }
    }";
    let record = Record { base: base.to_owned(), ..Record::default() };
    let mut session = pool.session("a", record, terms());
    let called = call_with(&mut session, "recent", json!({"id": "7"}), &Shop::default()).await.unwrap();
    assert_eq!(called.result[1]["id"], "7");
    let why = call(&mut session, "spin", json!({})).await.unwrap_err();
    assert!(why.cause.is_timed_out(), "{why}");
    assert_eq!(session.specs().await.unwrap().len(), 2);
}
