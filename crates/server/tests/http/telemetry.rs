//! What of a run leaves the process beside its answers: lines of the log, and spans that a collector takes.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use bytes::Bytes;
use gesta_telemetry::{Exporter, Settings};
use http::{HeaderMap, StatusCode};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Folders, World, example};

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const ANSWERER: &str = "00-11111111111111111111111111111111-2222222222222222-01";

/// A collector that keeps what it is sent.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    spans: Vec<Span>,
    bytes: Vec<u8>,
    services: Vec<String>,
    /// So many requests are refused ahead.
    refusals: usize,
}

impl Collector {
    /// Starts it, and an exporter to it.
    async fn new() -> (Self, Exporter) {
        let collector = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(take)).with_state(collector.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let env = move |name: &str| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(base.clone()),
            "OTEL_EXPORTER_OTLP_HEADERS" => Some("x-key=a%20key".to_owned()),
            "OTEL_SERVICE_NAME" => Some("desk of the test".to_owned()),
            "OTEL_BSP_SCHEDULE_DELAY" => Some("20".to_owned()),
            _ => None,
        };
        let settings = Settings::from_lookup(&env).unwrap().unwrap();
        (collector, Exporter::start(settings, &|_| None))
    }

    fn spans(&self) -> Vec<Span> {
        self.0.lock().unwrap().spans.clone()
    }
}

async fn take(State(collector): State<Collector>, headers: HeaderMap, body: Bytes) -> StatusCode {
    assert_eq!(
        (headers["content-type"].as_bytes(), headers["x-key"].as_bytes()),
        (&b"application/x-protobuf"[..], &b"a key"[..])
    );
    let mut kept = collector.0.lock().unwrap();
    if let Some(left) = kept.refusals.checked_sub(1) {
        kept.refusals = left;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    kept.bytes.extend_from_slice(&body);
    for of_resource in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
        let resource = of_resource.resource.unwrap();
        kept.services.push(text(&resource.attributes, "service.name"));
        kept.spans.extend(of_resource.scope_spans.into_iter().flat_map(|it| it.spans));
    }
    StatusCode::OK
}

fn found<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Any> {
    attributes.iter().find(|it| it.key == key)?.value.as_ref()?.value.as_ref()
}

/// An attribute as a text; empty where there is none.
fn text(attributes: &[KeyValue], key: &str) -> String {
    match found(attributes, key) {
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::IntValue(number)) => number.to_string(),
        Some(other) => panic!("{key}: {other:?}"),
        None => String::new(),
    }
}

fn of(span: &Span, key: &str) -> String {
    text(&span.attributes, key)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|it| it.name == name).collect()
}

/// The answer that approves a hold.
fn approve(hold: &Value) -> Value {
    json!({ "answers": [{ "binding": hold["binding"], "approve": true }] })
}

