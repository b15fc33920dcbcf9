//! Calls: arguments, grants, limits, clocks, and what a failed one leaves behind.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, unreachable_pub)]
mod common;

use std::time::{Duration, Instant};

use common::{arguments, call, desk, document, grant, terms};
use gesta_document::{AddedTools, CallError, GrantName, Host, Limits, OpenError, Record, Terms, open};
use gesta_run::json::Object;
use serde_json::{Value, json};

const BASE: &str = "
count: 0
kept: []
tools: {
    #[tool('t')] fn add(a: int, b: int = 2, c?: int) -> int { a + b + (c ?? 0) }
    #[tool('t')] fn echo(value: unknown) -> unknown { value }
    #[tool('t')] fn tell(a: str, b: str) -> unknown { await App.tell(a, b, 'surplus') }
    #[tool('t')] fn tell_named() -> unknown { App.tell(second = 2, first = 1) }
    #[tool('t')] fn tell_some() -> unknown { App::tell('only') }
    #[tool('t')] fn tell_wrong() -> unknown { App.tell(third = 2) }
    #[tool('t')] fn missing() -> unknown { App.nothing('x') }
    #[tool('t')] fn missing_library() -> unknown { `${Mail.send('x')}` }
    #[tool('t')] fn caught() -> str { try { await App.fail('why'); } catch (error: str) { return 'caught ' + error; } 'no' }
    #[tool('t')] fn failing() -> unknown { root.count += 1; await App.fail('why'); 1 }
    #[tool('t')] fn bump() -> int { root.count += 1; root.count }
    #[tool('t')] fn flood(times: int) -> int { for (const i in times) App.tell(i, i); times }
    #[tool('t')] fn large(size: int) -> unknown { let s = 'x'; while (s.len() < size) s = s + s; App.tell(s, 1) }
    #[tool('t')] fn side_by_side() -> list { const a = self.slow(1); const b = self.slow(2); [await a, await b] }
    async fn slow(n: int) -> unknown { sleep(5ms); const got = App.tell(n, 0); got.get('first') }
    #[tool('t')] fn await_failure() -> str { const p = self.fails(); try { await p; } catch { return 'seen'; } 'unseen' }
    async fn fails() -> int { sleep(1ms); throw('inside'); 1 }
    #[tool('t')] fn unheard() -> int { self.fails(); 1 }
    #[tool('t')] fn left_behind() -> int { self.spin(); 5 }
    async fn spin() { while (true) { self.nop(); } }
    fn nop() { }
    #[tool('t')] fn sleeper() -> int { sleep(1hr); 1 }
    #[tool('t')] fn fork() -> int { self.again(); 1 }
    async fn again() { self.again(); self.again(); }
    #[tool('t')] fn deep() -> int { self.deep() }
    #[tool('t')] fn clock() -> unknown { const now: int = Time.now(); [now % 86400000, Time.now_rfc3339().len()] }
    #[tool('t')] fn dice() -> str { nanoid() }
    #[tool('t')] fn print() { pln('one ', 2); err([1, {'a': 2}]); }
    #[tool('t')] fn panics() -> str { 'h\u{e9}llo'.substring(1, 2) }
    #[tool('t')] fn type_error() -> int { const r = root.counter.rat.round(2); r }
    #[tool('t')] fn again_awaited() -> list { const p = self.slow(7); [await p, await p] }
}
#[main] fn main() { pln('main ran'); }
";

struct Slow;

impl Host for Slow {
    fn grant(&mut self, _: &GrantName, arguments: Object) -> Result<Value, String> {
        std::thread::sleep(Duration::from_millis(120));
        Ok(Value::Object(arguments))
    }
}

struct Failing(Vec<Object>);

impl Host for Failing {
    fn grant(&mut self, grant: &GrantName, arguments: Object) -> Result<Value, String> {
        self.0.push(arguments.clone());
        if grant.name == "fail" { Err(format!("failed: {}", arguments["text"])) } else { Ok(Value::Object(arguments)) }
    }
}

fn base() -> Terms {
    Terms { grants: vec![grant("tell", &["first", "second"]), grant("fail", &["text"])], ..terms() }
}

