//! Workers that have been taken over: whatever they say, the parent is not harmed and the call fails.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use gesta_document::Record;
use gesta_sandbox::{Cause, Isolation, Pool, PoolSettings, WorkerCommand};
use libtest_mimic::Trial;
use serde_json::json;

use crate::told::{Shop, call_with, resident_bytes, terms};
use crate::toy::TOY;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a_worker_that_lies_costs_its_own_call_and_nothing_else", lies)]
}

/// The argument that makes this program a worker that lies; the kind of lie follows.
pub(crate) const LIAR: &str = "liar";

const OPENED: &str = r#"{"opened":{"added":[]}}"#;
const READY: &str = r#"{"ready":{"walls":{"standing":[],"missing":[]}}}"#;

/// What it says when it is asked to call a tool, and what the failure says of it.
const LIES: [(&str, &str, &str); 13] = [
    ("garbage", "nonsense\n", "expected"),
    ("nothing", "\n", "EOF while parsing"),
    ("another_answer", "{\"specs\":{\"specs\":[]}}\n", "it answers something else"),
    ("unasked", "{\"saved\":{\"data\":\"\"}}\n{\"saved\":{\"data\":\"\"}}\n", "it speaks out of turn"),
    ("deep", "DEEP", "recursion limit exceeded"),
    ("long", "LONG", "a line longer than"),
    (
        "wrong_number",
        "{\"grant\":{\"n\":7,\"grant\":{\"library\":\"App\",\"name\":\"orders\"},\"arguments\":{}}}\n",
        "grant call 7 in place of 1",
    ),
    ("not_base64", "{\"saved\":{\"data\":\"?\"}}\n", "Invalid symbol"),
    ("much_data", "DATA", "more kept than there may be"),
    ("many_tools", "TOOLS", "more kept than there may be"),
    ("long_tool", "LONG_TOOL", "more kept than there may be"),
    ("half", "{\"called\"", "exit code 0"),
    ("silent", "", "ran longer than"),
];

/// Plays such a worker.
pub(crate) fn play(kind: &str) {
    let mut out = std::io::stdout().lock();
    let mut line = String::new();
    let mut input = std::io::stdin().lock();
    writeln!(out, "{READY}").unwrap();
    out.flush().unwrap();
    input.read_line(&mut line).unwrap();
    writeln!(out, "{OPENED}").unwrap();
    out.flush().unwrap();
    input.read_line(&mut line).unwrap();
    let lie = LIES.iter().find(|lie| lie.0 == kind).unwrap().1;
    let tool = |source: &str| format!("{{\"name\":\"t\",\"source\":\"{source}\"}}");
    let called = |data: &str, added: &str| {
        format!(
            "{{\"called\":{{\"result\":1,\"added\":[{added}],\"data\":{data},\"log\":\"\",\"running_us\":1,\"resident_bytes\":1}}}}\n"
        )
    };
    let said = match lie {
        "DEEP" => format!("{{\"called\":{{\"result\":{}", "[".repeat(100_000)) + "\n",
        "LONG" => "x".repeat(8 * 1024 * 1024),
        "DATA" => called(&format!("\"{}\"", "AAAA".repeat(400_000)), ""),
        "TOOLS" => called("null", &vec![tool("x"); 33].join(",")),
        "LONG_TOOL" => called("null", &tool(&"x".repeat(9_000))),
        lie => lie.to_owned(),
    };
    // The parent may hang up in the middle of it.
    out.write_all(said.as_bytes()).and_then(|()| out.flush()).ok();
    if kind != "half" {
        std::io::copy(&mut input, &mut std::io::sink()).ok();
    }
}

async fn lies() {
    let before = resident_bytes();
    for (kind, _, says) in LIES {
        let command = WorkerCommand { program: "/proc/self/exe".into(), arguments: vec![LIAR.into(), kind.into()] };
        let pool = Pool::new(PoolSettings { isolation: Isolation::Process(command), ..PoolSettings::default() });
        pool.start().await.unwrap();
        // What a lie costs to read counts as its time; only of silence is it the end.
        let mut terms = terms();
        terms.limits.call_time_max_ms = if kind == "silent" { 100 } else { 20_000 };
        let mut session = pool.session(kind, Record { base: TOY.to_owned(), ..Record::default() }, terms);
        let record = session.record().clone();
        let began = Instant::now();
        let why = call_with(&mut session, "echo", json!({}), &Shop::default()).await.unwrap_err();
        // Nothing hangs for good, however busy the machine; how exact the clock is, others test with less to read.
        assert!(began.elapsed() < Duration::from_secs(60), "{kind} took {:?}", began.elapsed());
        assert!(why.to_string().contains(says), "{kind}: {why}");
        assert_eq!(matches!(why.cause, Cause::Crash { .. }), kind != "silent", "{kind}: {why}");
        assert!(why.grants.is_empty(), "{kind}");
        assert_eq!(session.record(), &record, "{kind}");
    }
    // Room for what other tests of this program hold meanwhile.
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "{grown} bytes");
}
