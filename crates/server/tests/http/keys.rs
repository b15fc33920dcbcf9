//! Keys over HTTP, the links that let somebody in once, and how often somebody may knock.

use std::num::NonZeroU32;

use gesta_run::Timestamp;
use gesta_server::{Limits, Scope};
use gesta_store::{ApiKey, Audit, Keys};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Answer, Client, World, example};

const FORM: &str = "application/x-www-form-urlencoded";

#[tokio::test]
async fn a_key_makes_others_that_may_do_no_more_than_itself() {
    let world = World::locked(&[example("desk"), example("coach")]).await;
    let (admin, id) = world.keyed(&[Scope::Admin], None).await;
    let made = admin.post("/v1/keys", json!({ "name": "shop", "scopes": ["read", "run", "read"] })).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let made = made.json();
    assert_eq!((&made["scopes"], &made["agents"]), (&json!(["run", "read"]), &Value::Null));
    let shop = world.client().with("authorization", &format!("Bearer {}", made["key"].as_str().unwrap()));
    assert_eq!(shop.get("/v1/runs").await.status, 200);
    shop.post("/v1/keys", json!({ "name": "x", "scopes": ["read"] })).await.problem(403, "not_permitted");
    // Only its hash is kept, and neither is ever listed.
    let (listed, secret) = (admin.get("/v1/keys").await.ok(), made["key"].as_str().unwrap());
    let names: Vec<&str> = listed["items"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["test", "shop"]);
    let kept = world.store().keys().await.unwrap();
    assert!(!listed.to_string().contains("hash") && !format!("{kept:?}").contains(secret));

    // Of one agent and another tenant: what it makes is so too, and it can neither see nor take back what may do more.
    let (of_coach, _) = world.keyed(&[Scope::Admin], Some(&["coach"])).await;
    let own = of_coach.post("/v1/keys", json!({ "name": "own", "scopes": ["admin"] })).await.json();
    assert_eq!(own["agents"], json!(["coach"]));
    for agents in [json!(["desk"]), json!(["coach", "desk"])] {
        let asked = json!({ "name": "more", "scopes": ["read"], "agents": agents });
        of_coach.post("/v1/keys", asked).await.problem(403, "not_permitted");
    }
    assert_eq!(of_coach.get("/v1/keys").await.ok()["items"].as_array().unwrap().len(), 2);
    of_coach.delete(&format!("/v1/keys/{id}")).await.problem(404, "no_such_key");
    let (of_other, _) = world.keyed_of(Some("other"), &[Scope::Admin], None).await;
    let theirs = of_other.post("/v1/keys", json!({ "name": "theirs", "scopes": ["admin"] })).await.json();
    let kept = world.store().key(theirs["id"].as_str().unwrap()).await.unwrap().unwrap();
    assert_eq!(kept.tenant, "other");
    of_other.delete(&format!("/v1/keys/{id}")).await.problem(404, "no_such_key");
    for asked in [
        json!({ "name": "x", "scopes": ["read"], "tenant": "local" }),
        json!({ "name": "x", "scopes": [] }),
        json!({ "name": "", "scopes": ["read"] }),
        json!({ "name": "x", "scopes": ["read"], "agents": [] }),
        json!({ "name": "x", "scopes": ["everything"] }),
    ] {
        assert_eq!(of_other.post("/v1/keys", asked.clone()).await.status, 400, "{asked}");
    }

    // Taken back at once, and once.
    let path = format!("/v1/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(admin.delete(&path).await.status, 204);
    admin.delete(&path).await.problem(404, "no_such_key");
    shop.get("/v1/runs").await.problem(401, "unauthorized");
    let audit = admin.get("/v1/audit").await.ok();
    let of = |what: &str| audit["items"].as_array().unwrap().iter().filter(|it| it["what"] == what).count();
    assert_eq!((of("key_made"), of("key_revoked")), (2, 1), "{audit}");
    assert!(!audit.to_string().contains(secret));
}

#[tokio::test]
async fn a_repeated_request_for_a_key_gives_the_same_key_which_is_kept_nowhere() {
    let mut world = World::locked(&[example("desk")]).await;
    let (admin, _) = world.keyed(&[Scope::Admin], None).await;
    let asking = admin.with("idempotency-key", "one");
    let asked = json!({ "name": "shop", "scopes": ["read"] });
    let first = asking.post("/v1/keys", asked.clone()).await.json();
    assert_eq!(asking.post("/v1/keys", asked.clone()).await.json(), first);
    asking.post("/v1/keys", json!({ "name": "b", "scopes": ["run"] })).await.problem(409, "idempotency_conflict");
    let other = admin.with("idempotency-key", "two").post("/v1/keys", asked.clone()).await.json();
    assert_ne!(other["key"], first["key"]);
    world.stop().await;
    world.start().await;
    let again = world.client().with("authorization", &admin.header("authorization")).with("idempotency-key", "one");
    assert_eq!(again.post("/v1/keys", asked).await.json(), first);
    assert_eq!(world.store().keys().await.unwrap().len(), 3);
    assert_eq!(world.store().audit(0, 0).await.unwrap().len(), 2);
    let secret = first["key"].as_str().unwrap().rsplit_once('_').unwrap().1.as_bytes().to_vec();
    world.stop().await;
    for file in world.files() {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(secret.len()).any(|it| it == secret), "{} holds the key", file.display());
    }
}

