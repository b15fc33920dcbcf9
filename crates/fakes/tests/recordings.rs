//! Requests that real services answered are not refused: strict must not mean stricter than the world.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use serde_json::Value;
use support::{CHAT, MESSAGES, post, server};

/// What the fake refuses although a service took it: thinking that another has signed, what only a beta allows, and a
/// kind of part that is Mistral's own.
const KNOWN: [&str; 3] =
    ["Invalid `signature` in `thinking` block", "Unexpected role", "Invalid value: 'document_url'"];

/// Mistral takes tools and calls without a type, which OpenAI does not.
fn typed(list: &mut Value) {
    for one in list.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        one.entry("type").or_insert_with(|| "function".into());
    }
}

#[tokio::test]
async fn requests_that_real_services_answered_are_taken() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/http-recordings-train.jsonl");
    let Ok(text) = std::fs::read_to_string(file) else {
        println!("../shared/data is absent: no recording was compared");
        return;
    };
    let model = server("model: Hi.\n").await;
    let (mut taken, mut known, mut refused) = (0, 0, Vec::new());
    for line in text.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let path = match record["family"].as_str().unwrap() {
            "openai-chat" | "compatible" => CHAT,
            "anthropic" => MESSAGES,
            _ => continue,
        };
        if record["status"] != 200 || !record["request"]["messages"].is_array() {
            continue;
        }
        if path == CHAT {
            let messages = record["request"]["messages"].as_array_mut().into_iter().flatten();
            messages.filter_map(|message| message.get_mut("tool_calls")).for_each(typed);
            record["request"].get_mut("tools").into_iter().for_each(typed);
        }
        let got = post(model.address(), path, &record["request"]).await;
        match got.status {
            200 => taken += 1,
            _ if KNOWN.iter().any(|known| got.text().contains(known)) => known += 1,
            _ => refused.push(format!("{}: {}", record["cassette"], got.text())),
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    println!("{taken} requests were taken, {known} refused for reasons that are known");
    assert!(taken > known);
}