#[test]
fn arguments_are_matched_by_name_and_what_is_missing_takes_its_default() {
    let mut document = document(BASE, &base());
    let mut result = |given| call(&mut *document, "add", given).map(|called| called.result);
    assert_eq!(result(json!({"a": 1})), Ok(json!(3)));
    assert_eq!(result(json!({"a": 1, "c": 10, "surplus": true})), Ok(json!(13)));
    assert_eq!(result(json!({"b": 5, "a": 1, "c": null})), Ok(json!(6)));
    let missing = result(json!({"b": 5})).unwrap_err().to_string();
    assert!(missing.contains("missing argument 'a' for add(a: int, b?: int"), "{missing}");
    for value in [json!([1, 2.5, "x", null, true, {"a": {"b": []}}]), json!(7), json!(7.0), json!("é"), Value::Null] {
        assert_eq!(call(&mut *document, "echo", json!({"value": value})).unwrap().result, value);
    }
}

#[test]
fn grants_are_called_with_their_arguments_by_name() {
    let mut document = document(BASE, &base());
    let mut told = |tool: &str, given: Value| {
        let mut host = Failing(Vec::new());
        let called = document.call(tool, &arguments(given), &mut host);
        (called.map(|called| called.result).map_err(|error| error.to_string()), host.0.len())
    };
    assert_eq!(told("tell", json!({"a": "x", "b": "y"})), (Ok(json!({"first": "x", "second": "y"})), 1));
    assert_eq!(told("tell_named", json!({})), (Ok(json!({"first": 1, "second": 2})), 1));
    assert_eq!(told("tell_some", json!({})), (Ok(json!({"first": "only"})), 1));
    let (wrong, asked) = told("tell_wrong", json!({}));
    assert_eq!(
        (wrong.unwrap_err().lines().next().unwrap(), asked),
        ("unknown argument 'third' for App.tell(first?, second?)", 0)
    );
    assert_eq!(told("missing", json!({})), (Err("grant App.nothing is not available".to_owned()), 0));
    assert_eq!(told("missing_library", json!({})), (Err("grant Mail.send is not available".to_owned()), 0));
    assert_eq!(told("caught", json!({})), (Ok(json!("caught failed: \"why\"")), 1));
    assert_eq!(told("side_by_side", json!({})), (Ok(json!([1, 2])), 2));
    assert_eq!(told("again_awaited", json!({})), (Ok(json!([7, 7])), 1));
    assert_eq!(told("await_failure", json!({})), (Ok(json!("seen")), 0));
}

#[test]
fn a_library_may_have_a_small_letter_and_what_it_lacks_is_named() {
    let base = "tools: { #[tool('t')] fn a() -> unknown { shop.tell(1) } #[tool('t')] fn b() -> unknown { await shop.lacks(1) } }";
    let mut spec = grant("tell", &["first"]);
    spec.name.library = "shop".to_owned();
    let mut document = document(base, &Terms { grants: vec![spec], ..terms() });
    assert_eq!(call(&mut *document, "a", json!({})).unwrap().result, json!({"first": 1}));
    assert_eq!(call(&mut *document, "b", json!({})).unwrap_err().to_string(), "grant shop.lacks is not available");
}

#[test]
fn a_call_that_fails_leaves_everything_as_it_was() {
    let mut document = document(BASE, &base());
    let mut bumped = 0;
    for tool in ["failing", "left_behind", "sleeper", "fork", "deep", "panics", "type_error"] {
        let error = document.call(tool, &Object::new(), &mut Failing(Vec::new())).unwrap_err();
        assert!(!error.to_string().is_empty(), "{tool}");
        bumped += 1;
        let called = call(&mut *document, "bump", json!({})).unwrap();
        assert_eq!(called.result, json!(bumped), "after {tool}: {error}");
        assert!(called.data.is_some());
    }
}

#[test]
fn the_clock_ends_what_sleeps_and_what_was_left_behind() {
    let mut document = document(BASE, &base());
    for tool in ["left_behind", "sleeper"] {
        let started = Instant::now();
        let error = document.call(tool, &Object::new(), &mut Failing(Vec::new())).unwrap_err();
        assert_eq!(error, CallError::TimedOut { limit_ms: 300 });
        assert!(started.elapsed() < Duration::from_secs(10), "{tool} took {:?}", started.elapsed());
    }
}

