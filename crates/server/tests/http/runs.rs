//! Runs: begun, read, listed, cancelled; one at a time in a conversation.

use http::Method;
use serde_json::json;

use crate::support::{Folders, Gate, World};

const SLOW: &str = "user matches /slow/:\nmodel: calls c1 slow {}\nmodel: It is done.\n\notherwise:\nmodel: Hello.\n";

async fn slow() -> (World, Gate, Folders) {
    let (gate, folders) = (Gate::new().await, Folders::new());
    let folder = folders.agent("slow", &gate.toml(""), SLOW);
    (World::of(&[folder]).await, gate, folders)
}

#[tokio::test]
async fn a_run_is_answered_with_its_result_and_read_and_listed_later() {
    let world = World::desk().await;
    let body = json!({ "input": "Refund order 8", "conversation": "k 1/ü", "contact": "maria" });
    let run = world.post("/v1/agents/desk/runs", body).await.ok();
    assert_eq!((run["status"].as_str(), run["outcome"].as_str()), (Some("ended"), Some("completed")));
    assert_eq!(run["text"], "I have paid back 40 dollars for order 8.");
    let id = run["report"]["run_id"].as_str().unwrap();
    assert_eq!(world.get(&format!("/v1/runs/{id}")).await.ok()["tool_calls"], run["tool_calls"]);
    let log = world.get(&format!("/v1/runs/{id}/log")).await.ok();
    let plan = gesta_run::Plan::new(serde_json::from_value(log["plan"].clone()).unwrap(), Default::default()).unwrap();
    let events: Vec<gesta_run::Event> = serde_json::from_value(log["events"].clone()).unwrap();
    assert_eq!(json!(gesta_run::Run::replay(plan, &events).result()), run);
    let listed = world.get("/v1/runs?agent=desk&contact=maria&status=ended&outcome=completed&closed=true").await.ok();
    assert_eq!(listed["items"][0]["run"], id);
    for other in ["agent=other", "contact=other", "outcome=cancelled", "conversation=other", "since=9999999999999"] {
        assert_eq!(world.get(&format!("/v1/runs?{other}")).await.ok()["items"], json!([]), "{other}");
    }
    let conversation = world.get("/v1/conversations/k%201%2F%C3%BC").await.ok();
    assert_eq!((conversation["turns"].as_u64(), conversation["contact"].as_str()), (Some(1), Some("maria")));
    assert_eq!(conversation["history"][0][0]["parts"][0]["text"], "Refund order 8");
    assert_eq!(world.get("/v1/conversations").await.ok()["items"][0]["conversation"], "k 1/ü");
    assert_eq!(world.client().delete("/v1/conversations/k%201%2F%C3%BC").await.status, 204);
    world.client().delete("/v1/conversations/k%201%2F%C3%BC").await.problem(404, "no_such_conversation");
    world.get("/v1/conversations/k%201%2F%C3%BC").await.problem(404, "no_such_conversation");
    world.get(&format!("/v1/runs/{id}")).await.problem(404, "no_such_run");
}

