//! Tools that the caller runs: their calls wait for it, and its results are what the model reads.

use serde_json::{Value, json};

use crate::support::{Folders, World};

const SCRIPT: &str = "user matches /weather/:\nmodel: calls c1 weather {\"city\":\"Ulm\"}\nand: calls c2 weather {\"city\":\"Bonn\"}\n\
                      model: It is fine.\n\nuser matches /wrong/:\nmodel: calls c1 weather {\"town\":\"Ulm\"}\nmodel: Sorry.\n\n\
                      otherwise:\nmodel: Hello.\n";

fn weather() -> Value {
    json!({ "name": "weather", "description": "Tells the weather.", "parameters": {
        "type": "object", "required": ["city"], "properties": { "city": { "type": "string" } },
    }})
}

/// The tool as a folder declares it.
const DECLARED: &str = "[[tools]]\nname = \"weather\"\ndescription = \"Tells the weather.\"\nexternal = true\n\
                        [tools.parameters]\ntype = \"object\"\nrequired = [\"city\"]\nproperties.city = { type = \"string\" }\n";

/// Both ways of declaring it, as a world and what a run is begun with.
async fn both_ways(more: &str) -> Vec<(World, Value, Folders)> {
    let mut ways = Vec::new();
    for (toml, tools) in [(format!("{more}\n{DECLARED}"), json!([])), (more.to_owned(), json!([weather()]))] {
        let folders = Folders::new();
        let world = World::of(&[folders.agent("guide", &toml, SCRIPT)]).await;
        ways.push((world, tools, folders));
    }
    ways
}

async fn begin(world: &World, tools: &Value, input: &str) -> Value {
    let body = json!({ "input": input, "tools": tools, "conversation": "k" });
    world.post("/v1/agents/guide/runs", body).await.ok()
}

fn answer(hold: &Value, said: Value) -> Value {
    let mut answer = said;
    answer["binding"] = hold["binding"].clone();
    json!({ "answers": [answer] })
}

#[tokio::test]
async fn results_are_handed_in_one_by_one_and_the_model_is_asked_when_the_last_is_there() {
    for (mut world, tools, _folders) in both_ways("").await {
        let parked = begin(&world, &tools, "weather").await;
        let holds = parked["deferred"].as_array().unwrap().clone();
        assert_eq!(
            holds.iter().map(|it| it["accepts"].as_str().unwrap()).collect::<Vec<_>>(),
            ["external", "external"]
        );
        assert_eq!(holds[0]["arguments"], json!({ "city": "Ulm" }));
        let path = format!("/v1/runs/{}/answers", parked["report"]["run_id"].as_str().unwrap());
        let half = world.post(&path, answer(&holds[1], json!({ "result": { "sun": 7 } }))).await.ok();
        assert_eq!((&half["status"], half["deferred"].as_array().unwrap().len()), (&json!("parked"), 1));
        // Nobody may approve what only the caller can do, and what was answered is answered.
        world.post(&path, answer(&holds[0], json!({ "approve": true }))).await.problem(422, "not_accepted");
        world.post(&path, answer(&holds[1], json!({ "result": { "sun": 8 } }))).await.problem(409, "conflict");
        let again = world.post(&path, answer(&holds[1], json!({ "result": { "sun": 7 } }))).await.ok();
        assert_eq!(again["already_answered"], json!(["c2"]));
        // The server that goes on need not be the one that began.
        world.stop().await;
        world.start().await;
        let ended = world.post(&path, answer(&holds[0], json!({ "error": "no station there" }))).await.ok();
        assert_eq!(ended["text"], "It is fine.");
        let calls: Vec<_> =
            ended["tool_calls"].as_array().unwrap().iter().map(|it| (&it["status"], &it["result"])).collect();
        assert_eq!(
            calls,
            [(&json!("failed"), &json!("no station there")), (&json!("completed"), &json!({ "sun": 7 }))]
        );
        let read = ended["transcript"].as_array().unwrap().iter().find(|it| it["role"] == "tools").unwrap();
        assert_eq!(read["results"][1]["content"], "{\"sun\":7}");
    }
}

#[tokio::test]
async fn calls_that_break_the_schema_never_reach_the_caller() {
    for (world, tools, _folders) in both_ways("").await {
        let ended = begin(&world, &tools, "wrong").await;
        assert_eq!((&ended["text"], &ended["deferred"]), (&json!("Sorry."), &json!([])));
        assert_eq!(ended["tool_calls"][0]["status"], "invalid_arguments");
    }
}

#[tokio::test]
async fn a_hold_that_has_expired_takes_no_answer_and_ends_its_run() {
    for (world, tools, _folders) in both_ways("hold_ttl = \"1ms\"").await {
        let parked = begin(&world, &tools, "weather").await;
        let run = parked["report"]["run_id"].as_str().unwrap();
        let path = format!("/v1/runs/{run}/answers");
        let late = answer(&parked["deferred"][0], json!({ "result": 1 }));
        world.post(&path, late.clone()).await.problem(409, "hold_expired");
        let ended = world.get(&format!("/v1/runs/{run}")).await.ok();
        assert_eq!((&ended["outcome"], &ended["deferred"]), (&json!("expired"), &json!([])));
        world.post(&path, late).await.problem(409, "run_ended");
    }
}

#[tokio::test]
async fn a_new_message_closes_what_waits() {
    for (world, tools, _folders) in both_ways("").await {
        let parked = begin(&world, &tools, "weather").await;
        assert_eq!(begin(&world, &tools, "Hello").await["text"], "Hello.");
        let path = format!("/v1/runs/{}/answers", parked["report"]["run_id"].as_str().unwrap());
        let late = answer(&parked["deferred"][0], json!({ "result": 1 }));
        assert!(["run_ended", "conflict"].contains(&world.post(&path, late).await.json()["code"].as_str().unwrap()));
        assert_eq!(world.get("/v1/holds").await.ok()["items"], json!([]));
    }
}

#[tokio::test]
async fn tools_that_cannot_be_offered_are_refused_before_anything_is_stored() {
    let folders = Folders::new();
    let world = World::of(&[folders.agent("guide", DECLARED, SCRIPT)]).await;
    let named = |name: &str| json!({ "name": name, "description": "Other." });
    for tools in [
        json!([weather()]),
        json!([named("a"), named("a")]),
        json!([named("no name")]),
        json!([{ "name": "a", "description": "A.", "parameters": { "type": "string" } }]),
        json!([{ "name": "a", "description": "A.", "parameters": { "type": "object", "properties": 7 } }]),
        json!((0..65).map(|n| named(&format!("t{n}"))).collect::<Vec<_>>()),
    ] {
        let body = json!({ "input": "Hello", "tools": tools });
        world.post("/v1/agents/guide/runs", body).await.problem(422, "tools_invalid");
    }
    let body = json!({ "input": "Hello", "tools": [{ "name": "a", "description": "A.", "accepts": "any" }] });
    world.post("/v1/agents/guide/runs", body).await.problem(400, "json_invalid");
    assert_eq!(world.get("/v1/runs").await.ok()["items"], json!([]));
}
