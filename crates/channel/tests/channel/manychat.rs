//! ManyChat on the wire.

use gesta_channel::manychat::{Call, Failure, Method, Operation, read, read_contact};
use gesta_run::ContactId;
use serde_json::{Value, json};

/// Our calls beside what a public client sends for the same ones.
fn calls() -> Vec<(&'static str, Call)> {
    let contact = || ContactId::from("12345");
    vec![
        ("Subscriber.add_tag_by_name", Call::AddTag { contact: contact(), tag: "interested".to_owned() }),
        ("Subscriber.remove_tag_by_name", Call::RemoveTag { contact: contact(), tag: "interested".to_owned() }),
        (
            "Subscriber.set_custom_field_by_name",
            Call::SetField { contact: contact(), field: "preferred_shift".to_owned(), value: "evening".to_owned() },
        ),
        (
            "Sending.send_flow",
            Call::SendFlow { contact: contact(), flow_ns: "content20240101000000_000001".to_owned() },
        ),
        ("Subscriber.get_info", Call::GetContact { contact: contact() }),
        ("Page.get_info", Call::GetPage),
        ("Page.get_tags", Call::GetTags),
        ("Page.get_custom_fields", Call::GetFields),
        ("Page.get_flows", Call::GetFlows),
    ]
}

fn sent(call: &Call) -> Value {
    let request = call.request("PAGE:KEY");
    let header = |name: &str| request.headers.iter().find(|(it, _)| *it == name).map(|(_, value)| value.clone());
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let query: serde_json::Map<String, Value> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    json!({
        "method": if request.method == Method::Get { "GET" } else { "POST" },
        "path": path,
        "query": query,
        "accept": header("accept"),
        "authorization": header("authorization"),
        "content_type": header("content-type"),
        "body": request.body,
    })
}

fn compare(text: &str) -> usize {
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut compared = 0;
    for (name, call) in calls() {
        for line in lines.iter().filter(|line| line["call"] == name) {
            let mut theirs = line.clone();
            for key in ["call", "client"] {
                theirs.as_object_mut().unwrap().remove(key);
            }
            assert_eq!(sent(&call), theirs, "{name}");
            compared += 1;
        }
    }
    compared
}

/// Point 5 of the source's verification.
#[test]
fn our_requests_are_those_of_the_fixture_and_of_a_public_client() {
    assert_eq!(compare(include_str!("../../fixtures/manychat-requests.jsonl")), calls().len());
    let captured = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/manychat-client-requests.jsonl");
    match std::fs::read_to_string(captured) {
        Ok(text) => assert!(compare(&text) >= calls().len()),
        Err(_) => println!("the captured requests are not here; compared with the fixture alone"),
    }
}

#[test]
fn ids_that_are_no_safe_number_go_out_as_text_and_are_escaped_in_a_query() {
    for (id, expected) in [
        ("0", json!(0)),
        ("9007199254740991", json!(9_007_199_254_740_991_u64)),
        ("9007199254740992", json!("9007199254740992")),
        ("007", json!("007")),
        ("user-1", json!("user-1")),
    ] {
        let call = Call::AddTag { contact: id.into(), tag: "t".to_owned() };
        assert_eq!(call.request("k").body.unwrap()["subscriber_id"], expected);
    }
    let target = Call::GetContact { contact: "a&b=é".into() }.request("k").target;
    assert_eq!(target, "/fb/subscriber/getInfo?subscriber_id=a%26b%3D%C3%A9");
}

#[test]
fn a_success_says_so_and_everything_else_is_sorted() {
    let ok = read(Operation::SetField, 200, None, br#"{"status": "success", "data": {"a": 1}}"#);
    assert_eq!(ok.unwrap(), json!({"a": 1}));
    let details =
        r#"{"status": "error", "message": "Validation error", "details": {"messages": [{"message": "no such tag"}]}}"#;
    let code = r#"{"status": "error", "message": "Outside the window", "code": 3011}"#;
    for (status, body, failure, told) in [
        (400, details, Failure::Status(400), "/fb/sending/sendFlow: status 400: Validation error; no such tag"),
        (400, code, Failure::Status(400), "/fb/sending/sendFlow: status 400, code 3011: Outside the window"),
        (
            200,
            code,
            Failure::Refused(200),
            "/fb/sending/sendFlow: status 200 with an error, code 3011: Outside the window",
        ),
        (200, "{}", Failure::Refused(200), "/fb/sending/sendFlow: status 200 with an error"),
        (200, "<html>", Failure::NotJson(200), "/fb/sending/sendFlow: status 200 without JSON"),
        (200, "[]", Failure::NotJson(200), "/fb/sending/sendFlow: status 200 without JSON"),
        (502, "<html>", Failure::Status(502), "/fb/sending/sendFlow: status 502"),
        (401, "", Failure::Status(401), "/fb/sending/sendFlow: status 401"),
    ] {
        let error = read(Operation::SendFlow, status, None, body.as_bytes()).unwrap_err();
        assert_eq!((error.failure, error.to_string().as_str()), (failure, told));
    }
    let limited = read(Operation::SendFlow, 429, Some(" 7 "), b"{}").unwrap_err();
    assert_eq!(limited.retry_after_ms, Some(7000));
    assert_eq!(read(Operation::SendFlow, 429, Some("soon"), b"").unwrap_err().retry_after_ms, None);
}

#[test]
fn a_contact_is_cut_down_to_tags_and_fields() {
    let data = json!({"id": "12345", "name": "Ann", "phone": "+1", "tags": [{"id": 1, "name": "vip"}, {"id": 2}],
        "custom_fields": [{"id": 1, "name": "a", "value": "x"}, {"id": 2, "name": "b", "value": null},
            {"id": 3, "name": "c", "value": 7}, {"id": 4, "name": "d", "value": " "}, {"id": 5, "name": "e", "value": true}]});
    let contact = read_contact(&data);
    assert_eq!(contact.tags, ["vip".to_owned()].into());
    let fields: Vec<(&str, &str)> =
        contact.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(fields, [("a", "x"), ("c", "7"), ("e", "true")]);
    assert_eq!(read_contact(&json!(null)), Default::default());
}
