//! The channel's rules, as tables.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read their fixtures, and a failure is a panic"
)]

mod guards;
mod inbound;
mod late;
mod manychat;
mod paragraphs;
mod race;
mod replies;
mod staging;
mod tenant;

use std::sync::Arc;

use gesta_channel::tenant::{Files, Reserved, Snapshot};

/// The names of the environment in these tests.
fn reserved() -> Reserved {
    Reserved {
        reply_flow: "content20240101_000001".to_owned(),
        reply_field: "ai_message".to_owned(),
        token_field: "ai_token".to_owned(),
    }
}

fn fixture(path: &str) -> String {
    let path = format!("{}/fixtures/tenant/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// The good files, with other tools.
fn files(tools: Option<String>) -> Files {
    Files {
        prompt: fixture("good/prompt.md"),
        catalog: fixture("good/catalog.json"),
        rules: fixture("good/rules.json"),
        tools,
    }
}

fn snapshot(tools: &str) -> Arc<Snapshot> {
    match Snapshot::read(&files(Some(fixture(tools))), &reserved()) {
        Ok(snapshot) => snapshot,
        Err(faults) => panic!("{tools}: {}", told(&faults)),
    }
}

fn told(faults: &[gesta_channel::tenant::Fault]) -> String {
    faults.iter().map(|it| format!("{it}\n")).collect()
}
