//! What goes wrong with a document: it is told apart, it is told where, and what was printed until then is there.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, unreachable_pub)]
mod common;

use common::{call, document, record, terms};
use gesta_document::{AddedTools, CallError, GrantName, Host, OpenError, Record, Terms, check, open};
use gesta_run::json::Object;
use serde_json::{Value, json};

/// A host that takes what is printed.
#[derive(Default)]
struct Listens(String);

impl Host for Listens {
    fn grant(&mut self, grant: &GrantName, _: Object) -> Result<Value, String> {
        Err(format!("{grant} is closed"))
    }

    fn print(&mut self, text: &str) -> bool {
        self.0.push_str(text);
        true
    }
}

const PRINTS: &str = "tools: {
    #[tool('t')] fn fine() -> int { pln('one'); pln('two'); 1 }
    #[tool('t')] fn throws() -> int { pln('one'); pln('two'); throw('x'); 1 }
    #[tool('t')] fn spins() -> int { pln('one'); pln('two'); while (true) {} 1 }
    #[tool('t')] fn asks() -> int { pln('one'); pln('two'); await App.orders(1); 1 }
    #[tool('t')] fn nests(n: int = 0) -> int { if (n == 0) { pln('one'); pln('two'); } 1 + self.nests(n + 1) }
}";

#[test]
fn what_is_printed_reaches_the_host_as_it_is_printed() {
    for tool in ["fine", "throws", "spins", "asks", "nests"] {
        let mut document = document(PRINTS, &terms());
        let mut host = Listens::default();
        let outcome = document.call(tool, &Object::new(), &mut host);
        assert_eq!(host.0, "one\ntwo\n", "{tool}");
        assert_eq!(outcome.map(|called| called.log).unwrap_or_default(), "", "{tool}");
    }
}

#[test]
fn a_log_that_is_cut_says_so_whoever_takes_it() {
    let source = "tools: { #[tool('t')] fn talks() -> int { for (let i = 0; i < 200; i += 1) { pln('a line'); } 1 } }";
    let mut short = terms();
    short.limits.log_bytes_max = 600;
    let log = call(&mut *document(source, &short), "talks", json!({})).unwrap().log;
    let mut host = Listens::default();
    document(source, &short).call("talks", &Object::new(), &mut host).unwrap();
    assert_eq!(log, host.0);
    assert!(log.len() <= 600 && log.ends_with("[what was printed beyond 600 bytes is left out]\n"), "{log}");
}

#[test]
fn limits_are_told_apart() {
    let error = call(&mut *document(PRINTS, &terms()), "nests", json!({})).unwrap_err();
    assert!(matches!(error, CallError::TooDeep { levels_max: 1_000 }), "{error}");
    let mut few = terms();
    few.limits.instructions_max = 10_000;
    let error = call(&mut *document(PRINTS, &few), "spins", json!({})).unwrap_err();
    assert!(matches!(error, CallError::TooMuch { .. }), "{error}");
}

#[test]
fn an_init_function_that_fails_keeps_the_document_closed_and_says_where() {
    for (body, why) in [
        ("throw('no luck');", "no luck"),
        ("while (true) {}", "longer than 300 ms"),
        ("await App.orders(1);", "cannot be called while the document is loaded"),
        ("self.boot();", "too deeply"),
        ("'h\u{e9}llo'.substring(0, 2);", "the engine gave up"),
    ] {
        let base = format!("tools: {{}}\n\n#[init]\nfn boot() {{ {body} }}\n");
        for error in [open(&record(&base), &terms()).map(drop).unwrap_err(), check(&base, &terms()).unwrap_err()] {
            let OpenError::Base { message, at, frame } = &error else { panic!("{error}") };
            assert!(message.contains("`boot`") && message.contains(why), "{body}: {message}");
            assert_eq!((at.line, frame.lines().next().unwrap().starts_with("4 | fn boot()")), (4, true), "{frame}");
        }
    }
    let base =
        "count: 1\n#[init]\nfn boot() { root.count = 2; }\ntools: { #[tool('t')] fn get() -> int { root.count } }\n";
    assert_eq!(call(&mut *document(base, &terms()), "get", json!({})).unwrap().result, json!(2));
}

#[test]
fn names_that_stand_twice_are_told() {
    let base = "tools: {\n    #[tool('a')]\n    fn a(n: int, m: int, n: str) -> int { 1 }\n    // #[tool('c')] fn a() {}\n    inner: {\n        #[tool('b')]\n        fn b() -> int { 1 }\n    }\n    #[tool('b')]\n    async fn b() -> int { 2 }\n}\n";
    let report = check(base, &terms()).unwrap();
    assert!(report.warnings.iter().any(|it| it.contains("`b` (lines 7 and 10)")), "{:?}", report.warnings);
    assert!(report.warnings.iter().any(|it| it.contains("`a` has two parameters named `n`")), "{:?}", report.warnings);
    assert_eq!(report.warnings.len(), 2, "{:?}", report.warnings);
    let mut document = document("tools: {}", &Terms { added_tools: AddedTools::On, ..terms() });
    let refused = document.add_tool("#[tool('t')]\nfn t(a: int, b: list = [1, 2], a: str) -> int { 1 }").unwrap_err();
    assert_eq!((refused.at.unwrap().line, refused.at.unwrap().column), (2, 32), "{refused}");
    document.add_tool("#[tool('t')] fn t(a: int, b: list = [a_name(1, 2), 3]) -> int { 1 }").unwrap();
}

#[test]
fn tools_of_a_foreign_image_are_not_taken_and_are_named() {
    let theirs = "notes: ['tea']\ntools: {\n    #[tool('Ours too')] fn ours() -> int { 1 }\n    #[tool('Theirs')] fn theirs() -> int { 2 }\n    fn helper() -> int { 3 }\n}\n";
    let image = document(theirs, &terms()).export(gesta_document::Form::Bstf).unwrap();
    let base = "notes: []\ntools: {\n    #[tool('Ours')] fn ours() -> int { root.notes.len() }\n}\n".to_owned();
    let mut document = open(&Record { base, data: Some(image), ..Record::default() }, &terms()).unwrap();
    assert_eq!(document.left_out(), ["theirs"]);
    assert_eq!(call(&mut *document, "ours", json!({})).unwrap().result, json!(1));
    let data = document.save().unwrap();
    let again = Record { base: "tools: {}".to_owned(), data: Some(data), ..Record::default() };
    assert!(open(&again, &terms()).unwrap().left_out().is_empty(), "what we save holds no functions");
}

#[test]
fn what_is_no_number_crosses_nowhere() {
    let source = "tools: {
        #[tool('t')] fn none() -> unknown { const n = 0; 100.0 / n }
        #[tool('t')] fn within() -> unknown { [1, 1.0 / 0.0] }
        #[tool('t')] fn asks() -> int { const n = 0; await App.refund('o_1', 100.0 / n); 1 }
    }";
    for tool in ["none", "within", "asks"] {
        let mut document = document(source, &terms());
        let mut host = Listens::default();
        let why = document.call(tool, &Object::new(), &mut host).unwrap_err().to_string();
        assert!(why.contains("division by zero"), "{tool}: {why}");
    }
}
