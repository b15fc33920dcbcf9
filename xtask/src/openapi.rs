//! What `/openapi.json` promises, asked of a server that runs: schemathesis sends what it allows and what it does not, one
//! request after another and along its links, and holds every answer against it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::shell::{self, Count, command};
use crate::tools;

/// How long it asks, in seconds. Two minutes are what the specification of the server wants.
const SECONDS: &str = "120";
/// Where the dice begin.
const SEED: &str = "7";
/// One at a time: in several threads Python's own parser fails now and then (a fault of CPython 3.11).
const WORKERS: &str = "1";
/// What is held against each answer.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,use_after_free";
/// How many of the links must have led somewhere.
const LINKS_MIN: u64 = 5;
/// The agents that are served: one whose calls wait, one that is prompted, one with a document.
const AGENTS: [&str; 3] = ["examples/desk", "examples/coach", "examples/shop"];

/// Asks. Counts the paths that were asked, and the kinds of failure that were found.
pub(crate) fn run(verbose: bool) -> Result<Count, String> {
    let mut schemathesis = tools::schemathesis()?;
    let built = shell::run(&mut command("cargo build --quiet -p gesta-cli --bin gesta"), verbose);
    if built.failed > 0 {
        return Ok(built);
    }
    let folder = tempfile::tempdir().map_err(|why| format!("cannot make a folder: {why}"))?;
    let data = folder.path().join("data");
    // With a key from the start: as soon as schemathesis has made one, nobody is answered without.
    let key = key(&data)?;
    let server = Serving::start(&data)?;
    let report = folder.path().join("report.json");
    let config = xtask::root().join("xtask/openapi/schemathesis.toml");
    schemathesis.arg("--config-file").arg(config).args(["--no-color", "run", &format!("{}/openapi.json", server.url)]);
    schemathesis.args(["--header", &format!("Authorization: Bearer {key}")]);
    // It would take the key back with which it asks.
    schemathesis.args(["--exclude-operation-id", "revoke_key"]);
    schemathesis.args(["--seed", SEED, "--max-time", SECONDS, "--workers", WORKERS, "--checks", CHECKS]);
    schemathesis.args(["--generation-database", "none", "--warnings", "off", "--continue-on-failure"]);
    schemathesis.args(["--report", "json", "--report-json-path"]).arg(&report);
    let asked = schemathesis.current_dir(folder.path()).stdin(Stdio::null()).output();
    let asked = asked.map_err(|why| format!("cannot start schemathesis: {why}"))?;
    let text = fs::read_to_string(&report).unwrap_or_default();
    let found = Report::read(&text);
    let said = String::from_utf8_lossy(&[asked.stdout, asked.stderr].concat()).into_owned();
    // Where it gets nowhere, because every answer is a refusal, no link leads from one answer to the next request.
    let links = links_of(&said);
    let fine = asked.status.success() && server.is_alive() && found.generated > 0 && links >= LINKS_MIN;
    if !fine || verbose {
        println!("{said}");
    }
    println!(
        "schemathesis: {} requests to {} of {} operations, along {links} links, {} kinds of failure, {} errors",
        found.generated, found.tested, found.operations, found.failures, found.errors
    );
    let wrong = found.failures + found.errors + (found.operations - found.tested.min(found.operations));
    Ok(Count { passed: found.tested, failed: if fine { wrong } else { wrong.max(1) } })
}

/// How many links were followed, as schemathesis says in words.
fn links_of(said: &str) -> u64 {
    let line = said.lines().find_map(|line| line.trim().strip_prefix("API Links:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// A key that may do everything.
fn key(data: &Path) -> Result<String, String> {
    let mut keys = gesta(data);
    keys.args(["keys", "new", "schemathesis", "--scope", "admin", "--bare"]);
    let made = keys.output().map_err(|why| format!("cannot start the program: {why}"))?;
    let key = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    if made.status.success() { Ok(key) } else { Err(String::from_utf8_lossy(&made.stderr).into_owned()) }
}

/// The program, with a store of its own and nothing of what the environment says.
fn gesta(data: &Path) -> Command {
    let mut gesta = Command::new(tools::target().join("debug/gesta"));
    for variable in ["DATABASE_URL", "GESTA_SERVER", "GESTA_API_KEY", "GESTA_WEBHOOK_URL", "GESTA_LISTEN"] {
        gesta.env_remove(variable);
    }
    gesta.arg("--data").arg(data).current_dir(xtask::root()).stdin(Stdio::null());
    gesta
}

/// A server on this machine, with a store of its own, which ends with this.
struct Serving {
    child: std::cell::RefCell<Child>,
    url: String,
}

impl Serving {
    fn start(data: &Path) -> Result<Self, String> {
        let mut serve = gesta(data);
        serve.arg("serve").args(AGENTS).args(["--listen", "127.0.0.1:0"]);
        serve.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = serve.spawn().map_err(|why| format!("cannot start the server: {why}"))?;
        let mut said = BufReader::new(child.stderr.take().ok_or("the server has no output")?);
        let mut line = String::new();
        let read = said.read_line(&mut line);
        let serving = Self { child: child.into(), url: line.trim().rsplit(' ').next().unwrap_or_default().to_owned() };
        if read.is_err() || !serving.url.starts_with("http://") {
            return Err(format!("the server does not start: {line}"));
        }
        // What it says from then on is nobody's, but it must not wait to say it.
        std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
        Ok(serving)
    }

    fn is_alive(&self) -> bool {
        matches!(self.child.borrow_mut().try_wait(), Ok(None))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// What schemathesis reports, as far as it is counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    generated: u64,
    operations: u64,
    tested: u64,
    failures: u64,
    errors: u64,
}

impl Report {
    /// Reads the report. What is not there counts as nothing, so that an empty report is a failure.
    fn read(text: &str) -> Self {
        let report: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let number = |place: &str| report.pointer(place).and_then(serde_json::Value::as_u64).unwrap_or_default();
        Self {
            generated: number("/test_cases/generated"),
            operations: number("/operations/selected"),
            tested: number("/operations/tested"),
            failures: number("/test_cases/unique_failures"),
            errors: number("/test_cases/errored") + number("/operations/errored"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_counted() {
        assert_eq!(links_of("     API Links:    3 covered / 20 selected / 20 total (7 inferred)\n"), 3);
        assert_eq!(links_of("nothing of the kind"), 0);
    }

    #[test]
    fn a_report_is_counted_and_an_empty_one_counts_as_nothing() {
        let text = r#"{"operations": {"total": 19, "selected": 18, "tested": 17, "errored": 0},
            "test_cases": {"generated": 4532, "with_failures": 9, "unique_failures": 8, "errored": 1}}"#;
        assert_eq!(Report::read(text), Report { generated: 4532, operations: 18, tested: 17, failures: 8, errors: 1 });
        assert_eq!(Report::read("no report"), Report::default());
    }
}