#[tokio::test]
async fn a_run_that_is_parked_and_answered_elsewhere_is_one_trace() {
    let (collector, exporter) = Collector::new().await;
    // The first batch is refused, and sent again.
    collector.0.lock().unwrap().refusals = 1;
    let traces = exporter.traces().with_alias(|name| format!("alias-{}", name.len()));
    let mut world = World::traced(&[example("desk"), example("coach")], traces).await;
    let body = json!({ "input": "Refund order 7, 250 dollars", "conversation": "maria" });
    let asked = world.client().with("traceparent", CALLER).post("/v1/agents/desk/runs", body).await.ok();
    let (run, hold) = (asked["report"]["run_id"].as_str().unwrap().to_owned(), asked["deferred"][0].clone());
    world.stop().await;
    world.start().await;
    let answerer = world.client().with("traceparent", ANSWERER);
    answerer.post(&format!("/v1/runs/{run}/answers"), approve(&hold)).await.ok();
    world.post("/v1/agents/coach/runs", json!({ "input": "Replace the plank with crunches" })).await.ok();
    exporter.finish(Duration::from_secs(30)).await;

    let spans = collector.spans();
    let desk = named(&spans, "invoke_agent desk");
    let [first, second] = desk[..] else { panic!("{desk:#?}") };
    assert_eq!(
        (hex(&first.trace_id), hex(&first.parent_span_id)),
        (CALLER[3..35].to_owned(), CALLER[36..52].to_owned())
    );
    assert_eq!((&second.trace_id, &second.parent_span_id), (&first.trace_id, &first.span_id));
    assert_eq!((hex(&second.links[0].trace_id), first.links.len()), (ANSWERER[3..35].to_owned(), 0));
    assert_eq!((of(first, "gesta.status"), of(first, "gesta.outcome")), ("parked".to_owned(), String::new()));
    assert_eq!((of(second, "gesta.status"), of(second, "gesta.outcome")), ("ended".to_owned(), "completed".to_owned()));
    for (stretch, event) in [(first, "gesta.hold.opened"), (second, "gesta.hold.answered")] {
        assert_eq!(of(stretch, "gen_ai.operation.name"), "invoke_agent");
        assert_eq!(of(stretch, "gen_ai.agent.name"), "desk");
        assert_eq!(of(stretch, "gen_ai.conversation.id"), "alias-5");
        assert_eq!(of(stretch, "gesta.run.id"), run);
        assert_eq!(stretch.events[0].name, event);
        assert_eq!(text(&stretch.events[0].attributes, "gen_ai.tool.name"), "refund_order");
    }
    let of_trace: Vec<&Span> = spans.iter().filter(|it| it.trace_id == first.trace_id).collect();
    let children = |parent: &Span| -> Vec<String> {
        of_trace.iter().filter(|it| it.parent_span_id == parent.span_id).map(|it| it.name.clone()).collect()
    };
    assert_eq!(children(first), ["chat script", "execute_tool find_order", "chat script", "invoke_agent desk"]);
    assert_eq!(children(second), ["execute_tool refund_order", "chat script"]);
    let ids: std::collections::BTreeSet<&[u8]> = spans.iter().map(|it| &it.span_id[..]).collect();
    assert_eq!(ids.len(), spans.len(), "no id is used twice");
    for span in &of_trace {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano && span.start_time_unix_nano > 0, "{span:?}");
    }
    calls_and_answers_say_what_they_were(&spans, &of_trace);
    what_was_sent_stands_on_its_trip(&spans);
    assert_eq!(collector.0.lock().unwrap().services[0], "desk of the test");
}

fn calls_and_answers_say_what_they_were(spans: &[Span], of_trace: &[&Span]) {
    let refund = named(spans, "execute_tool refund_order")[0];
    assert_eq!(
        (of(refund, "gesta.decision"), of(refund, "gesta.hold.answer")),
        ("defer".to_owned(), "approve".to_owned())
    );
    assert_eq!(
        (of(refund, "gen_ai.tool.call.id"), of(refund, "gesta.call.status")),
        ("r1".to_owned(), "completed".to_owned())
    );
    let find = named(spans, "execute_tool find_order")[0];
    assert_eq!(
        (of(find, "gesta.decision"), of(find, "gen_ai.operation.name")),
        ("run".to_owned(), "execute_tool".to_owned())
    );
    let chat = of_trace.iter().find(|it| it.name == "chat script").unwrap();
    assert_eq!(
        (of(chat, "gen_ai.operation.name"), of(chat, "gen_ai.request.model")),
        ("chat".to_owned(), "script".to_owned())
    );
    assert_eq!(
        (of(chat, "gen_ai.provider.name"), of(chat, "gesta.input_label")),
        ("script".to_owned(), "input".to_owned())
    );
    assert!(found(&chat.attributes, "gen_ai.usage.input_tokens").is_some());
}

fn what_was_sent_stands_on_its_trip(spans: &[Span]) {
    // A run without a caller's trace is found by its own name; what the runtime sent stands on the trip that caused it.
    let coach = named(spans, "invoke_agent coach")[0];
    assert_eq!(hex(&coach.trace_id), of(coach, "gesta.run.id").replace('-', ""));
    assert!(coach.parent_span_id.is_empty());
    let of_coach = spans.iter().filter(|it| it.trace_id == coach.trace_id && it.name.starts_with("chat"));
    let word = |it: &Vec<KeyValue>, key: &str| text(it, &format!("gesta.intervention.{key}"));
    let said = |it: &Vec<KeyValue>| (word(it, "kind"), word(it, "outcome"));
    let sent: Vec<_> = of_coach.flat_map(|it| &it.events).map(|it| said(&it.attributes)).collect();
    let pair = |kind: &str, outcome: &str| (kind.to_owned(), outcome.to_owned());
    let sends = [pair("act_when_asked", "sent"), pair("act_when_asked", "skipped"), pair("tool_refusal", "sent")];
    assert_eq!(sent, sends);
}

