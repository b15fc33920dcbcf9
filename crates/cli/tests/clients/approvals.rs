//! Approvals in Slack, as the guide has them: the real server, the example, and a fake Slack.

use std::net::TcpListener;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gesta_fakes::Seen;
use gesta_fakes::tool::{Canned, ToolServer};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::process::{Process, curl, root};

const SLACK_KEY: &str = "the signing secret of Slack";
const GESTA_KEY: &[u8] = b"the secret of the webhook, long enough";

/// The desk, the example beside it, and a fake Slack.
struct World {
    runtime: Runtime,
    slack: ToolServer,
    server: String,
    bridge: String,
    _processes: [Process; 2],
    _folder: TempDir,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let slack = runtime.block_on(ToolServer::start()).unwrap();
        for path in ["/hook", "/response"] {
            slack.set(path, Canned::text(200, "ok"));
        }
        let folder = TempDir::new().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = format!("http://127.0.0.1:{port}");
        let secret = format!("whsec_{}", STANDARD.encode(GESTA_KEY));
        let mut bridge = Command::new("python3");
        bridge.arg(root().join("examples/clients/approvals.py")).arg("0").env("GESTA_SERVER", &server);
        bridge.env("GESTA_WEBHOOK_SECRET", &secret).env_remove("GESTA_API_KEY");
        bridge.env("SLACK_SIGNING_SECRET", SLACK_KEY).env("SLACK_WEBHOOK_URL", slack.url("/hook"));
        let (bridging, bridge) = Process::start(&mut bridge);
        let mut serve = Command::new(env!("CARGO_BIN_EXE_gesta"));
        serve.args(["serve", "examples/desk", "--listen", &format!("127.0.0.1:{port}"), "--data"]).arg(folder.path());
        serve.args(["--webhook", &format!("{bridge}/gesta")]).current_dir(root());
        serve.env_remove("DATABASE_URL").env("GESTA_WEBHOOK_SECRET", secret);
        let (serving, _) = Process::start(&mut serve);
        Self { runtime, slack, server, bridge, _processes: [serving, bridging], _folder: folder }
    }

    /// What Slack was sent, as soon as so many messages have come.
    fn told(&self, messages: u64) -> Seen {
        self.runtime.block_on(self.slack.arrived(messages));
        self.slack.calls().remove(usize::try_from(messages).unwrap() - 1)
    }

    /// Sends the example what Slack sends when somebody presses a button. The status.
    fn press(&self, who: &str, button: &Value, key: &str, age_s: u64) -> u16 {
        let press = json!({ "user": { "username": who }, "trigger_id": who, "actions": [button],
            "response_url": self.slack.url("/response") });
        let encoded: String = press.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
        let body = format!("payload={encoded}");
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - age_s;
        let mac = sign(key.as_bytes(), format!("v0:{at}:{body}").as_bytes());
        let hex: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        let headers = [format!("x-slack-request-timestamp: {at}"), format!("x-slack-signature: v0={hex}")];
        self.post("/slack", &headers, &body)
    }

    fn post(&self, path: &str, headers: &[String], body: &str) -> u16 {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--data-raw", body]);
        for header in headers {
            curl.args(["--header", header]);
        }
        let output = curl.arg(format!("{}{path}", self.bridge)).output().unwrap();
        String::from_utf8(output.stdout).unwrap().parse().unwrap()
    }

    fn run(&self) -> Value {
        let runs = curl(&[&format!("{}/v1/runs", self.server)]);
        assert_eq!(runs["items"].as_array().unwrap().len(), 1);
        curl(&[&format!("{}/v1/runs/{}", self.server, runs["items"][0]["run"].as_str().unwrap())])
    }
}

fn sign(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

#[test]
fn in_slack_the_first_press_counts_and_the_second_is_told_so() {
    let lines = std::fs::read_to_string(root().join("examples/clients/approvals.py")).unwrap().lines().count();
    assert!(lines < 80, "{lines}");
    let world = World::new();
    let begin = ["--json", r#"{"input":"Refund order 7, 250 dollars"}"#];
    let parked = curl(&[&begin[..], &[&format!("{}/v1/agents/desk/runs", world.server)]].concat());
    assert_eq!(parked["status"], "parked");

    let message = world.told(1).json();
    let text = message["blocks"][0]["text"]["text"].as_str().unwrap();
    assert!(text.contains(r#"desk wants to run refund_order with {"order": "7", "amount": 250}"#), "{text}");
    let run = parked["report"]["run_id"].as_str().unwrap();
    assert!(text.contains(&format!("<{}/console/holds/{run}/r1|", world.server)), "{text}");
    let buttons = message["blocks"][1]["elements"].as_array().unwrap();
    let (approve, deny) = (&buttons[0], &buttons[1]);

    // What is not signed by Slack, or was signed long ago, answers nothing.
    assert_eq!(world.press("mallory", approve, "another secret", 0), 401);
    assert_eq!(world.press("mallory", approve, SLACK_KEY, 3_600), 401);
    assert_eq!(world.run()["status"], "parked");

    assert_eq!(world.press("ann", approve, SLACK_KEY, 0), 200);
    assert_eq!(world.told(2).json()["text"], "ann: approve");
    let ended = world.run();
    assert_eq!((&ended["status"], &ended["outcome"]), (&json!("ended"), &json!("completed")));
    let refunds: Vec<_> =
        ended["tool_calls"].as_array().unwrap().iter().filter(|it| it["name"] == "refund_order").collect();
    assert_eq!((refunds.len(), &refunds[0]["result"]["dollars"]), (1, &json!(250)), "{ended}");

    assert_eq!(world.press("bob", deny, SLACK_KEY, 0), 200);
    let late = world.told(3).json();
    assert!(late["text"].as_str().unwrap().starts_with("bob: deny, but "), "{late}");
}

#[test]
fn what_gesta_did_not_sign_is_not_shown_in_slack() {
    let world = World::new();
    let body = r#"{"type":"hold.opened","data":{}}"#;
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    for (key, at) in [(&b"another secret, also long enough"[..], at), (GESTA_KEY, at - 3_600)] {
        let mac = STANDARD.encode(sign(key, format!("msg_1.{at}.{body}").as_bytes()));
        let headers = ["webhook-id: msg_1".to_owned(), format!("webhook-timestamp: {at}")];
        let headers = [&headers[..], &[format!("webhook-signature: v1,{mac}")]].concat();
        assert_eq!(world.post("/gesta", &headers, body), 401);
    }
    assert_eq!(world.post("/gesta", &[], body), 401);
    assert!(world.slack.calls().is_empty());
}
