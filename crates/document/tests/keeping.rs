//! What is kept of a document, and what becomes of it under another base.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, unreachable_pub)]
mod common;

use common::{call, document, record, terms};
use gesta_document::{AddedTools, Document, Form, Image, ImageError, Record, Terms, base_hash, check, open};
use serde_json::{Value, json};

const BASE: &str = "
count: 1
old: 'old'
when: 5min
handler: (x: int): int => x + 1
settings: { deep: { size: 2.5 } tags: ['a'] }
#[type] Note: { text: 'n' fn shout() -> str { self.text.upper() } }
tools: {
    #[tool('t')] fn change() -> unknown {
        root.count = 41; root.count += 1;
        root.settings.deep.size = 3.0;
        root.settings.tags.push_back({'k': [1, (2, 'x')]});
        root.made = new { a: 1, inner: new { b: set(3, 1, 2) } };
        root.note = new Note { text: 'hi' };
        root.same = root.note;
        root.span = 90s;
        root.version = 1.2.3;
        drop('root.old');
        new { lost: true };
        const outer = new { inside: new { v: 'kept' } };
        root.inside = outer.inside;
        const one = new { of: 2 }; const two = new { one: one }; one.two = two;
        root.settings.none = null;
        1
    }
    #[tool('t')] fn tell() -> unknown {
        root.same.text = root.same.text + '!';
        [root.count, root.settings.deep.size, root.settings.tags, root.made.inner.b, root.note.shout(), root.span + 30s,
            root.version as str, root.old, root.when, root.handler(1), root.settings.none, root.inside.v]
    }
}
";

fn told(document: &mut dyn Document) -> Value {
    call(document, "tell", json!({})).unwrap().result
}

fn changed() -> Value {
    json!([42, 3.0, ["a", {"k": [1, [2, "x"]]}], [1, 2, 3], "HI!", "120s", "1.2.3", null, "5min", 2, null, "kept"])
}

fn on() -> Terms {
    Terms { added_tools: AddedTools::On, ..terms() }
}

/// The record of a document in which much was changed.
fn kept() -> Record {
    let mut document = document(BASE, &on());
    let data = call(&mut *document, "change", json!({})).unwrap().data;
    document.add_tool("#[tool('a')] fn extra() -> int { root.count }").unwrap();
    document.add_tool("#[tool('b')] fn other() -> str { 'other' }").unwrap();
    Record { base: BASE.to_owned(), added: document.added().to_vec(), data, data_base: None }
}

#[test]
fn what_was_changed_is_there_in_the_next_process() {
    let record = kept();
    let mut again = open(&record, &on()).unwrap();
    assert_eq!(told(&mut *again), changed());
    assert_eq!(call(&mut *again, "extra", json!({})).unwrap().result, json!(42));
    let mut third = open(&Record { data: Some(again.save().unwrap()), ..record }, &on()).unwrap();
    let twice = told(&mut *third);
    assert_eq!(twice[4], json!("HI!!"));
    assert_eq!(twice[8], json!("5min"));
}

#[test]
fn what_a_call_forgot_is_not_kept_and_what_it_only_read_is_no_change() {
    let mut document = document(BASE, &terms());
    let before = document.save().unwrap().len();
    for _ in 0..20 {
        call(&mut *document, "change", json!({})).unwrap();
    }
    let grown = document.save().unwrap().len();
    assert!(grown < before + 6_000, "{before} {grown}");
    let base = "notes: [1]\nbox: { x: 1 }\ntools: { #[tool('t')] fn read() -> unknown { const all = [root.notes, root.box, root.box.x]; all } }";
    let mut reader = common::document(base, &terms());
    assert_eq!(call(&mut *reader, "read", json!({})).unwrap().data, None);
}

#[test]
fn under_a_changed_base_data_stays_new_fields_come_and_tools_that_clash_are_set_aside() {
    let mut record = kept();
    record.data_base = Some(base_hash(BASE));
    record.base = BASE
        .replace("count: 1", "count: 1\nfresh: 'fresh'\nother_field: 1")
        .replace("tools: {", "tools: {\n#[tool('now of the base')] fn extra() -> str { root.fresh }");
    let mut document = open(&record, &on()).unwrap();
    assert_eq!(call(&mut *document, "extra", json!({})).unwrap().result, json!("fresh"));
    assert_eq!(call(&mut *document, "other", json!({})).unwrap().result, json!("other"));
    let told = told(&mut *document);
    assert_eq!((&told[0], &told[4]), (&json!(42), &json!("HI!")));
    let aside: Vec<(&str, Option<&str>)> =
        document.added().iter().map(|tool| (tool.name.as_str(), tool.set_aside.as_deref())).collect();
    assert_eq!(aside[1], ("other", None));
    assert!(aside[0].1.is_some_and(|reason| reason.contains("the name `extra` is taken")), "{aside:?}");
    // With the name free again it is back.
    let mut back = open(&Record { base: BASE.to_owned(), added: document.added().to_vec(), ..kept() }, &on()).unwrap();
    assert_eq!(call(&mut *back, "extra", json!({})).unwrap().result, json!(42));
}

