//! Requests that cannot be used are told why, in a problem document; nothing of them has run.

use gesta_server::Limits;
use http::Method;
use serde_json::json;

use crate::support::{World, example};

#[tokio::test]
async fn a_body_that_cannot_be_used_is_refused_with_its_reason() {
    let limits = Limits { body_bytes_max: 2_000, depth_max: 16, ..Limits::default() };
    let world = World::with(&[example("desk")], limits).await;
    let deep = format!("{{\"input\":{}{}}}", "[".repeat(20), "]".repeat(20));
    let long = json!({ "input": "x".repeat(3_000) }).to_string();
    let part = |part: serde_json::Value| json!({ "input": [part] }).to_string();
    let cases = [
        ("{".to_owned(), 400, "json_invalid"),
        ("[]".to_owned(), 400, "json_invalid"),
        ("{}".to_owned(), 400, "json_invalid"),
        (String::new(), 400, "json_invalid"),
        (json!({ "input": 7 }).to_string(), 400, "json_invalid"),
        (json!({ "input": "Hello", "conversaton": "k" }).to_string(), 400, "json_invalid"),
        ("{\"input\":\"a\",\"input\":\"b\"}".to_owned(), 400, "json_invalid"),
        (deep, 400, "too_deep"),
        (long, 413, "body_too_large"),
        (json!({ "input": "" }).to_string(), 400, "input_empty"),
        (json!({ "input": [] }).to_string(), 400, "input_empty"),
        (json!({ "input": "Hello", "conversation": "" }).to_string(), 400, "name_invalid"),
        (json!({ "input": "Hello", "contact": "a\nb" }).to_string(), 400, "name_invalid"),
        (part(json!({ "type": "image", "media_type": "image/png" })), 400, "input_invalid"),
        (part(json!({ "type": "image", "media_type": "text/plain", "base64": "AAAA" })), 400, "input_invalid"),
        (part(json!({ "type": "image", "media_type": "image/png", "base64": "?" })), 400, "input_invalid"),
        (part(json!({ "type": "file", "media_type": "a/b", "url": "http://example.com/" })), 400, "input_invalid"),
        (part(json!({ "type": "file", "media_type": "a/b", "url": "file:///etc/passwd" })), 400, "input_invalid"),
        (part(json!({ "type": "sound" })), 400, "json_invalid"),
    ];
    for (body, status, code) in cases {
        let answer = world.client().ask(Method::POST, "/v1/agents/desk/runs", Some(body.clone())).await;
        let problem = answer.problem(status, code);
        assert_eq!(problem["type"], format!("urn:gesta:problem:{code}"), "{body}");
    }
    let text = world.client().with("content-type", "text/plain");
    text.post("/v1/agents/desk/runs", json!({ "input": "Hello" })).await.problem(415, "media_type");
    assert_eq!(world.get("/v1/runs").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn a_path_or_a_question_that_is_none_is_refused() {
    let world = World::desk().await;
    world.get("/v2/runs").await.problem(404, "no_such_path");
    world.get("/v1").await.problem(404, "no_such_path");
    world.client().delete("/v1/runs").await.problem(405, "method_not_allowed");
    world.post("/v1/agents/nobody/runs", json!({ "input": "Hello" })).await.problem(404, "no_such_agent");
    world.get("/v1/runs/%ff").await.problem(400, "path_invalid");
    world.post("/v1/runs/nothing/answers", json!({})).await.problem(404, "no_such_run");
    for path in [
        "/v1/runs?limit=0",
        "/v1/runs?limit=1001",
        "/v1/runs?limit=-1",
        "/v1/runs?status=done",
        "/v1/runs?outcome=done",
        "/v1/runs?stauts=open",
        "/v1/holds?kind=thing",
        "/v1/conversations?limit=x",
    ] {
        world.get(path).await.problem(400, "query_invalid");
    }
    for path in ["/v1/runs?after=x", "/v1/holds?after=e30"] {
        world.get(path).await.problem(400, "cursor_invalid");
    }
}

#[tokio::test]
async fn more_runs_than_the_server_carries_are_shed() {
    let world = World::with(&[example("desk")], Limits { runs_max: 0, ..Limits::default() }).await;
    let shed = world.post("/v1/agents/desk/runs", json!({ "input": "Hello" })).await;
    shed.problem(503, "overloaded");
    assert_eq!(shed.headers["retry-after"], "1");
    assert_eq!(world.get("/healthz").await.status, 200);
    assert_eq!(world.get("/readyz").await.status, 200);
}

/// A rate of one a second, of which four may come at once: by the fifth at the latest somebody is told to wait, unless
/// the requests themselves take seconds.
#[tokio::test]
async fn a_client_that_asks_too_often_is_told_how_long_to_wait() {
    let limits = Limits { rate_max: std::num::NonZeroU32::MIN, ..Limits::default() };
    let world = World::with(&[example("desk")], limits).await;
    let refused = loop {
        let answer = world.get("/v1/agents").await;
        if answer.status != 200 {
            break answer;
        }
    };
    refused.problem(429, "rate_exceeded");
    assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() >= 1);
}

/// Tools that read the document find every path of the code in it, and each has an answer of its own name.
#[tokio::test]
async fn the_document_describes_all_there_is() {
    let world = World::desk().await;
    let document = world.get("/openapi.json").await.ok();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document, serde_json::from_str::<serde_json::Value>(&gesta_server::document()).unwrap());
    let mut ids = std::collections::BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path}");
            assert!(
                ["200", "201", "204"].iter().any(|status| operation["responses"].get(status).is_some()),
                "{method} {path}"
            );
            assert!(ids.insert(operation["operationId"].to_string()), "{method} {path} shares its operationId");
        }
    }
    assert!(ids.len() >= 15, "{ids:?}");
    // What it refers to is in it.
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let reference = reference.split('"').next().unwrap();
        assert!(document.pointer(reference).is_some(), "{reference} is not there");
    }
}
