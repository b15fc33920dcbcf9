//! Models and the transport against a server on loopback that cuts, splits, stalls, refuses and lies.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use gesta_model::{
    HttpModel, Model, Piece, Protocol, Provider, ProviderSpec, Request, Retries, Timeouts, Transport, TransportSpec,
    Wire, WireRecord, whole,
};
use gesta_run::json::Object;
use gesta_run::message::Message;
use gesta_run::reply::{Fault, FaultKind, Reply};
use gesta_run::tool::ToolList;
use support::server::{Server, Step, Then, answer, chunked};
use support::{request, said};

const PROTOCOLS: [Protocol; 2] = [Protocol::OpenAi, Protocol::Anthropic];
const QUICK: Timeouts = Timeouts { connect_ms: 2_000, first_byte_ms: 2_000, idle_ms: 2_000, whole_ms: 10_000 };
const ONCE: Retries = Retries { attempts_max: 1, base_ms: 1, wait_ms_max: 20 };
const THRICE: Retries = Retries { attempts_max: 3, base_ms: 1, wait_ms_max: 20 };

fn fixture(protocol: Protocol, name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    std::fs::read(format!("{folder}/{}/{name}", protocol.as_str())).unwrap()
}

fn model(protocol: Protocol, url: &str, timeouts: Timeouts, retries: Retries) -> HttpModel {
    let mut spec = ProviderSpec::new(protocol);
    spec.base_url = Some(url.to_owned());
    spec.api_key_env = Some("KEY".to_owned());
    let provider = Provider::new(protocol.as_str(), &spec, &|_| Some("sk-secret-1".to_owned())).unwrap();
    HttpModel::new(provider, Transport::new(TransportSpec::default()), timeouts, retries)
}

async fn ask(model: &HttpModel, stream: bool) -> Result<Reply, Fault> {
    whole(answer_of(model, stream)).await
}

fn answer_of(model: &HttpModel, stream: bool) -> gesta_model::Answer {
    let messages: [Message; 1] = [said("Move my visit, dear assistant")];
    let (tools, options) = (ToolList::default(), Object::new());
    model.ask(&Request { stream, ..request(&messages, &tools, &options) })
}

fn text_step(protocol: Protocol) -> Step {
    let body = fixture(protocol, "text.sse");
    Step(chunked(&body.chunks(40).collect::<Vec<_>>()), Then::Keep)
}

fn json(body: &[u8]) -> Step {
    Step(vec![answer(200, "content-type: application/json\r\n", body)], Then::Keep)
}

#[tokio::test]
async fn answers_come_over_one_kept_connection() {
    for protocol in PROTOCOLS {
        let plain = json(&fixture(protocol, "text.json"));
        let steps = vec![text_step(protocol), plain.clone(), text_step(protocol), plain];
        let server = Server::start(steps).await;
        let model = model(protocol, &server.url(), QUICK, ONCE);
        for stream in [true, false, true, false] {
            let reply = ask(&model, stream).await.unwrap();
            assert!(!reply.joined_text().is_empty());
        }
        let seen = server.seen.lock().unwrap();
        assert_eq!((seen.connections, seen.requests.len()), (1, 4));
        let (head, body) = &seen.requests[0];
        assert!(head.contains(&format!("host: {}", server.address)), "{head}");
        assert!(head.to_lowercase().contains("sk-secret-1"));
        assert!(serde_json::from_slice::<serde_json::Value>(body).unwrap()["stream"].as_bool().unwrap());
    }
}