thread_local! {
    /// What this thread logs, where its test wants to see it.
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Keeps what is logged for the thread that logs it.
struct Sink;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.iter_mut().for_each(|log| log.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// From now on all that this thread logs is kept, whatever its level. The subscriber is everybody's: whether a line is
/// wanted at all is remembered for all threads together.
fn log_all() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let all = tracing_subscriber::fmt().json().with_max_level(tracing::Level::TRACE).with_writer(|| Sink);
        all.init();
    });
    LOG.set(Some(Vec::new()));
}

/// A provider that repeats in its errors what it was told.
async fn rude_provider() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let refuse = |body: String| async move {
        (StatusCode::BAD_REQUEST, axum::Json(json!({ "error": { "message": format!("canary-fault: {body}") } })))
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(post(refuse))).await });
    port
}

const TALKS: &str = "model: calls c1 keep {\"text\":\"canary-argument\"}\nand: calls c2 canary-tool {\"a\":\"canary-other\"}\n\
                     and: calls d1 pay {\"to\":\"canary-payee\"}\nmodel: Canary-reply.\n";

/// An agent whose every part has its mark.
fn marked(folders: &Folders) -> std::path::PathBuf {
    let tools = "[[decisions]]\ntool = \"pay\"\naction = \"defer\"\nreason = \"canary-rule\"\n\
        [[tools]]\nname = \"keep\"\ndescription = \"Keeps.\"\nparameters = { type = \"object\" }\n\
        [[tools.answers]]\nresult = { kept = \"canary-result\" }\n\
        [[tools]]\nname = \"pay\"\ndescription = \"Pays.\"\nparameters = { type = \"object\" }\n\
        [[tools.answers]]\nresult = { ok = false, reason = \"canary-refusal\" }\n";
    folders.agent("keeper", tools, TALKS)
}

/// Drives everything that a desk does, each part with its mark.
async fn all_of_it(world: &World, hidden: &str) {
    let body = json!({ "input": "canary-input", "conversation": "canary-talk", "contact": "canary-contact" });
    let parked = world.post("/v1/agents/keeper/runs", body).await.ok();
    let run = parked["report"]["run_id"].as_str().unwrap();
    world.get("/v1/conversations/canary-talk").await.ok();
    world.get("/v1/runs?conversation=canary-talk&contact=canary-contact").await.ok();
    let answers = format!("/v1/runs/{run}/answers");
    let mut wrong = parked["deferred"][0]["binding"].clone();
    wrong["tool"] = json!("canary-bound");
    world.post(&answers, json!({ "answers": [{ "binding": wrong, "approve": true }] })).await;
    world.post(&answers, approve(&parked["deferred"][0])).await.ok();
    let failed = json!({ "input": "canary-asked", "conversation": "canary-second" });
    let failed = world.post("/v1/agents/rude/runs", failed).await.ok();
    assert_eq!(failed["outcome"], "model_failed", "{failed}");
    assert!(failed["error"]["message"].as_str().unwrap().contains("canary-fault"), "{failed}");
    world.post("/v1/agents/canary-agent/runs", json!({ "input": "canary" })).await.problem(404, "no_such_agent");
    world.get("/v1/runs/canary-run?canary=query").await.problem(404, "no_such_run");
    world.get("/canary-path").await.problem(404, "no_such_path");
    let stranger =
        world.client().with("authorization", "Bearer gesta_canary-stranger-key_canary").with("x-request-id", hidden);
    stranger.get("/v1/agents").await;
    world.client().delete("/v1/conversations/canary-talk").await;
}

