//! The console as a browser without scripts asks for it.

use gesta_server::Scope;
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{Answer, Client, World, example};

const FORM: &str = "application/x-www-form-urlencoded";

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// What stands behind a beginning, up to the next quotation mark.
fn value(page: &str, begins: &str) -> String {
    let (_, rest) = page.split_once(begins).unwrap_or_else(|| panic!("no {begins} in {page}"));
    rest.split('"').next().unwrap().replace("&quot;", "\"").replace("&amp;", "&")
}

/// Somebody with the cookie that a first page set, and what their forms carry.
async fn visitor(world: &World, path: &str) -> (Client, String) {
    let first = world.client().raw(Method::GET, path, None).await;
    let cookie = first.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let client = world.client().with("cookie", &cookie);
    let page = text(&client.raw(Method::GET, path, None).await);
    (client.with("content-type", FORM), page)
}

/// Fields of a form, the binding beside them, and what is said against it.
type Refused<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);

fn encoded(fields: &[(&str, &str)]) -> String {
    let byte = |b: u8| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") };
    let one = |(name, value): &(&str, &str)| format!("{name}={}", value.bytes().map(byte).collect::<String>());
    fields.iter().map(one).collect::<Vec<_>>().join("&")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_answers_with_a_policy_that_runs_nothing_of_others() {
    let world = World::desk().await;
    let (run, _) = world.parked().await;
    for (path, status) in [
        ("/console".to_owned(), 200),
        (format!("/console/runs/{run}"), 200),
        (format!("/console/runs/{run}/scene"), 200),
        (format!("/console/holds/{run}/r1"), 200),
        (format!("/console/holds/{run}/none"), 404),
        ("/console/runs?agent=desk&state=parked".to_owned(), 200),
        ("/console/runs?after=nonsense".to_owned(), 400),
        ("/console/conversations".to_owned(), 200),
        ("/console/conversations/none".to_owned(), 404),
        ("/console/agents".to_owned(), 200),
        ("/console/agents/desk".to_owned(), 200),
        ("/console/agents/none".to_owned(), 404),
        ("/console/agents/desk/try".to_owned(), 200),
        ("/console/assets/console.js".to_owned(), 200),
        ("/console/assets/none".to_owned(), 404),
    ] {
        let answer = world.client().raw(Method::GET, &path, None).await;
        assert_eq!(answer.status.as_u16(), status, "{path}");
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        let page = text(&answer);
        let from_elsewhere = ["src=\"http", "href=\"http", "style=\"", " onclick", "url(http", "@import"];
        assert!(from_elsewhere.iter().all(|it| !page.contains(it)), "{path}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_answers_at_once_one_counts_and_the_others_are_told_so() {
    let world = World::desk().await;
    let (run, _) = world.parked().await;
    let path = format!("/console/holds/{run}/r1");
    let (client, page) = visitor(&world, &path).await;
    let (token, binding) = (value(&page, "name=\"token\" value=\""), value(&page, "name=\"binding\" value=\""));
    let approve = encoded(&[("token", &token), ("binding", &binding), ("do", "approve")]);
    let deny = encoded(&[("token", &token), ("binding", &binding), ("do", "deny"), ("reason", "no receipt")]);
    let client = client.with("x-gesta-part", "1");
    let all = (0..8).map(|at| client.raw(Method::POST, &path, Some(if at % 2 == 0 { &approve } else { &deny })));
    let answers = futures_util::future::join_all(all).await;
    let won = answers.iter().filter(|it| it.status == StatusCode::OK).count();
    let lost = answers.iter().filter(|it| it.status == StatusCode::CONFLICT);
    assert_eq!((won, lost.clone().count()), (1, 7), "{answers:?}");
    assert!(lost.map(text).all(|page| page.contains("Somebody else was first")));
    let audit = world.get("/v1/audit").await.ok();
    let noted = audit["items"].as_array().unwrap().iter().filter(|it| it["call"] == "r1").count();
    assert!(noted >= 1, "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_without_its_token_changes_nothing() {
    let world = World::desk().await;
    let (run, _) = world.parked().await;
    let path = format!("/console/holds/{run}/r1");
    let (client, page) = visitor(&world, &path).await;
    let (token, binding) = (value(&page, "name=\"token\" value=\""), value(&page, "name=\"binding\" value=\""));
    let good = encoded(&[("token", &token), ("binding", &binding), ("do", "approve")]);
    let bad = encoded(&[("token", "0"), ("binding", &binding), ("do", "approve")]);
    let stranger = world.client().with("content-type", FORM);
    let foreign = client.with("origin", "http://evil.test");
    for (who, form) in [(&client, &bad), (&stranger, &good), (&foreign, &good)] {
        assert_eq!(who.raw(Method::POST, &path, Some(form)).await.status, StatusCode::FORBIDDEN);
    }
    for to in ["cancel", "scene"] {
        let answer = client.raw(Method::POST, &format!("/console/runs/{run}/{to}"), Some(&bad)).await;
        assert!(answer.status.is_client_error());
    }
    let now = world.get(&format!("/v1/runs/{run}")).await.ok();
    assert_eq!(now["status"], json!("parked"));
    assert_eq!(client.raw(Method::POST, &path, Some(&good)).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_taken_is_said_on_the_page_and_the_hold_waits_on() {
    let world = World::desk().await;
    let (run, _) = world.parked().await;
    let path = format!("/console/holds/{run}/r1");
    let (client, page) = visitor(&world, &path).await;
    let (token, binding) = (value(&page, "name=\"token\" value=\""), value(&page, "name=\"binding\" value=\""));
    let edited = |amount: &'static str| [("do", "edit"), ("arg.order", "7"), ("arg.amount", amount)];
    let other = binding.replace("refund_order", "other");
    let cases: [Refused<'_>; 6] = [
        (&edited("-1"), &binding, "amount"),
        (&edited("much"), &binding, "amount: `much` is no number"),
        (&[("do", "deny"), ("reason", " ")], &binding, "A reason is missing."),
        (&[("do", "result"), ("result", "{}")], &binding, "does not take"),
        (&[("do", "dance")], &binding, "`dance` is no answer."),
        (&[("do", "approve")], &other, "bound to another tool"),
    ];
    for (fields, binding, told) in cases {
        let mut all = vec![("token", token.as_str()), ("binding", binding)];
        all.extend_from_slice(fields);
        let answer = client.raw(Method::POST, &path, Some(&encoded(&all))).await;
        let page = text(&answer);
        assert!(answer.status.is_client_error() && page.contains(told), "{fields:?}: {} {page}", answer.status);
    }
    assert_eq!(world.get(&format!("/v1/runs/{run}")).await.ok()["status"], json!("parked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_what_it_is_good_for_and_strangers_see_the_door() {
    let world = World::locked(&[example("desk")]).await;
    let (admin, _) = world.keyed(&[Scope::Admin], None).await;
    let body = json!({ "input": "Refund order 7, 250 dollars", "conversation": "anna" });
    let run = admin.post("/v1/agents/desk/runs", body).await.ok();
    let run = run["report"]["run_id"].as_str().unwrap().to_owned();
    let (read, answer, begin) = (
        world.keyed(&[Scope::Read], None).await.0,
        world.keyed(&[Scope::Answer], None).await.0,
        world.keyed(&[Scope::Run], None).await.0,
    );
    let other = world.keyed(&[Scope::Read, Scope::Answer, Scope::Run], Some(&["other"])).await.0;
    let (hold, cancel) = (format!("/console/holds/{run}/r1"), format!("/console/runs/{run}/cancel"));
    let of_run = format!("/console/runs/{run}");
    let stranger = world.client();
    // For each path: nobody, read, answer, run, another agent's.
    for (path, expected) in [
        ("/console", [303, 200, 200, 403, 200]),
        ("/console/runs", [303, 200, 403, 403, 200]),
        (&of_run, [303, 200, 403, 403, 403]),
        (&format!("{of_run}/scene"), [303, 200, 403, 403, 403]),
        (&hold, [303, 200, 200, 403, 403]),
        ("/console/news?of=inbox", [303, 200, 200, 403, 200]),
        ("/console/news?of=runs", [303, 200, 403, 403, 200]),
        ("/console/news?of=conversations", [303, 200, 403, 403, 200]),
        (&format!("/console/news?of=run&name={run}"), [303, 200, 403, 403, 403]),
        ("/console/news?of=conversation&name=anna", [303, 200, 403, 403, 403]),
        ("/console/conversations", [303, 200, 403, 403, 200]),
        ("/console/conversations/anna", [303, 200, 403, 403, 403]),
        ("/console/agents", [303, 200, 200, 200, 200]),
        ("/console/agents/desk", [303, 200, 403, 403, 403]),
        ("/console/agents/desk/try", [303, 403, 403, 200, 403]),
        ("/console/sign-in", [200, 303, 303, 303, 303]),
        ("/console/assets/console.css", [200; 5]),
    ] {
        for (who, status) in [&stranger, &read, &answer, &begin, &other].into_iter().zip(expected) {
            let is_stream = path.starts_with("/console/news");
            let found = if is_stream { who.status(path).await } else { who.raw(Method::GET, path, None).await.status };
            assert_eq!(found.as_u16(), status, "{path}");
        }
    }
    let listed = text(&other.raw(Method::GET, "/console/runs", None).await);
    assert!(!listed.contains(&of_run) && listed.contains("No run yet"), "{listed}");
    // Changes: read may not answer, answer may not cancel, another agent's key may do neither.
    for (who, path, status) in [
        (&stranger, &hold, 401),
        (&read, &hold, 403),
        (&begin, &hold, 403),
        (&other, &hold, 403),
        (&answer, &cancel, 403),
        (&other, &cancel, 403),
    ] {
        let first = who.raw(Method::GET, "/console/agents", None).await;
        let cookie = first.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let who = who.with("cookie", &cookie).with("content-type", FORM);
        let page = text(&who.raw(Method::GET, "/console/agents/desk/try", None).await);
        let token = token_of(&cookie);
        assert!(!page.contains("name=\"token\"") || page.contains(&token), "the token is the cookie's");
        let form = encoded(&[("token", &token), ("do", "approve"), ("binding", "{}")]);
        assert_eq!(who.raw(Method::POST, path, Some(&form)).await.status.as_u16(), status, "{path}");
    }
    stranger.get("/v1/runs").await.problem(401, "unauthorized");
    assert_eq!(admin.get(&format!("/v1/runs/{run}")).await.ok()["status"], json!("parked"));
}

/// What a page's forms carry for this cookie.
fn token_of(cookie: &str) -> String {
    let value = cookie.split_once('=').unwrap().1;
    gesta_run::json::sha256_hex(format!("form of {value}").as_bytes())
}

/// What "Copy as scene" copies plays again as a test, whatever came of the run.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_copied_as_a_scene_plays_to_the_same_run() {
    let world = World::of(&[example("desk"), example("coach")]).await;
    for (agent, input, has) in [
        ("desk", "Refund order 7, 250 dollars", "refund_order"),
        ("coach", "Swap squats for lunges", "update_plan"),
        ("coach", "Hello", "user: Hello"),
    ] {
        let body = json!({ "input": input, "conversation": format!("talk with {agent}: {has}") });
        let run = world.post(&format!("/v1/agents/{agent}/runs"), body).await.ok();
        let run = run["report"]["run_id"].as_str().unwrap();
        let page = text(&world.client().raw(Method::GET, &format!("/console/runs/{run}"), None).await);
        let copied = value(&page, "data-copy=\"");
        let mut scene = text(&world.client().raw(Method::GET, &copied, None).await);
        assert!(scene.contains(has), "{scene}");
        gesta_scene::check(&scene).unwrap_or_else(|why| panic!("{why}\n{scene}"));
        // It is a test: told otherwise, it fails.
        scene = scene.replacen("    ends: completed", "    ends: cancelled", 1).replacen("parks", "ends", 1);
        assert!(gesta_scene::check(&scene).is_err(), "{scene}");
    }
}