#[tokio::test]
async fn deltas_arrive_before_the_answer_has_ended() {
    let body = fixture(Protocol::OpenAi, "text.sse");
    let mut pieces = chunked(&[&body[..body.len() / 2]]);
    pieces.pop();
    let server = Server::start(vec![Step(pieces, Then::Stall)]).await;
    let model = model(Protocol::OpenAi, &server.url(), QUICK, ONCE);
    let mut answer = answer_of(&model, true);
    assert!(matches!(answer.next().await, Some(Ok(Piece::Delta(_)))));
    // Dropping it closes the connection, which ends the server's stall.
    drop(answer);
    while server.seen.lock().unwrap().closed == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_connection_that_breaks_anywhere_is_a_fault_and_never_a_shorter_answer() {
    for protocol in PROTOCOLS {
        let whole_stream = chunked(&fixture(protocol, "text.sse").chunks(64).collect::<Vec<_>>()).concat();
        let whole_plain = answer(200, "content-type: application/json\r\n", &fixture(protocol, "text.json"));
        for (bytes, stream) in [(whole_stream, true), (whole_plain, false)] {
            let cuts: Vec<usize> = (0..bytes.len()).step_by(5).collect();
            let steps = cuts.iter().map(|at| Step(vec![bytes[..*at].to_vec()], Then::Close)).collect();
            let server = Server::start(steps).await;
            let model = model(protocol, &server.url(), QUICK, ONCE);
            let mut full = 0;
            for at in cuts {
                match ask(&model, stream).await {
                    // The end marker was there, and only the last bytes of the framing were not.
                    Ok(_) if stream && at + 10 > bytes.len() => full += 1,
                    Ok(reply) => panic!("{protocol:?} cut at {at} of {}: {reply:?}", bytes.len()),
                    Err(fault) => {
                        assert!(fault.retryable, "{fault:?}");
                        assert!(matches!(fault.kind, FaultKind::Network | FaultKind::CutShort), "{fault:?}");
                    }
                }
            }
            assert!(full <= 2);
        }
    }
}

#[tokio::test]
async fn a_server_that_stalls_runs_into_its_limit() {
    let body = fixture(Protocol::OpenAi, "text.sse");
    let mut half = chunked(&[&body[..body.len() / 2]]);
    half.pop();
    let cases = [
        (vec![], Timeouts { first_byte_ms: 20, ..QUICK }, "no answer came in time"),
        (half.clone(), Timeouts { idle_ms: 20, ..QUICK }, "the answer stalled"),
        (
            half,
            Timeouts { whole_ms: 50, ..QUICK },
            "the answer took too long as a whole; raise the limit for long answers",
        ),
    ];
    for (pieces, timeouts, message) in cases {
        let server = Server::start(vec![Step(pieces, Then::Stall)]).await;
        let fault = ask(&model(Protocol::OpenAi, &server.url(), timeouts, ONCE), true).await.unwrap_err();
        assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::Timeout, message));
    }
}

#[tokio::test]
async fn a_request_is_tried_again_while_nothing_was_handed_out() {
    let error = |status, headers: &str| Step(vec![answer(status, headers, b"{}")], Then::Close);
    let short = Step(chunked(&[b": hello\n\n"]), Then::Keep);
    for first in [error(500, ""), error(429, "retry-after-ms: 5\r\n"), error(529, ""), short, json(b"<html>")] {
        let server = Server::start(vec![first, text_step(Protocol::OpenAi)]).await;
        let model = model(Protocol::OpenAi, &server.url(), QUICK, THRICE);
        let mut pieces: Vec<Piece> = answer_of(&model, true).map(Result::unwrap).collect().await;
        assert!(matches!(pieces.pop(), Some(Piece::Finished(reply)) if !reply.joined_text().is_empty()));
        let Piece::Retrying(told) = &pieces[0] else { panic!("{pieces:?}") };
        assert_eq!((told.attempt, told.attempts_max), (2, 3));
        assert!(!told.because.is_empty() && !pieces[1..].iter().any(|it| matches!(it, Piece::Retrying(_))));
        assert_eq!(server.requests(), 2);
    }
    let cases = [
        (error(302, "location: https://api.example/v1\r\n"), 1, FaultKind::Config, "https://api.example/v1 (HTTP 302)"),
        (error(400, ""), 1, FaultKind::BadRequest, "(HTTP 400"),
        (error(401, ""), 1, FaultKind::Auth, "; look at the variable KEY, which holds it"),
        (error(429, "retry-after: 86400\r\n"), 1, FaultKind::RateLimit, "; it asks to wait 1 d"),
        (error(500, "x-should-retry: false\r\n"), 1, FaultKind::Overloaded, "(HTTP 500"),
        (error(500, ""), 3, FaultKind::Overloaded, "; it was tried 3 times"),
    ];
    for (step, requests, kind, words) in cases {
        let server = Server::start(vec![step.clone(), step.clone(), step]).await;
        let fault = ask(&model(Protocol::OpenAi, &server.url(), QUICK, THRICE), true).await.unwrap_err();
        assert_eq!((fault.kind, server.requests()), (kind, requests), "{fault:?}");
        assert!(fault.message.contains(words), "{fault:?}");
    }
}

