//! The server stops and starts: what goes on ends, what is cut off is taken up, what waits goes on waiting.

use std::time::Duration;

use gesta_run::{RunId, Status};
use gesta_server::Limits;
use gesta_store::RunLog;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Folders, Gate, World};

const SLOW: &str = "model: calls c1 slow {}\nmodel: It is done.\n";

/// Begins a run of `slow` and waits until its tool is called.
async fn begun(world: &World, gate: &mut Gate) -> (String, tokio::task::JoinHandle<Option<Value>>) {
    let body = json!({ "input": "slow" });
    let mut events = world.client().events(Method::POST, "/v1/agents/slow/runs", Some(body)).await;
    let run = events.next().await.unwrap().data["run"].as_str().unwrap().to_owned();
    gate.called().await;
    let rest = tokio::spawn(async move { events.all().await.pop().map(|said| said.data) });
    (run, rest)
}

#[tokio::test]
async fn what_goes_on_is_finished_before_the_server_stops() {
    let (mut gate, folders) = (Gate::new().await, Folders::new());
    let mut world = World::of(&[folders.agent("slow", &gate.toml(""), SLOW)]).await;
    let (_, ended) = begun(&world, &mut gate).await;
    let (left, ()) = tokio::join!(world.stop(), async { gate.open(1) });
    assert_eq!(left, 0);
    assert_eq!(ended.await.unwrap().unwrap()["result"]["text"], "It is done.");
}

