//! The command line on a Postgres server: parked on one machine, answered on another. Needs `GESTA_TEST_POSTGRES_BIN`, the
//! programs of a server that the test may kill: `cargo xtask test --only postgres`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use xtask::postgres::Cluster;

const REFUND: &str = "Refund order 7, 250 dollars";
/// As long as keys have to be at least.
const SECRET: &str = "a key for tests!";

/// A machine of its own: nothing is shared with another but the server.
struct Machine {
    home: TempDir,
    server: String,
}

impl Machine {
    fn new(server: &Cluster) -> Self {
        Self { home: TempDir::new().unwrap(), server: server.address() }
    }

    /// Runs a command to its end with these variables; what it said on both outputs, where it ended so.
    fn gesta(&self, words: &[&str], variables: &[(&str, &str)], code: i32) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gesta"));
        command.args(words).current_dir(self.home.path()).stdin(Stdio::null()).env_remove("GESTA_SECRET");
        command.env("HOME", self.home.path()).env("XDG_DATA_HOME", self.home.path()).env("DATABASE_URL", &self.server);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(!said.contains("gesta:gesta"), "the password is shown: {said}");
        said
    }

    fn has_file(&self) -> bool {
        self.home.path().join("gesta/gesta.db").exists()
    }
}

fn example(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    path.canonicalize().unwrap().display().to_string()
}

fn server() -> Option<Cluster> {
    let programs = xtask::outside("GESTA_TEST_POSTGRES_BIN", "postgres")?;
    Some(Cluster::start(Path::new(&programs)).unwrap())
}

fn has(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "no `{word}` in: {said}");
    }
}

#[test]
fn a_run_that_was_parked_on_one_machine_is_answered_on_another() {
    let Some(server) = server() else { return };
    let (here, there) = (Machine::new(&server), Machine::new(&server));
    here.gesta(&["run", &example("desk"), REFUND], &[], 3);
    has(&there.gesta(&["runs"], &[], 0), &["desk", "refund_order (r1)"]);
    has(&there.gesta(&["doctor", "--offline"], &[], 0), &["PostgreSQL", "it was not asked"]);
    has(
        &there.gesta(&["doctor"], &[("OPENAI_API_KEY", ""), ("ANTHROPIC_API_KEY", "")], 0),
        &["PostgreSQL at postgres://gesta@127.0.0.1:", "reachable, 1 run", "GESTA_SECRET"],
    );
    there.gesta(&["resume", "last", "--approve", "r1"], &[], 0);
    has(&here.gesta(&["show", "last"], &[], 0), &[REFUND, "completed"]);
    // The first answer counts, wherever it was given.
    has(&here.gesta(&["resume", "last", "--deny", "r1", "--reason", "no"], &[], 1), &["the first answer counts"]);
    assert!(!here.has_file() && !there.has_file());
    // A folder that is named goes before the server.
    has(&here.gesta(&["runs", "--data", "elsewhere"], &[], 2), &["the data folder elsewhere is not there"]);
}

#[test]
fn what_is_signed_on_a_server_needs_a_key_that_all_share() {
    let Some(server) = server() else { return };
    let (here, there) = (Machine::new(&server), Machine::new(&server));
    let ask = ["run", &example("shop"), "Hello", "--conversation", "k"];
    has(&here.gesta(&ask, &[], 2), &["GESTA_SECRET is not set", "help: "]);
    for machine in [&here, &there] {
        let said = machine.gesta(
            &["document", "tools", &example("shop"), "--conversation", "k"],
            &[("GESTA_SECRET", SECRET)],
            0,
        );
        assert!(!said.is_empty());
        assert!(!machine.home.path().join("gesta/secret").exists());
    }
}

#[test]
fn a_server_that_is_away_is_said_by_name() {
    let Some(mut server) = server() else { return };
    let here = Machine::new(&server);
    here.gesta(&["runs"], &[], 0);
    server.kill();
    for words in [&["runs"][..], &["show", "last"], &["run", &example("desk"), REFUND]] {
        has(&here.gesta(words, &[], 5), &["postgres://gesta@127.0.0.1:", "can't be reached", "help: start it"]);
    }
    has(&here.gesta(&["doctor"], &[], 1), &["missing  store", "can't be reached"]);
    has(
        &here.gesta(&["runs"], &[("DATABASE_URL", "postgres://a:s3cret@b:c/d")], 5),
        &["postgres://USER:PASSWORD@HOST"],
    );
}
