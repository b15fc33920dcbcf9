//! Tools and backstops over HTTP, against a server on the loopback that answers well, badly and not at all.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use gesta_run::{Answer, RunId};
use gesta_runtime::folder::secret::Template;
use gesta_runtime::folder::{Endpoint, Secret, Secrets};
use gesta_runtime::http::{HttpCaller, Policy};
use gesta_runtime::{Scope, ToolBody, TurnSeen};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server saw of a request.
#[derive(Debug)]
struct Seen {
    path: String,
    head: String,
    body: Value,
}

/// Starts the server; gives its `host:port`.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

async fn serve(mut stream: TcpStream) {
    while let Some(seen) = read(&mut stream).await {
        let whole =
            |status: &str, body: &str| format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let answer = match seen.path.as_str() {
            "/ok" => whole("200 OK", "{\"moved\":true}"),
            "/echo" => whole("200 OK", &json!({ "head": seen.head, "body": seen.body }).to_string()),
            "/text" => whole("201 Created", "moved, {or not}"),
            "/twice" => whole("200 OK", "{\"a\":1,\"a\":2}"),
            "/empty" => whole("204 No Content", ""),
            "/refuses" => whole("404 Not Found", "no such order"),
            "/blank" => whole("400 Bad Request", ""),
            "/tells" => whole("403 Forbidden", "the key s3cret-key-1 is wrong"),
            "/fails" => whole("503 Service Unavailable", "<html>stack trace</html>"),
            "/redirects" => whole("302 Found\r\nLocation: /ok", ""),
            "/big" => whole("200 OK", &"x".repeat(256 * 1024 + 1)),
            "/fits" => whole("200 OK", &"x".repeat(256 * 1024)),
            "/cut" => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_owned(),
            "/prompts" => whole("200 OK", "{\"prompt\":\"Ask about it.\",\"state\":{\"seen\":1}}"),
            "/gzip" => whole("200 OK\r\nContent-Encoding: gzip", "{\"moved\":true}"),
            "/junk" => whole("200 OK\r\nContent-Type: image/png", "{\"moved\":\"\u{1}\u{1}\"}"),
            "/junk_refuses" => whole("404 Not Found", "\u{1}"),
            "/hangs" => std::future::pending().await,
            _ => return,
        };
        // What is no UTF-8 cannot stand in a string.
        let answer: Vec<u8> = answer.into_bytes().into_iter().map(|byte| if byte == 1 { 0xff } else { byte }).collect();
        if stream.write_all(&answer).await.is_err() || seen.path == "/cut" {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |it| it.parse().unwrap());
            if body.len() >= length {
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                return Some(Seen { path, body: serde_json::from_str(body).unwrap_or_default(), head });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn caller(allow: &[&str]) -> HttpCaller {
    let lookup: gesta_model::Lookup = Arc::new(|_| None);
    HttpCaller::new(Policy::new(allow).unwrap(), &lookup)
}

fn scope() -> Scope {
    Scope {
        run: RunId::new("run-1"),
        call: "call-1".into(),
        conversation: Some("talk 7%".into()),
        contact: Some("zoë\r\nGesta-Run: other".into()),
    }
}

fn endpoint(url: &str) -> Endpoint {
    let headers = [("Authorization", "Bearer env:KEY"), ("X-Kind", "visit")];
    let headers = headers.map(|(name, value)| (name.to_owned(), Template::parse(value).unwrap()));
    Endpoint { url: url.to_owned(), headers: BTreeMap::from(headers) }
}

fn secrets() -> Secrets {
    let mut secrets = Secrets::default();
    secrets.insert("KEY", Secret::new("s3cret-key-1".to_owned()));
    secrets
}

async fn call(caller: &HttpCaller, url: &str, time_limit_ms: u64) -> Answer {
    let arguments = json!({"day": "fri"}).as_object().unwrap().clone();
    caller.tool(&endpoint(url), &secrets(), time_limit_ms).call(arguments, scope()).await
}

#[tokio::test]
async fn each_answer_of_a_server_means_what_the_contract_says() {
    let address = server().await;
    let caller = caller(&[&address]);
    let error = |text: &str| Answer::Error(text.to_owned());
    let table = [
        ("/ok", Answer::Ok(json!({"moved": true}))),
        ("/text", Answer::Ok(json!("moved, {or not}"))),
        ("/twice", Answer::Ok(json!("{\"a\":1,\"a\":2}"))),
        ("/empty", Answer::Ok(Value::Null)),
        ("/fits", Answer::Ok(json!("x".repeat(256 * 1024)))),
        ("/refuses", error("no such order")),
        ("/blank", error("the tool's server answered 400 Bad Request")),
        ("/tells", error("the key *** is wrong")),
        ("/fails", error("the tool's server answered 503 Service Unavailable")),
        ("/redirects", error("the tool's server answered with a redirect (302 Found), which is not followed")),
        (
            "/gzip",
            error("the call was made, but its answer is encoded as `gzip`, which was not asked for, and was not read"),
        ),
        (
            "/junk",
            error(
                "the call was made, but its answer is no text in UTF-8 but something of type `image/png`, and was not read",
            ),
        ),
        ("/junk_refuses", error("the tool's server answered 404 Not Found")),
        ("/big", error("the call was made, but its answer is longer than 262144 bytes and was not read")),
        ("/cut", Answer::Unknown),
        ("/closes", Answer::Unknown),
    ];
    for (path, expected) in table {
        let got = call(&caller, &format!("http://{address}{path}"), 10_000).await;
        assert!(got == expected, "{path}: {}", format!("{got:?}").chars().take(300).collect::<String>());
    }
    assert_eq!(call(&caller, &format!("http://{address}/hangs"), 50).await, Answer::TimedOut);
}

#[tokio::test]
async fn the_hosts_headers_are_sent_and_nothing_overrides_them() {
    let address = server().await;
    let Answer::Ok(seen) = call(&caller(&[&address]), &format!("http://{address}/echo"), 10_000).await else {
        panic!("the server answers");
    };
    assert_eq!(seen["body"], json!({"arguments": {"day": "fri"}}));
    let head = seen["head"].as_str().unwrap();
    let lines: Vec<&str> = head.lines().collect();
    for line in [
        "post /echo http/1.1",
        "content-type: application/json",
        "idempotency-key: run-1/call-1",
        "gesta-run: run-1",
        "gesta-conversation: talk%207%25",
        "gesta-contact: zo%c3%ab%0d%0agesta-run:%20other",
        "x-kind: visit",
    ] {
        assert!(lines.contains(&line), "{line} in {head}");
    }
    // Our own secret, sent back by the server, stays out of the result.
    assert!(lines.contains(&"authorization: bearer ***"), "{head}");
}

#[tokio::test]
async fn what_is_not_public_is_not_reached() {
    let address = server().await;
    let port = address.rsplit_once(':').unwrap().1;
    let closed = caller(&[]);
    let table = [
        (format!("http://{address}/ok"), "is not HTTPS"),
        (format!("https://{address}/ok"), "is not public"),
        (format!("https://localhost:{port}/ok"), "is not public"),
        (format!("https://[::ffff:127.0.0.1]:{port}/ok"), "is not public"),
    ];
    for (url, why) in table {
        let Answer::Error(text) = call(&closed, &url, 10_000).await else { panic!("{url} was called") };
        assert!(text.starts_with("the call was not made") && text.contains(why), "{url}: {text}");
    }
    // Nobody listens: nothing was sent, and that much is known.
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let Answer::Error(text) = call(&caller(&[&nobody]), &format!("http://{nobody}/ok"), 10_000).await else {
        panic!("somebody listens");
    };
    assert!(text.starts_with("the call was not made: no connection"), "{text}");
}

fn turn() -> TurnSeen {
    TurnSeen {
        phase: gesta_run::Phase::Before,
        run_id: RunId::new("run-1"),
        conversation: None,
        contact: None,
        input: "my knee hurts".to_owned(),
        reply: None,
        trip_index: 0,
        tool_calls: Vec::new(),
        messages: Vec::new(),
        state: json!({}),
    }
}

#[tokio::test]
async fn a_backstop_tells_its_server_of_the_turn_and_takes_its_prompt() {
    let address = server().await;
    let caller = caller(&[&address]);
    let rule = |path: &str| {
        toml::from_str(&format!("name = \"injury\"\nwhen_input = \"hurt\"\nurl = \"http://{address}{path}\"")).unwrap()
    };
    let run = |path: &str| caller.backstop(&rule(path), &secrets()).unwrap()(turn());
    let ran = run("/prompts").await.unwrap();
    assert_eq!(ran.prompt.as_deref(), Some("Ask about it."));
    assert_eq!(ran.state, Some(json!({"seen": 1})));
    assert_eq!(run("/text").await.unwrap().prompt, None);
    assert_eq!(run("/fails").await.unwrap_err(), "its server answered 503 Service Unavailable");
    assert!(run("/closes").await.is_err());
    assert_eq!(run("/gzip").await.unwrap_err(), "its server's answer is encoded as `gzip`, which was not asked for");
    let junk = "its server's answer is no text in UTF-8 but something of type `image/png`";
    assert_eq!(run("/junk").await.unwrap_err(), junk);
    let without = toml::from_str("name = \"x\"\nwhen_input = \"a\"\nprompt = \"b\"").unwrap();
    assert!(caller.backstop(&without, &secrets()).is_none());
}
