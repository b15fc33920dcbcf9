//! The bare socket and the server of tools.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use gesta_fakes::raw::{Raw, Step};
use gesta_fakes::tool::{Canned, ToolServer};
use serde_json::json;
use support::{End, get, post, post_with};

#[tokio::test]
async fn a_socket_writes_what_it_is_told() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf";
    let split = [
        Step::each_byte(half.as_bytes()),
        vec![Step::Pause(Duration::from_millis(1)), Step::send("rest"), Step::Close],
    ];
    let server = Raw::start(vec![
        vec![Step::answer(418, "x-a: b\r\n", b"tea"), Step::Close],
        split.concat(),
        vec![Step::send(half), Step::Close],
        vec![Step::send(half), Step::Stall],
        vec![Step::Reset],
    ])
    .await
    .unwrap();
    let at = server.address();
    let tea = post(at, "/x", &json!({"a": 1})).await;
    assert_eq!((tea.status, tea.text().as_str(), tea.header("x-a").as_deref()), (418, "tea", Some("b")));
    let whole = get(at, "/", "").await;
    assert_eq!((whole.text().as_str(), whole.end), ("halfrest", End::Whole));
    for (path, end) in [("/", End::Broken), ("/stall", End::Silent)] {
        let got = get(at, path, "").await;
        assert_eq!((got.text().as_str(), got.end), ("half", end));
    }
    for _ in 0..2 {
        // The last answer repeats.
        assert_eq!(get(at, "/", "").await.status, 0);
    }
    let requests = server.requests();
    assert_eq!((requests.len(), server.connections()), (6, 6));
    assert!(requests[0].head.starts_with("POST /x HTTP/1.1"));
    assert_eq!(requests[0].body, br#"{"a":1}"#);
}

#[tokio::test]
async fn a_socket_keeps_a_connection_and_joins_chunks() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = Raw::start(vec![vec![Step::answer(200, "", b"1")]]).await.unwrap();
    let mut stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answers = vec![0; 2 * "HTTP/1.1 200 Told\r\ncontent-length: 1\r\n\r\n1".len()];
    stream.read_exact(&mut answers).await.unwrap();
    let bodies: Vec<Vec<u8>> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!((bodies, server.connections(), server.closed()), (vec![b"abc".to_vec(), Vec::new()], 1, 0));
}

#[tokio::test]
async fn tools_answer_as_they_are_set_and_calls_are_recorded() {
    let tools = ToolServer::start().await.unwrap();
    let at = tools.address();
    tools
        .set("/find", Canned::Each(vec![Canned::status(503, json!({"error": "busy"})), Canned::json(json!({"n": 1}))]));
    tools.set("/echo", Canned::Echo);
    tools.set("/big", Canned::Big(100_000));
    tools.set("/drop", Canned::Drop);
    tools.set("/cut", Canned::Cut);
    tools.set("/hang", Canned::Hang);
    tools.set("/text", Canned::After(Duration::from_millis(1), Box::new(Canned::text(404, "Error: no such order"))));
    let body = json!({"q": "x"});
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(post_with(at, "/find?a=b", "idempotency-key: k1\r\n", &body).await.status);
    }
    assert_eq!(statuses, [503, 200, 200]);
    assert_eq!(post(at, "/echo", &body).await.json(), body);
    assert_eq!(post(at, "/big", &body).await.json().as_str().unwrap().len(), 99_998);
    assert_eq!(post(at, "/drop", &body).await.status, 0);
    assert_eq!(post(at, "/cut", &body).await.end, End::Broken);
    assert_eq!(post(at, "/hang", &body).await.end, End::Silent);
    assert_eq!(post(at, "/text", &body).await.text(), "Error: no such order");
    assert_eq!(post(at, "/none", &body).await.status, 404);
    tools.arrived(10).await;
    let found = tools.calls_of("/find");
    assert_eq!((found.len(), found[0].header("idempotency-key"), found[0].json()), (3, Some("k1"), body));
    tools.shut_down().await;
}
