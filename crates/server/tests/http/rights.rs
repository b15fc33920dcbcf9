//! What each key may do, over every path that is described: a path without a row here fails.

use gesta_server::Scope;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Client, World, example};

/// A path, the scopes that are good for it beside `admin`, and what is answered then: to a key for all agents, for the
/// one that it is about, for another one, and for all agents of another tenant.
type Row = (&'static str, &'static [Scope], [u16; 4]);

const SEES: &[Scope] = &[Scope::Read, Scope::Run, Scope::Answer];
const SEES_HOLDS: &[Scope] = &[Scope::Read, Scope::Answer];
const READS: &[Scope] = &[Scope::Read];

const ROWS: &[Row] = &[
    ("post /v1/agents/{agent}/runs", &[Scope::Run], [200, 200, 403, 200]),
    ("get /v1/runs", READS, [200, 200, 200, 200]),
    ("get /v1/runs/{run}", SEES, [200, 200, 403, 404]),
    ("get /v1/runs/{run}/log", READS, [200, 200, 403, 404]),
    ("get /v1/runs/{run}/events", SEES, [200, 200, 403, 404]),
    ("post /v1/runs/{run}/cancel", &[Scope::Run], [200, 200, 403, 404]),
    ("post /v1/runs/{run}/answers", &[Scope::Answer], [200, 200, 403, 404]),
    ("get /v1/holds", SEES_HOLDS, [200, 200, 200, 200]),
    ("get /v1/holds/{run}/{call}", SEES_HOLDS, [200, 200, 403, 404]),
    ("get /v1/conversations", READS, [200, 200, 200, 200]),
    ("get /v1/conversations/{conversation}", READS, [200, 200, 403, 404]),
    ("delete /v1/conversations/{conversation}", &[], [204, 204, 403, 404]),
    ("get /v1/agents", &Scope::ALL, [200, 200, 200, 200]),
    ("get /v1/agents/{agent}/tools", &Scope::ALL, [200, 200, 403, 200]),
    ("get /v1/keys", &[], [200, 200, 200, 200]),
    ("post /v1/keys", &[], [201, 201, 201, 201]),
    ("delete /v1/keys/{key}", &[], [204, 204, 404, 404]),
    ("get /v1/audit", &[], [200, 200, 200, 200]),
    ("get /healthz", &Scope::ALL, [200, 200, 200, 200]),
    ("get /readyz", &Scope::ALL, [200, 200, 200, 200]),
    ("get /metrics", READS, [200, 403, 403, 403]),
];

/// What belongs to one tenant, and is to be seen by no other.
struct Owned {
    run: String,
    binding: Value,
    conversation: String,
    key: String,
}

/// Makes a run that waits, in a conversation of its own, and a key.
async fn owned(world: &World, begin: &Client, n: usize) -> Owned {
    let conversation = format!("talk-{n}");
    let body = json!({
        "input": "Refund order 7, 250 dollars", "conversation": conversation, "contact": "contact-of-the-first",
    });
    let run = begin.post("/v1/agents/desk/runs", body).await.ok();
    let (_, key) = world.keyed(&[Scope::Read], Some(&["desk"])).await;
    let id = run["report"]["run_id"].as_str().unwrap().to_owned();
    Owned { run: id, binding: run["deferred"][0]["binding"].clone(), conversation, key }
}

/// Asks for a path, of these things. Gives what is answered, and its text where it has an end.
async fn asked(client: &Client, route: &str, of: &Owned) -> (u16, String) {
    let (method, path) = route.split_once(' ').unwrap();
    let path = path
        .replace("{agent}", "desk")
        .replace("{run}", &of.run)
        .replace("{call}", "r1")
        .replace("{conversation}", &of.conversation)
        .replace("{key}", &of.key);
    if path.ends_with("/events") {
        return (client.status(&path).await.as_u16(), String::new());
    }
    let body = match route {
        "post /v1/agents/{agent}/runs" => Some(json!({ "input": "Hello" })),
        "post /v1/runs/{run}/answers" => Some(json!({ "answers": [{ "binding": of.binding, "deny": "no" }] })),
        "post /v1/keys" => Some(json!({ "name": "made", "scopes": ["read"] })),
        _ => None,
    };
    let method: Method = method.to_uppercase().parse().unwrap();
    let answer = client.ask(method, &path, body.map(|it| it.to_string())).await;
    (answer.status.as_u16(), String::from_utf8(answer.body.to_vec()).unwrap())
}

