//! Every fault that can be asked for is seen by a client, whoever asks for it.
#![allow(clippy::unwrap_used)]

#[path = "support/manychat.rs"]
mod manychat;
mod support;

use std::time::Instant;

use gesta_fakes::model::{Options, serve};
use gesta_scene::Script;
use support::{CHAT, End, Got, MESSAGES, events, hello, post, post_with, request, server};

const SCRIPT: &str = "model: One two three four five six seven eight.\n";

async fn ask(model: &gesta_fakes::model::ModelServer, path: &str, stream: bool, fault: &str) -> Got {
    let query = format!("{path}?fault={}", fault.replace(',', "%2C"));
    post(model.address(), &query, &request(path, hello(), stream)).await
}

#[tokio::test]
async fn each_fault_is_seen_in_both_protocols_and_forms() {
    let model = server(SCRIPT).await;
    for path in [CHAT, MESSAGES] {
        for stream in [false, true] {
            let whole = ask(&model, path, stream, "").await;
            let length = whole.body.len();
            assert_eq!((whole.status, &whole.end), (200, &End::Whole));
            let see = |fault: &'static str| ask(&model, path, stream, fault);

            let cut = see("cut").await;
            assert_eq!((cut.body.len(), cut.end), (length / 2, End::Broken));
            let cut = see("cut=9").await;
            assert_eq!((cut.body.len(), cut.end), (9, End::Broken));
            let stalled = see("stall").await;
            assert_eq!((stalled.body.len(), stalled.end), (length / 2, End::Silent));
            let hung = see("hang").await;
            assert_eq!((hung.status, hung.end), (0, End::Silent));
            let dropped = see("drop").await;
            assert_eq!((dropped.status, dropped.body.len(), dropped.end), (0, 0, End::Broken));

            let malformed = see("malformed").await;
            assert_eq!((malformed.status, malformed.end), (200, End::Whole));
            let last = if stream { events(&malformed.body).pop().unwrap() } else { malformed.text() };
            assert!(serde_json::from_str::<serde_json::Value>(&last).is_err(), "{last}");

            let limited = see("status=429,retry-after=2").await;
            assert_eq!((limited.status, limited.header("retry-after").as_deref()), (429, Some("2")));
            let kind = if path == CHAT { "requests" } else { "rate_limit_error" };
            assert_eq!(limited.json()["error"]["type"], kind);
            let failed = see("status=500").await;
            let kind = if path == CHAT { "server_error" } else { "api_error" };
            assert_eq!((failed.status, &failed.json()["error"]["type"]), (500, &kind.into()));
            let page = see("html").await;
            assert_eq!((page.status, page.header("content-type").as_deref()), (502, Some("text/html; charset=utf-8")));
            assert!(page.text().starts_with("<!DOCTYPE html>"));
            let object = see("error-object").await;
            assert_eq!((object.status, object.json()["error"].is_object()), (200, true));

            let event = see("error-event").await;
            let last = if stream { events(&event.body).pop().unwrap() } else { event.text() };
            assert!(serde_json::from_str::<serde_json::Value>(&last).unwrap()["error"].is_object());

            let begun = Instant::now();
            assert_eq!(see("delay=6ms").await.body.len(), length);
            assert!(begun.elapsed().as_millis() >= 6);
            let begun = Instant::now();
            assert_eq!(see("pace=1ms").await.body.len(), length);
            assert!(!stream || begun.elapsed().as_millis() >= 8);
        }
    }
}

