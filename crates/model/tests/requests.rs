//! What is written into a request, field by field.
#![allow(clippy::unwrap_used)]

mod support;

use gesta_model::{CacheTime, Dialect, IdRule, Protocol, Request, anthropic, openai};
use gesta_run::json::Object;
use gesta_run::message::{Block, Message, Part, Source};
use gesta_run::reply::FaultKind;
use gesta_run::tool::ToolList;
use serde_json::{Value, json};
use support::{request, results, rules, said, tools, write};

fn openai_body(asked: &Request<'_>, dialect: &Dialect) -> Value {
    serde_json::from_slice(&openai::request(asked, dialect).unwrap()).unwrap()
}

fn anthropic_body(asked: &Request<'_>, dialect: &Dialect) -> Value {
    serde_json::from_slice(&anthropic::request(asked, dialect).unwrap()).unwrap()
}

fn trip(ids: &[&str]) -> [Message; 2] {
    let blocks: Vec<Block> = ids.iter().map(|id| Block::call(id, "move", "{\"day\":\"fri\"}")).collect();
    let mut results = results(&blocks);
    results[0].is_error = true;
    [Message::Assistant { blocks }, Message::Tools { results }]
}

fn conversation() -> Vec<Message> {
    let mut messages = vec![Message::Notice { text: "NOW: Friday".into() }, said("Move it")];
    messages.extend(trip(&["c1", "c2"]));
    messages.push(Message::User { parts: vec![Part::text("Call move now.")], prompted: true });
    messages
}

#[test]
fn a_conversation_is_written_for_openai() {
    let options = json!({"temperature": 0.5, "max_tokens": 9, "model": "other"}).as_object().unwrap().clone();
    let (messages, tools) = (conversation(), tools());
    let body = openai_body(&request(&messages, &tools, &options), &Dialect::openai());
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "move", "arguments": "{\"day\":\"fri\"}"}});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "{\"ok\":true}"});
    let expected = json!({
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "NOW: Friday"},
            {"role": "user", "content": "Move it"},
            {"role": "assistant", "content": null, "tool_calls": [call("c1"), call("c2")]},
            result("c1"),
            result("c2"),
            {"role": "user", "content": "Call move now."},
        ],
        "tools": [{"type": "function", "function": {
            "name": "move", "description": "Moves a visit.",
            "parameters": {"type": "object", "properties": {"day": {"type": "string"}}},
        }}],
        "temperature": 0.5,
        "max_tokens": 9,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(body, expected);
    let dialect = Dialect {
        alternate: true,
        max_tokens_key: "max_completion_tokens".into(),
        stream_usage: false,
        ..Dialect::openai()
    };
    let body = openai_body(&request(&messages, &tools, &options), &dialect);
    assert_eq!(body["messages"][1], json!({"role": "user", "content": "NOW: Friday\n\nMove it"}));
    assert_eq!((&body["max_completion_tokens"], body.get("stream_options")), (&json!(9), None));
}

#[test]
fn a_conversation_is_written_for_anthropic() {
    let (messages, tools, options) = (conversation(), tools(), Object::new());
    let body = anthropic_body(&request(&messages, &tools, &options), &Dialect::anthropic());
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "move", "input": {"day": "fri"}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "{\"ok\":true}"});
    let mut failed = result("c1");
    failed["is_error"] = json!(true);
    let expected = json!({
        "model": "m-1",
        "max_tokens": 8192,
        "system": "Be brief.",
        "tools": [{
            "name": "move", "description": "Moves a visit.",
            "input_schema": {"type": "object", "properties": {"day": {"type": "string"}}},
        }],
        "messages": [
            {"role": "user", "content": [text("NOW: Friday"), text("Move it")]},
            {"role": "assistant", "content": [call("c1"), call("c2")]},
            {"role": "user", "content": [failed, result("c2"), text("Call move now.")]},
        ],
        "stream": true,
    });
    assert_eq!(body, expected);
}

#[test]
fn the_cache_covers_system_tools_and_history_and_never_the_notice_of_the_time() {
    let history = [said("Hello"), Message::Assistant { blocks: vec![Block::text("Hi")] }];
    let (messages, tools, options) = (conversation(), tools(), Object::new());
    let dialect = Dialect { cache: Some(CacheTime::OneHour), ..Dialect::anthropic() };
    let mut asked = request(&messages, &tools, &options);
    asked.history = &history;
    let body = anthropic_body(&asked, &dialect);
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    assert_eq!(body["system"][0]["cache_control"], mark);
    assert_eq!(body["messages"][1]["content"][0]["cache_control"], mark);
    assert_eq!(body.to_string().matches("cache_control").count(), 2);
    asked.system = " ";
    asked.history = &[];
    let body = anthropic_body(&asked, &dialect);
    assert_eq!(body["tools"][0]["cache_control"], mark);
    assert_eq!(body.to_string().matches("cache_control").count(), 1);
}