#[tokio::test]
async fn nothing_that_was_said_is_in_a_line_of_the_log_or_in_a_span() {
    log_all();
    let (collector, exporter) = Collector::new().await;
    let (folders, port) = (Folders::new(), rude_provider().await);
    let model = format!("[providers.own]\nprotocol = \"openai\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n");
    let rude = folders.agent("rude", &model, "");
    let toml = std::fs::read_to_string(rude.join("agent.toml")).unwrap().replace("\"script\"", "\"own:m\"");
    std::fs::write(rude.join("agent.toml"), toml).unwrap();
    let webhook =
        ("http://canary-user:canary-password@127.0.0.1:9/canary-hook", "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5");
    let mut world = World::traced(&[marked(&folders), rude], exporter.traces()).await;
    world.tell(webhook.0, webhook.1).await;
    all_of_it(&world, "canary request").await;
    world.stop().await;
    exporter.finish(Duration::from_secs(30)).await;
    let log = String::from_utf8(LOG.take().unwrap()).unwrap();
    let told: Vec<&str> = log.lines().filter(|line| line.to_lowercase().contains("canary")).collect();
    assert!(told.is_empty(), "{told:#?}");
    let kept = collector.0.lock().unwrap();
    assert!(kept.spans.len() >= 6, "{:#?}", kept.spans);
    assert!(!String::from_utf8_lossy(&kept.bytes).to_lowercase().contains("canary"), "{:#?}", kept.spans);
    // What is there to be found is found.
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |message: &str| {
        let found = lines.iter().find(|it| it["fields"]["message"] == message);
        found.unwrap_or_else(|| panic!("no `{message}` in\n{log}"))["fields"].clone()
    };
    let ended = line("run ended");
    assert_eq!((&ended["agent"], &ended["trips"], &ended["calls"]), (&json!("keeper"), &json!(2), &json!(3)));
    assert!(ended["run"].is_string() && ended["ms"].is_u64() && ended["outcome"] == "completed", "{ended}");
    let asked = line("request");
    assert_eq!((&asked["method"], &asked["path"]), (&json!("POST"), &json!("/v1/agents/{agent}/runs")));
    assert_eq!((&asked["status"], &asked["key"]), (&json!(200), &json!("local")));
    assert!(asked["ms"].is_u64() && asked["request"].as_str().is_some_and(|it| it.len() == 36), "{asked}");
    for message in ["serving", "stopping", "stopped", "call on hold", "model failed", "a dispatch was not taken"] {
        line(message);
    }
}

#[tokio::test]
async fn what_was_said_is_in_spans_where_that_is_asked_for_and_past_the_redactor() {
    let (collector, exporter) = Collector::new().await;
    let folders = Folders::new();
    let traces = exporter.traces().with_content(|text| text.to_lowercase().replace("canary", "****"));
    let world = World::traced(&[marked(&folders)], traces).await;
    world.post("/v1/agents/keeper/runs", json!({ "input": "canary-input" })).await.ok();
    exporter.finish(Duration::from_secs(30)).await;
    let spans = collector.spans();
    let stretch = named(&spans, "invoke_agent keeper")[0];
    let input: Value = serde_json::from_str(&of(stretch, "gen_ai.input.messages")).unwrap();
    assert_eq!(input, json!([{ "role": "user", "parts": [{ "type": "text", "content": "****-input" }] }]));
    let output = of(named(&spans, "chat script")[0], "gen_ai.output.messages");
    assert!(output.contains("****-argument") && output.contains("tool_call"), "{output}");
    let kept = named(&spans, "execute_tool keep")[0];
    assert_eq!(of(kept, "gen_ai.tool.call.arguments"), "{\"text\":\"****-argument\"}");
    assert_eq!(of(kept, "gen_ai.tool.call.result"), "{\"kept\":\"****-result\"}");
    assert_eq!(named(&spans, "execute_tool ****-tool").len(), 1);
    assert!(!String::from_utf8_lossy(&collector.0.lock().unwrap().bytes).to_lowercase().contains("canary"));
}

#[tokio::test]
async fn a_collector_that_is_away_costs_spans_and_no_run() {
    let away = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut settings = Settings::to(format!("http://{away}/v1/traces").parse().unwrap());
    (settings.queue_max, settings.batch_max, settings.delay) = (3, 2, Duration::from_millis(1));
    let exporter = Exporter::start(settings, &|_| None);
    let world = World::traced(&[example("desk")], exporter.traces()).await;
    for _ in 0..3 {
        let ended = world.post("/v1/agents/desk/runs", json!({ "input": "Refund order 8" })).await.ok();
        assert_eq!(ended["outcome"], "completed");
    }
    exporter.finish(Duration::from_secs(30)).await;
}

#[tokio::test]
async fn a_request_has_a_name_its_clients_or_ours() {
    let world = World::desk().await;
    let given = world.client().with("x-request-id", "job-7.a").get("/healthz").await;
    assert_eq!(given.headers["x-request-id"], "job-7.a");
    for unusable in ["a b", "maria@example.com", &"a".repeat(129)] {
        let made = world.client().with("x-request-id", unusable).get("/v1/runs/none").await;
        assert_eq!(made.headers["x-request-id"].len(), 36, "{unusable}");
    }
}
