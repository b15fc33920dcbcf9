//! The page of outcomes and errors has every word that a result can hold.

use std::fs;

/// The words of an enum on the wire, read from its source.
fn words(file: &str, name: &str) -> Vec<String> {
    let text = fs::read_to_string(xtask::root().join(file)).expect("the source is there");
    let file = syn::parse_file(&text).expect("the source parses");
    let found = file.items.into_iter().find_map(|item| match item {
        syn::Item::Enum(it) if it.ident == name => Some(it),
        _ => None,
    });
    let variants = found.expect("the enum is there").variants;
    variants.iter().map(|it| snake(&it.ident.to_string())).collect()
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

#[test]
fn every_word_of_a_result_is_explained() {
    let page = fs::read_to_string(xtask::root().join("docs/errors.md")).expect("the page is there");
    for (file, name) in [
        ("crates/run/src/outcome.rs", "Outcome"),
        ("crates/run/src/outcome.rs", "Status"),
        ("crates/run/src/call.rs", "CallStatus"),
        ("crates/run/src/intervention.rs", "Skipped"),
    ] {
        for word in words(file, name) {
            assert!(page.contains(&format!("\n| `{word}` |")), "`{word}` of {name} has no line in docs/errors.md");
        }
    }
}
