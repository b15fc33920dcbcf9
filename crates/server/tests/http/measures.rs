//! What is counted.

use serde_json::json;

use crate::support::World;

#[tokio::test]
async fn what_happens_is_counted_and_nothing_that_was_said_stands_in_a_label() {
    let world = World::desk().await;
    let (run, _) = world.parked().await;
    let body = json!({ "input": "Refund order 8", "conversation": "maria" });
    world.post("/v1/agents/desk/runs", body).await.ok();
    world.post("/v1/agents/desk/runs", json!({ "input": "" })).await.problem(400, "input_empty");
    world.get("/v1/runs/maria").await.problem(404, "no_such_run");
    world.get("/maria").await.problem(404, "no_such_path");
    let measured = world.get("/metrics").await;
    let text = std::str::from_utf8(&measured.body).unwrap();
    for line in [
        "gesta_runs_total{outcome=\"completed\"} 1",
        "gesta_runs_parked_total 1",
        "gesta_trips_total 5",
        "gesta_calls_total{status=\"completed\"} 3",
        "gesta_holds_open 1",
        "gesta_runs_going 0",
        "gesta_model_seconds_count 5",
        "gesta_store_seconds_count{operation=\"open\"} 2",
        "gesta_requests_total{method=\"POST\",path=\"/v1/agents/{agent}/runs\",status=\"200\"} 2",
        "gesta_requests_total{method=\"POST\",path=\"/v1/agents/{agent}/runs\",status=\"400\"} 1",
        "gesta_requests_total{method=\"GET\",path=\"/v1/runs/{run}\",status=\"404\"} 1",
        "gesta_requests_total{method=\"GET\",path=\"none\",status=\"404\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
    }
    assert!(text.ends_with("# EOF\n") && !text.contains("maria") && !text.contains(&run));
}