#[tokio::test]
async fn while_it_stops_it_says_that_it_is_not_ready() {
    let (mut gate, folders) = (Gate::new().await, Folders::new());
    let mut world = World::of(&[folders.agent("slow", &gate.toml(""), SLOW)]).await;
    let all = json!({ "serving": "ok", "store": "ok", "migrations": "ok", "agents": "ok" });
    assert_eq!(world.get("/readyz").await.ok(), all);
    let client = world.client();
    let (_, ended) = begun(&world, &mut gate).await;
    let asking = async {
        let not_ready = loop {
            let answer = client.get("/readyz").await;
            if answer.status != 200 {
                break answer.problem(503, "stopping");
            }
        };
        assert_eq!(not_ready["checks"]["serving"], "stopping");
        assert_eq!(client.get("/healthz").await.status, 200);
        client.post("/v1/agents/slow/runs", json!({ "input": "more" })).await.problem(503, "stopping");
        gate.open(1);
    };
    let (left, ()) = tokio::join!(world.stop(), asking);
    assert_eq!(left, 0);
    ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_is_cut_off_is_taken_up_at_the_next_start_and_no_effect_is_repeated() {
    for (effect, calls, status) in [("once", 1, "outcome_unknown"), ("reads_only", 2, "completed")] {
        let (mut gate, folders) = (Gate::new().await, Folders::new());
        let toml = format!("{}effect = \"{effect}\"\n", gate.toml(""));
        let limits = Limits { stop_wait: Duration::ZERO, ..Limits::default() };
        let mut world = World::with(&[folders.agent("slow", &toml, SLOW)], limits).await;
        let (run, _) = begun(&world, &mut gate).await;
        assert_eq!(world.stop().await, 1, "{effect}");
        // What is still waiting at the gate belongs to the server that is gone.
        gate.open(2);
        world.start().await;
        let told = world.client().events(Method::GET, &format!("/v1/runs/{run}/events"), None).await.all().await;
        let result = &told.last().unwrap().data["result"];
        assert_eq!((&result["text"], &result["tool_calls"][0]["status"]), (&json!("It is done."), &json!(status)));
        assert_eq!(gate.calls(), calls, "{effect}");
    }
}

#[tokio::test]
async fn more_runs_than_there_is_room_for_are_taken_up_one_after_another() {
    let (mut gate, folders) = (Gate::new().await, Folders::new());
    let limits = Limits { stop_wait: Duration::ZERO, ..Limits::default() };
    let mut world = World::with(&[folders.agent("slow", &gate.toml(""), SLOW)], limits).await;
    let mut runs = Vec::new();
    for _ in 0..8 {
        runs.push(begun(&world, &mut gate).await.0);
    }
    assert_eq!(world.stop().await, 8);
    world.limit(Limits { runs_max: 1, ..Limits::default() });
    world.start().await;
    for run in runs {
        let told = world.client().events(Method::GET, &format!("/v1/runs/{run}/events"), None).await.all().await;
        assert_eq!(told.last().unwrap().data["outcome"], "completed");
    }
}

#[tokio::test]
async fn what_waits_for_a_person_is_answered_after_a_restart_under_the_configuration_it_parked_with() {
    let folders = Folders::new();
    let rules = "[[decisions]]\ntool = \"pay\"\naction = \"defer\"\n[[tools]]\nname = \"pay\"\ndescription = \"Pays.\"\n\
                 parameters = { type = \"object\" }\n[[tools.answers]]\nresult = \"paid\"\n";
    let script = "model: calls c1 pay {}\nmodel: The first version.\n";
    let mut world = World::of(&[folders.agent("till", rules, script)]).await;
    let parked = world.post("/v1/agents/till/runs", json!({ "input": "Pay" })).await.ok();
    let (run, hold) = (parked["report"]["run_id"].as_str().unwrap(), &parked["deferred"][0]);
    world.stop().await;
    folders.agent("till", "", "model: The second version.\n");
    world.start().await;
    assert_eq!(world.get("/v1/holds").await.ok()["items"][0]["hold"], *hold);
    let answer = json!({ "answers": [{ "binding": hold["binding"], "approve": true }] });
    let ended = world.post(&format!("/v1/runs/{run}/answers"), answer).await.ok();
    assert_eq!((&ended["text"], &ended["tool_calls"][0]["result"]), (&json!("The first version."), &json!("paid")));
    let fresh = world.post("/v1/agents/till/runs", json!({ "input": "Pay" })).await.ok();
    assert_eq!(fresh["text"], "The second version.");
}

#[tokio::test]
async fn an_approved_call_that_was_cut_off_waits_for_somebody_who_knows_what_came_of_it() {
    for (said, status) in [
        (json!({ "result": "it was paid" }), "completed"),
        (json!({ "error": "it was not paid" }), "failed"),
        (json!({ "outcome_unknown": true }), "outcome_unknown"),
    ] {
        let (mut gate, folders) = (Gate::new().await, Folders::new());
        let toml = gate.toml("[[decisions]]\ntool = \"slow\"\naction = \"defer\"\n");
        let limits = Limits { stop_wait: Duration::ZERO, ..Limits::default() };
        let mut world = World::with(&[folders.agent("slow", &toml, SLOW)], limits).await;
        let parked = world.post("/v1/agents/slow/runs", json!({ "input": "slow" })).await.ok();
        let run = parked["report"]["run_id"].as_str().unwrap();
        let path = format!("/v1/runs/{run}/answers");
        let answer = |mut said: Value| {
            said["binding"] = parked["deferred"][0]["binding"].clone();
            json!({ "answers": [said] })
        };
        let (client, approve) = (world.client(), answer(json!({ "approve": true })));
        let to = path.clone();
        let cut = tokio::spawn(async move { client.post(&to, approve).await.problem(503, "left") });
        gate.called().await;
        assert_eq!(world.stop().await, 1);
        cut.await.unwrap();
        gate.open(1);
        world.start().await;
        let mut events = world.client().events(Method::GET, &format!("/v1/runs/{run}/events"), None).await;
        let stands = events.until("run.parked").await.pop().unwrap().data["result"].clone();
        assert_eq!(stands["deferred"][0]["state"], "undecided", "{stands}");
        // Nobody may let it run a second time.
        world.post(&path, answer(json!({ "deny": "no" }))).await.problem(422, "not_accepted");
        let ended = world.post(&path, answer(said.clone())).await.ok();
        assert_eq!(
            (&ended["text"], &ended["tool_calls"][0]["status"]),
            (&json!("It is done."), &json!(status)),
            "{said}"
        );
        // The approval was used, though another answer came after it.
        for said in [json!({ "approve": true }), said] {
            let again = world.post(&path, answer(said.clone())).await.ok();
            assert_eq!(again["already_answered"], json!(["c1"]), "{said}");
        }
        assert_eq!(gate.calls(), 1);
    }
}

/// Whoever follows a run that only waits does not keep the server from stopping.
#[tokio::test]
async fn a_stream_that_waits_ends_with_the_server() {
    let mut world = World::desk().await;
    let (run, _) = world.parked().await;
    let mut events = world.client().events(Method::GET, &format!("/v1/runs/{run}/events"), None).await;
    events.until("run.parked").await;
    assert_eq!(world.stop().await, 0);
    assert!(events.next().await.is_none());
}

/// Whoever began it has gone, and nobody else is connected.
#[tokio::test]
async fn what_goes_on_is_finished_when_nobody_is_connected_any_more() {
    let (mut gate, folders) = (Gate::new().await, Folders::new());
    let mut world = World::of(&[folders.agent("slow", &gate.toml(""), SLOW)]).await;
    let (run, listens) = begun(&world, &mut gate).await;
    listens.abort();
    assert!(listens.await.is_err());
    let (left, ()) = tokio::join!(world.stop(), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        gate.open(1);
    });
    assert_eq!(left, 0);
    let run = RunId::from(run.as_str());
    world.with_store(async |store| assert_eq!(store.head(&run).await.unwrap().status, Status::Ended)).await;
}