#[tokio::test]
async fn nothing_is_tried_again_after_the_first_delta() {
    for protocol in PROTOCOLS {
        let body = fixture(protocol, "text.sse");
        let mut half = chunked(&[&body[..body.len() * 2 / 3]]);
        half.pop();
        let server = Server::start(vec![Step(half, Then::Close), text_step(protocol)]).await;
        let fault = ask(&model(protocol, &server.url(), QUICK, THRICE), true).await.unwrap_err();
        assert_eq!((fault.kind, server.requests()), (FaultKind::CutShort, 1));
    }
}

#[tokio::test]
async fn what_is_no_answer_is_a_fault() {
    let page = b"<html><body>Sign in</body></html>";
    let as_html = Step(vec![answer(200, "content-type: text/html\r\n", page)], Then::Close);
    let bad_gateway = Step(vec![answer(502, "content-type: text/html\r\n", page)], Then::Close);
    let redirect = Step(vec![answer(302, "location: http://127.0.0.1:1/\r\n", b"")], Then::Close);
    let no_http = Step(vec![b"SSH-2.0-x\r\n\r\n".to_vec()], Then::Close);
    let cases = [
        (as_html, FaultKind::Malformed),
        (bad_gateway, FaultKind::Overloaded),
        (redirect, FaultKind::Config),
        (no_http, FaultKind::Network),
        (json(b""), FaultKind::Malformed),
        (json(br#"{"error":{"code":429,"message":"slow"}}"#), FaultKind::RateLimit),
        (json(br#"{"error":{"type":"authentication_error","message":"sk-secret-1"}}"#), FaultKind::Auth),
        (json(br#"{"error":{"message":"sk-secret-1 says: Move my visit, dear assistant"}}"#), FaultKind::Overloaded),
    ];
    for (step, kind) in cases {
        for protocol in PROTOCOLS {
            for stream in [true, false] {
                let server = Server::start(vec![step.clone()]).await;
                let fault = ask(&model(protocol, &server.url(), QUICK, ONCE), stream).await.unwrap_err();
                assert_eq!(fault.kind, kind, "{fault:?}");
                assert!(!fault.message.contains("secret") && !fault.message.contains("dear"), "{fault:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_came_in_place_of_an_answer_is_named() {
    let of = |headers: &str, body: &[u8]| Step(vec![answer(200, headers, body)], Then::Close);
    let secret = "content-type: text/plain\r\n";
    let cases = [
        (of("content-type: text/event-stream\r\ncontent-encoding: gzip\r\n", b"\x1f\x8b\x08"), "encoded as `gzip`"),
        (of("content-type: application/json\r\ncontent-encoding: br\r\n", b"{}"), "encoded as `br`"),
        (
            of("content-type: text/plain\r\n", b"upstream gone\n"),
            "of type `text/plain` that begins with `upstream gone`",
        ),
        (of("", b"\x1f\x8b\x08\x00"), "without a content type that begins with"),
        (of("content-type: text/event-stream\r\n", b"\x1f\x8b\x08\x00"), "no stream of events"),
        (of("content-type: text/plain\r\n", b""), "it is empty, of type `text/plain`"),
        (of(secret, b"You said: Move my visit, dear assistant"), "begins with `You said: \u{2026}`"),
    ];
    for (step, words) in cases {
        for protocol in PROTOCOLS {
            let server = Server::start(vec![step.clone()]).await;
            let fault = ask(&model(protocol, &server.url(), QUICK, ONCE), true).await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Malformed, "{fault:?}");
            assert!(fault.message.contains(words), "{fault:?}");
        }
    }
}

#[tokio::test]
async fn a_plain_answer_to_a_streaming_request_is_read_and_the_other_way_round() {
    for protocol in PROTOCOLS {
        let server = Server::start(vec![json(&fixture(protocol, "text.json")), text_step(protocol)]).await;
        let model = model(protocol, &server.url(), QUICK, ONCE);
        assert_eq!(ask(&model, true).await.unwrap().joined_text(), "Hello");
        assert!(ask(&model, false).await.unwrap().joined_text().contains('😀'));
    }
}

#[tokio::test]
async fn no_server_is_a_fault_of_the_network() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let fault = ask(&model(Protocol::OpenAi, &url, QUICK, ONCE), true).await.unwrap_err();
    assert_eq!((fault.kind, fault.retryable), (FaultKind::Network, true));
    assert!(fault.message.contains("127.0.0.1"), "{}", fault.message);
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_is_replaced() {
    let Step(pieces, _) = text_step(Protocol::OpenAi);
    let steps = vec![Step(pieces.clone(), Then::Close), Step(pieces, Then::Close)];
    let server = Server::start(steps).await;
    let model = model(Protocol::OpenAi, &server.url(), QUICK, ONCE);
    ask(&model, true).await.unwrap();
    while server.seen.lock().unwrap().closed == 0 {
        tokio::task::yield_now().await;
    }
    ask(&model, true).await.unwrap();
    assert_eq!(server.seen.lock().unwrap().connections, 2);
}

#[tokio::test]
async fn an_event_of_ten_megabytes_is_read() {
    let text = "x".repeat(10_000_000);
    let event =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\n");
    let stream = [event.as_bytes(), b"data: [DONE]\n\n"].concat();
    let server = Server::start(vec![Step(chunked(&stream.chunks(9_000).collect::<Vec<_>>()), Then::Keep)]).await;
    let long = Timeouts { whole_ms: 60_000, ..QUICK };
    let reply = ask(&model(Protocol::OpenAi, &server.url(), long, ONCE), true).await.unwrap();
    assert_eq!(reply.joined_text().len(), 10_000_000);
}

#[tokio::test]
async fn a_history_that_no_provider_takes_is_not_sent() {
    let server = Server::start(vec![]).await;
    let model = model(Protocol::OpenAi, &server.url(), QUICK, THRICE);
    let blocks = vec![gesta_run::message::Block::call("c7", "move", "{}")];
    let messages = [said("x"), Message::Assistant { blocks }, said("y")];
    let (tools, options) = (ToolList::default(), Object::new());
    let fault = whole(model.ask(&request(&messages, &tools, &options))).await.unwrap_err();
    assert_eq!(fault.message, "the history cannot be sent: call `c7` of `move` has no result");
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn the_wire_shows_the_exact_bytes_and_no_key() {
    let records: Arc<Mutex<Vec<WireRecord>>> = Arc::default();
    let shared = records.clone();
    let wire = Wire::new(move |record| shared.lock().unwrap().push(record.clone()));
    let error = Step(vec![answer(500, "", b"{\"error\":\"sk-secret-1 x\"}")], Then::Close);
    let server = Server::start(vec![error, text_step(Protocol::OpenAi)]).await;
    let model = model(Protocol::OpenAi, &server.url(), QUICK, THRICE).captured(wire).unwrap();
    let messages = [said("hello")];
    let (tools, options) = (ToolList::default(), Object::new());
    whole(model.ask(&request(&messages, &tools, &options))).await.unwrap();
    let records = records.lock().unwrap();
    assert_eq!(records.iter().map(|it| (it.attempt, it.status)).collect::<Vec<_>>(), [(0, Some(500)), (1, Some(200))]);
    assert!(records[0].failure.as_ref().is_some_and(|why| !why.contains("secret")), "{:?}", records[0].failure);
    assert_eq!(records[1].response, fixture(Protocol::OpenAi, "text.sse"));
    assert_eq!(records[1].request, server.seen.lock().unwrap().requests[1].1);
    assert!(!format!("{:?}", records[1]).contains("secret"));
}

#[tokio::test]
async fn many_conversations_at_once_have_a_connection_each_and_keep_it() {
    let steps = (0..40).map(|_| text_step(Protocol::Anthropic)).collect();
    let server = Server::start(steps).await;
    let model = model(Protocol::Anthropic, &server.url(), QUICK, ONCE);
    for _ in 0..2 {
        let asking = (0..20).map(|_| ask(&model, true));
        let replies =
            tokio::time::timeout(Duration::from_secs(20), futures_util::future::join_all(asking)).await.unwrap();
        assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    }
    assert!(server.seen.lock().unwrap().connections <= 20);
}