fn routes() -> Vec<String> {
    let document: Value = serde_json::from_str(&gesta_server::document()).unwrap();
    let paths = document["paths"].as_object().unwrap().clone();
    let of = |(path, methods): (String, Value)| {
        let methods: Vec<String> = methods.as_object().unwrap().keys().cloned().collect();
        methods.into_iter().map(move |method| format!("{method} {path}"))
    };
    paths.into_iter().flat_map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_path_answers_each_key_as_its_scopes_agents_and_tenant_say() {
    let mut routes = routes();
    // What destroys comes last, so that each asks for things that are there.
    let destroys =
        |route: &String| route.starts_with("delete") || route.contains("/cancel") || route.contains("answers");
    routes.sort_by_key(destroys);
    let described: Vec<&str> = ROWS.iter().map(|(route, ..)| *route).collect();
    assert!(described.iter().all(|row| routes.iter().any(|route| route == row)), "a row for no path");
    let world = World::locked(&[example("desk"), example("coach")]).await;
    let (begin, _) = world.keyed(&[Scope::Run], None).await;
    let mut of = owned(&world, &begin, 0).await;
    let mut keys = Vec::new();
    for scope in Scope::ALL {
        for (tenant, agent) in [(None, None), (None, Some("desk")), (None, Some("coach")), (Some("other"), None)] {
            let list = agent.map(|agent| [agent]);
            let (client, _) = world.keyed_of(tenant, &[scope], list.as_ref().map(<[_; 1]>::as_slice)).await;
            keys.push((scope, tenant, agent, client));
        }
    }
    let mut n = 0;
    for route in &routes {
        let row = ROWS.iter().find(|(it, ..)| it == route);
        let (_, good, answered) = row.unwrap_or_else(|| panic!("{route} has no row: who may ask for it?"));
        for ((scope, tenant, agent, client), answered) in keys.iter().zip(answered.iter().cycle()) {
            if destroys(route) {
                n += 1;
                of = owned(&world, &begin, n).await;
            }
            let is_good = good.contains(scope) || *scope == Scope::Admin;
            // Who may not answer at all is not told that there is nothing to answer, but who has nothing is.
            let expected = if is_good { *answered } else { 403 };
            let (found, text) = asked(client, route, &of).await;
            let run_of_another = route.contains("answers") && tenant.is_some() && *scope == Scope::Run;
            let expected = if run_of_another { 404 } else { expected };
            assert_eq!(found, expected, "{route} by {scope} for {agent:?} of {tenant:?}: {text}");
            let is_theirs = |it: &&str| text.contains(*it) && tenant.is_some() && found < 400;
            let seen = [&of.run, &of.key, "contact-of-the-first", "\"talk-"].into_iter().find(is_theirs);
            assert_eq!(seen, None, "{route} shows another tenant's: {text}");
        }
        let (found, _) = asked(&world.client(), route, &of).await;
        let is_open = ["get /healthz", "get /readyz"].contains(&route.as_str());
        assert_eq!(found, if is_open { 200 } else { 401 }, "{route} by a stranger");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_with_the_same_names_never_meet() {
    let world = World::locked(&[example("desk")]).await;
    let mut of = Vec::new();
    for tenant in [None, Some("one"), Some("two")] {
        let (client, id) = world.keyed_of(tenant, &[Scope::Admin], None).await;
        let body = json!({ "input": "Refund order 7, 250 dollars", "conversation": "k", "contact": "anna" });
        let run = client.with("idempotency-key", "same").post("/v1/agents/desk/runs", body.clone()).await.ok();
        let again = client.with("idempotency-key", "same").post("/v1/agents/desk/runs", body).await.ok();
        assert_eq!(run, again);
        of.push((
            client,
            id,
            run["report"]["run_id"].as_str().unwrap().to_owned(),
            run["deferred"][0]["binding"].clone(),
        ));
    }
    let only = async |client: &Client, path: &str, field: &str| {
        let page = client.get(path).await.ok();
        let items = page["items"].as_array().unwrap().clone();
        items.iter().map(|it| it.pointer(field).unwrap().as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (client, id, run, _) in &of {
        assert_eq!(only(client, "/v1/runs?conversation=k&contact=anna", "/run").await, [run.as_str()]);
        assert_eq!(only(client, "/v1/holds?contact=anna", "/hold/binding/run_id").await, [run.as_str()]);
        assert_eq!(only(client, "/v1/conversations", "/conversation").await, ["k"]);
        assert_eq!(only(client, "/v1/keys", "/id").await, [id.as_str()]);
        assert_eq!(client.get("/v1/audit").await.ok()["items"], json!([]));
    }
    // One cannot answer for the other, not even with its binding; what one does is in its own audit alone.
    let (one, id, run, _) = &of[1];
    let (other, _, others, binding) = &of[2];
    let answer = json!({ "answers": [{ "binding": binding, "approve": true }] });
    one.post(&format!("/v1/runs/{others}/answers"), answer.clone()).await.problem(404, "no_such_run");
    one.post(&format!("/v1/runs/{run}/answers"), answer.clone()).await.problem(409, "binding_differs");
    one.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.ok();
    assert_eq!(one.delete("/v1/conversations/k").await.status, 204);
    assert_eq!(other.post(&format!("/v1/runs/{others}/answers"), answer).await.ok()["status"], "ended");
    assert_eq!(other.get("/v1/conversations/k").await.ok()["history"].as_array().unwrap().len(), 1);
    let audit = one.get("/v1/audit").await.ok();
    let noted = audit["items"].as_array().unwrap();
    let what: Vec<&str> = noted.iter().map(|it| it["what"].as_str().unwrap()).collect();
    assert_eq!((what, &noted[0]["seq"]), (vec!["cancel", "erase"], &json!(1)));
    assert!(noted.iter().all(|it| it["who"] == json!(id) && it["agent"] == "desk"));
    assert_eq!(of[0].0.get("/v1/audit").await.ok()["items"], json!([]));
    assert_eq!(of[0].0.get(&format!("/v1/runs/{}", of[0].2)).await.ok()["status"], "parked");
}
