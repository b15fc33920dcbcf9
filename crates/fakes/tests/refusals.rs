//! Requests that the real services refuse, each with what the fake says about it.
#![allow(clippy::unwrap_used)]

mod support;

use gesta_fakes::model::{Options, serve};
use gesta_scene::Script;
use serde_json::{Map, Value, json};
use support::{CHAT, MESSAGES, get, post, post_with, request, send, server};

const SCRIPT: &str = "model: thinks: hm\nand: Fine.\n";

/// Sends each body and compares status and message; the message is given up to `…` where the rest is a library's.
async fn refuse(path: &str, cases: Vec<(Value, &str)>) {
    let model = server(SCRIPT).await;
    for (body, expected) in cases {
        let got = post(model.address(), path, &body).await;
        let found = got.json();
        let message = found["error"]["message"].as_str().unwrap_or_default();
        let fits = expected.strip_suffix('…').map_or(message == expected, |start| message.starts_with(start));
        assert!(fits, "{body}\n  expected: {expected}\n  found:    {message} ({})", got.status);
        assert_eq!((got.status, &found["error"]["type"]), (400, &json!("invalid_request_error")));
        assert_eq!(model.journal().refusals().last().unwrap(), message);
        if path == MESSAGES {
            assert_eq!(found["type"], "error");
        } else {
            assert!(found["error"].get("param").is_some() && found["error"].get("code").is_some());
        }
    }
}

fn with(path: &str, fields: Value) -> Value {
    let mut body = request(path, support::hello(), false);
    for (key, value) in fields.as_object().cloned().unwrap_or_default() {
        match value {
            Value::String(word) if word == "(gone)" => drop(body.as_object_mut().map(|it| it.remove(&key))),
            value => body[key] = value,
        }
    }
    body
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn chat_call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn chat_calls(calls: Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn chat_result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "1"})
}

#[tokio::test]
async fn chat_completions_refuses_what_the_service_refuses_in_a_history() {
    let a = || chat_calls(json!([chat_call("a", "find", json!("{}"))]));
    let ab = || chat_calls(json!([chat_call("a", "find", json!("{}")), chat_call("b", "find", json!("{}"))]));
    let one = |call: Value| json!([user(json!("x")), chat_calls(json!([call])), chat_result("a")]);
    let missing = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ";
    let long = "x".repeat(41);
    let cases: Vec<(Value, String)> = vec![
        (json!([]), "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.".into()),
        (json!([user(json!("x")), a()]), format!("{missing}a (calls of messages[1])")),
        (json!([user(json!("x")), ab(), chat_result("b")]), format!("{missing}a (calls of messages[1])")),
        (json!([user(json!("x")), a(), user(json!("y")), chat_result("a")]), format!("{missing}a (calls of messages[1])")),
        (json!([user(json!("x")), chat_result("a")]), "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. messages[1] answers 'a'.".into()),
        (json!([user(json!("x")), a(), chat_result("z")]), "Invalid parameter: 'tool_call_id' of 'z' not found in 'tool_calls' of messages[1].".into()),
        (json!([user(json!("x")), a(), chat_result("a"), chat_result("a")]), "Duplicate value for 'tool_call_id' of 'a' in message[3]".into()),
        (json!([user(json!("x")), chat_calls(json!([chat_call("a", "f", json!("{}")), chat_call("a", "f", json!("{}"))])), chat_result("a")]), "Duplicate value for 'tool_call_id' of 'a' in message[1]".into()),
        (json!([user(json!("x")), chat_calls(json!([]))]), "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.".into()),
        (one(chat_call(&long, "f", json!("{}"))), "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead.".into()),
        (one(chat_call("", "f", json!("{}"))), "Invalid 'messages[1].tool_calls[0].id': empty string. Expected a string with minimum length 1, but got an empty string instead.".into()),
        (one(chat_call("a", "f g", json!("{}"))), "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.".into()),
        (one(chat_call("a", "f", json!({}))), "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead.".into()),
        (one(chat_call("a", "f", json!("[1]"))), "Invalid 'messages[1].tool_calls[0].function.arguments': expected a string that holds a JSON object (…".into()),
        (one(chat_call("a", "f", json!("{\"a\":"))), "Invalid 'messages[1].tool_calls[0].function.arguments': expected a string that holds a JSON object (…".into()),
        (one(json!({"type": "function", "function": {}})), "Missing required parameter: 'messages[1].tool_calls[0].id'.".into()),
        (json!([user(json!(""))]), "Invalid 'messages[0].content': empty string. Expected a string with minimum length 1, but got an empty string instead.".into()),
        (json!([user(json!([]))]), "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1, but got an empty array instead.".into()),
        (json!([user(json!("x")), {"role": "assistant", "content": null}]), "Invalid type for 'messages[1].content': expected one of a string or array of objects, but got null instead.".into()),
        (json!([{"role": "user"}]), "Missing required parameter: 'messages[0].content'.".into()),
        (json!([user(json!([{"type": "image"}]))]), "Invalid value: 'image'. Supported values are: 'text', 'image_url', 'input_audio', 'file'.".into()),
        (json!([user(json!([{"type": "image_url", "image_url": {"url": "file:///x"}}]))]), "Invalid 'messages[0].content[0].image_url.url': expected a URL…".into()),
        (json!([{"role": "robot", "content": "x"}]), "Invalid value: 'robot'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.".into()),
        (json!(["x"]), "Invalid type for 'messages[0]': expected an object, but got a string instead.".into()),
    ];
    let cases = cases.iter().map(|(messages, why)| (request(CHAT, messages.clone(), false), why.as_str())).collect();
    refuse(CHAT, cases).await;
}

