//! The clients among the examples, in three languages, against the real program: with tools of their own, and over two
//! kills of the server, one while the client runs a tool and one in the middle of a streamed answer. `GESTA_NODE` names a
//! node that takes TypeScript as it stands; without it the client in that language is not run, and says so
//! (`cargo xtask test` sets it).

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

mod approvals;
mod process;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gesta_fakes::tool::{Canned, ToolServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use process::{Process, root};

/// A server for an agent, on this port or on a free one.
fn serve(agent: &Path, data: &Path, port: &str, model: &str) -> (Process, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gesta"));
    command.arg("serve").arg(agent).args(["--listen", &format!("127.0.0.1:{port}"), "--data"]).arg(data);
    command.env_remove("DATABASE_URL").env("OPENAI_BASE_URL", format!("{model}/v1")).env("OPENAI_API_KEY", "a-key");
    Process::start(&mut command)
}

/// What the model says: it pays back by the desk's tool, and has the client's tools run.
const SCRIPT: &str = r#"user matches /call me back/i:
model: calls r1 refund_order {"order":"8","amount":40}
model: calls s1 free_slots {}
model: calls b1 book_call {"slot":"tue 10:00"}
model: I have paid back 40 dollars for order 8, and a colleague calls you on Tuesday at 10, so please keep the telephone near.
"#;
const REPLY: &str = "I have paid back 40 dollars for order 8, and a colleague calls you on Tuesday at 10, so please keep the \
    telephone near.\n";

/// The desk with a model behind HTTP and a refund that somebody else's server makes.
fn desk(folder: &Path, refund: &str) -> PathBuf {
    let (from, to) = (root().join("examples/desk"), folder.join("desk"));
    std::fs::create_dir(&to).unwrap();
    std::fs::copy(from.join("prompt.md"), to.join("prompt.md")).unwrap();
    let text = std::fs::read_to_string(from.join("agent.toml")).unwrap();
    let (before, after) = text.split_once("name = \"refund_order\"").unwrap();
    let (spec, _) = after.split_once("[[tools.answers]]").unwrap();
    let host = refund.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let network = format!("[network]\nallow = [\"{host}\"]\n");
    let text = format!("{before}name = \"refund_order\"\nurl = \"{refund}\"{spec}\n{network}");
    std::fs::write(to.join("agent.toml"), text.replace("model = \"script\"", "model = \"openai:any\"")).unwrap();
    to
}

/// A model whose answers come word by word, slowly enough to be cut off.
fn slow_model(folder: &Path) -> (Process, String) {
    let script = folder.join("model.script");
    std::fs::write(&script, SCRIPT).unwrap();
    let mut model = Command::new(env!("CARGO_BIN_EXE_gesta"));
    Process::start(model.arg("fake-model").arg(script).args(["--faults", "pace=40ms"]))
}

/// The client asks a tool of its own what it cannot answer yet, because the file is a pipe: meanwhile the server is
/// killed and started again. The second time it is killed when the client has shown the beginning of the answer.
fn runs_over_restarts(client: &mut Command) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let tools = runtime.block_on(ToolServer::start()).unwrap();
    tools.set("/refund", Canned::json(json!({ "ok": true, "order": "8", "dollars": 40 })));
    let folder = TempDir::new().unwrap();
    let (data, slots) = (folder.path().join("data"), folder.path().join("slots.json"));
    assert!(Command::new("mkfifo").arg(&slots).status().unwrap().success());
    let (_model, model) = slow_model(folder.path());
    let agent = desk(folder.path(), &tools.url("/refund"));
    let (server, url) = serve(&agent, &data, "0", &model);
    let port = url.rsplit(':').next().unwrap();
    client.arg("Pay back order 8, 40 dollars, and please call me back").current_dir(folder.path());
    client.env("GESTA_SERVER", &url).env_remove("GESTA_API_KEY").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = Process(client.spawn().unwrap());
    let mut pipe = opened_by(&mut client, &slots);
    drop(server);
    let (server, _) = serve(&agent, &data, port, &model);
    pipe.write_all(b"[\"tue 10:00\"]").unwrap();
    drop(pipe);
    let (mut out, mut said) = (client.0.stdout.take().unwrap(), vec![0; 10]);
    out.read_exact(&mut said).unwrap();
    drop(server);
    let (_server, _) = serve(&agent, &data, port, &model);
    out.read_to_end(&mut said).unwrap();
    let mut why = String::new();
    client.0.stderr.take().unwrap().read_to_string(&mut why).unwrap();
    assert!(client.0.wait().unwrap().success(), "{why}");
    assert_eq!(String::from_utf8_lossy(&said), REPLY, "{why}");
    assert_eq!(tools.calls().len(), 1, "it was paid back once");
    there_is_one_run(&url);
}

/// The other end of a pipe, as soon as the client has opened its own: then it has its first call.
fn opened_by(client: &mut Process, pipe: &Path) -> std::fs::File {
    use rustix::fs::{Mode, OFlags};
    loop {
        match rustix::fs::open(pipe, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
            Ok(pipe) => return pipe.into(),
            Err(why) => assert_eq!(why, rustix::io::Errno::NXIO),
        }
        if let Some(ended) = client.0.try_wait().unwrap() {
            let mut why = String::new();
            client.0.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            panic!("the client ended without a call, {ended}: {why}");
        }
        std::thread::yield_now();
    }
}

/// One run, in which each call was run once.
fn there_is_one_run(url: &str) {
    let asked = |words: &[&str]| {
        let asked = Command::new(env!("CARGO_BIN_EXE_gesta")).args(words).args(["--json", "--server", url]).output();
        let text = String::from_utf8(asked.unwrap().stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let runs = asked(&["runs"]);
    assert_eq!((runs.len(), &runs[0]["outcome"]), (1, &json!("completed")), "{runs:?}");
    let output =
        Command::new("curl").args(["-s", &format!("{url}/v1/runs/{}", runs[0]["run"].as_str().unwrap())]).output();
    let run: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let calls: Vec<_> = run["tool_calls"].as_array().unwrap().iter().map(|it| (&it["name"], &it["status"])).collect();
    let once = ["refund_order", "free_slots", "book_call"].map(|name| (json!(name), json!("completed")));
    assert_eq!(calls, once.each_ref().map(|(name, status)| (name, status)), "{run}");
}

fn is_short(client: &Path) {
    let lines = std::fs::read_to_string(client).unwrap().lines().count();
    assert!(lines < 60, "{} has {lines} lines", client.display());
}

#[test]
fn in_python() {
    let client = root().join("examples/clients/app.py");
    is_short(&client);
    runs_over_restarts(Command::new("python3").arg(client));
}

#[test]
fn in_typescript() {
    let client = root().join("examples/clients/app.ts");
    is_short(&client);
    let Some(node) = xtask::outside("GESTA_NODE", "others") else { return };
    runs_over_restarts(Command::new(node).arg(client));
}

#[test]
fn with_curl() {
    let client = root().join("examples/clients/app.sh");
    is_short(&client);
    let folder = TempDir::new().unwrap();
    let (_server, url) = serve(&root().join("examples/desk"), folder.path(), "0", "http://127.0.0.1:1");
    let ended = Command::new(client).env("GESTA_SERVER", url).env_remove("GESTA_API_KEY").output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("\n200\nA colleague has decided"), "{ended:?}");
}