/// A key that is made while an open server runs closes it, and it stays closed when the key is taken back.
#[tokio::test]
async fn a_server_is_open_until_there_is_a_key_and_never_again() {
    let mut world = World::desk().await;
    assert_eq!(world.get("/v1/runs").await.status, 200);
    let (client, id) = world.keyed(&[Scope::Read], None).await;
    world.get("/v1/runs").await.problem(401, "unauthorized");
    assert_eq!(world.client().raw(Method::GET, "/console/runs", None).await.status, StatusCode::SEE_OTHER);
    assert_eq!(client.get("/v1/runs").await.status, 200);
    world.store().revoke_key(&id, Timestamp(5)).await.unwrap();
    world.get("/v1/runs").await.problem(401, "unauthorized");
    world.stop().await;
    world.start().await;
    world.get("/v1/runs").await.problem(401, "unauthorized");
}

/// The cookies that an answer sets, each up to its first semicolon, as one header.
fn cookies(headers: &HeaderMap) -> String {
    let all = headers.get_all("set-cookie").iter().map(|it| it.to_str().unwrap().split(';').next().unwrap().to_owned());
    all.collect::<Vec<_>>().join("; ")
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// Somebody with the cookie of a first page, and the form that it carries.
async fn at_the_door(client: &Client, path: &str) -> (Client, String) {
    let first = client.raw(Method::GET, path, None).await;
    let cookie = cookies(&first.headers);
    let page = text(&first);
    let token = page.split_once("name=\"token\" value=\"").map_or("", |(_, rest)| rest.split('"').next().unwrap());
    (client.with("cookie", &cookie).with("content-type", FORM), format!("token={token}"))
}

/// A link for whoever has this key.
async fn link_to(world: &World, id: &str, at: Timestamp) -> (String, ApiKey) {
    let key = world.store().key(id).await.unwrap().unwrap();
    let (path, link) = gesta_server::new_link(&key, at).unwrap();
    world.store().put_key(link.clone()).await.unwrap();
    (path, link)
}

fn now() -> Timestamp {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    Timestamp(i64::try_from(now).unwrap())
}

#[tokio::test]
async fn a_link_lets_in_once_and_looking_at_it_uses_nothing_up() {
    let world = World::locked(&[example("desk")]).await;
    let (reader, id) = world.keyed_of(Some("shop"), &[Scope::Read], None).await;
    let (path, kept) = link_to(&world, &id, now()).await;
    assert!(!format!("{kept:?}").contains(path.rsplit_once('_').unwrap().1), "only its hash is kept");
    let stranger = world.client();
    for method in [Method::HEAD, Method::GET, Method::GET] {
        assert_eq!(stranger.raw(method, &path, None).await.status, 200);
    }
    // Without the form of our own page nobody is let in, and nothing is used up.
    let form = stranger.with("content-type", FORM);
    assert_eq!(form.raw(Method::POST, &path, Some("token=x")).await.status, StatusCode::FORBIDDEN);
    let (visitor, token) = at_the_door(&stranger, &path).await;
    let entered = visitor.raw(Method::POST, &path, Some(&token)).await;
    assert_eq!((entered.status.as_u16(), entered.headers["location"].to_str().unwrap()), (303, "/console"));
    let set = entered.headers["set-cookie"].to_str().unwrap();
    assert!(["HttpOnly", "SameSite=Lax", "Path=/console"].iter().all(|it| set.contains(it)), "{set}");
    assert!(!set.contains("Secure"), "nothing says that it came over TLS: {set}");
    let inside = world.client().with("cookie", &cookies(&entered.headers));
    assert_eq!(inside.raw(Method::GET, "/console/runs", None).await.status, 200);
    assert_eq!(inside.raw(Method::GET, "/console/agents/desk/try", None).await.status, StatusCode::FORBIDDEN);
    // Used.
    for answer in [visitor.raw(Method::POST, &path, Some(&token)).await, stranger.raw(Method::GET, &path, None).await] {
        assert_eq!(answer.status, StatusCode::GONE);
        assert!(text(&answer).contains("This link was used already."));
    }
    let audit = world.store().of_tenant("shop").audit(0, 0).await.unwrap();
    assert_eq!((audit[0].deed.what.as_str(), &audit[0].deed.who), ("sign_in_by_link", &id));
    // A link is no key, and none that is listed.
    let bearer = path.rsplit_once('/').unwrap().1.replace("link_", "gesta_");
    let as_key = world.client().with("authorization", &format!("Bearer {bearer}"));
    as_key.get("/v1/agents").await.problem(401, "unauthorized");
    // Taken back, the key ends the session.
    assert_eq!(reader.get("/v1/runs").await.status, 200);
    world.store().revoke_key(&id, Timestamp(9)).await.unwrap();
    assert_eq!(inside.raw(Method::GET, "/console/runs", None).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_link_that_has_expired_or_never_was_says_so() {
    let world = World::locked(&[example("desk")]).await;
    let (_, id) = world.keyed(&[Scope::Read], None).await;
    let (expired, _) = link_to(&world, &id, Timestamp(now().0 - 10 * 60_000)).await;
    let (good, _) = link_to(&world, &id, now()).await;
    let forged = format!("{}x", &good[..good.len() - 1]);
    let as_link = format!("/console/link/link_{id}_x");
    for (path, status, said) in [
        (expired.as_str(), 410, "This link has expired."),
        (&forged, 404, "it is not known here"),
        (&as_link, 404, "it is not known here"),
        ("/console/link/x", 404, "it is not known here"),
    ] {
        let (visitor, _) = at_the_door(&world.client(), "/console/sign-in").await;
        let token = visitor.raw(Method::GET, "/console/sign-in", None).await;
        let token = text(&token);
        let token = token.split_once("name=\"token\" value=\"").unwrap().1.split('"').next().unwrap();
        for answer in [
            visitor.raw(Method::GET, path, None).await,
            visitor.raw(Method::POST, path, Some(&format!("token={token}"))).await,
        ] {
            assert_eq!(answer.status.as_u16(), status, "{path}");
            assert!(text(&answer).contains(said), "{path}: {}", text(&answer));
        }
    }
    world.store().revoke_key(&id, Timestamp(9)).await.unwrap();
    let (visitor, token) = at_the_door(&world.client(), &good).await;
    assert_eq!(visitor.raw(Method::POST, &good, Some(&token)).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn behind_a_trusted_proxy_cookies_are_for_tls_alone_and_addresses_are_those_of_clients() {
    let mut world = World::locked(&[example("desk")]).await;
    for trusted in [false, true] {
        if trusted {
            world.stop().await;
            world.behind(&["127.0.0.1"]);
            world.start().await;
        }
        let (_, id) = world.keyed(&[Scope::Admin], None).await;
        let (path, _) = link_to(&world, &id, now()).await;
        let proxied = world.client().with("x-forwarded-for", "203.0.113.5").with("x-forwarded-proto", "https");
        let (visitor, token) = at_the_door(&proxied, &path).await;
        let first = proxied.raw(Method::GET, "/console/sign-in", None).await;
        let entered = visitor.raw(Method::POST, &path, Some(&token)).await;
        for answer in [first, entered] {
            let set = answer.headers["set-cookie"].to_str().unwrap();
            assert_eq!(set.contains("; Secure"), trusted, "{set}");
            assert!(set.contains("; HttpOnly") && set.contains("; SameSite=Lax"), "{set}");
        }
        let audit = world.store().audit(0, 0).await.unwrap();
        let from = audit.last().unwrap().deed.from.clone();
        assert_eq!(from, if trusted { "203.0.113.5" } else { "127.0.0.1" });
    }
}

fn few(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

#[tokio::test]
async fn strangers_are_slowed_down_before_anybody_looks_at_their_keys_and_others_are_not() {
    let mut world = World::locked(&[example("desk")]).await;
    let (good, id) = world.keyed(&[Scope::Read], None).await;
    world.stop().await;
    world.limit(Limits { strangers_max: few(1), ..Limits::default() });
    world.start().await;
    let here = |client: &Client| world.client().with("authorization", &client.header("authorization"));
    let good = here(&good);
    assert_eq!(good.get("/v1/runs").await.status, 200);
    // Four at once, of which the first was the good key's own; each with another key, so that none is known.
    let mut refused = 0;
    for n in 0..20 {
        let stranger = world.client().with("authorization", &format!("Bearer gesta_{n:016x}_x"));
        let answer = stranger.get("/v1/runs").await;
        if answer.status == 429 {
            answer.problem(429, "rate_exceeded");
            assert!(answer.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() >= 1);
            refused += 1;
        } else {
            answer.problem(401, "unauthorized");
        }
    }
    assert!(refused >= 10, "{refused}");
    assert_eq!(world.client().raw(Method::GET, "/console/sign-in", None).await.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(world.get("/healthz").await.status, 200);
    // Who is known goes on, from the same address; one that is taken back is a stranger's again.
    assert_eq!(good.get("/v1/runs").await.status, 200);
    world.store().revoke_key(&id, Timestamp(9)).await.unwrap();
    good.get("/v1/runs").await.problem(401, "unauthorized");
    good.get("/v1/runs").await.problem(429, "rate_exceeded");
}

#[tokio::test]
async fn attempts_to_sign_in_are_few_and_one_keys_requests_are_limited() {
    let mut world = World::locked(&[example("desk")]).await;
    let (one, _) = world.keyed(&[Scope::Read], None).await;
    let (two, _) = world.keyed(&[Scope::Read], None).await;
    world.stop().await;
    world.limit(Limits { sign_ins_max: few(2), rate_max: few(1), ..Limits::default() });
    world.start().await;
    let (visitor, token) = at_the_door(&world.client(), "/console/sign-in").await;
    let attempt = format!("{token}&key=gesta_0123456789abcdef_x");
    let mut found = Vec::new();
    for _ in 0..3 {
        found.push(visitor.raw(Method::POST, "/console/sign-in", Some(&attempt)).await.status.as_u16());
    }
    assert_eq!(found, [401, 401, 429]);
    let here = |client: &Client| world.client().with("authorization", &client.header("authorization"));
    let (one, two) = (here(&one), here(&two));
    let mut refused = 0;
    for _ in 0..20 {
        refused += usize::from(one.get("/v1/agents").await.status == 429);
    }
    assert!(refused >= 10, "{refused}");
    assert_eq!(two.get("/v1/agents").await.status, 200);
}

/// Announces 32 MiB and sends nothing of it.
async fn announced(world: &World, path: &str, more: &str) -> String {
    let mut stream = TcpStream::connect(world.client().address()).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nidempotency-key: k\r\ncontent-type: application/json\r\n\
         content-length: 33554432\r\n{more}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn nothing_is_read_of_who_may_not_send_it() {
    let world = World::locked(&[example("desk")]).await;
    let (reader, _) = world.keyed(&[Scope::Read], None).await;
    let key = format!("authorization: {}\r\n", reader.header("authorization"));
    for (path, more, status) in [
        ("/v1/agents/desk/runs", "", "401"),
        ("/v1/keys", "", "401"),
        ("/v1/nothing", "", "401"),
        ("/openapi.json", "", "405"),
        ("/console/holds/a/b", "", "401"),
        ("/console/agents/desk/try", "", "401"),
        ("/v1/agents/desk/runs", key.as_str(), "403"),
        ("/v1/runs/a/answers", key.as_str(), "403"),
        ("/v1/keys", key.as_str(), "403"),
    ] {
        assert_eq!(announced(&world, path, more).await, format!("HTTP/1.1 {status}"), "{path}");
    }
    // What the door takes has to be read, and is short.
    let (visitor, token) = at_the_door(&world.client(), "/console/sign-in").await;
    let long = format!("{token}&key={}", "x".repeat(20_000));
    let answer = visitor.raw(Method::POST, "/console/sign-in", Some(&long)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_key_for_some_agents_reads_their_part_of_the_audit() {
    let world = World::locked(&[example("desk"), example("coach")]).await;
    let (admin, _) = world.keyed(&[Scope::Admin], None).await;
    for (agent, input) in [("desk", "Refund order 7, 250 dollars"), ("coach", "Hello")] {
        let body = json!({ "input": input, "conversation": agent });
        admin.post(&format!("/v1/agents/{agent}/runs"), body).await.ok();
        assert_eq!(admin.delete(&format!("/v1/conversations/{agent}")).await.status, 204);
    }
    admin.post("/v1/keys", json!({ "name": "x", "scopes": ["read"] })).await.ok();
    let (of_coach, _) = world.keyed(&[Scope::Admin], Some(&["coach"])).await;
    let seen = of_coach.get("/v1/audit").await.ok();
    let seen: Vec<&Value> = seen["items"].as_array().unwrap().iter().map(|it| &it["agent"]).collect();
    assert_eq!(seen, ["coach"]);
    assert_eq!(admin.get("/v1/audit").await.ok()["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_stream_ends_when_its_key_is_taken_back() {
    let world = World::locked(&[example("desk")]).await;
    let (admin, _) = world.keyed(&[Scope::Admin], None).await;
    let (reader, id) = world.keyed(&[Scope::Read], None).await;
    let body = json!({ "input": "Refund order 7, 250 dollars" });
    let run = admin.post("/v1/agents/desk/runs", body).await.ok();
    let path = format!("/v1/runs/{}/events", run["report"]["run_id"].as_str().unwrap());
    let mut events = reader.events(Method::GET, &path, None).await;
    events.until("run.parked").await;
    assert_eq!(admin.delete(&format!("/v1/keys/{id}")).await.status, 204);
    let rest = events.all().await;
    assert_eq!((rest.len(), rest[0].name.as_str(), &rest[0].data["code"]), (1, "error", &json!("unauthorized")));
}
