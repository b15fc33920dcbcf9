//! How a command ends: its exit code, and an error a person can act on.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use gesta_run::{AnswerError, FeedError, HoldReply, Outcome, RunResult, Status};
use gesta_runtime::folder::FolderErrors;
use gesta_runtime::{AgentError, OpenError};
use gesta_store::{Busy, StoreError};
use serde_json::{Value, json};

use crate::commands::{Globals, moment};
use crate::shell::quoted;

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
    /// It was done, but standard output could not be written.
    Unwritten,
    /// Someone pressed Ctrl-C, or the program was asked to end.
    Cancelled,
}

/// The table of exit codes, as `--help` shows it.
pub(crate) const CODES: &str = "Exit codes: 0 completed, 1 another outcome, 2 usage or configuration, 3 parked, \
                                4 the model failed, 5 the store failed, 6 standard output cannot be written, 130 cancelled (143 by SIGTERM, 129 by SIGHUP).";

impl Exit {
    /// The word for a failure that has none of its own.
    fn code(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::ModelFailed => "model_failed",
            Self::StoreFailed => "store_failed",
            Self::Cancelled => "cancelled",
            Self::Done | Self::Other | Self::Parked | Self::Unwritten => "failed",
        }
    }

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
            Exit::Unwritten => 6,
            Exit::Cancelled => crate::signals::cancelled_code(),
        })
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// The word for programs; `docs/errors.md` lists them.
    pub(crate) code: &'static str,
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
        Self { exit, code: exit.code(), message: message.into(), details: Vec::new(), help: help.into() }
    }

    /// The same failure, under this word.
    #[must_use]
    pub(crate) fn coded(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    /// The same failure, with the data folder of the command line in each command that it names.
    #[must_use]
    pub(crate) fn of_data(mut self, globals: &Globals) -> Self {
        if let Some(data) = &globals.data {
            self = self.naming(&format!(" --data {}", quoted(data)));
        }
        self
    }

    /// The same failure, with this flag behind each command that it names; see [`Failure::of_data`].
    #[must_use]
    pub(crate) fn naming(mut self, flag: &str) -> Self {
        self.help = with_data(&self.help, flag);
        self
    }

    /// What programs get in the place of a result.
    pub(crate) fn json(&self) -> Value {
        json!({"error": {"code": self.code, "message": self.message, "details": self.details, "help": self.help}})
    }

    /// Why answers to holds were refused. `run` names the run on the command line, `first` says what was answered
    /// before.
    pub(crate) fn of_answers(why: &AnswerError, run: &str, first: Option<&HoldReply>) -> Self {
        let look = format!("`gesta show {}` tells how it stands", quoted(run));
        match why {
            AnswerError::Conflict { call } => match first {
                Some(first) => {
                    let first = crate::render::hold_reply(first);
                    let message = format!("`{call}` was answered before, and the first answer counts: it {first}");
                    Self::new(Exit::Other, message, look).coded("conflict")
                }
                None => {
                    Self::usage(format!("two different answers were given to `{call}`"), "give one").coded("conflict")
                }
            },
            AnswerError::ToolGone { .. } => {
                Self::new(Exit::Other, why.to_string(), "bring the tool back, or tell the model with --force")
                    .coded("tool_gone")
            }
            AnswerError::UnknownCall { .. } => Self::new(Exit::Other, why.to_string(), look).coded("no_such_hold"),
            AnswerError::RunEnded(_) => {
                Self::new(Exit::Other, why.to_string(), "start anew: nothing of it waits any more").coded("run_ended")
            }
            AnswerError::Expired { .. } => {
                let message = format!("{why}; the run is closed");
                Self::new(Exit::Other, message, "start anew: nothing of it waits any more").coded("hold_expired")
            }
            AnswerError::Binding { .. } => Self::usage(why.to_string(), look).coded("binding_differs"),
            AnswerError::NotAccepted { .. } => Self::usage(why.to_string(), look).coded("not_accepted"),
            AnswerError::NoReason { .. } => {
                Self::usage(why.to_string(), "say why: the model reads it").coded("no_reason")
            }
            AnswerError::TooDeep { .. } => {
                Self::usage(why.to_string(), "hand in something flatter, or its text").coded("too_deep")
            }
            AnswerError::Arguments { call, issues } => {
                let message = format!("`{call}` was not run: the arguments do not fit the tool's schema");
                let mut failure = Self::usage(message, "mend the arguments, and answer again");
                failure.details = issues.split("; ").map(str::to_owned).collect();
                failure.coded("arguments_invalid")
            }
            _ => Self::usage(why.to_string(), look).coded("answer_refused"),
        }
    }

    /// A mistake on the command line.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message, help)
    }

    /// A failure of reading or writing a file.
    pub(crate) fn file(path: &Path, why: &std::io::Error) -> Self {
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
        // What failed may be said in a model's words: they begin no line that looks like one of ours.
        f.write_str(&self.message.replace('\n', " "))?;
        self.details.iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        if self.help.is_empty() { Ok(()) } else { write!(f, "\nhelp: {}", self.help) }
    }
}

/// Commands that mean something else in another data folder.
const OF_DATA: [&str; 4] = ["resume", "runs", "show", "doctor"];

