//! The clients among the examples, in three languages, against the real program: with tools of their own, and over a
//! restart of the server in the middle. `GESTA_NODE` names a node that takes TypeScript as it stands; without it the
//! client in that language is not run (`cargo xtask test` sets it).

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A server for the desk, on this port or on a free one.
fn serve(data: &Path, port: u16) -> (Child, u16) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gesta"))
        .args(["serve", "examples/desk", "--listen", &format!("127.0.0.1:{port}"), "--data"])
        .arg(data)
        .current_dir(root())
        .env_remove("DATABASE_URL")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim_end().rsplit_once(':').unwrap_or_else(|| panic!("{line}")).1.parse().unwrap();
    (child, port)
}

/// The client asks a tool of its own what it cannot answer yet, because the file is a pipe: meanwhile the server is
/// killed and started again.
fn runs_over_a_restart(client: &mut Command) {
    let folder = TempDir::new().unwrap();
    let (data, slots) = (folder.path().join("data"), folder.path().join("slots.json"));
    assert!(Command::new("mkfifo").arg(&slots).status().unwrap().success());
    let (mut server, port) = serve(&data, 0);
    let client = client
        .arg("Please call me back")
        .current_dir(folder.path())
        .env("GESTA_SERVER", format!("http://127.0.0.1:{port}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Opening a pipe waits until the other side does: the client has its first call.
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&slots).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let (mut server, _) = serve(&data, port);
    pipe.write_all(b"[\"tue 10:00\"]").unwrap();
    drop(pipe);
    let ended = client.wait_with_output().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("calls you on Tuesday at 10."), "{ended:?}");
    let runs =
        Command::new(env!("CARGO_BIN_EXE_gesta")).args(["runs", "--json", "--data"]).arg(&data).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&runs.stdout).lines().count(), 1);
}

fn is_short(client: &Path) {
    let lines = std::fs::read_to_string(client).unwrap().lines().count();
    assert!(lines < 60, "{} has {lines} lines", client.display());
}

#[test]
fn in_python() {
    let client = root().join("examples/clients/app.py");
    is_short(&client);
    runs_over_a_restart(Command::new("python3").arg(client));
}

#[test]
fn in_typescript() {
    let client = root().join("examples/clients/app.ts");
    is_short(&client);
    if let Some(node) = std::env::var_os("GESTA_NODE") {
        runs_over_a_restart(Command::new(node).arg(client));
    }
}

#[test]
fn with_curl() {
    let client = root().join("examples/clients/app.sh");
    is_short(&client);
    let folder = TempDir::new().unwrap();
    let (mut server, port) = serve(folder.path(), 0);
    let ended = Command::new(client).env("GESTA_SERVER", format!("http://127.0.0.1:{port}")).output().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("\n200\nA colleague has decided"), "{ended:?}");
}