#[tokio::test]
async fn chat_completions_refuses_what_the_service_refuses_beside_a_history() {
    let tool = |name: &str, parameters: Value| json!([{"type": "function", "function": {"name": name, "parameters": parameters}}]);
    let closed = json!({"type": "object", "properties": {}});
    let twice: Vec<Value> =
        [tool("f", closed.clone()), tool("f", closed.clone())].iter().map(|it| it[0].clone()).collect();
    let cases = [
        (json!({"model": "(gone)"}), "you must provide a model parameter"),
        (json!({"messages": "(gone)"}), "Missing required parameter: 'messages'."),
        (json!({"colour": 1}), "Unrecognized request argument supplied: colour"),
        (
            json!({"temperature": "hot"}),
            "Invalid type for 'temperature': expected a decimal, but got a string instead.",
        ),
        (json!({"temperature": 3}), "Invalid 'temperature': expected a value from 0 to 2, but got 3 instead."),
        (json!({"max_tokens": 0}), "Invalid 'max_tokens': expected a value >= 1, but got 0 instead."),
        (
            json!({"max_tokens": 5, "max_completion_tokens": 5}),
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        ),
        (
            json!({"stream_options": {"include_usage": true}}),
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        ),
        (json!({"stream": "yes"}), "Invalid type for 'stream': expected a boolean, but got a string instead."),
        (
            json!({"tools": []}),
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        ),
        (json!({"tool_choice": "auto"}), "'tool_choice' is only allowed when 'tools' are specified."),
        (json!({"tools": twice}), "Duplicate tool name 'f' in 'tools[1]'."),
        (
            json!({"tools": tool("f.g", closed.clone())}),
            "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        ),
        (
            json!({"tools": tool("f", json!({"type": "string"}))}),
            "Invalid schema for function 'f': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'.",
        ),
        (
            json!({"tools": tool("f", json!({"type": "object", "properties": {"a": {"type": "array"}}}))}),
            "Invalid schema for function 'f': In context=('properties', 'a'), array schema missing items.",
        ),
        (
            json!({"tools": tool("f", closed), "tool_choice": {"type": "function", "function": {"name": "g"}}}),
            "Tool choice 'g' not found in 'tools' parameter.",
        ),
        (
            json!({"response_format": {"type": "json_schema"}}),
            "Missing required parameter: 'response_format.json_schema'.",
        ),
    ];
    refuse(CHAT, cases.into_iter().map(|(fields, why)| (with(CHAT, fields), why)).collect()).await;
}

fn assistant(blocks: Value) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn used(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "1"})
}

