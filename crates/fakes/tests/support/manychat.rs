//! The fake of ManyChat: what it accepts, what it refuses, every fault, and what the phone shows.
#![allow(clippy::unwrap_used)]

use gesta_channel::manychat::{Call, Failure, Method, Operation, read, read_contact};
use gesta_channel::profile::Messenger;
use gesta_channel::response::{Callback, block};
use gesta_fakes::manychat::{FakeManychat, Fault, InboundError, SeenBy, Setup, Switch, Webhook};
use gesta_fakes::tool::{Canned, ToolServer};
use serde_json::{Value, json};

use super::support::{End, Got, get, send};

const FLOW: &str = "/fb/sending/sendFlow";
const FIELD: &str = "/fb/subscriber/setCustomFieldByName";

async fn fake() -> FakeManychat {
    let setup = json!({
        "key": "PAGE:KEY",
        "fields": ["ai_message", "preferred_shift", "visit"],
        "tags": ["interested", "vip"],
        "contacts": [{"id": "12345", "first_name": "Ann", "tags": ["vip"], "fields": {"visit": "am"}}, {"id": "u-2"}],
        "flows": {
            "content20240101000000_000001": {"steps": [{"text": "Here it is."}, {"delay_ms": 4000}, {"text": "And more."}, {"tag": "vip"}]},
            "reply": {"steps": [{"field": "ai_message"}]},
        },
    });
    FakeManychat::start(Setup::read(&setup.to_string()).unwrap(), None).await.unwrap()
}

async fn call(fake: &FakeManychat, call: &Call) -> Got {
    call_at(fake, call, "").await
}

/// Sends a call with this behind its target: a `?hang` says that no answer is expected.
async fn call_at(fake: &FakeManychat, call: &Call, behind: &str) -> Got {
    let request = call.request("PAGE:KEY");
    let headers: String = request.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let method = if request.method == Method::Get { "GET" } else { "POST" };
    let body = request.body.map(|it| it.to_string()).unwrap_or_default();
    send(fake.address(), method, &format!("{}{behind}", request.target), &headers, &body).await
}

fn flow(flow_ns: &str) -> Call {
    Call::SendFlow { contact: "12345".into(), flow_ns: flow_ns.to_owned() }
}

fn field(value: &str) -> Call {
    Call::SetField { contact: "12345".into(), field: "ai_message".to_owned(), value: value.to_owned() }
}

fn tag(tag: &str) -> Call {
    Call::AddTag { contact: "12345".into(), tag: tag.to_owned() }
}

fn texts(fake: &FakeManychat) -> Vec<String> {
    let shown = fake.timeline("12345").into_iter().filter(|it| it.by != SeenBy::Silent);
    shown.map(|it| it.text).collect()
}

fn callback(url: &str) -> Callback {
    let base = url.trim_end_matches("/v1/channels/manychat/message").to_owned();
    Callback { base, secret: "0123456789abcdef-two".to_owned(), token_field: "ai_token".to_owned() }
}

/// The webhook of an agent that says the same thing each time.
async fn agent(fake: &FakeManychat, messages: &[&str]) -> ToolServer {
    let tools = ToolServer::start().await.unwrap();
    let url = tools.url("/v1/channels/manychat/message");
    let messages: Vec<String> = messages.iter().map(|it| (*it).to_owned()).collect();
    let response = block(&Messenger::Whatsapp.profile(), &messages, &callback(&url));
    tools.set("/v1/channels/manychat/message", Canned::json(response));
    tools.set("/block", tools_answer(&url, &messages));
    fake.set_webhook(Webhook::new(tools.url("/block"), "0123456789abcdef-one", Messenger::Whatsapp));
    tools
}

fn tools_answer(url: &str, messages: &[String]) -> Canned {
    Canned::json(block(&Messenger::Whatsapp.profile(), messages, &callback(url)))
}

