//! `docs/agent-toml.md` has every key of the schema. `UPDATE_EXPECT=1` prints its second half anew.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use gesta_runtime::folder::schema;
use serde_json::{Map, Value};

/// What stands above this line is written by hand.
const MARK: &str = "<!-- What follows is printed from the schema by the tests. -->\n";

type Object = Map<String, Value>;

/// How each table is written in the file, by the name of its schema; those left out are described where they are used.
const HEADINGS: [(&str, &str); 20] = [
    ("ModelOptionsToml", "[model_options]"),
    ("ProviderSpec", "[providers.NAME]"),
    ("RequestsToml", "[requests]"),
    ("LimitsToml", "[limits]"),
    ("ActWhenAskedToml", "[act_when_asked]"),
    ("RefusalTable", "[on_tool_refusal]"),
    ("BackstopToml", "[[backstops]]"),
    ("ToolToml", "[[tools]]"),
    ("AnswerToml", "[[tools.answers]]"),
    ("DocumentToml", "[document]"),
    ("GrantToml", "[grants.LIBRARY.NAME]"),
    ("DecisionToml", "[[decisions]]"),
    ("Operators", "Operators of `when`"),
    ("RegexToml", "A pattern that is a table"),
    ("OutputToml", "[output]"),
    ("NetworkToml", "[network]"),
    ("StorageToml", "[storage]"),
    ("HistoryToml", "[history]"),
    ("Length", ""),
    ("PatternToml", ""),
];

fn print(schema: &Value) -> String {
    let mut out = String::from("\n## At the top\n\n");
    table(&mut out, schema.as_object().unwrap());
    let defs = schema["$defs"].as_object().unwrap();
    let mut left: BTreeSet<&str> =
        defs.iter().filter(|(_, def)| def.get("properties").is_some()).map(|(name, _)| name.as_str()).collect();
    for (name, heading) in HEADINGS {
        left.remove(name);
        let Some(def) = defs.get(name).and_then(Value::as_object).filter(|_| !heading.is_empty()) else { continue };
        let heading = if heading.starts_with('[') { format!("`{heading}`") } else { heading.to_owned() };
        let _ = write!(out, "\n## {heading}\n\n{}\n\n", meaning(def));
        table(&mut out, def);
    }
    assert!(left.is_empty(), "tables without a heading: {left:?}");
    out
}

fn table(out: &mut String, schema: &Object) {
    let required: BTreeSet<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    out.push_str("| key | value | meaning |\n| --- | --- | --- |\n");
    let properties: BTreeMap<&String, &Value> = schema["properties"].as_object().unwrap().iter().collect();
    for (key, value) in properties {
        let must = if required.contains(key.as_str()) { " (needed)" } else { "" };
        let value = value.as_object().cloned().unwrap_or_default();
        let _ = writeln!(out, "| `{key}`{must} | {} | {} |", kind(&value), meaning(&value).replace('|', "\\|"));
    }
}

fn meaning(schema: &Object) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kind(schema: &Object) -> String {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<String> = words.iter().filter_map(Value::as_str).map(|word| format!("`\"{word}\"`")).collect();
        return words.join(", ");
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return named(name.trim_start_matches("#/$defs/"));
    }
    if let Some(list) = schema.get("anyOf").and_then(Value::as_array) {
        let kinds: Vec<String> =
            list.iter().filter_map(Value::as_object).map(kind).filter(|kind| !kind.is_empty()).collect();
        return kinds.join(" or ");
    }
    let types = match schema.get("type") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).find(|it| *it != "null"),
        Some(Value::String(one)) => Some(one.as_str()).filter(|it| *it != "null"),
        _ => return if schema.contains_key("type") { String::new() } else { "anything".to_owned() },
    };
    match types {
        Some("string") => "text".to_owned(),
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("number") => "number".to_owned(),
        Some("array") => match schema.get("items").and_then(Value::as_object).map(kind) {
            Some(items) => format!("list of {items}"),
            None => "list".to_owned(),
        },
        Some("object") => "table".to_owned(),
        _ => String::new(),
    }
}

fn named(name: &str) -> String {
    match name {
        "Length" => "length of time".to_owned(),
        "PatternToml" => "pattern".to_owned(),
        "Test" => "value or operators".to_owned(),
        name if name.starts_with("OneOrMany") => "pattern or list of patterns".to_owned(),
        "RefusalToml" => "word or table".to_owned(),
        name => {
            let whole = schema();
            let def = whole["$defs"][name].as_object().cloned().unwrap_or_default();
            match def.get("oneOf").and_then(Value::as_array) {
                Some(list) => {
                    let words = list.iter().filter_map(|it| it["const"].as_str()).map(|it| format!("`\"{it}\"`"));
                    words.collect::<Vec<_>>().join(", ")
                }
                None => kind(&def),
            }
        }
    }
}

#[test]
fn the_page_has_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agent-toml.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (by_hand, printed) = page.split_once(MARK).expect("the page has its mark");
    let expected = print(&schema());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, format!("{by_hand}{MARK}{expected}")).unwrap();
    } else {
        assert!(printed == expected, "docs/agent-toml.md is out of date; run the tests with UPDATE_EXPECT=1");
    }
}

#[test]
fn the_examples_of_the_page_are_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agent-toml.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut read = 0;
    for block in page.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("agent.toml"), text).unwrap();
        std::fs::write(dir.path().join("model.script"), "model: Hello.\n").unwrap();
        if text.contains("[document]") {
            std::fs::write(dir.path().join("tools.stof"), "tools: {}\n").unwrap();
        }
        let env = |name: &str| name.ends_with("_KEY").then(|| "key".to_owned());
        if let Err(errors) = gesta_runtime::folder::Folder::load(dir.path(), &env) {
            panic!("{text}\n{errors}");
        }
        read += 1;
    }
    assert!(read > 3);
}
