//! How a command ends: its exit code, and an error a person can act on.

use std::fmt;
use std::process::ExitCode;

use gesta_run::{FeedError, Outcome, RunResult, Status};
use gesta_runtime::folder::FolderErrors;
use gesta_runtime::{AgentError, OpenError};
use gesta_store::StoreError;

/// What the process hands back; `docs/errors.md` lists the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done as asked.
    Done,
    /// The run ended in another way than completed, or a check found something.
    Other,
    /// The command line or a configuration is wrong; nothing has run.
    Usage,
    /// The run waits for an answer.
    Parked,
    /// The model failed.
    ModelFailed,
    /// The store failed.
    StoreFailed,
    /// Someone pressed Ctrl-C.
    Cancelled,
}

/// The table of exit codes, as `--help` shows it.
pub(crate) const CODES: &str = "Exit codes: 0 completed, 1 another outcome, 2 usage or configuration, 3 parked, \
                                4 the model failed, 5 the store failed, 130 cancelled.";

impl Exit {
    /// The exit code of a run as it stands.
    pub(crate) fn of(result: &RunResult) -> Self {
        match (result.status, result.outcome) {
            (Status::Parked, _) => Self::Parked,
            (_, Some(Outcome::Completed)) => Self::Done,
            (_, Some(Outcome::ModelFailed)) => Self::ModelFailed,
            (_, Some(Outcome::StoreFailed)) => Self::StoreFailed,
            (_, Some(Outcome::Cancelled)) => Self::Cancelled,
            _ => Self::Other,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Other => 1,
            Exit::Usage => 2,
            Exit::Parked => 3,
            Exit::ModelFailed => 4,
            Exit::StoreFailed => 5,
            Exit::Cancelled => 130,
        })
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What failed.
    pub(crate) message: String,
    /// Lines below it: causes, or several mistakes of one file.
    pub(crate) details: Vec<String>,
    /// The way out; blank where there is none to name.
    pub(crate) help: String,
}

/// What a command comes to.
pub(crate) type Ended = Result<Exit, Failure>;

impl Failure {
    /// A failure with its way out.
    pub(crate) fn new(exit: Exit, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { exit, message: message.into(), details: Vec::new(), help: help.into() }
    }

    /// A mistake on the command line.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message, help)
    }

    /// A failure of reading or writing a file.
    pub(crate) fn file(path: &std::path::Path, why: &std::io::Error) -> Self {
        Self::usage(format!("{}: {why}", path.display()), "name a file that is there and may be read or written")
    }

    /// Our messages put the way out behind the last semicolon.
    fn split(exit: Exit, error: &dyn std::error::Error) -> Self {
        let whole = error.to_string();
        let (message, help) = match whole.rsplit_once("; ") {
            Some((message, help)) => (message.to_owned(), help.to_owned()),
            None => (whole, String::new()),
        };
        let mut failure = Self::new(exit, message, help);
        let mut cause = error.source();
        while let Some(why) = cause {
            failure.details.push(format!("because: {why}"));
            cause = why.source();
        }
        failure
    }

    /// The same failure, with a way out where it names none.
    #[must_use]
    pub(crate) fn or_help(mut self, help: impl Into<String>) -> Self {
        if self.help.is_empty() {
            self.help = help.into();
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        self.details.iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        if self.help.is_empty() { Ok(()) } else { write!(f, "\nhelp: {}", self.help) }
    }
}

impl From<StoreError> for Failure {
    fn from(why: StoreError) -> Self {
        let exit = match &why {
            StoreError::NoSuchRun { .. } => Exit::Usage,
            StoreError::Leased { .. } | StoreError::HoldSettled { .. } => Exit::Other,
            _ => Exit::StoreFailed,
        };
        Self::split(exit, &why).or_help("`gesta doctor` looks at the data folder and the store")
    }
}

impl From<FolderErrors> for Failure {
    fn from(why: FolderErrors) -> Self {
        let mut failure = Self::usage("the agent cannot be used", "mend it, and look again with `gesta check FOLDER`");
        failure.details = why.0.iter().map(ToString::to_string).collect();
        failure
    }
}

impl From<AgentError> for Failure {
    fn from(why: AgentError) -> Self {
        match why {
            AgentError::Store(why) => why.into(),
            AgentError::Input(FeedError::InputEmpty) => {
                Self::usage("the input is empty", "say something: `gesta run FOLDER \"text\"`")
            }
            AgentError::Input(FeedError::InputTooLong { bytes, max }) => Self::usage(
                format!("the input has {bytes} bytes, the limit is {max}"),
                "send less, or raise `input_bytes_max` under `[limits]` in agent.toml",
            ),
            AgentError::Waiting { run, open } => {
                let calls: Vec<&str> = open.iter().map(gesta_run::CallId::as_str).collect();
                Self::new(
                    Exit::Parked,
                    format!("the conversation waits for answers to {}", calls.join(", ")),
                    format!("answer them first: `gesta resume {run} --approve CALL`, or `gesta show {run}` to look"),
                )
            }
            AgentError::Busy { .. } | AgentError::Answers(_) | AgentError::CannotGoOn { .. } => {
                Self::split(Exit::Other, &why).or_help("`gesta show RUN` tells how the run stands")
            }
            _ => Self::split(Exit::Usage, &why).or_help("`gesta check FOLDER` looks at the agent"),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(why: OpenError) -> Self {
        match why {
            OpenError::Folder(why) => why.into(),
            OpenError::Agent(why) => why.into(),
            OpenError::Store(why) => why.into(),
            OpenError::Provider(_) => Self::split(Exit::Usage, &why)
                .or_help("`gesta doctor` tells which keys are set; `--model script` needs none"),
            _ => Self::split(Exit::Usage, &why).or_help("`gesta check FOLDER` looks at the agent"),
        }
    }
}
