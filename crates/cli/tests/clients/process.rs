//! Programs that the tests start, and end.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A process that ends with the test, and as a crash would.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// Starts a program that says on one of its outputs, in its first line, where it listens.
    pub(crate) fn start(command: &mut Command) -> (Self, String) {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        let (tell, told) = std::sync::mpsc::channel();
        for output in outputs {
            let tell = tell.clone();
            std::thread::spawn(move || {
                let mut lines = BufReader::new(output).lines().map_while(Result::ok);
                lines.by_ref().find(|line| line.contains("http://")).map(|line| tell.send(line));
                lines.for_each(drop);
            });
        }
        let process = Self(child);
        let line = told.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        (process, line.split_whitespace().find(|it| it.starts_with("http://")).unwrap().to_owned())
    }
}

/// What curl is answered.
pub(crate) fn curl(arguments: &[&str]) -> Value {
    let output = Command::new("curl").arg("--silent").args(arguments).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{arguments:?}: {why}: {output:?}"))
}
