//! The coach against a model service that others wrote (npm's aimock), in both protocols, plain and streamed, and with
//! drops, broken connections and malformed replies switched on. Needs `GESTA_AIMOCK`: `cargo xtask test --only others`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A service in a process of its own; it ends with the test.
struct Mock {
    child: Child,
    port: u16,
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What it answers: an offer, then, once it is told to act, the call, then a true sentence.
const FIXTURES: &str = r#"{"fixtures": [
  {"match": {"hasToolResult": true}, "response": {"content": "I have swapped squats for lunges."}},
  {"match": {"userMessage": "Call update_plan now"},
   "response": {"toolCalls": [{"name": "update_plan", "arguments": {"from": "squats", "to": "lunges"}}]}},
  {"match": {"userMessage": "Swap squats for lunges"}, "response": {"content": "Want me to swap that?"}}
]}"#;

fn mock(home: &Path, faults: &[&str]) -> Option<Mock> {
    let command = xtask::outside("GESTA_AIMOCK", "others")?;
    let fixtures = home.join("fixtures.json");
    std::fs::write(&fixtures, FIXTURES).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut start = Command::new(command);
    start.args(["--port", &port.to_string(), "--log-level", "silent", "--fixtures"]).arg(&fixtures).args(faults);
    let child = start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Mock { child, port };
    let until = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "aimock does not listen");
        std::thread::yield_now();
    }
    Some(started)
}

/// The coach's folder, with the model's answers streamed or whole, and short waits between tries.
fn coach(home: &Path, stream: bool) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/coach");
    let folder = home.join(if stream { "streamed" } else { "plain" });
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(from.join("prompt.md"), folder.join("prompt.md")).unwrap();
    std::fs::copy(from.join("model.script"), folder.join("model.script")).unwrap();
    let text = std::fs::read_to_string(from.join("agent.toml")).unwrap();
    let text = text.replace("model = \"script\"", &format!("model = \"script\"\nstream = {stream}"));
    std::fs::write(folder.join("agent.toml"), text).unwrap();
    folder
}

fn run(home: &Path, mock: &Mock, folder: &Path, protocol: &str) -> Value {
    let url = format!("http://127.0.0.1:{}", mock.port);
    let out = Command::new(env!("CARGO_BIN_EXE_gesta"))
        .args(["run", "--json", "--model", &format!("{protocol}:any"), "--data"])
        .arg(home.join("data"))
        .arg(folder)
        .arg("Swap squats for lunges")
        .env("OPENAI_BASE_URL", format!("{url}/v1"))
        .env("OPENAI_API_KEY", "a-key-for-tests")
        .env("ANTHROPIC_BASE_URL", &url)
        .env("ANTHROPIC_API_KEY", "a-key-for-tests")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&out.stderr);
    assert!(!told.contains("panicked"), "{told}");
    serde_json::from_slice(&out.stdout).unwrap_or_else(|why| panic!("{why}: {told}"))
}

#[test]
fn the_coach_is_prompted_once_and_acts_in_both_protocols() {
    let home = tempfile::tempdir().unwrap();
    let Some(mock) = mock(home.path(), &[]) else { return };
    for stream in [false, true] {
        let folder = coach(home.path(), stream);
        for protocol in ["openai", "anthropic"] {
            let result = run(home.path(), &mock, &folder, protocol);
            assert_eq!(result["text"], "I have swapped squats for lunges.", "{protocol}, streamed {stream}: {result}");
            assert_eq!((&result["outcome"], &result["trips"]), (&"completed".into(), &3.into()), "{result}");
            let calls = result["tool_calls"].as_array().unwrap();
            assert_eq!((calls.len(), &calls[0]["status"]), (1, &"completed".into()));
        }
    }
}

#[test]
fn drops_and_malformed_replies_end_in_an_outcome_and_never_in_a_second_call() {
    let home = tempfile::tempdir().unwrap();
    let chaos = ["--chaos-drop", "0.2", "--chaos-malformed", "0.1", "--chaos-disconnect", "0.1"];
    let Some(mock) = mock(home.path(), &chaos) else { return };
    for stream in [false, true] {
        let folder = coach(home.path(), stream);
        for protocol in ["openai", "anthropic", "openai", "anthropic"] {
            let result = run(home.path(), &mock, &folder, protocol);
            let outcome = result["outcome"].as_str().unwrap();
            assert!(matches!(outcome, "completed" | "model_failed"), "{protocol}, streamed {stream}: {result}");
            let calls = result["tool_calls"].as_array().unwrap();
            assert!(calls.len() <= 1, "{result}");
            assert!(outcome == "model_failed" || calls.len() == 1, "{result}");
        }
    }
}
