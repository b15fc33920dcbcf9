//! Holds: listed, looked at, answered once.

use serde_json::{Value, json};

use crate::support::{Folders, Gate, World};

#[tokio::test]
async fn a_hold_shows_all_that_a_decision_needs() {
    let world = World::desk().await;
    let body = json!({ "input": "Refund order 7, 250 dollars", "conversation": "k", "contact": "maria" });
    let run = world.post("/v1/agents/desk/runs", body).await.ok();
    let id = run["report"]["run_id"].as_str().unwrap();
    for (filter, found) in [
        ("", 1),
        ("?agent=desk&tool=refund_order&contact=maria&kind=call", 1),
        (&format!("?run={id}"), 1),
        ("?agent=other", 0),
        ("?tool=other", 0),
        ("?contact=other", 0),
        ("?kind=action", 0),
        ("?opened_before=1", 0),
    ] {
        let listed = world.get(&format!("/v1/holds{filter}")).await.ok();
        assert_eq!(listed["items"].as_array().unwrap().len(), found, "{filter}");
    }
    let hold = world.get(&format!("/v1/holds/{id}/r1")).await.ok();
    assert_eq!(hold["hold"], run["deferred"][0]);
    assert_eq!(hold["led_to_it"]["said"], "Refund order 7, 250 dollars");
    assert_eq!(hold["led_to_it"]["reason"], "refunds of more than 100 dollars are approved by a person");
    assert_eq!(hold["parameters"]["properties"]["amount"]["type"], "number");
    assert!(hold["hold"]["expires_at"].as_i64() > hold["opened_at"].as_i64());
    world.get(&format!("/v1/holds/{id}/none")).await.problem(404, "no_such_hold");
    let answer = json!({ "answers": [{ "binding": run["deferred"][0]["binding"], "deny": "no" }] });
    world.post(&format!("/v1/runs/{id}/answers"), answer).await.ok();
    let gone = world.get(&format!("/v1/holds/{id}/r1")).await.problem(410, "hold_closed");
    assert_eq!(gone["answer"], json!({ "deny": "no" }));
}

/// Each refused answer leaves the hold as it is: nothing was recorded and nothing ran.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_refused_and_changes_nothing() {
    let world = World::desk().await;
    let (run, hold) = world.parked().await;
    let path = format!("/v1/runs/{run}/answers");
    let bound = |field: &str, value: &str| {
        let mut binding = hold["binding"].clone();
        binding[field] = json!(value);
        json!({ "binding": binding, "approve": true })
    };
    let with = |fields: Value| {
        let mut answer = json!({ "binding": hold["binding"] });
        for (name, value) in fields.as_object().unwrap() {
            answer[name] = value.clone();
        }
        answer
    };
    let cases = [
        (json!({ "approve": true }), 400, "no_binding"),
        (bound("run_id", "other"), 409, "binding_differs"),
        (bound("call_id", "other"), 404, "no_such_hold"),
        (bound("tool", "find_order"), 409, "binding_differs"),
        (bound("fingerprint", "f"), 409, "binding_differs"),
        (bound("config_version", "c"), 409, "binding_differs"),
        (with(json!({})), 400, "answer_invalid"),
        (with(json!({ "approve": false })), 400, "answer_invalid"),
        (with(json!({ "approve": true, "deny": "x" })), 400, "answer_invalid"),
        (with(json!({ "deny": "x", "arguments": {} })), 400, "answer_invalid"),
        (with(json!({ "deny": " " })), 422, "no_reason"),
        (with(json!({ "result": null })), 422, "not_accepted"),
        (with(json!({ "outcome_unknown": true })), 422, "not_accepted"),
        (with(json!({ "approve": true, "arguments": { "order": "7", "amount": -1 } })), 422, "arguments_invalid"),
        (with(json!({ "approve": true, "arguments": [] })), 400, "json_invalid"),
        (with(json!({ "aprove": true })), 400, "json_invalid"),
    ];
    for (answer, status, code) in cases {
        let answers = json!({ "answers": [answer] });
        let problem = world.post(&path, answers.clone()).await.problem(status, code);
        if code == "no_binding" || code == "no_such_hold" {
            assert_eq!(problem["open"], json!([hold["id"]]), "{answers}");
        }
        // A good answer beside it does not count either.
        let both = json!({ "answers": [answers["answers"][0], { "binding": hold["binding"], "approve": true }] });
        assert!(world.post(&path, both).await.status.is_client_error(), "{answers}");
        assert_eq!(world.get(&format!("/v1/runs/{run}")).await.ok()["deferred"][0], hold, "{answers}");
    }
    let unchanged = world.post(&path, json!({})).await.ok();
    assert_eq!((&unchanged["status"], &unchanged["deferred"][0]), (&json!("parked"), &hold));
}

#[tokio::test]
async fn what_was_approved_is_what_runs_and_a_second_answer_is_told_so() {
    let world = World::desk().await;
    let (run, hold) = world.parked().await;
    let path = format!("/v1/runs/{run}/answers");
    let less = json!({ "order": "7", "amount": 200 });
    let answer = json!({ "answers": [{ "binding": hold["binding"], "approve": true, "arguments": less }] });
    let ended = world.post(&path, answer.clone()).await.ok();
    assert_eq!((&ended["outcome"], &ended["already_answered"]), (&json!("completed"), &json!([])));
    let call = ended["tool_calls"].as_array().unwrap().last().unwrap();
    assert_eq!((&call["arguments"], &call["arguments_by"]), (&less, &json!("approver")));
    let again = world.post(&path, answer).await.ok();
    assert_eq!((&again["already_answered"], &again["tool_calls"]), (&json!([hold["id"]]), &ended["tool_calls"]));
    let other = json!({ "answers": [{ "binding": hold["binding"], "deny": "no" }] });
    world.post(&path, other).await.problem(409, "conflict");
}

#[tokio::test]
async fn twenty_equal_answers_at_once_run_the_call_once() {
    let (gate, folders) = (Gate::new().await, Folders::new());
    let rules = "[[decisions]]\ntool = \"slow\"\naction = \"defer\"\n";
    let toml = format!("{}{rules}", gate.toml(""));
    let folder = folders.agent("slow", &toml, "model: calls c1 slow {}\nmodel: It is done.\n");
    let world = World::of(&[folder]).await;
    let parked = world.post("/v1/agents/slow/runs", json!({ "input": "slow" })).await.ok();
    let run = parked["report"]["run_id"].as_str().unwrap();
    gate.open(20);
    let answer = json!({ "answers": [{ "binding": parked["deferred"][0]["binding"], "approve": true }] });
    let asked = (0..20).map(|_| {
        let (client, path, answer) = (world.client(), format!("/v1/runs/{run}/answers"), answer.clone());
        tokio::spawn(async move { client.post(&path, answer).await.ok() })
    });
    let mut first = 0;
    for answered in asked.collect::<Vec<_>>() {
        let answered = answered.await.unwrap();
        assert_eq!(answered["tool_calls"][0]["result"], json!({ "done": true }));
        first += usize::from(answered["already_answered"] == json!([]));
    }
    assert_eq!((gate.calls(), first), (1, 1));
}
