//! Why something that was asked of a document did not succeed, in words that a model can act on.

use std::fmt;

use gesta_document::{CallError, OpenError, Refused};

use crate::GrantCall;
use crate::grants::write_effects;

/// A call that did not succeed: the document is as it was before it, and what it did outside stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Why.
    pub cause: Cause,
    /// The grant calls that had begun, in order.
    pub grants: Vec<GrantCall>,
    /// What the document and its engine had printed, at most [`gesta_document::Limits::log_bytes_max`].
    pub log: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        write_effects(&self.grants, f)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Which limit was met, or what else went wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The document itself says so.
    #[error(transparent)]
    Document(#[from] CallError),
    /// The document cannot be opened.
    #[error("the document cannot be opened: {0}")]
    Open(#[from] OpenError),
    /// A source from outside was refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It ran longer than a document may, and did not stop by itself.
    #[error("the tool ran longer than {limit_ms} ms and was stopped")]
    TimedOut {
        /// How long it may run.
        limit_ms: u64,
    },
    /// The call as a whole, grants included, took longer than the tool may.
    #[error("the tool took longer than {limit_ms} ms, the functions it called included, and was stopped")]
    CallTimedOut {
        /// The tool's time limit.
        limit_ms: u64,
    },
    /// It needed more memory than a worker has.
    #[error("the tool needed more memory than a document may use")]
    Memory,
    /// It went deeper than a worker's stack.
    #[error("the tool called itself, or nested a value, too deeply")]
    Stack,
    /// It printed without end.
    #[error("the tool printed more than {bytes_max} bytes")]
    Output {
        /// How much is read before the worker is ended.
        bytes_max: usize,
    },
    /// The worker died of something else.
    #[error("the process that the tool ran in has died ({how})")]
    Crash {
        /// The signal, the exit code, or what it said that made no sense.
        how: String,
    },
    /// All workers were busy for too long.
    #[error("no worker was free for {waited_ms} ms; try again")]
    Busy {
        /// How long was waited.
        waited_ms: u64,
    },
    /// No worker could be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Cause {
    /// Whether a clock ended the call: `timed_out` in the log, where everything else is `failed`.
    pub fn is_timed_out(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::CallTimedOut { .. } | Self::Document(CallError::TimedOut { .. }))
    }

    /// Whether the worker, still alive, is not to be used again: it met a limit.
    pub(crate) fn spends_the_worker(&self) -> bool {
        !matches!(self, Self::Document(CallError::UnknownTool { .. } | CallError::Thrown { .. }) | Self::Refused(_))
    }
}

/// Why no worker can be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The program cannot be executed.
    #[error("the worker `{program}` cannot be started: {why}")]
    Program {
        /// Its path.
        program: String,
        /// What the system says.
        why: String,
    },
    /// It did not say that it is there.
    #[error(
        "the worker `{program}` does not answer as one ({why}); a program that embeds Gesta calls `worker_main` first in its `main`"
    )]
    Mute {
        /// Its path.
        program: String,
        /// What came instead.
        why: String,
    },
    /// It could not wall itself in.
    #[error("the walls around a worker cannot be raised: {why}")]
    Walls {
        /// Which step failed.
        why: String,
    },
    /// A wall is missing that was demanded.
    #[error("`sandbox = \"required\"`, but the walls of a worker are not whole: {walls}")]
    NotWhole {
        /// What stands and what is missing.
        walls: String,
    },
    /// The machine has no walls at all.
    #[error("documents need Linux")]
    NotHere,
}
