//! What a person and a program are told: why it did not work and where, and what a call took.

use std::path::Path;
use std::time::{Duration, Instant};

use gesta_document::{CallError, OpenError};
use gesta_sandbox::{Cause, GrantOutcome, Pool, Session, StartError, peak_bytes_of_ended};
use serde_json::{Value, json};

use super::opened::Opened;
use crate::exit::{Exit, Failure};
use crate::terminal::{Look, Screen};

/// Where the documentation of documents is.
const GUIDE: &str = "docs/guides/documents.md tells how documents are written";

/// No worker can be started.
pub(super) fn not_started(why: &StartError) -> Failure {
    let help = match why {
        StartError::NotHere => "where you trust its author, run it in this process with --unsafe-in-process",
        _ => "`gesta doctor` looks at what this machine offers",
    };
    Failure::usage(why.to_string(), help).coded("sandbox_unavailable")
}

/// What was asked of a document did not succeed.
pub(crate) fn failed(why: &gesta_sandbox::Failure, file: &Path) -> Failure {
    let file = file.display();
    match &why.cause {
        Cause::Open(OpenError::Base { message, at, frame }) => {
            let mut failure =
                Failure::usage(format!("{file}:{}:{}: {message}", at.line, at.column), GUIDE).coded("document_invalid");
            failure.details = frame.lines().map(str::to_owned).collect();
            failure
        }
        Cause::Open(error) => Failure::usage(format!("{file}: {error}"), GUIDE).coded("document_invalid"),
        Cause::Start(why) => not_started(why),
        Cause::Document(CallError::UnknownTool { name }) => {
            let help = match name.as_str() {
                "main" => format!("what is tagged #[main] is no tool: `gesta document run {file}` runs it"),
                _ => format!("`gesta document specs {file}` lists its tools"),
            };
            Failure::usage(format!("{file} has no tool `{name}`"), help).coded("no_such_tool")
        }
        cause => {
            let whole = why.to_string();
            let mut lines = whole.lines();
            let mut failure = Failure::new(Exit::Other, lines.next().unwrap_or_default(), "");
            failure.details = lines.map(str::to_owned).collect();
            failure.coded(code_of(cause))
        }
    }
}

/// A document was not opened, as far as one can see.
pub(super) fn unopened(why: &gesta_sandbox::Failure, file: &Path) -> Failure {
    let help = match &why.cause {
        Cause::TimedOut { .. } | Cause::Document(CallError::TimedOut { .. }) => {
            "compute less while it opens: fewer fields, shorter #[init] functions; --call-time-max gives it more time"
        }
        Cause::Memory | Cause::Stack | Cause::Output { .. } => "hold less in it, nest it less deeply, print less",
        _ => return failed(why, file),
    };
    let what = why.to_string().replacen("the tool", "it", 1);
    Failure::usage(format!("{}: it does not open: {what}", file.display()), help).coded("document_invalid")
}

/// A source was not added, by the rules for what a model writes.
pub(super) fn not_added(why: &gesta_sandbox::Failure, source_file: &Path, source: &str, file: &Path) -> Failure {
    let Cause::Refused(refused) = &why.cause else { return failed(why, file) };
    let place = refused.at.map(|at| format!(":{}:{}", at.line, at.column)).unwrap_or_default();
    // What is refused while it is parsed brings its own frame.
    let mut lines = refused.message.lines();
    let message = format!("{}{place}: {}", source_file.display(), lines.next().unwrap_or_default());
    let mut failure = Failure::usage(message, "nothing of it has run").coded("tool_refused");
    failure.details = lines.map(str::to_owned).collect();
    if let Some(at) = refused.at.filter(|_| failure.details.is_empty()) {
        failure.details = at.frame(source).lines().map(str::to_owned).collect();
    }
    failure
}

fn code_of(cause: &Cause) -> &'static str {
    match cause {
        cause if cause.is_timed_out() => "timed_out",
        Cause::Refused(_) => "tool_refused",
        cause if limit_of(cause).is_some() => "limit",
        _ => "failed",
    }
}

