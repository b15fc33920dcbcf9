//! Words and links of the documents: what they name must be there.

use std::collections::HashSet;

use super::Findings;
use crate::Tree;

/// Documents whose tables end in a column that names code: `Type::function`, `a_test_function` or `a/path.rs`.
const NAMING: [&str; 2] = ["GLOSSARY.md", "ARCHITECTURE.md"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let code: HashSet<&str> = tree.rust().flat_map(|(_, text)| text.split(|c| !is_word(c))).collect();
    for path in NAMING {
        for (at, line) in tree.get(path).unwrap_or_default().lines().enumerate() {
            let last = line.trim_end().strip_suffix('|').and_then(|row| row.rsplit('|').next()).unwrap_or_default();
            for name in last.split('`').skip(1).step_by(2).filter(|name| !name.contains(' ')) {
                let there = if name.contains('/') || name.contains('.') {
                    tree.has(name)
                } else {
                    name.split("::").all(|part| code.contains(part))
                };
                if !there {
                    findings.add(path, at + 1, format!("names `{name}`, which is not in the code"));
                }
            }
        }
    }
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (at, line) in text.lines().enumerate() {
            for link in line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
                if !link.is_empty() && !link.contains("://") && !tree.has(&resolve(path, link)) {
                    findings.add(path, at + 1, format!("links to `{link}`, which is not there"));
                }
            }
        }
    }
}

/// The path from the root of what a document links to.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/').filter(|part| *part != ".") {
        match part {
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}
