//! Nothing in the repository names the machine it was written on or a private registry.

use super::Findings;
use crate::Tree;

/// Joined at compile time, so that this file does not find itself.
const HOMES: [&str; 3] = [concat!("/ho", "me/"), concat!("/Us", "ers/"), concat!("/ro", "ot/")];

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let own = tree.own_places();
    let places: Vec<&str> = HOMES.into_iter().chain(own).collect();
    for (path, text) in tree.iter() {
        for (at, line) in text.lines().enumerate() {
            for place in places.iter().filter(|place| is_absolute(line, place)) {
                findings.add(path, at + 1, format!("`{place}` is a place on one machine: use a path from the root"));
            }
            let source = line.strip_prefix("source = \"").map(|rest| rest.trim_end_matches('"'));
            if path == "Cargo.lock" && source.is_some_and(|source| source != REGISTRY) {
                findings.add(path, at + 1, "a dependency from elsewhere than the public registry");
            }
        }
    }
}

/// Whether the line holds the place as the beginning of a path, and not inside a longer one such as a URL's.
fn is_absolute(line: &str, place: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '/' | ':');
    line.match_indices(place).any(|(at, _)| !line[..at].chars().next_back().is_some_and(inside))
}
