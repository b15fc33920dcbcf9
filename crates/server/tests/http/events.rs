//! Following a run: the log, then what happens, without a gap.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Folders, Gate, Said, World};

fn names(said: &[Said]) -> Vec<&str> {
    said.iter().map(|it| it.name.as_str()).collect()
}

/// What a client that comes back must be told: all but the pieces of an answer that is in the log by now.
fn stored(said: &[Said]) -> Vec<&Said> {
    said.iter().filter(|it| it.id.is_some()).collect()
}

#[tokio::test]
async fn a_run_is_told_by_the_names_of_a_closed_list_and_by_its_result() {
    let world = World::desk().await;
    let body = json!({ "input": "Refund order 7, 250 dollars", "stream": true });
    let told = world.client().events(Method::POST, "/v1/agents/desk/runs", Some(body)).await.all().await;
    let mut expected = vec!["run.started"];
    for call in [["call.decided", "call.answered"], ["call.decided", "hold.opened"]] {
        expected.extend(["trip.started", "call.requested"]);
        expected.extend(call);
    }
    expected.push("run.parked");
    assert_eq!(names(&told), expected);
    let hold = &told[told.len() - 2].data["hold"];
    assert_eq!(hold["arguments"], json!({ "order": "7", "amount": 250 }));
    let result = &told.last().unwrap().data["result"];
    assert_eq!(&result["deferred"][0], hold);
    let run = result["report"]["run_id"].as_str().unwrap();

    let answer = json!({ "answers": [{ "binding": hold["binding"], "approve": true }] });
    let path = format!("/v1/runs/{run}/answers");
    let told = world.client().events(Method::POST, &path, Some(answer)).await.all().await;
    // Pieces come as far as they are heard before the whole answer is in the log.
    let kinds: Vec<&str> = names(&told).into_iter().filter(|it| *it != "reply.delta").collect();
    let expected = ["hold.answered", "call.answered", "trip.started", "reply.finished", "run.ended"];
    assert_eq!(kinds, expected);
    assert_eq!(told[0].data["answer"], json!({ "approve": true }));
    let mut text = String::new();
    for piece in told.iter().filter(|it| it.name == "reply.delta") {
        assert_eq!(piece.data["offset"], text.len());
        text.push_str(piece.data["text"].as_str().unwrap());
    }
    assert!(told[told.len() - 2].data["text"].as_str().unwrap().starts_with(&text));
    assert_eq!(told[told.len() - 1].data["result"], world.get(&format!("/v1/runs/{run}")).await.ok());
}

#[tokio::test]
async fn a_client_that_comes_back_is_told_exactly_what_it_missed() {
    let world = World::desk().await;
    let (run, hold) = world.parked().await;
    let answer = json!({ "answers": [{ "binding": hold["binding"], "deny": "too much" }] });
    world.post(&format!("/v1/runs/{run}/answers"), answer).await.ok();
    let path = format!("/v1/runs/{run}/events");
    let whole = world.client().events(Method::GET, &path, None).await.all().await;
    assert_eq!(whole.last().unwrap().name, "run.ended");
    let whole = stored(&whole);
    assert!(whole.len() >= 10);
    for (at, last) in whole.iter().enumerate().take(whole.len() - 1) {
        let id = last.id.as_deref().unwrap();
        let rest = world.client().with("last-event-id", id).events(Method::GET, &path, None).await.all().await;
        assert_eq!(stored(&rest), whole[at + 1..], "after {id}");
        let rest = world.client().events(Method::GET, &format!("{path}?after={id}"), None).await.all().await;
        assert_eq!(stored(&rest), whole[at + 1..], "after {id}");
    }
    let end = whole.last().unwrap().id.as_deref().unwrap();
    assert_eq!(world.client().with("last-event-id", end).get(&path).await.status, 204);
    let behind = world.client().with("last-event-id", "18446744073709551615.1000000").get(&path).await;
    assert_eq!(behind.status, 204);
    world.client().with("last-event-id", "seven").get(&path).await.problem(400, "event_id_invalid");
    world.get("/v1/runs/nothing/events").await.problem(404, "no_such_run");
}

#[tokio::test]
async fn who_follows_live_and_who_reads_later_are_told_the_same() {
    let (mut gate, folders) = (Gate::new().await, Folders::new());
    let script = "model: calls c1 slow {}\nmodel: calls c2 nothing {}\nmodel: calls c3 slow {}\nmodel: Done.\n";
    let folder = folders.agent("slow", &gate.toml(""), script);
    let world = World::of(&[folder]).await;
    let body = json!({ "input": "slow", "conversation": "k", "contact": "maria" });
    let mut live = world.client().events(Method::POST, "/v1/agents/slow/runs", Some(body)).await;
    let mut told = live.until("call.requested").await;
    let run = told[0].data["run"].as_str().unwrap().to_owned();
    let path = format!("/v1/runs/{run}/events");
    gate.called().await;
    // Somebody comes back in the middle, with what he has.
    let id = told.last().unwrap().id.clone().unwrap();
    let back = world.client().with("last-event-id", &id).events(Method::GET, &path, None).await;
    let from_the_beginning = world.client().events(Method::GET, &path, None).await;
    gate.open(2);
    let seen = told.iter().filter(|it| it.id.is_some()).count();
    told.extend(live.all().await);
    let (back, whole) = (back.all().await, from_the_beginning.all().await);
    assert_eq!(stored(&whole), stored(&told));
    assert_eq!(stored(&back), stored(&told)[seen..]);
    let later = world.client().events(Method::GET, &path, None).await.all().await;
    assert_eq!(stored(&later).last(), stored(&told).last());
    let of_calls = |said: &[Said]| -> Vec<(String, Value)> {
        let calls = said.iter().filter(|it| it.name.starts_with("call."));
        calls.map(|it| (it.name.clone(), it.data.clone())).collect()
    };
    assert_eq!(of_calls(&later), of_calls(&told));
}

#[tokio::test]
async fn a_stream_stays_open_while_the_run_is_parked() {
    let world = World::desk().await;
    let (run, hold) = world.parked().await;
    let mut events = world.client().events(Method::GET, &format!("/v1/runs/{run}/events"), None).await;
    events.until("run.parked").await;
    let answer = json!({ "answers": [{ "binding": hold["binding"], "approve": true }] });
    world.post(&format!("/v1/runs/{run}/answers"), answer).await.ok();
    let rest = events.all().await;
    assert_eq!(rest.first().unwrap().name, "hold.answered");
    assert_eq!(rest.last().unwrap().name, "run.ended");
}
