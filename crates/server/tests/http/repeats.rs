//! Writes that come again are done once.

use std::time::Duration;

use gesta_server::{Limits, Scope};
use http::Method;
use serde_json::json;

use crate::support::{Client, Folders, Gate, World, example};

const SLOW: &str = "model: calls c1 slow {}\nmodel: It is done.\n";

async fn runs(world: &World) -> usize {
    world.get("/v1/runs").await.ok()["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn the_same_request_is_answered_the_same_and_another_under_its_key_is_refused() {
    let world = World::desk().await;
    let client = world.client().with("idempotency-key", "one");
    let body = json!({ "input": "Refund order 7, 250 dollars", "conversation": "k" });
    let first = client.post("/v1/agents/desk/runs", body.clone()).await;
    let parked = first.ok();
    assert!(!first.headers.contains_key("idempotency-replayed"));
    for _ in 0..3 {
        let again = client.post("/v1/agents/desk/runs", body.clone()).await;
        assert_eq!((again.status, &again.body), (first.status, &first.body));
        assert_eq!(again.headers["idempotency-replayed"], "true");
        assert_eq!(again.headers["content-type"], "application/json");
    }
    assert_eq!(runs(&world).await, 1);
    for (method, path, body) in [
        (Method::POST, "/v1/agents/desk/runs", json!({ "input": "Refund order 7, 251 dollars", "conversation": "k" })),
        (Method::POST, "/v1/agents/desk/runs", json!({ "input": "Refund order 7, 250 dollars" })),
        (Method::DELETE, "/v1/conversations/k", json!({})),
    ] {
        client.ask(method, path, Some(body.to_string())).await.problem(409, "idempotency_conflict");
    }
    let run = parked["report"]["run_id"].as_str().unwrap();
    let answer = json!({ "answers": [{ "binding": parked["deferred"][0]["binding"], "approve": true }] });
    let client = world.client().with("idempotency-key", "two");
    let answered = client.post(&format!("/v1/runs/{run}/answers"), answer.clone()).await;
    // Without the key it would be told that it comes late.
    assert_eq!(client.post(&format!("/v1/runs/{run}/answers"), answer.clone()).await.body, answered.body);
    let without = world.post(&format!("/v1/runs/{run}/answers"), answer).await.ok();
    assert_eq!((&answered.ok()["already_answered"], &without["already_answered"]), (&json!([]), &json!(["r1"])));
    let client = world.client().with("idempotency-key", "three");
    assert_eq!(client.delete("/v1/conversations/k").await.status, 204);
    assert_eq!(client.delete("/v1/conversations/k").await.status, 204);
    world.client().delete("/v1/conversations/k").await.problem(404, "no_such_conversation");
}

#[tokio::test]
async fn a_repeated_stream_is_the_same_run_from_its_beginning() {
    let world = World::desk().await;
    let client = world.client().with("idempotency-key", "one");
    let body = json!({ "input": "Refund order 8", "stream": true });
    let ids = |told: Vec<crate::support::Said>| told.into_iter().filter(|it| it.id.is_some()).collect::<Vec<_>>();
    let first = ids(client.events(Method::POST, "/v1/agents/desk/runs", Some(body.clone())).await.all().await);
    let again = ids(client.events(Method::POST, "/v1/agents/desk/runs", Some(body)).await.all().await);
    assert_eq!(first, again);
    assert_eq!((runs(&world).await, first.last().unwrap().name.as_str()), (1, "run.ended"));
}

/// Asks until the request is not being done any more.
async fn until_done(client: &Client, body: &serde_json::Value) -> serde_json::Value {
    loop {
        let answer = client.post("/v1/agents/slow/runs", body.clone()).await;
        if answer.status == 409 {
            answer.problem(409, "request_in_progress");
            assert_eq!(answer.headers["retry-after"], "1");
            continue;
        }
        return answer.ok();
    }
}

#[tokio::test]
async fn a_client_that_lost_its_answer_gets_it_when_it_asks_again() {
    let (mut gate, folders) = (Gate::new().await, Folders::new());
    let world = World::of(&[folders.agent("slow", &gate.toml(""), SLOW)]).await;
    let client = world.client().with("idempotency-key", "one");
    let body = json!({ "input": "slow" });
    let (asking, asked) = (client.clone(), body.clone());
    let lost = tokio::spawn(async move { asking.post("/v1/agents/slow/runs", asked).await });
    gate.called().await;
    lost.abort();
    client.post("/v1/agents/slow/runs", body.clone()).await.problem(409, "request_in_progress");
    gate.open(1);
    assert_eq!(until_done(&client, &body).await["text"], "It is done.");
    assert_eq!((runs(&world).await, gate.calls()), (1, 1));
}

#[tokio::test]
async fn a_request_that_was_cut_off_by_a_stop_is_the_same_run_after_the_next_start() {
    for stream in [false, true] {
        let (mut gate, folders) = (Gate::new().await, Folders::new());
        let limits = Limits { stop_wait: Duration::ZERO, ..Limits::default() };
        let mut world = World::with(&[folders.agent("slow", &gate.toml(""), SLOW)], limits).await;
        let body = json!({ "input": "slow" });
        let (asking, asked) = (world.client().with("idempotency-key", "one"), body.clone());
        let lost = tokio::spawn(async move {
            if stream {
                let asked = Some(asked);
                drop(asking.events(Method::POST, "/v1/agents/slow/runs", asked).await.all().await);
            } else {
                asking.post("/v1/agents/slow/runs", asked).await.problem(503, "left");
            }
        });
        gate.called().await;
        assert_eq!(world.stop().await, 1);
        lost.await.unwrap();
        gate.open(1);
        world.start().await;
        let client = world.client().with("idempotency-key", "one");
        if stream {
            let told = client.events(Method::POST, "/v1/agents/slow/runs", Some(body)).await.all().await;
            assert_eq!(told.first().unwrap().name, "run.started");
        } else {
            assert_eq!(until_done(&client, &body).await["text"], "It is done.");
        }
        assert_eq!((runs(&world).await, gate.calls()), (1, 1));
    }
}

#[tokio::test]
async fn a_refusal_is_not_kept_because_nothing_was_done() {
    let world = World::desk().await;
    let client = world.client().with("idempotency-key", "one");
    client.post("/v1/agents/desk/runs", json!({ "input": "" })).await.problem(400, "input_empty");
    client.post("/v1/agents/nobody/runs", json!({ "input": "Hello" })).await.problem(404, "no_such_agent");
    client.post("/v1/agents/desk/runs", json!({ "input": "Hello" })).await.ok();
    assert_eq!(runs(&world).await, 1);
    for key in ["", &"x".repeat(256), "a\tb"] {
        let client = world.client().with("idempotency-key", key);
        client.post("/v1/agents/desk/runs", json!({ "input": "Hello" })).await.problem(400, "idempotency_key_invalid");
    }
    // What only reads is not a write.
    assert_eq!(world.client().with("idempotency-key", "").get("/healthz").await.status, 200);
}

#[tokio::test]
async fn two_clients_may_use_one_name() {
    let world = World::locked(&[example("desk")]).await;
    let body = |text: &str| json!({ "input": text });
    for text in ["Hello", "Where is order 7?"] {
        let (client, _) = world.keyed(&[Scope::Run, Scope::Read], None).await;
        client.with("idempotency-key", "one").post("/v1/agents/desk/runs", body(text)).await.ok();
    }
    let (client, _) = world.keyed(&[Scope::Read], None).await;
    assert_eq!(client.get("/v1/runs").await.ok()["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_repeated_stream_of_answers_begins_where_the_first_one_did() {
    let world = World::desk().await;
    let (run, hold) = world.parked().await;
    let (client, path) = (world.client().with("idempotency-key", "one"), format!("/v1/runs/{run}/answers"));
    let body = json!({ "answers": [{ "binding": hold["binding"], "approve": true }], "stream": true });
    let ids = |told: Vec<crate::support::Said>| told.into_iter().filter(|it| it.id.is_some()).collect::<Vec<_>>();
    let first = ids(client.events(Method::POST, &path, Some(body.clone())).await.all().await);
    let again = ids(client.events(Method::POST, &path, Some(body)).await.all().await);
    assert_eq!(first, again);
    assert_eq!(first[0].name, "hold.answered");
}

/// What a run said stands in the answers that are kept for a repetition: they go with it.
#[tokio::test]
async fn what_was_answered_is_erased_with_the_conversation() {
    let world = World::desk().await;
    let body = json!({ "input": "Refund order 7, 250 dollars", "conversation": "k" });
    let parked = world.client().with("idempotency-key", "begin").post("/v1/agents/desk/runs", body.clone()).await.ok();
    let run = parked["report"]["run_id"].as_str().unwrap();
    let answer = json!({ "answers": [{ "binding": parked["deferred"][0]["binding"], "deny": "Maria said no" }] });
    world.client().with("idempotency-key", "answer").post(&format!("/v1/runs/{run}/answers"), answer).await.ok();
    assert_eq!(world.client().delete("/v1/conversations/k").await.status, 204);
    let kept = rusqlite::Connection::open(world.data().join(gesta_store::FILE_NAME)).unwrap();
    let left: u32 = kept.query_row("SELECT count(*) FROM requests", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
    let fresh = world.client().with("idempotency-key", "begin").post("/v1/agents/desk/runs", body).await;
    assert!(!fresh.headers.contains_key("idempotency-replayed"));
    assert_ne!(fresh.ok()["report"]["run_id"], run);
}
