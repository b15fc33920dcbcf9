//! Which crate may use which: arrows between our own, and the outside crates that only some may touch.

use toml::{Table, Value};

use super::Findings;
use crate::Tree;

/// Our crates without their prefix, lowest first: a crate may use what stands before it; the facade uses them all.
const ORDER: &str = "run scene document sandbox model telemetry store channel fakes runtime eval server cli gesta";

/// Crates without I/O, async or clock, and all that they may be built on.
const PURE: [&str; 3] = ["run", "scene", "channel"];
const PURE_MAY_USE: &str = "fastrand jsonschema memchr regex serde serde_json sha2 thiserror";

/// Outside crates that stand for a power, and those of ours that hold it.
const POWERS: [(&str, &[&str]); 13] = [
    // The scenes' dice are told their seed.
    ("fastrand", &["scene", "model", "store", "fakes", "runtime"]),
    ("rusqlite", &["store"]),
    ("sqlx", &["store"]),
    ("landlock", &["sandbox"]),
    ("libc", &["sandbox"]),
    ("seccompiler", &["sandbox"]),
    ("axum", &["server", "fakes"]),
    ("clap", &["cli"]),
    ("rustyline", &["cli"]),
    ("opentelemetry-proto", &["telemetry"]),
    ("tracing-appender", &["cli"]),
    ("tracing-subscriber", &["cli"]),
    ("reqwest", &[]),
];

/// The one crate that may leave the workspace's lints, which forbid `unsafe`; its own ask for a reason at each.
const MAY_BE_UNSAFE: &str = "sandbox";

const REASONS: &str = "docs/decisions/0002-dependencies.md";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (path, text) in tree.iter() {
        let folder = path.strip_prefix("crates/").and_then(|it| it.strip_suffix("/Cargo.toml"));
        let Some(name) = folder.filter(|it| !it.contains('/')) else { continue };
        let Some(manifest) = read(path, text, findings) else { continue };
        if height(name).is_none() {
            findings.add(path, 1, format!("`{name}` has no place in the order of the crates"));
        }
        let lints = manifest.get("lints").and_then(|it| it.get("workspace")).and_then(Value::as_bool);
        if lints != Some(true) && name != MAY_BE_UNSAFE {
            let what = format!("`[lints] workspace = true` is missing: `unsafe` is for `{MAY_BE_UNSAFE}` alone");
            findings.add(path, 1, what);
        }
        let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
        for (section, others) in targets.flat_map(|(_, it)| sections(it.as_table())).chain(sections(Some(&manifest))) {
            for (other, how) in others {
                if how.get("workspace").is_none() {
                    findings.add(path, 1, format!("`{other}`: its version belongs into the workspace's manifest"));
                }
                // Tests may look down the list: a model's tests talk to the fakes above it.
                if section != "dev-dependencies"
                    && let Some(why) = forbidden(name, other)
                {
                    findings.add(path, 1, why);
                }
            }
        }
    }
    reasons(tree, findings);
}

/// The tables of a manifest, or of one target in it, that name dependencies.
fn sections(table: Option<&Table>) -> impl Iterator<Item = (&'static str, &Table)> {
    ["dependencies", "dev-dependencies", "build-dependencies"]
        .into_iter()
        .filter_map(move |section| Some((section, table?.get(section)?.as_table()?)))
}

fn height(name: &str) -> Option<usize> {
    ORDER.split(' ').position(|it| it == name)
}

fn forbidden(name: &str, other: &str) -> Option<String> {
    if let Some(at) = height(other.strip_prefix("gesta-").unwrap_or(other)) {
        return (Some(at) >= height(name))
            .then(|| format!("`{name}` may not use `{other}`: arrows only point upwards"));
    }
    if PURE.contains(&name) && !PURE_MAY_USE.split(' ').any(|it| it == other) {
        return Some(format!("`{name}` is pure: it may not use `{other}`"));
    }
    let (_, holders) = POWERS.iter().find(|(power, _)| *power == other)?;
    (!holders.contains(&name)).then(|| format!("`{other}` is not for `{name}`; it is for: {}", holders.join(", ")))
}

/// Every outside dependency has a line with its reason, and no line is left over.
fn reasons(tree: &Tree, findings: &mut Findings) {
    let Some(manifest) = tree.get("Cargo.toml").and_then(|text| read("Cargo.toml", text, findings)) else { return };
    let wanted = manifest.get("workspace").and_then(|it| it.get("dependencies")).and_then(Value::as_table);
    let outside = wanted.into_iter().flatten().filter(|(_, how)| how.get("path").is_none());
    let outside: Vec<&str> = outside.map(|(name, _)| name.as_str()).collect();
    let reasons = tree.get(REASONS).unwrap_or_default();
    let reasons: Vec<&str> = reasons.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    for name in outside.iter().filter(|name| !reasons.contains(name)) {
        findings.add("Cargo.toml", 1, format!("`{name}` has no line with its reason in {REASONS}"));
    }
    for name in reasons.iter().filter(|name| !outside.contains(name)) {
        findings.add(REASONS, 1, format!("`{name}` is no dependency of the workspace"));
    }
}

fn read(path: &str, text: &str, findings: &mut Findings) -> Option<Table> {
    text.parse().map_err(|why| findings.add(path, 1, format!("does not parse: {why}"))).ok()
}
