//! The document that documents began with, byte for byte, and the repository's own like it.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, unreachable_pub)]
mod common;

use common::{call, desk, document, terms};
use gesta_document::{Limits, Terms};
use serde_json::json;

/// From `tools: {` to the end of `main`.
fn seed() -> Option<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    let entry = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with("002"))?;
    let text = std::fs::read_to_string(entry.path()).ok()?;
    let from = text.find("tools: {")?;
    let main = from + text[from..].find("fn main()")?;
    let end = main + text[main..].find("\n}")? + 2;
    Some(text[from..end].to_owned())
}

const TOTAL_SPENT: &str = "#[tool('Total a customer has spent across their recent orders')]
fn total_spent(customer_id: str) -> float {
    let total = 0;
    for (const order in await App.orders(customer_id)) total += order.get('total');
    total
}";

#[test]
fn the_seed_by_itself_adds_a_tool_uses_it_and_says_what_is_wrong_with_another() {
    let Some(seed) = seed() else { return println!("not run: ../shared/seeds is not beside the repository") };
    let terms = Terms { limits: Limits { call_time_max_ms: 300, ..Limits::default() }, ..Terms::default() };
    let mut seed = document(&seed, &terms);
    let called = seed.main(&mut desk()).unwrap();
    let lines: Vec<&str> = called.log.lines().collect();
    assert_eq!(&lines[..2], ["added total_spent", "290"], "{}", called.log);
    assert!(lines[2].starts_with("that tool did not parse: line 1, column "), "{}", called.log);
    let names: Vec<String> = seed.specs().unwrap().into_iter().map(|spec| spec.name).collect();
    assert_eq!(names, ["recent_orders", "refund", "add_tool", "total_spent"]);
}

#[test]
fn the_seed_with_grants_calls_the_host_and_not_its_stand_in() {
    let Some(seed) = seed() else { return println!("not run: ../shared/seeds is not beside the repository") };
    let mut seed = document(&seed, &terms());
    let added = call(&mut *seed, "add_tool", json!({"source": TOTAL_SPENT})).unwrap();
    assert_eq!(added.result, json!("added total_spent"));
    assert_eq!(added.added[0].name, "total_spent");
    let mut desk = desk();
    desk.orders.push(json!({"id": "o_3", "total": 10}));
    let called = seed.call("total_spent", &common::arguments(json!({"customer_id": "c_9"})), &mut desk).unwrap();
    assert_eq!(called.result, json!(300.0));
    assert_eq!(desk.asked.len(), 1);
    let refused = call(&mut *seed, "refund", json!({"order_id": "o_2", "amount": 250})).unwrap_err();
    assert_eq!(refused.to_string(), "refunds over $100 need a person to approve them");
}

#[test]
fn the_repositorys_own_order_desk_does_the_same_with_what_the_host_derives() {
    let base = include_str!("../fixtures/orders.stof");
    let terms = Terms { added_tools: gesta_document::AddedTools::On, ..terms() };
    let mut orders = document(base, &terms);
    let specs = orders.specs().unwrap();
    let refund = specs.iter().find(|spec| spec.name == "refund").unwrap();
    assert_eq!(
        refund.parameters,
        json!({
            "type": "object",
            "properties": {
                "order_id": {"type": "string", "description": "as `recent_orders` has it"},
                "amount": {"type": "number", "description": "in dollars, at most what was paid"},
            },
            "required": ["order_id", "amount"],
        })
    );
    assert_eq!(call(&mut *orders, "recent_orders", json!({})).unwrap().result[1]["total"], json!(250.0));
    let added = call(&mut *orders, "add_tool", json!({"source": TOTAL_SPENT})).unwrap();
    assert_eq!(added.result, json!("added total_spent"));
    let total = call(&mut *orders, "total_spent", json!({"customer_id": "c"})).unwrap();
    assert_eq!(total.result, json!(290.0));
    assert_eq!(total.data, None);
}