/// Which limit a call met, in a word; none where it failed by itself.
pub(super) fn limit_of(cause: &Cause) -> Option<&'static str> {
    match cause {
        Cause::TimedOut { .. } | Cause::Document(CallError::TimedOut { .. }) => Some("call_time"),
        Cause::CallTimedOut { .. } => Some("time_limit"),
        Cause::Memory => Some("memory"),
        Cause::Stack | Cause::Document(CallError::TooDeep { .. }) => Some("stack"),
        Cause::Document(CallError::TooMuch { .. }) => Some("work"),
        Cause::Output { .. } => Some("output"),
        Cause::Document(CallError::Limit { .. }) => Some("values"),
        Cause::Document(CallError::OffRecord { .. }) => Some("record"),
        _ => None,
    }
}

/// Whether the worker that ran the call is there to be asked; each that met a limit has been ended.
fn is_alive(outcome: &Result<gesta_document::Called, gesta_sandbox::Failure>) -> bool {
    let thrown = |cause: &Cause| {
        matches!(cause, Cause::Document(CallError::Thrown { .. } | CallError::UnknownTool { .. }) | Cause::Refused(_))
    };
    outcome.as_ref().map_or_else(|why| thrown(&why.cause), |_| true)
}

/// What a call took.
pub(super) struct Measured {
    running_us: Option<u64>,
    whole: Duration,
    peak_bytes: u64,
    grants: Vec<Value>,
}

/// How long a killed worker's memory is waited for.
const BURIAL_TIME_MAX: Duration = Duration::from_secs(1);

impl Measured {
    /// Measures a call that began at `began` and has just ended. A worker that died is no more, and its memory is known
    /// once the system has buried it.
    pub(super) async fn of(
        began: Instant,
        outcome: &Result<gesta_document::Called, gesta_sandbox::Failure>,
        mut session: Session,
        opened: &Opened,
    ) -> Self {
        let whole = began.elapsed();
        let usage = if is_alive(outcome) { session.usage().await.ok() } else { None };
        let peak_bytes = match usage {
            Some(usage) => usage.peak_bytes,
            None => buried_peak(&opened.pool).await,
        };
        let ended = outcome.as_ref().err().map(|why| why.grants.as_slice()).unwrap_or_default();
        let grants = opened.desk.take_asked().into_iter().enumerate().map(|(at, (name, arguments))| {
            let known = ended.iter().find(|call| usize::try_from(call.n) == Ok(at + 1)).map(|call| call.outcome);
            let outcome = match known {
                Some(GrantOutcome::Failed) => "failed",
                Some(GrantOutcome::Unknown) => "unknown",
                Some(GrantOutcome::Done) | None => "done",
            };
            json!({"name": name.to_string(), "arguments": arguments, "outcome": outcome})
        });
        let running_us = outcome.as_ref().ok().map(|called| called.running_us);
        Self { running_us, whole, peak_bytes, grants: grants.collect() }
    }

    /// On one line, for a person.
    pub(super) fn tell(&self) {
        let running = self.running_us.map(|us| format!("ran {} ms in the document, ", ms(us))).unwrap_or_default();
        let whole = ms(u64::try_from(self.whole.as_micros()).unwrap_or(u64::MAX));
        let grants = match self.grants.len() {
            0 => String::new(),
            1 => ", 1 grant call".to_owned(),
            many => format!(", {many} grant calls"),
        };
        let peak = match self.peak_bytes {
            0 => String::new(),
            bytes => format!(", at most {}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
        };
        Screen::stderr().line(Look::Faint, &format!("{running}{whole} ms in all{grants}{peak}"));
    }

    /// For a program: what it adds to an object.
    pub(super) fn add_to(self, object: &mut Value) {
        let whole_us = u64::try_from(self.whole.as_micros()).unwrap_or(u64::MAX);
        object["running_us"] = json!(self.running_us);
        object["whole_us"] = json!(whole_us);
        object["peak_bytes"] = json!(Some(self.peak_bytes).filter(|bytes| *bytes > 0));
        object["grants"] = Value::Array(self.grants);
    }
}

async fn buried_peak(pool: &Pool) -> u64 {
    let began = Instant::now();
    // It was killed already; that the pool has no worker does not say that the system has done with it.
    while pool.counts().live == 0 && began.elapsed() < BURIAL_TIME_MAX {
        match peak_bytes_of_ended() {
            0 => tokio::time::sleep(Duration::from_millis(2)).await,
            bytes => return bytes,
        }
    }
    0
}

/// Microseconds as milliseconds with two digits.
fn ms(us: u64) -> String {
    format!("{}.{:02}", us / 1_000, us / 10 % 100)
}
