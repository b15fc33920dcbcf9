//! Broken folders: each fixture begins with the errors that it must give, and no input makes the reader panic.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use gesta_runtime::folder::{Folder, schema};
use proptest::prelude::*;

/// A folder with this `agent.toml` and a script.
fn folder_with(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.toml"), text).unwrap();
    std::fs::write(dir.path().join("model.script"), "model: Good morning.\n").unwrap();
    dir
}

fn load(text: &str) -> Result<Folder, String> {
    Folder::load(folder_with(text).path(), &|_| None).map_err(|errors| errors.to_string())
}

#[test]
fn each_broken_folder_gives_its_errors() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in std::fs::read_dir(fixtures).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# agent")).collect();
        let got = load(&text).expect_err(&format!("{} is no broken folder", path.display()));
        let lines: Vec<&str> = got.lines().filter_map(|line| line.strip_prefix("agent")).collect();
        let same = lines.len() == expected.len() && lines.iter().zip(&expected).all(|(got, it)| got.starts_with(it));
        if !same {
            wrong.push(format!("{}\n{got}\n", path.display()));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 15);
}

/// A file with many kinds of values, for the dice to spoil.
const RICH: &str = include_str!("rich/agent.toml");

#[test]
fn the_rich_folder_has_no_mistake() {
    if let Err(errors) = load(RICH) {
        panic!("{errors}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        let _ = load(&text);
    }

    #[test]
    fn no_spoiled_file_makes_the_reader_panic(at in 0..RICH.len(), length in 0_usize..40, put in "[\\PC\n]{0,12}") {
        let from = RICH.floor_char_boundary(at);
        let to = RICH.floor_char_boundary((at + length).min(RICH.len()));
        let _ = load(&format!("{}{put}{}", &RICH[..from], &RICH[to.max(from)..]));
    }

    #[test]
    fn every_value_of_the_right_shape_is_read(line in 0_usize..200, value in prop::sample::select(vec![
        "1", "-1", "0", "1.5", "1e300", "9223372036854775807", "true", "\"x\"", "\"\"", "[]", "[1]", "{}", "{ a = 1 }",
        "[[]]", "\"off\"", "nan", "2026-01-01", "[{ regex = '(' }]", "\"*\"",
    ])) {
        let lines: Vec<&str> = RICH.lines().collect();
        let at = line % lines.len();
        let spoiled = lines[at].split_once(" = ").map(|(key, _)| format!("{key} = {value}"));
        let text: Vec<String> = lines.iter().enumerate().map(|(n, it)| match &spoiled {
            Some(spoiled) if n == at => spoiled.clone(),
            _ => (*it).to_owned(),
        }).collect();
        // What passes the check of shapes is read: an error of the reader itself has no place.
        if let Err(errors) = load(&text.join("\n")) {
            prop_assert!(!errors.contains("agent.toml: data did not match") && !errors.contains("agent.toml: invalid"), "{}", errors);
        }
    }
}

#[test]
fn deep_and_wide_files_are_refused_without_harm() {
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("{} = 1", vec!["a"; 50_000].join(".")),
        format!("[{}]", vec!["a"; 50_000].join(".")),
        format!("a = {}", "{ b = ".repeat(20_000)),
        "a = 1\n".repeat(200_000),
    ] {
        assert!(load(&text).is_err());
    }
}

#[test]
fn the_schema_has_only_words_that_are_checked() {
    fn walk(value: &serde_json::Value, inside: &str) {
        const KNOWN: &[&str] = &[
            "$schema",
            "$defs",
            "$ref",
            "title",
            "description",
            "type",
            "properties",
            "additionalProperties",
            "required",
            "items",
            "enum",
            "const",
            "anyOf",
            "oneOf",
            "default",
            "format",
            "minimum",
            "maximum",
            "exclusiveMinimum",
        ];
        let Some(object) = value.as_object() else { return };
        for (key, value) in object {
            let named = matches!(inside, "properties" | "$defs");
            assert!(named || KNOWN.contains(&key.as_str()), "the check of shapes does not know `{key}`");
            match value.as_array() {
                Some(list) if !named => list.iter().for_each(|item| walk(item, key)),
                _ if key != "default" || named => walk(value, if named { "" } else { key }),
                _ => {}
            }
        }
    }
    walk(&schema(), "");
}
