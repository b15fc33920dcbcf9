//! One script, two protocols, whole and streamed: the answers are the same, and which one is due follows from the request.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::{CHAT, End, MESSAGES, get, hello, post, post_with, read_answer, request, server};

const SCRIPT: &str = "model: thinks: The person greets, über alles.\nand: Hello, 🙂 there.\n\
    and: calls c1 find {\"q\": \"größe\"}\nand: calls c2 list {}\nand: uses 120 tokens in, 30 out, 20 cached\n";

#[tokio::test]
async fn an_answer_is_the_same_in_every_form_also_split_at_each_byte() {
    let model = server(SCRIPT).await;
    for (path, stop) in [(CHAT, "tool_calls"), (MESSAGES, "tool_use")] {
        for (stream, fault) in [(false, ""), (true, ""), (false, "split"), (true, "split"), (true, "split=7")] {
            let headers = if fault.is_empty() { String::new() } else { format!("x-fake-fault: {fault}\r\n") };
            let got = post_with(model.address(), path, &headers, &request(path, hello(), stream)).await;
            assert_eq!((got.status, &got.end), (200, &End::Whole));
            let said = read_answer(path, &got);
            assert_eq!(said.text, "Hello, 🙂 there.");
            assert_eq!(said.thinking, "The person greets, über alles.");
            assert_eq!(said.stop, stop);
            assert_eq!(said.tokens, (120, 30));
            let calls: Vec<[&str; 2]> = said.calls.iter().map(|call| [call[0].as_str(), call[1].as_str()]).collect();
            assert_eq!(calls, [["c1", "find"], ["c2", "list"]]);
            let arguments: Value = serde_json::from_str(&said.calls[0][2]).unwrap();
            assert_eq!(arguments, json!({"q": "größe"}));
        }
    }
}

#[tokio::test]
async fn thinking_must_come_back_verbatim() {
    let model = server(SCRIPT).await;
    let said = read_answer(MESSAGES, &post(model.address(), MESSAGES, &request(MESSAGES, hello(), true)).await);
    let ask = |thinking: &str| {
        let block = json!({"type": "thinking", "thinking": thinking, "signature": said.signature});
        let messages = json!([{"role": "user", "content": "hello"}, {"role": "assistant", "content": [block]},
            {"role": "user", "content": "more"}]);
        request(MESSAGES, messages, false)
    };
    assert_eq!(post(model.address(), MESSAGES, &ask(&said.thinking)).await.status, 200);
    let got = post(model.address(), MESSAGES, &ask(said.thinking.trim_end_matches('.'))).await;
    assert!(got.text().contains("messages.1.content.0: Invalid `signature` in `thinking` block"), "{}", got.text());
}

#[tokio::test]
async fn a_model_that_must_think_thinks_and_wants_its_thoughts_back_with_its_calls() {
    let model = server("model: calls c1 find {}\nmodel: Done.\n").await;
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    let ask = |blocks: Option<Value>| {
        let mut messages = vec![json!({"role": "user", "content": "x"})];
        if let Some(blocks) = blocks {
            messages.push(json!({"role": "assistant", "content": blocks}));
            let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": "1"});
            messages.push(json!({"role": "user", "content": [result]}));
        }
        let mut body = request(MESSAGES, messages.into(), false);
        body["thinking"] = thinking.clone();
        body["max_tokens"] = 2000.into();
        body
    };
    let first = post(model.address(), MESSAGES, &ask(None)).await.json();
    assert_eq!(first["content"][0]["type"], "thinking");
    let second = post(model.address(), MESSAGES, &ask(Some(first["content"].clone()))).await;
    assert_eq!(read_answer(MESSAGES, &second).text, "Done.");
    let without = post(model.address(), MESSAGES, &ask(Some(json!([first["content"][1]])))).await;
    assert_eq!(without.status, 400);
    assert!(without.text().contains("Expected `thinking` or `redacted_thinking`, but found `tool_use`"));
}

