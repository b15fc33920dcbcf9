//! A home for each test: a data folder, agents' folders, and the binary run in it.

#[cfg(unix)]
mod terminal;
mod world;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

#[cfg(unix)]
pub(crate) use terminal::Terminal;
pub(crate) use world::{World, calls, says};

/// Variables that would change what the binary does.
const UNSET: [&str; 14] = [
    "GESTA_SERVER",
    "GESTA_API_KEY",
    "DATABASE_URL",
    "GESTA_DATA",
    "GESTA_LOG",
    "GESTA_MODEL",
    "GESTA_TIMEZONE",
    "GESTA_COST_USD_MAX",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "HTTP_PROXY",
    "http_proxy",
];

/// A place where nothing has happened yet.
pub(crate) struct Home {
    dir: TempDir,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes files below the home.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The binary, ready to be started with these words.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gesta"));
        command.args(words).current_dir(self.dir.path());
        for name in UNSET {
            command.env_remove(name);
        }
        command.env("XDG_DATA_HOME", self.dir.path()).env("HOME", self.dir.path()).env("TZ", "UTC");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn gesta(&self, words: &[&str]) -> Said {
        self.command(words).output().unwrap().into()
    }

    /// Runs the binary to its end, with this on its standard input.
    pub(crate) fn gesta_with(&self, words: &[&str], stdin: impl AsRef<[u8]>) -> Said {
        let mut child = self.start(words);
        let mut pipe = child.stdin.take().unwrap();
        let bytes = stdin.as_ref().to_vec();
        // A child that stops reading early is no fault of the test.
        let writing = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
        let output = child.wait_with_output().unwrap();
        writing.join().unwrap();
        output.into()
    }

    /// Starts the binary with pipes.
    pub(crate) fn start(&self, words: &[&str]) -> Child {
        self.command(words).stdin(Stdio::piped()).spawn().unwrap()
    }

    /// The result object of a run.
    pub(crate) fn result(&self, run: &str) -> Value {
        let said = self.gesta(&["show", run, "--json"]);
        serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{why}: {said:?}"))
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    /// It ended with this code; else the test fails with all that was said.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Its standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.trim_end().lines().count(), 1, "{self:#?}");
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {self:#?}"))
    }

    /// Both outputs hold all of these.
    #[track_caller]
    pub(crate) fn has(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.out.contains(text) || self.err.contains(text), "`{text}` is missing: {self:#?}");
        }
        self
    }
}

/// One of the examples of the repository.
pub(crate) fn example(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    root.to_str().unwrap().to_owned()
}

/// Sends a signal by its name.
#[cfg(unix)]
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}
