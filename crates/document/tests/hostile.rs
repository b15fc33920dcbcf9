//! Hostile tools of every kind (`fixtures/hostile.json`): those that end by themselves are run here, the others only in
//! workers, by the tests of the sandbox.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, unreachable_pub)]
mod common;

use std::time::{Duration, Instant};

use common::{arguments, desk, document, grant};
use gesta_document::{AddedTools, Limits, Terms};
use serde::Deserialize;
use serde_json::{Value, json};

/// One case of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    kind: String,
    source: String,
    #[serde(default)]
    arguments: Option<Value>,
    ends: Ends,
}

/// How it ends.
#[derive(Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Ends {
    /// The guard does not let it in.
    Refused,
    /// By itself, within the limits, with an error or a bounded result.
    Softly,
    /// Perhaps only by the parent's hand.
    Hard,
    /// With its result: it is not hostile.
    Works,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../fixtures/hostile.json")).unwrap()
}

fn terms() -> Terms {
    Terms {
        grants: vec![grant("orders", &["customer_id"]), grant("refund", &["order_id", "amount"])],
        limits: Limits { call_time_max_ms: 120, ..Limits::default() },
        added_tools: AddedTools::On,
        ..Terms::default()
    }
}

#[test]
fn there_are_many_of_each_kind() {
    let cases = cases();
    assert!(cases.iter().filter(|case| case.ends != Ends::Works).count() >= 90);
    for kind in ["clock", "memory", "deadlock", "stack", "panic", "reach", "format", "record", "guard", "works"] {
        assert!(cases.iter().filter(|case| case.kind == kind).count() >= 4, "{kind}");
    }
}

#[test]
fn what_ends_by_itself_leaves_the_document_as_it_was() {
    let base = include_str!("../fixtures/orders.stof");
    for case in cases().into_iter().filter(|case| case.ends != Ends::Hard) {
        let mut document = document(base, &terms());
        let added = document.add_tool(&case.source);
        if case.ends == Ends::Refused {
            assert!(added.is_err(), "{} was let in", case.name);
        } else {
            let given = arguments(case.arguments.unwrap_or_default());
            let name = added.unwrap_or_else(|refused| panic!("{}: {refused}", case.name)).name;
            let started = Instant::now();
            let ended = document.call(&name, &given, &mut desk());
            assert!(started.elapsed() < Duration::from_secs(10), "{} took {:?}", case.name, started.elapsed());
            match ended {
                Ok(called) => assert!(called.result.to_string().len() <= 300_000, "{}", case.name),
                Err(error) => assert!(case.ends == Ends::Softly, "{}: {error}", case.name),
            }
        }
        let orders = document.call("recent_orders", &arguments(json!({})), &mut desk()).unwrap();
        assert_eq!(orders.result[0]["id"], json!("o_1"), "after {}", case.name);
    }
}