#[test]
fn every_end_says_which_limit_was_met() {
    let limits = Limits { call_time_max_ms: 60_000, processes_max: 16, ..Limits::default() };
    let mut document = document(BASE, &Terms { limits, ..base() });
    for (tool, given, says) in [
        ("fork", json!({}), "the tool began more than 16 async functions"),
        ("deep", json!({}), "the tool calls itself too deeply (more than 1000 levels)"),
        ("flood", json!({"times": 51}), "a call may use grants 50 times; App.tell is one too many"),
        ("large", json!({"size": 65_536}), "the arguments of App.tell are larger than 65536 bytes"),
        ("dice", json!({}), "function 'nanoid' not found"),
        ("panics", json!({}), "the engine gave up: end byte index 2 is not a char boundary"),
        ("type_error", json!({}), "cannot call 'round' on null"),
    ] {
        let error = document.call(tool, &arguments(given), &mut Failing(Vec::new())).unwrap_err().to_string();
        assert!(error.starts_with(says), "{tool}: {error}");
    }
    assert_eq!(call(&mut *document, "flood", json!({"times": 50})).unwrap().result, json!(50));
}

#[test]
fn an_error_of_the_engine_says_where() {
    let mut document = document(BASE, &base());
    let error = call(&mut *document, "type_error", json!({})).unwrap_err().to_string();
    assert!(error.contains("at root.tools.type_error (34:"), "{error}");
}

#[test]
fn the_clock_stands_still_while_a_grant_is_answered() {
    let mut document = document(BASE, &base());
    let called = document.call("flood", &arguments(json!({"times": 4})), &mut Slow).unwrap();
    assert_eq!(called.result, json!(4));
    assert!(called.running_us < 300_000, "{}", called.running_us);
}

#[test]
fn instructions_are_counted_as_well_as_time() {
    let limits = Limits { call_time_max_ms: 60_000, instructions_max: 20_000, ..Limits::default() };
    let mut document = document(BASE, &Terms { limits, ..base() });
    let error = call(&mut *document, "left_behind", json!({})).unwrap_err();
    assert_eq!(error.to_string(), "the tool ran more than 20000 instructions");
}

#[test]
fn what_is_printed_is_the_log_and_is_cut() {
    let limits = Limits { log_bytes_max: 14, ..terms().limits };
    let mut short = document(BASE, &Terms { limits, ..base() });
    assert_eq!(call(&mut *short, "print", json!({})).unwrap().log, "one 2\n[1,{\"a\"\n");
    let mut long = document(BASE, &base());
    assert_eq!(call(&mut *long, "print", json!({})).unwrap().log, "one 2\n[1,{\"a\":2}]\n");
    assert_eq!(call(&mut *long, "unheard", json!({})).unwrap().log, "an async function failed: inside\n");
    assert_eq!(long.main(&mut desk()).unwrap().log, "main ran\n");
}

#[test]
fn a_document_knows_the_date_and_nothing_finer() {
    let mut document = document(BASE, &base());
    assert_eq!(call(&mut *document, "clock", json!({})).unwrap().result, json!([0, 25]));
}

#[test]
fn grants_that_make_no_sense_are_refused_on_opening() {
    let record = Record { base: BASE.to_owned(), ..Record::default() };
    let with = |library: &str, name: &str, param: &str| {
        let mut spec = grant(name, &[param]);
        spec.name.library = library.to_owned();
        Terms { grants: vec![spec.clone(), grant("tell", &[]), spec], ..terms() }
    };
    for (terms, says) in [
        (with("Num", "abs", "x"), "`Num` belongs to the engine"),
        (with("root", "abs", "x"), "`root` belongs to the engine"),
        (with("App", "a-b", "x"), "`a-b` of the grant App.a-b is no name"),
        (with("App", "a", "x y"), "`x y` of the grant App.a is no name"),
        (with("App", "a", "x"), "the grant App.a is given twice"),
    ] {
        let error = open(&record, &terms).err().unwrap();
        assert!(matches!(&error, OpenError::Terms { message } if message.starts_with(says)), "{error}");
    }
}

#[test]
fn without_permission_no_tool_is_added() {
    let with_own = "tools: { #[tool('t')] fn add_tool(source: str) -> str { parse(source, self); 'added' } }";
    let tool = json!({"source": "#[tool('x')] fn one() -> int { 1 }"});
    for (base, added_tools, offered) in [
        (with_own, AddedTools::AsBase, true),
        (with_own, AddedTools::Off, false),
        (BASE, AddedTools::AsBase, false),
        (BASE, AddedTools::On, true),
    ] {
        let mut document = document(base, &Terms { added_tools, ..terms() });
        let specs = document.specs().unwrap();
        assert_eq!(specs.iter().any(|spec| spec.name == "add_tool"), offered);
        assert_eq!(call(&mut *document, "add_tool", tool.clone()).is_ok(), offered);
        assert_eq!(document.added().len(), usize::from(offered));
    }
}