#[tokio::test]
async fn what_public_clients_and_ours_send_is_accepted() {
    let fake = fake().await;
    let own = include_str!("../../../channel/fixtures/manychat-requests.jsonl").to_owned();
    let captured = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/manychat-client-requests.jsonl");
    let theirs = std::fs::read_to_string(captured).unwrap_or_default();
    let lines: Vec<Value> = own.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ours: Vec<&Value> = lines.iter().map(|line| &line["call"]).collect();
    let mut accepted = 0;
    for line in lines.iter().cloned().chain(theirs.lines().map(|line| serde_json::from_str(line).unwrap())) {
        if !ours.contains(&&line["call"]) {
            continue;
        }
        let query: Vec<String> =
            line["query"].as_object().unwrap().iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap())).collect();
        let target = format!("{}?{}", line["path"].as_str().unwrap(), query.join("&"));
        let headers =
            format!("authorization: {}\r\ncontent-type: application/json\r\n", line["authorization"].as_str().unwrap());
        let body = if line["body"].is_null() { String::new() } else { line["body"].to_string() };
        let got = send(fake.address(), line["method"].as_str().unwrap(), &target, &headers, &body).await;

        assert!(got.status == 200 && got.json()["status"] == "success", "{line}: {}", got.text());
        accepted += 1;
    }
    assert!(accepted >= 9, "{accepted}");
    assert!(fake.ledger().iter().all(|it| it.performed));
}

#[tokio::test]
async fn what_is_wrong_is_refused_in_manychats_shapes() {
    let fake = fake().await;
    let key = "authorization: Bearer PAGE:KEY\r\n";
    for (path, headers, body, status, why) in [
        (FLOW, "", json!({}), 401, "unauthorized"),
        (FLOW, "authorization: Bearer PAGE:KEY2\r\n", json!({}), 401, "unauthorized"),
        ("/fb/sending/other", key, json!({}), 404, "not found"),
        (FLOW, key, json!({"flow_ns": "reply"}), 400, "subscriber_id is missing"),
        (FLOW, key, json!({"subscriber_id": 12345, "flow_ns": "reply", "tag": 1}), 400, "tag is unknown"),
        (FLOW, key, json!({"subscriber_id": 9, "flow_ns": "reply"}), 400, "subscriber does not exist"),
        (FLOW, key, json!({"subscriber_id": "u-2", "flow_ns": "none"}), 400, "flow does not exist"),
        (
            FIELD,
            key,
            json!({"subscriber_id": "u-2", "field_name": "AI_message", "field_value": "x"}),
            400,
            "field does not exist",
        ),
    ] {
        let got = send(fake.address(), "POST", path, headers, &body.to_string()).await;
        assert!(got.status == status && got.text().contains(why), "{path} {body}: {} {}", got.status, got.text());
    }
    let refused = call(&fake, &tag("ghost")).await;
    let error = read(Operation::AddTag, refused.status, None, &refused.body).unwrap_err();
    assert_eq!(error.message, "Validation error; tag does not exist");
    assert!(fake.ledger().iter().all(|it| !it.performed && !it.why.is_empty()));
    let content = json!({"subscriber_id": "u-2", "data": {}, "message_tag": "ACCOUNT_UPDATE"}).to_string();
    assert_eq!(send(fake.address(), "POST", "/fb/sending/sendContent", key, &content).await.status, 400);
}

#[tokio::test]
async fn each_fault_is_seen_and_the_ledger_says_what_was_performed() {
    for (fault, failure, performed) in [
        (Fault::DelayMs(1), None, true),
        (Fault::Details, Some(Failure::Status(400)), false),
        (Fault::Code(3011), Some(Failure::Status(400)), false),
        (Fault::Status(401), Some(Failure::Status(401)), false),
        (Fault::Status(403), Some(Failure::Status(403)), false),
        (Fault::Status(404), Some(Failure::Status(404)), false),
        (Fault::RetryAfter(7), Some(Failure::Status(429)), false),
        (Fault::Status(500), Some(Failure::Status(500)), false),
        (Fault::Status(502), Some(Failure::Status(502)), false),
        (Fault::ErrorIn2xx, Some(Failure::Refused(200)), false),
        (Fault::NotJson, Some(Failure::NotJson(200)), false),
        (Fault::NotDelivered, None, true),
    ] {
        let fake = fake().await;
        fake.switch(Switch::nth(FLOW, 2, fault));
        assert_eq!(call(&fake, &flow("reply")).await.status, 200, "the first is not struck");
        assert_eq!(call(&fake, &field("x")).await.status, 200, "another endpoint is not struck");
        let got = call(&fake, &flow("reply")).await;
        let read = read(Operation::SendFlow, got.status, got.header("retry-after").as_deref(), &got.body);
        assert_eq!(read.as_ref().err().map(|it| it.failure), failure, "{fault:?}");
        if fault == Fault::RetryAfter(7) {
            assert_eq!(read.unwrap_err().retry_after_ms, Some(7000));
        }
        let entry = fake.ledger().pop().unwrap();
        assert_eq!((entry.performed, entry.fault, entry.number), (performed, Some(fault), 3), "{fault:?}");
        assert_eq!(call(&fake, &flow("reply")).await.status, 200, "nor is the third");
    }
}

