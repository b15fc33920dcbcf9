//! Dispatches: signed, sent until they are taken, and not lost by a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gesta_model::Lookup;
use gesta_server::{Webhook, WebhookError};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::{Folders, World, example};

const KEYS: [&[u8]; 2] = [b"the first key, of some length", b"the second key, of some length"];

fn secrets() -> String {
    KEYS.map(|key| format!("whsec_{}", STANDARD.encode(key))).join(" ")
}

/// Somebody who is told.
struct Receiver {
    url: String,
    shared: Arc<Shared>,
    told: mpsc::UnboundedReceiver<Told>,
}

struct Shared {
    status: AtomicU16,
    /// So many are refused ahead.
    refusals: AtomicUsize,
    tell: mpsc::UnboundedSender<Told>,
}

struct Told {
    id: String,
    body: Value,
}

impl Receiver {
    async fn new() -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { status: AtomicU16::new(204), refusals: AtomicUsize::new(0), tell });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/dispatches", listener.local_addr().unwrap());
        let router = Router::new().route("/dispatches", post(take)).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, shared, told }
    }

    async fn next(&mut self) -> Told {
        self.told.recv().await.unwrap()
    }
}

/// Checks what is signed as the Standard Webhooks say.
async fn take(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: String) -> StatusCode {
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let signed = format!("{}.{}.{body}", text("webhook-id"), text("webhook-timestamp"));
    let expected = KEYS.map(|key| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(signed.as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    });
    assert_eq!(text("webhook-signature"), expected.join(" "));
    assert_eq!(text("content-type"), "application/json");
    let _ = shared.tell.send(Told { id: text("webhook-id"), body: serde_json::from_str(&body).unwrap() });
    let refused = shared.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
    let status = if refused { 500 } else { shared.status.load(Ordering::SeqCst) };
    StatusCode::from_u16(status).unwrap()
}

#[tokio::test]
async fn a_hold_and_the_end_of_its_run_are_told() {
    let mut receiver = Receiver::new().await;
    let world = World::telling(&[example("desk")], &receiver.url, &secrets()).await;
    let (run, hold) = world.parked().await;
    let opened = receiver.next().await;
    assert_eq!((&opened.body["type"], &opened.body["data"]["hold"]), (&json!("hold.opened"), &hold));
    assert!(opened.body["timestamp"].as_str().unwrap().ends_with('Z'));
    // What it tells is all that an answer needs.
    let answer = json!({ "answers": [{ "binding": opened.body["data"]["hold"]["binding"], "approve": true }] });
    world.post(&format!("/v1/runs/{run}/answers"), answer).await.ok();
    let ended = receiver.next().await;
    assert_eq!((&ended.body["type"], &ended.body["data"]["run"]), (&json!("run.ended"), &json!(run)));
    assert_eq!((&ended.body["data"]["outcome"], &ended.body["data"]["agent"]), (&json!("completed"), &json!("desk")));
    assert_ne!(opened.id, ended.id);
    // Nothing that was said stands in the dispatch of an end.
    assert!(!ended.body.to_string().contains("colleague"));
}

#[tokio::test]
async fn what_is_refused_is_sent_again_under_its_id_until_it_is_given_up() {
    let mut receiver = Receiver::new().await;
    let world = World::telling(&[example("desk")], &receiver.url, &secrets()).await;
    for (refusals, attempts) in [(0, 1), (2, 3), (3, 4), (100, 4)] {
        receiver.shared.refusals.store(refusals, Ordering::SeqCst);
        world.post("/v1/agents/desk/runs", json!({ "input": "Hello" })).await.ok();
        let first = receiver.next().await;
        for _ in 1..attempts {
            let again = receiver.next().await;
            assert_eq!((again.id, again.body), (first.id.clone(), first.body.clone()));
        }
        // Nothing more of it comes ahead of the next.
        receiver.shared.refusals.store(0, Ordering::SeqCst);
        world.post("/v1/agents/desk/runs", json!({ "input": "Hello" })).await.ok();
        assert_ne!(receiver.next().await.id, first.id, "{refusals}");
    }
}

