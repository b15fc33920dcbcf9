//! Who may do what, and what is written down of it.

use gesta_run::Timestamp;
use gesta_server::{NewKey, Scope};
use gesta_store::{Audit, Keys};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Client, Folders, World, example};

/// A run of the desk that waits, begun by who may.
async fn parked(world: &World) -> (String, Value) {
    let (client, _) = world.keyed(&[Scope::Run], None).await;
    let run = client
        .post("/v1/agents/desk/runs", json!({ "input": "Refund order 7, 250 dollars", "conversation": "k" }))
        .await
        .ok();
    (run["report"]["run_id"].as_str().unwrap().to_owned(), run["deferred"][0]["binding"].clone())
}

#[tokio::test]
async fn a_stranger_learns_nothing() {
    let world = World::locked(&[example("desk")]).await;
    let (good, id) = world.keyed(&Scope::ALL, None).await;
    assert_eq!(good.get("/v1/runs").await.status, 200);
    let bearer = |key: &str| world.client().with("authorization", key);
    let new = NewKey { name: "unknown", scopes: &[Scope::Admin], agents: None, tenant: None, at: Timestamp(1) };
    let (shown, _) = gesta_server::new_key(new).unwrap();
    let strangers = [
        world.client(),
        bearer("Bearer"),
        bearer("Bearer x"),
        bearer("Basic Z2VzdGE6Z2VzdGE="),
        bearer(&format!("Bearer {shown}")),
        bearer(&format!("Bearer gesta_{id}_")),
        bearer(&format!("Bearer gesta_{id}_{}", "A".repeat(43))),
        bearer("Bearer gesta_é_é"),
    ];
    for client in strangers {
        for (method, path) in [
            (Method::GET, "/v1/runs"),
            (Method::GET, "/v1/agents"),
            (Method::GET, "/v1/audit"),
            (Method::GET, "/v1/nothing"),
            (Method::POST, "/v1/agents/desk/runs"),
            (Method::DELETE, "/v1/conversations/k"),
        ] {
            client.ask(method, path, None).await.problem(401, "unauthorized");
        }
        assert_eq!(client.get("/healthz").await.status, 200);
    }
    world.store().revoke_key(&id, Timestamp(5)).await.unwrap();
    good.get("/v1/runs").await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_key_for_one_agent_neither_uses_nor_sees_another() {
    let world = World::locked(&[example("desk"), example("coach")]).await;
    let (run, binding) = parked(&world).await;
    let (client, _) = world.keyed(&[Scope::Admin], Some(&["coach"])).await;
    let own = client.post("/v1/agents/coach/runs", json!({ "input": "Hello", "conversation": "c" })).await.ok();
    let hello = json!({ "input": "Hello" });
    let answer = json!({ "answers": [{ "binding": binding, "deny": "no" }] });
    client.post("/v1/agents/desk/runs", hello).await.problem(403, "not_permitted");
    client.post(&format!("/v1/runs/{run}/answers"), answer).await.problem(403, "not_permitted");
    client.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.problem(403, "not_permitted");
    client.delete("/v1/conversations/k").await.problem(403, "not_permitted");
    let paths = ["/v1/agents/desk/tools", "/v1/conversations/k", "/v1/runs?agent=desk", "/v1/holds?agent=desk"];
    for path in paths {
        client.get(path).await.problem(403, "not_permitted");
    }
    for path in [format!("/v1/runs/{run}"), format!("/v1/runs/{run}/events"), format!("/v1/holds/{run}/r1")] {
        client.get(&path).await.problem(403, "not_permitted");
    }
    let seen = client.get("/v1/runs").await.ok();
    assert_eq!(seen["items"].as_array().unwrap().len(), 1);
    assert_eq!(seen["items"][0]["run"], own["report"]["run_id"]);
    assert_eq!(client.get("/v1/holds").await.ok()["items"], json!([]));
    let of = |answer: &Value, field: &str| {
        answer["items"].as_array().unwrap().iter().map(|it| it[field].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(&client.get("/v1/agents").await.ok(), "name"), ["coach"]);
    assert_eq!(of(&client.get("/v1/conversations").await.ok(), "conversation"), ["c"]);
}

#[tokio::test]
async fn who_runs_an_agent_hands_in_results_of_its_own_tools_and_decides_on_nothing_else() {
    let folders = Folders::new();
    let toml =
        "[[tools]]\nname = \"own\"\ndescription = \"Own.\"\nexternal = true\nparameters = { type = \"object\" }\n";
    let script = "model: calls c1 own {}\nmodel: calls c2 own {}\nmodel: Done.\n";
    let world = World::locked(&[folders.agent("guide", toml, script), example("desk")]).await;
    let (client, _) = world.keyed(&[Scope::Run], None).await;
    let parked = client.post("/v1/agents/guide/runs", json!({ "input": "Go" })).await.ok();
    let path = format!("/v1/runs/{}/answers", parked["report"]["run_id"].as_str().unwrap());
    let answer = |run: &Value, said: Value| {
        let mut answer = said;
        answer["binding"] = run["deferred"][0]["binding"].clone();
        json!({ "answers": [answer] })
    };
    client.post(&path, answer(&parked, json!({ "deny": "no" }))).await.problem(403, "not_permitted");
    let next = client.post(&path, answer(&parked, json!({ "result": 1 }))).await.ok();
    assert_eq!(client.post(&path, answer(&next, json!({ "error": "broken" }))).await.ok()["text"], "Done.");
}

#[tokio::test]
async fn requests_meant_for_others_are_refused() {
    let world = World::desk().await;
    let with = |name: &str, value: &str| world.client().with(name, value);
    with("host", "evil.test").get("/v1/runs").await.problem(421, "host_unknown");
    assert_eq!(with("host", "10.0.0.7").get("/healthz").await.status, 200);
    with("origin", "https://evil.test").get("/v1/runs").await.problem(403, "origin_unknown");
    let form = with("origin", "null").with("content-type", "text/plain");
    form.post("/v1/agents/desk/runs", json!({ "input": "Hello" })).await.problem(403, "origin_unknown");
    assert_eq!(with("host", "localhost").with("origin", "http://localhost").get("/v1/runs").await.status, 200);
    assert_eq!(world.get("/v1/runs").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn every_answer_is_written_down_with_who_and_what_and_never_with_its_content() {
    let world = World::locked(&[example("desk")]).await;
    let (run, binding) = parked(&world).await;
    let (client, id) = world.keyed(&[Scope::Answer], None).await;
    let path = format!("/v1/runs/{run}/answers");
    let said = |said: Value| {
        let mut answer = said;
        answer["binding"] = binding.clone();
        json!({ "answers": [answer] })
    };
    client.post(&path, said(json!({ "result": "secret" }))).await.problem(422, "not_accepted");
    let edited = json!({ "order": "7", "amount": 41 });
    client.post(&path, said(json!({ "approve": true, "arguments": edited }))).await.ok();
    client.post(&path, said(json!({ "deny": "secret" }))).await.problem(409, "conflict");
    let (admin, _) = world.keyed(&[Scope::Admin], None).await;
    admin.delete("/v1/conversations/k").await;
    let audit = admin.get("/v1/audit").await.ok();
    let records = audit["items"].as_array().unwrap();
    let what: Vec<&str> = records.iter().map(|it| it["what"].as_str().unwrap()).collect();
    let expected = ["result", "refused: not_accepted", "approve_edited", "deny", "refused: conflict", "erase"];
    assert_eq!(what, expected);
    let fingerprint = gesta_run::json::fingerprint("refund_order", edited.as_object().unwrap());
    let approved = &records[2];
    assert_eq!(
        (&approved["who"], &approved["from"], &approved["subject"]),
        (&json!(id), &json!("127.0.0.1"), &json!(run))
    );
    assert_eq!((&approved["call"], &approved["fingerprint"]), (&json!("r1"), &json!(fingerprint)));
    assert_eq!(records[0]["fingerprint"], binding["fingerprint"]);
    assert!(!audit.to_string().contains("secret"));
    let page = admin.get("/v1/audit?limit=2&after=1").await.ok();
    assert_eq!((page["items"].as_array().unwrap().as_slice(), &page["next"]), (&records[1..3], &json!("3")));
    let stored = world.store().audit(0, 0).await.unwrap();
    let mut last = None;
    for record in &stored {
        assert!(record.follows(last));
        last = Some((record.seq, record.hash.as_str()));
    }
}

#[tokio::test]
async fn a_server_without_keys_says_that_its_own_machine_answered() {
    let world = World::desk().await;
    let (run, hold) = world.parked().await;
    let client: Client = world.client();
    let answer = json!({ "answers": [{ "binding": hold["binding"], "approve": true }] });
    client.post(&format!("/v1/runs/{run}/answers"), answer).await.ok();
    assert_eq!(client.get("/v1/audit").await.ok()["items"][0]["who"], "local");
}
