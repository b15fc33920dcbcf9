//! What holds for every text, value and image: tried for a while in each test run, longer where `CI` is set or where
//! `GESTA_PROPERTY_SECONDS` says so. Texts begin with the kept corpus, `fixtures/hostile.json`.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::Value;

use crate::engine::for_properties::{Scratch, there_and_back};
use crate::guard::{Names, check_fragment, check_tool};
use crate::{AddedTools, Image, Limits, Record, Terms, open};

/// Tries cases until the time is up.
fn try_for_a_while<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let seconds = std::env::var("GESTA_PROPERTY_SECONDS").ok().and_then(|text| text.parse().ok());
    let usual = if std::env::var_os("CI").is_some() { 60 } else { 4 };
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(usual));
    let mut runner = TestRunner::new(Config { cases: 50, failure_persistence: None, ..Config::default() });
    while Instant::now() < until {
        runner.run(&strategy, &test).unwrap();
    }
}

/// Pieces that mean something to the engine's parser, and characters that do not.
const PIECES: &[&str] = &[
    "#[tool('t')]",
    "#[init]",
    "#[tool(",
    "'t')]",
    "fn ",
    "async ",
    "t(",
    ") ",
    "-> int ",
    "{ ",
    " }",
    "1",
    " a: ",
    "root ",
    "App ",
    "import './x' as y;",
    "data@v1 |1,2|",
    "'",
    "\"",
    "`",
    "${",
    "\\",
    "r#\"",
    "\"#",
    "//",
    "/*",
    "*/",
    "/**",
    "///",
    "\n",
    "\r\n",
    "\r",
    "#",
    "[",
    "]",
    "(",
    ", ",
    ";",
    "new ",
    "const x = ",
    "x => ",
    "=> ",
    "=",
    "\u{e9}",
    "\u{200b}",
    "\u{e000}",
    "null",
    "int",
    "|",
    "<",
    ">",
    "@",
    "!",
    "?",
    ".",
    "::",
    "while (true) {}",
    "$",
];

fn corpus() -> Vec<String> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../fixtures/hostile.json")).unwrap_or_default();
    cases.iter().filter_map(|case| case["source"].as_str().map(ToOwned::to_owned)).collect()
}

/// A source of the corpus or none, cut somewhere, with pieces put in.
fn source() -> impl Strategy<Value = String> {
    let corpus = corpus();
    let pieces = prop::collection::vec((prop::sample::select(PIECES), any::<prop::sample::Index>()), 0..12);
    let tool = "#[tool('t')] fn t(a: int = 1) -> int { const s = 'x'; `${a}` as int }".to_owned();
    let start = prop_oneof![3 => prop::sample::select(corpus), 4 => Just(tool), 1 => Just(String::new())];
    (start, pieces).prop_map(|(mut text, pieces)| {
        for (piece, at) in pieces {
            let mut at = at.index(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert_str(at, piece);
        }
        text
    })
}

#[test]
fn what_the_guard_lets_through_is_one_tool_to_the_engine_too() {
    let limits = Limits::default();
    try_for_a_while(source(), |text| {
        let Ok(function) = check_tool(&text, &Names::default(), &limits) else { return Ok(()) };
        // The engine may refuse more than the guard does, but never find more in it.
        if let Err(refused) = Scratch::new().parse_tool(&text, &function.name) {
            prop_assert!(!refused.message.contains("more than one tool"), "{text}");
        }
        Ok(())
    });
}

#[test]
fn a_fragment_that_passes_makes_no_root_and_runs_nothing() {
    let limits = Limits::default();
    try_for_a_while(source(), |text| {
        if check_fragment(&text, &limits).is_err() {
            return Ok(());
        }
        let mut scratch = Scratch::new();
        let roots = scratch.roots();
        scratch.parse_fragment(&text);
        prop_assert_eq!(scratch.roots(), roots, "{}", text);
        prop_assert_eq!(scratch.runs(), 0, "{}", text);
        Ok(())
    });
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |float| float.is_finite()).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..8).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

#[test]
fn every_value_within_the_limits_comes_back_as_it_went_in() {
    let limits = Limits::default();
    try_for_a_while(json(), |value| {
        prop_assert_eq!(there_and_back(&value, &limits), Ok(value));
        Ok(())
    });
}

#[test]
fn no_value_passes_a_limit() {
    let limits = Limits { value_depth_max: 3, value_bytes_max: 40, value_keys_max: 4, ..Limits::default() };
    try_for_a_while(json(), |value| {
        if let Ok(passed) = there_and_back(&value, &limits) {
            prop_assert!(depth(&passed) <= 4 && passed.to_string().len() <= 40);
            prop_assert_eq!(passed, value);
        }
        Ok(())
    });
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

/// Changes to bytes: one set, one removed, some doubled.
fn damage() -> impl Strategy<Value = Vec<(u8, prop::sample::Index, u8)>> {
    prop::collection::vec((0..3_u8, any::<prop::sample::Index>(), any::<u8>()), 1..8)
}

fn damaged(mut bytes: Vec<u8>, changes: &[(u8, prop::sample::Index, u8)]) -> Vec<u8> {
    for (kind, at, byte) in changes {
        let at = at.index(bytes.len().max(1));
        match kind {
            _ if bytes.is_empty() => {}
            0 => bytes[at] = *byte,
            1 => {
                bytes.remove(at);
            }
            _ => {
                let copied: Vec<u8> = bytes[at..].iter().take(usize::from(*byte)).copied().collect();
                bytes.splice(at..at, copied);
            }
        }
    }
    bytes
}

const BASE: &str =
    "a: 1\nlist: [1, {b: 'x'}]\nbox: { deep: { c: 2.5 } }\n#[type] T: { t: 'y' }\nfn twice(v: int) -> int { v * 2 }
    tools: { #[tool('t')] fn hello() -> int { self.count() } fn count() -> int { 7 } }";

#[test]
fn damaged_data_opens_or_says_so_and_never_brings_a_function() {
    let terms = Terms { added_tools: AddedTools::Off, ..Terms::default() };
    let record = Record { base: BASE.to_owned(), ..Record::default() };
    let saved = open(&record, &terms).unwrap().save().unwrap();
    try_for_a_while(damage(), |changes| {
        let record = Record { data: Some(damaged(saved.clone(), &changes)), ..record.clone() };
        if let Ok(mut document) = open(&record, &terms) {
            let specs = document.specs().unwrap();
            prop_assert_eq!(specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["hello"]);
        }
        Ok(())
    });
}

#[test]
fn no_bytes_make_the_image_reader_panic_and_none_that_were_touched_are_read() {
    let image = Image { base: "b".repeat(64), added: Vec::new(), data: Some(vec![7; 100]) };
    let signed = image.encode(&[b"key"]).unwrap();
    try_for_a_while(damage(), |changes| {
        let bytes = damaged(signed.clone(), &changes);
        if let Ok(read) = Image::decode(&bytes, &[b"key"]) {
            prop_assert_eq!(bytes, signed.clone());
            prop_assert_eq!(&read, &image);
        }
        let _ = Image::decode_trusted(&damaged(signed[..17].to_vec(), &changes));
        Ok(())
    });
}