#[tokio::test]
async fn a_restart_loses_no_dispatch() {
    let mut receiver = Receiver::new().await;
    // Before anybody is to be told, there is nothing to send; then the receiver is out of order.
    let mut world = World::telling(&[example("desk")], &receiver.url, &secrets()).await;
    receiver.shared.status.store(503, Ordering::SeqCst);
    let (run, _) = world.parked().await;
    let first = receiver.next().await;
    world.stop().await;
    while receiver.told.try_recv().is_ok() {}
    let due = gesta_store::Dispatch {
        id: "msg_written_ahead".to_owned(),
        kind: "run.ended".to_owned(),
        run: run.as_str().into(),
        call: None,
        at: gesta_run::Timestamp(1),
        due: gesta_run::Timestamp(1),
        attempts: 0,
    };
    let first =
        gesta_store::Dispatch { id: first.id, kind: "hold.opened".to_owned(), call: Some("r1".into()), ..due.clone() };
    receiver.shared.status.store(204, Ordering::SeqCst);
    // As a process leaves it that dies between writing a dispatch and sending it; one of them never came true.
    world
        .with_store(async |store| {
            use gesta_store::Dispatches;
            store.put_dispatches(vec![due]).await.unwrap();
            store.settle_dispatch(&first.id, Some(gesta_run::Timestamp(1))).await.unwrap();
        })
        .await;
    world.start().await;
    let again = receiver.next().await;
    assert_eq!((again.id, &again.body["type"]), (first.id, &json!("hold.opened")));
    world.post(&format!("/v1/runs/{run}/cancel"), json!({})).await.ok();
    let ended = receiver.next().await;
    assert_eq!((&ended.body["type"], &ended.body["data"]["outcome"]), (&json!("run.ended"), &json!("cancelled")));
    assert_ne!(ended.id, "msg_written_ahead");
}

#[tokio::test]
async fn a_hold_that_is_about_to_expire_is_told_before_it_does() {
    let mut receiver = Receiver::new().await;
    let folders = Folders::new();
    let toml = "hold_ttl = \"2s\"\n[[tools]]\nname = \"own\"\ndescription = \"Own.\"\nexternal = true\nparameters = { type = \"object\" }\n";
    let folder = folders.agent("guide", toml, "model: calls c1 own {}\nmodel: Done.\n");
    let world = World::telling(&[folder], &receiver.url, &secrets()).await;
    world.post("/v1/agents/guide/runs", json!({ "input": "Go" })).await.ok();
    let (opened, expiring) = (receiver.next().await, receiver.next().await);
    assert_eq!((&opened.body["type"], &expiring.body["type"]), (&json!("hold.opened"), &json!("hold.expiring")));
    assert_eq!(opened.body["data"]["hold"], expiring.body["data"]["hold"]);
}

#[test]
fn an_address_or_a_secret_that_is_none_is_refused() {
    let env: Lookup = Arc::new(|_| None);
    let made = |url: &str, secrets: &str| Webhook::new(url, secrets, &env).map(drop);
    let good = secrets();
    for url in ["https://example.com/x", "http://localhost:1/", "http://127.0.0.1/", "http://[::1]:7/"] {
        assert_eq!(made(url, &good), Ok(()), "{url}");
    }
    for url in ["", "/x", "http://example.com/", "ftp://example.com/", "http://localhost.example.com/"] {
        assert_eq!(made(url, &good), Err(WebhookError::Address), "{url}");
    }
    let short = format!("whsec_{}", STANDARD.encode(b"short"));
    for secrets in ["", "secret", "whsec_?", &short, &format!("{good} {short}")] {
        assert_eq!(made("https://example.com/", secrets), Err(WebhookError::Secret), "{secrets}");
    }
}