#[tokio::test]
async fn faults_without_an_answer_perform_or_do_not() {
    for (fault, end, performed) in [
        (Fault::Hang, End::Silent, false),
        (Fault::PerformedAndHung, End::Silent, true),
        (Fault::PerformedAndCut, End::Broken, true),
    ] {
        let fake = fake().await;
        fake.switch(Switch::each("", fault));
        let got = call_at(&fake, &tag("interested"), "?hang").await;
        assert_eq!((got.status, got.end), (0, end), "{fault:?}");
        let entry = fake.ledger().pop().unwrap();
        assert_eq!((entry.performed, entry.status, entry.contact().as_str()), (performed, None, "12345"));
        fake.clear();
        let got = call(&fake, &Call::GetContact { contact: "12345".into() }).await;
        let contact = read_contact(&read(Operation::GetContact, got.status, None, &got.body).unwrap());
        assert_eq!(contact.tags.contains("interested"), performed);
        assert_eq!(contact.fields.get("visit").map(String::as_str), Some("am"));
    }
}

#[tokio::test]
async fn the_phone_shows_what_came_in_its_order_and_a_field_as_it_stood_then() {
    let fake = fake().await;
    let agent = agent(&fake, &["One.", "Two."]).await;
    fake.inbound("12345", "Hello").await.unwrap();
    let first = &agent.calls()[0];
    assert_eq!(first.json(), json!({"subscriber_id": "12345", "text": "Hello", "first_name": "Ann"}));
    assert_eq!(first.header("authorization"), Some("Bearer 0123456789abcdef-one"));
    // The callback of the response is used once for the next message, and again, because each response sets it.
    fake.inbound("12345", "More").await.unwrap();
    let second = agent.calls_of("/v1/channels/manychat/message").remove(0);
    assert_eq!(second.json()["text"], "More");
    assert_eq!(second.header("authorization"), Some("Bearer 0123456789abcdef-two"));
    call(&fake, &flow("content20240101000000_000001")).await;
    call(&fake, &field("late one")).await;
    call(&fake, &flow("reply")).await;
    call(&fake, &field("late two")).await;
    assert_eq!(texts(&fake), ["Hello", "One.\n\nTwo.", "More", "One.\n\nTwo.", "Here it is.", "late one"]);
    fake.advance(4000);
    assert_eq!(texts(&fake)[6..], ["And more."], "the flow has played on");
    fake.advance(86_400_000);
    fake.inbound("12345", "Again").await.unwrap();
    assert_eq!(agent.calls_of("/block").len(), 2, "the callback has expired");
}

#[tokio::test]
async fn a_response_that_manychat_would_not_take_is_told() {
    let fake = fake().await;
    let agent = agent(&fake, &["Hi."]).await;
    let url = agent.url("/v1/channels/manychat/message");
    let mut quick = block(&Messenger::Whatsapp.profile(), &["a".to_owned()], &callback(&url));
    quick["content"]["quick_replies"] = json!([]);
    agent.set("/block", Canned::json(quick));
    let refused = fake.inbound("12345", "x").await.unwrap_err();
    assert!(matches!(&refused, InboundError::Response(why) if why.contains("must be absent")), "{refused}");
    agent.set("/block", Canned::text(503, "down"));
    assert_eq!(fake.inbound("12345", "x").await, Err(InboundError::Status(503)));
    agent.set("/block", Canned::Cut);
    assert!(matches!(fake.inbound("12345", "x").await, Err(InboundError::Network(_))));
    assert!(matches!(fake.inbound("nobody", "x").await, Err(InboundError::Setup(_))));
    assert_eq!(texts(&fake), ["x", "x", "x"], "nothing of it is shown");
}