/// A text with a flag behind each command in it that depends on the data folder.
fn with_data(text: &str, flag: &str) -> String {
    let is_command = |piece: &str| {
        let word = piece.strip_prefix("gesta ").and_then(|rest| rest.split(' ').next());
        word.is_some_and(|word| OF_DATA.contains(&word)) && !piece.contains("--data")
    };
    let pieces: Vec<String> = text
        .split('`')
        .map(|piece| if is_command(piece) { format!("{piece}{flag}") } else { piece.to_owned() })
        .collect();
    pieces.join("`")
}

impl From<StoreError> for Failure {
    fn from(why: StoreError) -> Self {
        if let StoreError::Leased { run, until } = &why {
            let message = format!("another process works on run `{run}`");
            let until = moment(*until);
            let help = format!("try again when it is done; where it has died, it lets go of the run at {until}");
            return Self::new(Exit::Other, message, help).coded(why.code());
        }
        let exit = match &why {
            StoreError::NoSuchRun { .. } | StoreError::Exists { .. } => Exit::Usage,
            StoreError::Leased { .. }
            | StoreError::HoldSettled { .. }
            | StoreError::ConversationBusy { .. }
            | StoreError::InUse { .. }
            | StoreError::DocumentConflict { .. } => Exit::Other,
            _ => Exit::StoreFailed,
        };
        let help = match &why {
            StoreError::ConversationBusy { run, busy: Busy::Parked, .. } => {
                format!("`gesta show {}` tells what waits and how it is answered", quoted(run.as_str()))
            }
            StoreError::ConversationBusy { run, busy: Busy::Left | Busy::CanGoOn, .. } => {
                format!("go on with it first: gesta resume {}", quoted(run.as_str()))
            }
            StoreError::ConversationBusy { .. } | StoreError::DocumentConflict { .. } => {
                "wait until its run is done, and try again".to_owned()
            }
            _ => "`gesta doctor` looks at the data folder and the store".to_owned(),
        };
        Self::split(exit, &why).coded(why.code()).or_help(help)
    }
}

impl From<FolderErrors> for Failure {
    fn from(why: FolderErrors) -> Self {
        let mut failure = Self::usage("the agent cannot be used", "mend it, and look again with `gesta check FOLDER`");
        failure.details = why.0.iter().map(ToString::to_string).collect();
        failure.coded("agent_invalid")
    }
}

impl From<AgentError> for Failure {
    fn from(why: AgentError) -> Self {
        match why {
            AgentError::Store(why) => why.into(),
            AgentError::Input(FeedError::InputEmpty) => {
                Self::usage("the input is empty", "say something: `gesta run FOLDER \"text\"`").coded("input_empty")
            }
            AgentError::Input(FeedError::InputTooLong { bytes, max }) => Self::usage(
                format!("the input has {bytes} bytes, the limit is {max}"),
                "send less, or raise `input_bytes_max` under `[limits]` in agent.toml",
            )
            .coded("input_too_long"),
            AgentError::Waiting { run, open } => {
                let calls: Vec<&str> = open.iter().map(gesta_run::CallId::as_str).collect();
                let run = quoted(run.as_str());
                Self::new(
                    Exit::Parked,
                    format!("the conversation waits for answers to {}", calls.join(", ")),
                    format!("`gesta show {run}` tells what waits and how it is answered"),
                )
                .coded("waiting")
            }
            AgentError::Answers(why) => Self::of_answers(&why, "RUN", None),
            AgentError::Busy { run } => Self::new(
                Exit::Other,
                format!("the conversation is busy: run {run} is going on in another process"),
                "wait until it is done, or end that process (Ctrl-C there): the next turn then takes the run up",
            )
            .coded("conversation_busy"),
            AgentError::OfAnother { .. } => Self::split(Exit::Usage, &why).coded("conversation_of_another"),
            AgentError::CannotGoOn { ref run, .. } => {
                let look = format!("`gesta show {}` tells how the run stands", quoted(run.as_str()));
                Self::split(Exit::Other, &why).or_help(look).coded("cannot_go_on")
            }
            AgentError::Unopened { document, why } => crate::commands::document_failed(&why, Path::new(&document)),
            AgentError::WorkingCopy { run, why } => {
                let whole = why.to_string();
                let (because, mend) = whole.split_once("; ").unwrap_or((&whole, "mend it"));
                let message = format!("run {run} cannot go on: what it had made of the document cannot be read");
                let help = format!("{mend}; a new message of its conversation closes the run without it");
                let mut failure = Self::usage(message, help).coded("image_unusable");
                failure.details.push(format!("because: {because}"));
                failure
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
                .or_help("`gesta doctor` tells which keys are set; `--model script` needs none")
                .coded("provider_unusable"),
            _ => Self::split(Exit::Usage, &why).or_help("`gesta check FOLDER` looks at the agent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::with_data;

    #[test]
    fn a_command_in_a_help_names_the_data_folder_where_it_matters() {
        let flag = " --data d";
        for (help, said) in [
            ("`gesta show r1` tells how it stands", "`gesta show r1 --data d` tells how it stands"),
            ("see `gesta runs`, or `gesta show r1 --data d`", "see `gesta runs --data d`, or `gesta show r1 --data d`"),
            ("look with `gesta check a`", "look with `gesta check a`"),
            ("", ""),
        ] {
            assert_eq!(with_data(help, flag), said);
        }
    }
}