#[tokio::test]
async fn which_answer_is_due_follows_from_the_request() {
    let script =
        "user matches \"move\":\nmodel: Shall I?\nmodel: calls c1 move {}\nmodel: Moved.\n\notherwise:\nmodel: Hm.\n";
    let model = server(script).await;
    let user = |text: &str| json!({"role": "user", "content": text});
    let said = |text: &str| json!({"role": "assistant", "content": text});
    let turn = || vec![user("old"), said("Hm."), user("NOW: Monday, 2026-11-30T08:00:00+00:00 (UTC)"), user("move it")];
    let hinted = || [turn(), vec![said("Shall I?"), user("You were asked to act; call the tool.")]].concat();
    for path in [CHAT, MESSAGES] {
        for (messages, n, text) in [(turn(), 0, "Shall I?"), (hinted(), 1, ""), (vec![user("hello")], 0, "Hm.")] {
            let body = request(path, messages.into(), false);
            // The same request gets the same answer: there is no memory.
            for _ in 0..2 {
                let answer = read_answer(path, &post(model.address(), path, &body).await);
                assert_eq!(answer.text, text, "{path} {n}");
                assert_eq!(answer.calls.len(), usize::from(n == 1));
            }
        }
    }
}

#[tokio::test]
async fn finishes_and_tokens_are_told_in_each_protocols_words() {
    let script = "user matches \"long\":\nmodel: cut off: And so\n\nuser matches \"bomb\":\nmodel: I cannot help.\nand: finishes refusal\n\n\
        otherwise:\nmodel: \n";
    let model = server(script).await;
    let cases = [("long", "length", "max_tokens"), ("bomb", "stop", "refusal"), ("x", "stop", "end_turn")];
    for (word, chat, messages) in cases {
        for (path, stop) in [(CHAT, chat), (MESSAGES, messages)] {
            for stream in [false, true] {
                let body = request(path, json!([{"role": "user", "content": word}]), stream);
                let said = read_answer(path, &post(model.address(), path, &body).await);
                assert_eq!(said.stop, stop);
                // Nothing was said about tokens: they are counted.
                assert!(said.tokens.0 > 5 && said.tokens.1 > 0);
            }
        }
    }
}

#[tokio::test]
async fn the_journal_shows_what_was_asked_without_keys() {
    let model = server("model: Hi.\n").await;
    post_with(model.address(), CHAT, "authorization: Bearer sk-9\r\n", &request(CHAT, hello(), false)).await;
    post(model.address(), MESSAGES, &json!({})).await;
    let entries = model.journal().entries();
    assert_eq!((entries.len(), entries[0].header("authorization")), (2, Some("Bearer sk-9")));
    assert_eq!(entries[0].json()["messages"], hello());
    assert_eq!(model.journal().refusals(), ["model: Field required"]);
    let shown = get(model.address(), "/__journal", "").await;
    assert!(!shown.text().contains("sk-9"));
    assert_eq!(shown.json()[0]["outcome"]["answered"]["user_text"], "hello");
    assert_eq!(shown.json()[1]["outcome"]["refused"]["status"], 400);
    assert_eq!(get(model.address(), "/healthz", "").await.text(), "ok\n");
    assert_eq!(get(model.address(), "/x/v1/models", "").await.json()["object"], "list");
    assert_eq!(get(model.address(), "/v1/models", "anthropic-version: 1\r\n").await.json()["has_more"], false);
}

#[tokio::test]
async fn the_journal_is_bounded() {
    let options = gesta_fakes::model::Options { journal_entries_max: 2, ..Default::default() };
    let script = gesta_scene::Script::parse("model: Hi.\n").unwrap();
    let model = gesta_fakes::model::serve(script, options).await.unwrap();
    for _ in 0..3 {
        post(model.address(), CHAT, &request(CHAT, hello(), false)).await;
    }
    let numbers: Vec<u64> = model.journal().entries().iter().map(|seen| seen.number).collect();
    assert_eq!((numbers, model.journal().count()), (vec![2, 3], 3));
}