#[tokio::test]
async fn two_messages_at_once_are_both_delivered() {
    let fake = fake().await;
    let agent = agent(&fake, &["Hi."]).await;
    let (one, two) = tokio::join!(fake.inbound("12345", "one"), fake.inbound("12345", "two"));
    assert!(one.is_ok() && two.is_ok());
    assert_eq!((agent.calls_of("/block").len(), texts(&fake).len()), (2, 4));
}

#[tokio::test]
async fn windows_hours_and_seconds_are_the_clocks() {
    let fake = fake().await;
    let agent = agent(&fake, &["Hi."]).await;
    fake.inbound("12345", "Hello").await.unwrap();
    fake.advance(86_400_001);
    assert_eq!(call(&fake, &flow("content20240101000000_000001")).await.status, 200, "accepted is not delivered");
    assert_eq!(texts(&fake).last().map(String::as_str), Some("outside the 24-hour window"));
    fake.inbound("12345", "Back").await.unwrap();
    for _ in 1..100 {
        fake.advance(100);
        assert_eq!(call(&fake, &flow("reply")).await.status, 200);
    }
    fake.advance(1000);
    assert_eq!(call(&fake, &flow("reply")).await.status, 429, "the hundred-and-first of the hour");
    fake.advance(3_600_000);
    assert_eq!(call(&fake, &flow("reply")).await.status, 200);
    drop(agent);
}

#[tokio::test]
async fn the_page_and_the_doors_for_other_processes_show_the_same() {
    let fake = fake().await;
    let agent = agent(&fake, &["<b>Hi</b>"]).await;
    let address = fake.address();
    let body = json!({"contact": "12345", "text": "<script>alert(1)</script>"}).to_string();
    assert_eq!(send(address, "POST", "/__fake/inbound", "", &body).await.status, 200);
    let page = get(address, "/phone/timeline?contact=12345", "").await;
    assert!(page.text().contains("&lt;script&gt;") && page.text().contains("&lt;b&gt;Hi"), "{}", page.text());
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    let phone = get(address, "/phone", "").await.text();
    assert!(phone.contains("Phone of 12345") && !phone.contains("http://") && !phone.contains("https://"), "{phone}");
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    let to = send(
        address,
        "POST",
        "/phone/fault",
        form,
        "contact=12345&endpoint=%2Ffb%2Fsending%2FsendFlow&fault=broken&nth=1",
    )
    .await;
    assert_eq!((to.status, to.header("location").as_deref()), (303, Some("/phone?contact=12345")));
    assert_eq!(call(&fake, &flow("reply")).await.status, 502);
    send(address, "POST", "/phone/fault", form, "contact=12345&endpoint=&fault=broken&nth=").await;
    assert_eq!(call(&fake, &tag("vip")).await.status, 502);
    send(address, "POST", "/phone/clear", form, "contact=12345").await;
    assert_eq!(call(&fake, &tag("vip")).await.status, 200);
    let faults =
        json!([{"endpoint": FLOW, "nth": 1, "fault": {"status": 500}}, {"fault": "not_json", "nth": 9}]).to_string();
    assert_eq!(send(address, "POST", "/__fake/faults", "", &faults).await.status, 200);
    assert_eq!(call(&fake, &flow("reply")).await.status, 500);
    assert_eq!(send(address, "POST", "/__fake/faults", "", r#"[{"fault": "magic"}]"#).await.status, 400);
    let ledger = get(address, "/__fake/ledger", "").await.json();
    assert_eq!(ledger.as_array().unwrap().len(), fake.ledger().len());
    assert_eq!(ledger[0]["fault"], json!({"status": 502}));
    let timeline = get(address, "/__fake/timeline?contact=12345", "").await.json();
    assert_eq!((&timeline[0]["by"], &timeline[1]["text"]), (&json!("contact"), &json!("<b>Hi</b>")));
    let before = send(address, "POST", "/__fake/clock", "", r#"{"advance_ms": 0}"#).await.json();
    let after = send(address, "POST", "/__fake/clock", "", r#"{"advance_ms": 60000}"#).await.json();
    assert!(after["now_ms"].as_i64().unwrap() - before["now_ms"].as_i64().unwrap() >= 60_000);
    send(address, "POST", "/phone/say", form, "contact=12345&text=typed").await;
    agent.arrived(2).await;
    assert!(texts(&fake).contains(&"typed".to_owned()));
}