#[test]
fn pictures_and_files_go_as_each_protocol_wants_them() {
    let image = |source| Part::Image { media_type: "image/png".into(), source };
    let file = |kind: &str, data: &str| Part::File {
        media_type: kind.into(),
        name: Some("a.x".into()),
        source: Source::Base64(data.into()),
    };
    let parts = vec![
        Part::text("Look"),
        image(Source::Base64("AAAA".into())),
        image(Source::Url("https://example.com/a.png".into())),
        file("application/pdf", "QQ=="),
    ];
    let (tools, options) = (ToolList::default(), Object::new());
    let messages = [Message::User { parts, prompted: false }];
    let asked = request(&messages, &tools, &options);
    let body = write(Protocol::OpenAi, &asked).unwrap();
    let expected = json!([
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "file", "file": {"filename": "a.x", "file_data": "data:application/pdf;base64,QQ=="}},
    ]);
    assert_eq!(body["messages"][1]["content"], expected);
    let body = write(Protocol::Anthropic, &asked).unwrap();
    let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": "QQ=="});
    let expected = json!([
        {"type": "text", "text": "Look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "document", "source": pdf, "title": "a.x"},
    ]);
    assert_eq!(body["messages"][0]["content"], expected);
    let sheet = [Message::User { parts: vec![file("application/zip", "QQ==")], prompted: false }];
    let fault = anthropic::request(&request(&sheet, &tools, &options), &Dialect::anthropic()).unwrap_err();
    assert_eq!((fault.kind, fault.retryable), (FaultKind::BadRequest, false));
    let note = [Message::User { parts: vec![file("text/plain", "R3LDvMOfZQ==")], prompted: false }];
    let body = write(Protocol::Anthropic, &request(&note, &tools, &options)).unwrap();
    assert_eq!(body["messages"][0]["content"][0]["source"]["data"], "Grüße");
}

#[test]
fn an_output_schema_is_strict_only_where_openai_takes_it_so() {
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let closed = json!({
        "type": "object", "additionalProperties": false, "required": ["a"], "properties": {"a": {"type": "string"}},
    });
    let (messages, tools, options) = ([said("x")], ToolList::default(), Object::new());
    for (schema, strict) in [(&open, false), (&closed, true)] {
        let mut asked = request(&messages, &tools, &options);
        asked.output_schema = Some(schema);
        let format = &openai_body(&asked, &Dialect::openai())["response_format"];
        assert_eq!((&format["json_schema"]["strict"], &format["json_schema"]["schema"]), (&json!(strict), schema));
        assert!(anthropic_body(&asked, &Dialect::anthropic()).get("output_config").is_none());
        let native = Dialect { output_schema: true, ..Dialect::anthropic() };
        assert_eq!(&anthropic_body(&asked, &native)["output_config"]["format"]["schema"], schema);
    }
}

#[test]
fn ids_that_repeat_or_that_the_provider_refuses_are_mapped_for_calls_and_results_alike() {
    let mut messages = vec![said("x")];
    messages.extend(trip(&["functions.move:0", "c1"]));
    messages.extend(trip(&["c1"]));
    messages.push(said("y"));
    let (tools, options) = (tools(), Object::new());
    let asked = request(&messages, &tools, &options);
    for protocol in [Protocol::OpenAi, Protocol::Anthropic] {
        write(protocol, &asked).unwrap();
    }
    let nine = Dialect { call_ids: IdRule::Nine, ..Dialect::openai() };
    let body = openai_body(&asked, &nine);
    rules::check(Protocol::OpenAi, &body).unwrap();
    for call in body["messages"][2]["tool_calls"].as_array().unwrap() {
        assert_eq!(call["id"].as_str().unwrap().len(), 9);
    }
}

#[test]
fn blank_messages_and_made_up_names_do_not_spoil_a_history() {
    let blocks = vec![Block::text(" "), Block::call("c1", "no such tool!", "{\"a\":")];
    let results = results(&blocks);
    let messages = [
        Message::Assistant { blocks: vec![Block::text("Hello, how can I help?")] },
        said("  "),
        Message::Assistant { blocks: vec![] },
        said("x"),
        Message::Assistant { blocks },
        Message::Tools { results },
    ];
    let (tools, options) = (tools(), Object::new());
    for protocol in [Protocol::OpenAi, Protocol::Anthropic] {
        write(protocol, &request(&messages, &tools, &options)).unwrap();
    }
    let fault = anthropic::request(&request(&[said(" ")], &tools, &options), &Dialect::anthropic()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BadRequest);
}