#[tokio::test]
async fn a_stream_of_what_is_cut_off_says_that_it_was_left() {
    let (mut gate, folders) = (Gate::new().await, Folders::new());
    let limits = Limits { stop_wait: Duration::ZERO, ..Limits::default() };
    let mut world = World::with(&[folders.agent("slow", &gate.toml(""), SLOW)], limits).await;
    let (run, rest) = begun(&world, &mut gate).await;
    assert_eq!(world.stop().await, 1);
    let last = rest.await.unwrap().unwrap();
    assert_eq!((&last["code"], &last["run"]), (&json!("left"), &json!(run)), "{last}");
}

/// As it happens where several servers share one store: a worker that was slow for too long finds its run taken.
#[tokio::test]
async fn a_stream_goes_on_with_whoever_takes_the_run_over() {
    let (mut gate, folders) = (Gate::new().await, Folders::new());
    let world = World::of(&[folders.agent("slow", &format!("{}effect = \"reads_only\"\n", gate.toml("")), SLOW)]).await;
    let body = json!({ "input": "slow" });
    let mut events = world.client().events(Method::POST, "/v1/agents/slow/runs", Some(body)).await;
    let run = events.next().await.unwrap().data["run"].as_str().unwrap().to_owned();
    gate.called().await;
    let file = rusqlite::Connection::open(world.data().join(gesta_store::FILE_NAME)).unwrap();
    let taken = "UPDATE runs SET fence = fence + 1, owner = 'another', lease_until = lease_until - 29000";
    file.execute(taken, []).unwrap();
    // What was done here counts for nothing; the sweeper takes it up when the other's lease has lapsed.
    gate.open(2);
    let told = events.all().await;
    let last = told.last().unwrap();
    assert_eq!(
        (last.name.as_str(), &last.data["outcome"], &last.data["run"]),
        ("run.ended", &json!("completed"), &json!(run))
    );
    assert_eq!(gate.calls(), 2);
}

/// A server erases at its start, and from then on, what its agents keep no longer.
#[tokio::test]
async fn what_was_kept_long_enough_is_erased_and_the_audit_stays_whole() {
    let folders = Folders::new();
    let keeps = |keep: &str| {
        let toml = format!(
            "{keep}[[decisions]]\ntool = \"pay\"\naction = \"defer\"\n[[tools]]\nname = \"pay\"\n\
             description = \"Pays.\"\nparameters = {{ type = \"object\" }}\n[[tools.answers]]\nresult = \"paid\"\n"
        );
        folders.agent(
            "till",
            &toml,
            "user matches \"pay\":\nmodel: calls c1 pay {}\nmodel: Paid.\n\notherwise:\nmodel: Hello.\n",
        )
    };
    let mut world = World::of(&[keeps("")]).await;
    let path = "/v1/agents/till/runs";
    let parked = world.post(path, json!({ "input": "pay", "conversation": "waits" })).await.ok();
    let ended = world.post(path, json!({ "input": "Hi" })).await.ok();
    world.post(path, json!({ "input": "Hi", "conversation": "talk" })).await.ok();
    world.post(path, json!({ "input": "Hi", "conversation": "erased" })).await.ok();
    world.client().delete("/v1/conversations/erased").await;
    let audit = world.get("/v1/audit").await.ok();
    world.stop().await;
    keeps("storage.keep = \"1ms\"\n");
    world.start().await;
    let run = ended["report"]["run_id"].as_str().unwrap();
    while world.get(&format!("/v1/runs/{run}")).await.status == 200 {}
    while world.get("/v1/conversations/talk").await.status == 200 {}
    world.get(&format!("/v1/runs/{run}")).await.problem(404, "no_such_run");
    let run = parked["report"]["run_id"].as_str().unwrap();
    assert_eq!(world.get(&format!("/v1/runs/{run}")).await.ok()["status"], "parked");
    assert_eq!(world.get("/v1/conversations").await.ok()["items"][0]["conversation"], "waits");
    let now = world.get("/v1/audit").await.ok();
    assert_eq!((&now["items"], now["items"].as_array().map(Vec::len)), (&audit["items"], Some(1)));
}