#[test]
fn what_a_document_has_not_changed_or_cannot_set_comes_from_the_new_base() {
    let base = "const rate: 2\n#[readonly] place: 'old'\nint seen: 1\ngreeting: ['old', {'a': 1}]\nbox: { size: 1 kept: 1 }
        tools: { #[tool('t')] fn tell() -> unknown { root.seen += 1; root.box.kept = 5; [root.rate, root.place, root.seen, root.greeting, root.box.size, root.box.kept] } }";
    let mut document = document(base, &terms());
    assert_eq!(told(&mut *document), json!([2, "old", 2, ["old", {"a": 1}], 1, 5]));
    let changed = base.replace("rate: 2", "rate: 3").replace("'old'", "'new'").replace("seen: 1", "seen: 7");
    let changed = changed.replace("size: 1 kept: 1", "size: 2 kept: 2");
    let data = Some(document.save().unwrap());
    let record = Record { data, data_base: Some(base_hash(base)), ..record(&changed) };
    let mut again = open(&record, &terms()).unwrap();
    assert_eq!(told(&mut *again), json!([3, "new", 3, ["new", {"a": 1}], 2, 5]));
}

#[test]
fn a_tool_that_a_person_switched_off_is_not_there() {
    let mut record = kept();
    record.added[0].set_aside = Some("switched off by ann".to_owned());
    let mut document = open(&record, &on()).unwrap();
    assert!(document.specs().unwrap().iter().all(|spec| spec.name != "extra"));
    assert!(call(&mut *document, "extra", json!({})).is_err());
    assert_eq!(document.added()[0].set_aside.as_deref(), Some("switched off by ann"));
}

#[test]
fn functions_and_roots_in_data_are_dropped() {
    let foreign = "count: 7\ntools: { #[tool('evil')] fn tell() -> str { 'evil' } fn more() -> int { 1 } }\nroot App { fn orders() -> int { 666 } }
        settings: { deep: { size: 9.0 } }\nhandler: (x: int): int => 1000";
    let mut source = document(foreign, &terms_without_grants());
    let data = source.export(Form::Bstf).unwrap();
    let record = Record { data: Some(data), data_base: Some("foreign".to_owned()), ..record(BASE) };
    let mut document = open(&record, &on()).unwrap();
    let names: Vec<String> = document.specs().unwrap().into_iter().map(|spec| spec.name).collect();
    assert_eq!(names, ["change", "tell", "add_tool"]);
    call(&mut *document, "change", json!({})).unwrap();
    assert_eq!(told(&mut *document), changed());
}

fn terms_without_grants() -> Terms {
    Terms { grants: Vec::new(), ..terms() }
}

#[test]
fn an_export_is_a_document_of_its_own() {
    let mut document = open(&kept(), &on()).unwrap();
    let text = String::from_utf8(document.export(Form::Stof).unwrap()).unwrap();
    let mut again = common::document(&text, &on());
    // An object that is found only within one without a name is the one thing that the engine's text loses.
    assert_eq!(told(&mut *again).as_array().unwrap()[..11], changed().as_array().unwrap()[..11], "{text}");
    assert_eq!(call(&mut *again, "extra", json!({})).unwrap().result, json!(42));
    let report = check(&text, &on()).unwrap();
    assert_eq!(report.tools.len(), 5);
}

#[test]
fn an_export_keeps_the_descriptions_of_parameters() {
    let base = include_str!("../fixtures/orders.stof");
    let mut document = document(base, &on());
    document.add_tool("#[tool('a')]\n/// n: how many\nfn extra(n: int) -> int { n }").unwrap();
    let text = String::from_utf8(document.export(Form::Stof).unwrap()).unwrap();
    let before = document.specs().unwrap();
    assert_eq!(
        before.iter().find(|spec| spec.name == "extra").unwrap().parameters["properties"]["n"]["description"],
        "how many"
    );
    assert_eq!(common::document(&text, &on()).specs().unwrap(), before, "{text}");
}

#[test]
fn an_image_is_signed_by_the_first_key_and_read_with_any() {
    let record = kept();
    let image = Image::of(&record);
    let bytes = image.encode(&[b"new", b"old"]).unwrap();
    assert_eq!(Image::decode(&bytes, &[b"newer", b"new"]).as_ref(), Ok(&image));
    assert_eq!(Image::decode(&bytes, &[b"old"]), Err(ImageError::Signature));
    assert_eq!(Image::decode(&bytes, &[]), Err(ImageError::Signature));
    assert_eq!(Image::decode_trusted(&bytes).as_ref(), Ok(&image));
    assert_eq!(image.encode(&[]), Err(ImageError::NoKey));
    let mut again = open(&image.record(BASE), &on()).unwrap();
    assert_eq!(told(&mut *again), changed());
}

#[test]
fn an_image_that_was_touched_is_not_read() {
    let bytes = Image::of(&kept()).encode(&[b"key"]).unwrap();
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        assert!(Image::decode(&damaged, &[b"key"]).is_err(), "byte {at}");
    }
    for length in [0, 1, 15, 17, 40, bytes.len() / 2, bytes.len() - 1] {
        assert!(Image::decode(&bytes[..length], &[b"key"]).is_err(), "{length} bytes");
    }
    assert_eq!(Image::decode(b"gesta document 2\n{}\n", &[b"key"]), Err(ImageError::Version { found: 2 }));
    assert_eq!(Image::decode(b"{}", &[b"key"]), Err(ImageError::Foreign));
    assert_eq!(Image::decode(&vec![b'x'; 5 << 20], &[b"key"]), Err(ImageError::Size));
}