#[tokio::test]
async fn messages_refuses_what_the_service_refuses_in_a_history() {
    let hi = || user(json!("x"));
    let a = || assistant(json!([used("a", "f", json!({}))]));
    let one = |block: Value| json!([hi(), assistant(json!([block])), user(json!([result("a")]))]);
    let missing = |at: usize, ids: &str| {
        format!(
            "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )
    };
    let unexpected = |at: &str, id: &str| {
        format!(
            "{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        )
    };
    let text = json!({"type": "text", "text": "y"});
    let cases: Vec<(Value, String)> = vec![
        (json!([]), "messages: at least one message is required".into()),
        (json!([assistant(json!("x"))]), "messages: first message must use the \"user\" role (messages.0)".into()),
        (json!([{"role": "system", "content": "x"}]), "messages: Unexpected role \"system\" (messages.0). The Messages API accepts…".into()),
        (json!([{"role": "tool", "content": "x"}]), "messages.0.role: Input should be 'user' or 'assistant'".into()),
        (json!([hi(), a()]), missing(1, "a")),
        (json!([hi(), a(), hi()]), missing(2, "a")),
        (json!([hi(), assistant(json!([used("a", "f", json!({})), used("b", "f", json!({}))])), user(json!([result("b")]))]), missing(2, "a")),
        (json!([user(json!([result("a")]))]), unexpected("messages.0.content.0", "a")),
        (json!([hi(), a(), user(json!([result("a"), result("z")]))]), unexpected("messages.2.content.1", "z")),
        (json!([hi(), a(), user(json!([result("a")])), assistant(json!("k")), user(json!([result("a")]))]), unexpected("messages.4.content.0", "a")),
        (json!([hi(), a(), user(json!([result("a"), result("a")]))]), "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a".into()),
        (json!([hi(), a(), user(json!([text, result("a")]))]), "messages.2.content.1: `tool_result` blocks must stand ahead of all others in the message that follows `tool_use`; a `text` block stands ahead of a".into()),
        (json!([hi(), a(), user(json!([result("a")])), a(), user(json!([result("a")]))]), "messages.3.content.0: `tool_use` ids must be unique: a".into()),
        (one(used("a.b", "f", json!({}))), "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'".into()),
        (one(used("a", "f.g", json!({}))), "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]+$'".into()),
        (one(used("a", &"f".repeat(65), json!({}))), "messages.1.content.0.tool_use.name: String should have at most 64 characters".into()),
        (one(used("a", "f", json!("{}"))), "messages.1.content.0.tool_use.input: Input should be a valid dictionary".into()),
        (one(json!({"type": "tool_use", "id": "a", "name": "f"})), "messages.1.content.0.tool_use.input: Field required".into()),
        (json!([user(json!([used("a", "f", json!({}))]))]), "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages".into()),
        (json!([user(json!(""))]), "messages.0: all messages must have non-empty content except for the optional final assistant message".into()),
        (json!([user(json!([]))]), "messages.0: all messages must have non-empty content except for the optional final assistant message".into()),
        (json!([hi(), assistant(json!("")), hi()]), "messages.1: all messages must have non-empty content except for the optional final assistant message".into()),
        (json!([user(json!([{"type": "text", "text": ""}]))]), "messages: text content blocks must be non-empty (messages.0.content.0.text)".into()),
        (json!([user(json!(" "))]), "messages: text content blocks must contain non-whitespace text (messages.0.content)".into()),
        (json!([hi(), assistant(json!("well, "))]), "messages: final assistant content cannot end with trailing whitespace (messages.1)".into()),
        (json!([hi(), assistant(json!([{"type": "thinking", "thinking": "hm"}])), hi()]), "messages.1.content.0.thinking.signature: Field required".into()),
        (json!([hi(), assistant(json!([{"type": "thinking", "thinking": "hm", "signature": "x"}])), hi()]), "messages.1.content.0: Invalid `signature` in `thinking` block…".into()),
        (json!([user(json!([{"type": "text", "text": "x", "colour": 1}]))]), "messages.0.content.0.text.colour: Extra inputs are not permitted".into()),
        (json!([{"role": "user", "content": "x", "name": "Eve"}]), "messages.0.name: Extra inputs are not permitted".into()),
        (json!([user(json!([{"type": "picture"}]))]), "messages.0.content.0: Input tag 'picture' found using 'type' does not match any of the expected tags…".into()),
        (json!([user(json!([{"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": ""}}]))]), "messages.0.content.0.image.source.base64.media_type: Input should be…".into()),
    ];
    let cases =
        cases.iter().map(|(messages, why)| (request(MESSAGES, messages.clone(), false), why.as_str())).collect();
    refuse(MESSAGES, cases).await;
}

#[tokio::test]
async fn messages_refuses_what_the_service_refuses_beside_a_history() {
    let tool = |name: &str, schema: Value| json!({"name": name, "input_schema": schema});
    let closed = || json!({"type": "object"});
    let marked = || json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    let marks: Vec<Value> = (0..5).map(|_| marked()).collect();
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    let cases = [
        (json!({"max_tokens": "(gone)"}), "max_tokens: Field required"),
        (json!({"max_tokens": "many"}), "max_tokens: Input should be a valid integer"),
        (json!({"max_tokens": 0}), "max_tokens: Input should be greater than or equal to 1"),
        (json!({"model": "(gone)"}), "model: Field required"),
        (json!({"colour": 1}), "colour: Extra inputs are not permitted"),
        (json!({"temperature": 1.5}), "temperature: Input should be less than or equal to 1"),
        (json!({"system": [{"type": "text", "text": ""}]}), "system: text content blocks must be non-empty (system.0)"),
        (json!({"system": marks}), "A maximum of 4 blocks with cache_control may be provided. Found 5."),
        (
            json!({"tools": [tool("f", closed()), tool("f", closed())]}),
            "tools: Tool names must be unique. tools.1 is another \"f\"",
        ),
        (
            json!({"tools": [tool("f g", closed())]}),
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
        ),
        (json!({"tools": [tool("f", json!({}))]}), "tools.0.custom.input_schema.type: Field required"),
        (
            json!({"tools": [tool("f", json!({"type": "array"}))]}),
            "tools.0.custom.input_schema.type: Input should be 'object'",
        ),
        (json!({"tools": [{"name": "f"}]}), "tools.0.custom.input_schema: Field required"),
        (
            json!({"tool_choice": {"type": "auto"}}),
            "tool_choice: tool_choice may only be specified while providing tools",
        ),
        (
            json!({"tools": [tool("f", closed())], "tool_choice": {"type": "tool", "name": "g"}}),
            "Tool 'g' not found in provided tools",
        ),
        (json!({"thinking": thinking}), "`max_tokens` must be greater than `thinking.budget_tokens`"),
    ];
    refuse(MESSAGES, cases.into_iter().map(|(fields, why)| (with(MESSAGES, fields), why)).collect()).await;
}

#[tokio::test]
async fn histories_that_the_services_take_are_taken() {
    let model = server(SCRIPT).await;
    let call = |id: &str| chat_call(id, "f", json!("{}"));
    let chat = [
        // Results may come in another order than the calls.
        json!([{"role": "developer", "content": "be brief"}, user(json!("x")),
            chat_calls(json!([call("a"), call("b")])), chat_result("b"), chat_result("a"), user(json!("y"))]),
        json!([user(json!("x")), user(json!("y")), {"role": "assistant", "content": "k", "reasoning_content": "hm"}]),
        // An id may be used again in another answer.
        json!([
            user(json!("x")),
            chat_calls(json!([call("a")])),
            chat_result("a"),
            chat_calls(json!([call("a")])),
            chat_result("a")
        ]),
        json!([user(
            json!([{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}])
        )]),
    ];
    for messages in chat {
        let got = post(model.address(), CHAT, &request(CHAT, messages, true)).await;
        assert_eq!(got.status, 200, "{}", got.text());
    }
    let a = || assistant(json!([{"type": "text", "text": "k"}, used("a", "f", json!({}))]));
    let messages = [
        // Neighbours of one role are one message.
        json!([user(json!("x")), user(json!("y")), a(), user(json!([result("a")])), user(json!("z"))]),
        json!([
            user(json!("x")),
            assistant(json!([used("a", "f", json!({}))])),
            assistant(json!([used("b", "f", json!({}))])),
            user(json!([result("b"), result("a"), {"type": "text", "text": "go on"}]))
        ]),
        json!([user(json!("x")), assistant(json!("and then"))]),
        json!([user(json!("x")), assistant(json!([]))]),
    ];
    for messages in messages {
        let got = post(model.address(), MESSAGES, &request(MESSAGES, messages, true)).await;
        assert_eq!(got.status, 200, "{}", got.text());
    }
    assert!(model.journal().refusals().is_empty());
}

#[tokio::test]
async fn keys_headers_paths_models_and_sizes_are_checked() {
    let options =
        Options { key: Some("sk-1".into()), models: vec!["m".into()], body_bytes_max: 500, ..Options::default() };
    let model = serve(Script::parse(SCRIPT).unwrap(), options).await.unwrap();
    let at = model.address();
    let big = with(CHAT, json!({"user": "x".repeat(600)}));
    let other = with(CHAT, json!({"model": "n"}));
    let hello = with(CHAT, json!({}));
    let azure = "/openai/deployments/m/chat/completions";
    let json_type = "content-type: application/json\r\n";
    let cases = [
        (post(at, CHAT, &hello).await, 401, "You didn't provide an API key…"),
        (post_with(at, CHAT, "authorization: Bearer no\r\n", &hello).await, 401, "Incorrect API key provided."),
        (post(at, MESSAGES, &hello).await, 401, "x-api-key header is required"),
        (post_with(at, MESSAGES, "x-api-key: no\r\n", &hello).await, 401, "invalid x-api-key"),
        (get(at, "/v1/models", "").await, 401, "You didn't provide an API key…"),
        (
            post_with(at, CHAT, "authorization: Bearer sk-1\r\n", &other).await,
            404,
            "The model `n` does not exist or you do not have access to it.",
        ),
        (
            post_with(at, CHAT, "authorization: Bearer sk-1\r\n", &big).await,
            413,
            "Request exceeds the maximum size: more than 500 bytes",
        ),
        (
            post_with(at, azure, "api-key: sk-1\r\n", &hello).await,
            404,
            "Resource not found: the query has no api-version",
        ),
        (
            send(at, "POST", MESSAGES, &format!("{json_type}x-api-key: sk-1\r\n"), "{}").await,
            400,
            "anthropic-version: header is required",
        ),
        (
            send(at, "POST", CHAT, "content-type: text/plain\r\napi-key: sk-1\r\n", "{}").await,
            400,
            "Unsupported content type: 'text/plain'…",
        ),
        (
            send(at, "POST", CHAT, &format!("{json_type}api-key: sk-1\r\n"), "{\"a\":").await,
            400,
            "The request body is no JSON object: …",
        ),
        (get(at, CHAT, "").await, 405, "Not allowed to GET on /v1/chat/completions (HINT: use POST)"),
        (get(at, "/v2", "").await, 404, "Unknown request URL: GET /v2…"),
    ];
    for (got, status, expected) in cases {
        let found = got.json();
        let message = found["error"]["message"].as_str().unwrap_or_default();
        let fits = expected.strip_suffix('…').map_or(message == expected, |start| message.starts_with(start));
        assert!(fits && got.status == status, "{status} {expected}: {} {message}", got.status);
    }
    let body: Map<String, Value> =
        hello.as_object().cloned().unwrap().into_iter().filter(|(key, _)| key != "model").collect();
    let path = format!("{azure}?api-version=2024-10-21");
    assert_eq!(post_with(at, &path, "api-key: sk-1\r\n", &Value::Object(body)).await.status, 200);
}