#[tokio::test]
async fn runs_are_listed_page_by_page() {
    let world = World::desk().await;
    for _ in 0..5 {
        world.post("/v1/agents/desk/runs", json!({ "input": "Hello" })).await.ok();
    }
    let (mut found, mut path) = (Vec::new(), "/v1/runs?limit=2".to_owned());
    let mut pages = 0;
    loop {
        let page = world.get(&path).await.ok();
        pages += 1;
        found.extend(page["items"].as_array().unwrap().iter().map(|it| it["run"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/runs?limit=2&after={next}"),
            None => break,
        }
    }
    let mut newest_first = found.clone();
    newest_first.sort_by(|a, b| b.cmp(a));
    newest_first.dedup();
    assert_eq!((found.len(), pages), (5, 3));
    assert_eq!(found, newest_first);
}

#[tokio::test]
async fn texts_pictures_and_files_are_input() {
    let world = World::desk().await;
    let body = json!({ "conversation": "k", "input": [
        { "type": "text", "text": "Where is" },
        { "type": "image", "media_type": "image/png", "base64": "iVBORw0KGgo=" },
        { "type": "file", "media_type": "application/pdf", "name": "bill.pdf", "url": "https://example.com/bill.pdf" },
        { "type": "text", "text": "order 7?" },
    ]});
    let run = world.post("/v1/agents/desk/runs", body).await.ok();
    assert_eq!(run["text"], "Order 7 is an armchair for 300 dollars. It has been delivered.");
    let parts = &run["transcript"].as_array().unwrap().iter().find(|it| it["role"] == "user").unwrap()["parts"];
    assert_eq!(parts[1], json!({ "type": "image", "media_type": "image/png", "source": { "base64": "iVBORw0KGgo=" } }));
    assert_eq!(parts[2]["source"], json!({ "url": "https://example.com/bill.pdf" }));
}

#[tokio::test]
async fn a_second_run_in_a_conversation_is_told_which_goes_on_or_waits_its_turn() {
    let (world, mut gate, _folders) = slow().await;
    let client = world.client();
    let first = tokio::spawn(async move {
        client.post("/v1/agents/slow/runs", json!({ "input": "slow", "conversation": "k" })).await.ok()
    });
    gate.called().await;
    let going_on = world.get("/v1/runs?status=open").await.ok()["items"][0]["run"].clone();
    let second = json!({ "input": "Hello", "conversation": "k" });
    let refused = world.post("/v1/agents/slow/runs", second).await.problem(409, "conversation_busy");
    assert_eq!(refused["run"], going_on);
    let client = world.client();
    let queued = json!({ "input": "Hello", "conversation": "k", "queue": true });
    let queued = tokio::spawn(async move { client.post("/v1/agents/slow/runs", queued).await.ok() });
    gate.open(1);
    assert_eq!(first.await.unwrap()["report"]["run_id"], going_on);
    assert_eq!(queued.await.unwrap()["text"], "Hello.");
    assert_eq!(world.get("/v1/conversations/k").await.ok()["turns"], 2);
}

#[tokio::test]
async fn a_conversation_belongs_to_one_agent() {
    let world = World::of(&[crate::support::example("desk"), crate::support::example("coach")]).await;
    let hello = json!({ "input": "Hello", "conversation": "k" });
    world.post("/v1/agents/desk/runs", hello.clone()).await.ok();
    let refused = world.post("/v1/agents/coach/runs", hello).await.problem(409, "conversation_of_another");
    assert_eq!(refused["agent"], "desk");
}

#[tokio::test]
async fn a_run_goes_on_when_its_client_is_gone() {
    let (world, mut gate, _folders) = slow().await;
    let client = world.client();
    let plain = tokio::spawn(async move { client.post("/v1/agents/slow/runs", json!({ "input": "slow" })).await });
    gate.called().await;
    plain.abort();
    assert!(plain.await.unwrap_err().is_cancelled());
    let body = json!({ "input": "slow" });
    let mut streamed = world.client().events(Method::POST, "/v1/agents/slow/runs", Some(body)).await;
    let run = streamed.until("run.started").await[0].data["run"].as_str().unwrap().to_owned();
    gate.called().await;
    drop(streamed);
    gate.open(2);
    let followed = world.client().events(Method::GET, &format!("/v1/runs/{run}/events"), None).await.all().await;
    assert_eq!(followed.last().unwrap().data["result"]["text"], "It is done.");
    let other = world.get("/v1/runs").await.ok()["items"][1]["run"].as_str().unwrap().to_owned();
    let other = world.client().events(Method::GET, &format!("/v1/runs/{other}/events"), None).await.all().await;
    assert_eq!(other.last().unwrap().data["result"]["text"], "It is done.");
}

#[tokio::test]
async fn a_run_is_cancelled_wherever_it_stands() {
    let (world, mut gate, _folders) = slow().await;
    let client = world.client();
    let begun = tokio::spawn(async move { client.post("/v1/agents/slow/runs", json!({ "input": "slow" })).await.ok() });
    gate.called().await;
    let run = world.get("/v1/runs").await.ok()["items"][0]["run"].as_str().unwrap().to_owned();
    let cancelled = world.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.ok();
    assert_eq!(
        (&cancelled["outcome"], &cancelled["tool_calls"][0]["status"]),
        (&json!("cancelled"), &json!("outcome_unknown"))
    );
    assert_eq!(begun.await.unwrap()["outcome"], "cancelled");
    let again = world.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.ok();
    assert_eq!(again, cancelled);

    let world = World::desk().await;
    let (run, hold) = world.parked().await;
    let cancelled = world.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.ok();
    assert_eq!((&cancelled["outcome"], &cancelled["deferred"]), (&json!("cancelled"), &json!([])));
    let answer = json!({ "answers": [{ "binding": hold["binding"], "approve": true }] });
    world.post(&format!("/v1/runs/{run}/answers"), answer).await.problem(409, "run_ended");
    world.post("/v1/runs/nothing/cancel", json!({})).await.problem(404, "no_such_run");
}

#[tokio::test]
async fn agents_and_their_tools_are_listed() {
    let world = World::of(&[crate::support::example("desk"), crate::support::example("shop")]).await;
    let agents = world.get("/v1/agents").await.ok();
    let names: Vec<_> =
        agents["items"].as_array().unwrap().iter().map(|it| (it["name"].clone(), it["document"].clone())).collect();
    assert_eq!(names, [(json!("desk"), json!(false)), (json!("shop"), json!(true))]);
    let tools = world.get("/v1/agents/desk/tools").await.ok();
    let refund = tools["items"].as_array().unwrap().iter().find(|it| it["name"] == "refund_order").unwrap();
    assert_eq!(
        (&refund["accepts"], &refund["run_by"], &refund["time_limit_ms"]),
        (&json!("approval_only"), &json!("answers"), &json!(10_000))
    );
    world.get("/v1/agents/nobody/tools").await.problem(404, "no_such_agent");
}