#[test]
fn a_base_that_does_not_parse_says_where() {
    let error = check("a: 1\ntools: {\n    fn f() -> int { 1 + }\n}\n", &terms()).unwrap_err();
    assert_eq!(
        error.to_string().lines().skip(1).collect::<Vec<_>>(),
        ["3 |     fn f() -> int { 1 + }", "  |                         ^"],
        "{error}"
    );
}

#[test]
fn a_report_names_tools_grants_and_oddities() {
    let base = "tools: { #[tool('')] fn a() -> unknown { App.one(); App.two(1); Num.abs(1); hepler() } }";
    let report =
        check(base, &Terms { grants: vec![common::grant("one", &[]), common::grant("three", &[])], ..terms() })
            .unwrap();
    let names = |grants: &[gesta_document::GrantName]| grants.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&report.grants_missing), ["App.two"]);
    assert_eq!(names(&report.grants_unused), ["App.three"]);
    assert_eq!(
        (report.needs[0].tool.as_str(), names(&report.needs[0].grants)),
        ("a", vec!["App.one".to_owned(), "App.two".to_owned()])
    );
    assert!(report.warnings.iter().any(|warning| warning.contains("hepler")), "{:?}", report.warnings);
    assert!(report.warnings.iter().any(|warning| warning == "the tool `a` has no description"));
    assert!(!report.adds_tools);
}

/// Written once, with `GESTA_WRITE_FIXTURES` set, by the first version.
#[test]
fn an_image_of_the_first_version_is_read_for_ever() {
    let base = include_str!("../fixtures/image-v1.stof");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/image-v1.bin");
    if std::env::var_os("GESTA_WRITE_FIXTURES").is_some() {
        let mut document = document(base, &on());
        let data = call(&mut *document, "visit", json!({"note": "first"})).unwrap().data;
        document.add_tool("#[tool('Counts notes')] fn count() -> int { root.notes.len() }").unwrap();
        let record = Record { base: base.to_owned(), added: document.added().to_vec(), data, data_base: None };
        std::fs::write(path, Image::of(&record).encode(&[b"key of the fixture"]).unwrap()).unwrap();
    }
    let image = Image::decode(&std::fs::read(path).unwrap(), &[b"key of the fixture"]).unwrap();
    assert_eq!(image.base, base_hash(base));
    let mut document = open(&image.record(base), &on()).unwrap();
    let expected = json!([1, [{"seen": [1, 2], "text": "first"}], "90s", "Linz", 3]);
    assert_eq!(told(&mut *document), expected);
    assert_eq!(call(&mut *document, "count", json!({})).unwrap().result, json!(1));
}