#[tokio::test]
async fn a_script_and_the_options_ask_for_faults_too() {
    let script = "user matches \"slow\":\nmodel: x\nand: served with status 429 retry after 3 s\n\nuser matches \"cut\":\nmodel: x\nand: served with cut\n\n\
        user matches \"limit\":\nmodel: fails rate limit, again after 1500 ms: slow down\n\n\
        user matches \"window\":\nmodel: fails context length: too long\n\nuser matches \"net\":\nmodel: fails network\n\n\
        user matches \"busy\":\nmodel: fails overloaded, for good\n\nuser matches \"short\":\nmodel: fails cut short\n";
    let model = server(script).await;
    let say = async |path: &str, word: &str| {
        let messages = serde_json::json!([{"role": "user", "content": word}]);
        post(model.address(), path, &request(path, messages, true)).await
    };
    for path in [CHAT, MESSAGES] {
        let slow = say(path, "slow").await;
        assert_eq!((slow.status, slow.header("retry-after").as_deref()), (429, Some("3")));
        assert_eq!(say(path, "cut").await.end, End::Broken);
        let limit = say(path, "limit").await;
        assert_eq!((limit.status, limit.header("retry-after-ms").as_deref()), (429, Some("1500")));
        assert_eq!(limit.json()["error"]["message"], "slow down");
        assert!(say(path, "window").await.text().contains("too long"));
        assert_eq!(say(path, "net").await.status, 0);
        let fails = say(path, "busy").await;
        // A failure that is usually tried again says that it should not be.
        assert_eq!((fails.status, fails.header("x-should-retry").as_deref()), (503, Some("false")));
        assert_eq!(say(path, "short").await.end, End::Broken);
        let nothing = say(path, "else").await;
        assert_eq!(nothing.status, 400);
        assert!(nothing.text().contains("the script has no answer to this text"));
    }
}

async fn with_faults(words: &str) -> gesta_fakes::model::ModelServer {
    let options = Options { faults: words.parse().unwrap(), ..Options::default() };
    serve(Script::parse(SCRIPT).unwrap(), options).await.unwrap()
}

#[tokio::test]
async fn a_fault_that_is_shown_once_lets_the_next_try_through() {
    let model = with_faults("status=500, once").await;
    let statuses = async |word: &str| {
        let body = request(CHAT, serde_json::json!([{"role": "user", "content": word}]), false);
        let first = post(model.address(), CHAT, &body).await.status;
        (first, post(model.address(), CHAT, &body).await.status)
    };
    assert_eq!(statuses("a").await, (500, 200));
    assert_eq!(statuses("b").await, (500, 200));
}

#[tokio::test]
async fn dice_fall_alike_for_one_seed() {
    let mut rounds = Vec::new();
    for words in ["drop=40%, seed=3", "drop=40%, seed=3", "chance=40%, status=500, seed=3"] {
        let model = with_faults(words).await;
        let mut statuses = Vec::new();
        for _ in 0..30 {
            statuses.push(post(model.address(), CHAT, &request(CHAT, hello(), false)).await.status);
        }
        rounds.push(statuses);
    }
    assert_eq!(rounds[0], rounds[1]);
    assert!(rounds[0].contains(&0) && rounds[0].contains(&200));
    assert!(rounds[2].contains(&500) && rounds[2].contains(&200));
}

#[tokio::test]
async fn no_fault_hides_a_refusal_and_an_unknown_fault_is_refused() {
    let model = with_faults("drop").await;
    let got = post(model.address(), CHAT, &request(CHAT, serde_json::json!([]), false)).await;
    assert_eq!(got.status, 400);
    let got = post_with(model.address(), CHAT, "x-fake-fault: explode\r\n", &request(CHAT, hello(), false)).await;
    assert!(got.text().contains("`explode` is no fault; use delay=20ms"), "{}", got.text());
}

#[tokio::test]
async fn a_server_stops_when_its_handle_goes_also_while_it_stalls() {
    let model = with_faults("stall").await;
    let address = model.address();
    let body = request(CHAT, hello(), true);
    let stalled = post(address, CHAT, &body);
    let ended = async {
        while model.journal().count() == 0 {
            tokio::task::yield_now().await;
        }
        model.shut_down().await;
    };
    let (got, ()) = tokio::join!(stalled, ended);
    assert_eq!(got.status, 200);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
