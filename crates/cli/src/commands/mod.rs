//! The commands: one file each, with its arguments, its help and what it does.

mod audit;
mod backup;
mod chat;
mod check;
mod completions;
mod doctor;
mod document;
mod eval;
mod fake_model;
mod holds;
mod init;
mod keys;
mod resume;
mod run;
mod runs;
mod scenes;
mod schema;
mod serve;
mod show;
mod test;

pub(crate) use document::failed as document_failed;

pub(crate) use show::moment;

use std::future::Future;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::exit::{Ended, Exit, Failure};
use crate::logs::LogFormat;

/// Agents that do what they say: run them, look at them, answer for them.
#[derive(Debug, Parser)]
#[command(name = "gesta", version, max_term_width = 100, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER: &str = "Examples:
  gesta init my-agent                     a new agent that runs at once, without a key
  gesta chat my-agent                     talk to it
  gesta run my-agent \"Hello\" --json       for programs
  gesta show last                         what happened, and why
  gesta serve my-agent                    the same over HTTP

Exit codes and error codes: docs/errors.md. Logs go to stderr; GESTA_LOG=debug shows more.";

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Globals {
    /// Where runs and conversations are kept [default: gesta in the user's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Show the answer alone
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Show more; twice for the program's own logs
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Chat(chat::Chat),
    Run(run::Run),
    Serve(serve::Serve),
    Runs(runs::Runs),
    Show(show::Show),
    Holds(holds::Holds),
    Resume(resume::Resume),
    Check(check::Check),
    Test(test::Test),
    Scenes(scenes::Scenes),
    Eval(eval::Eval),
    FakeModel(fake_model::FakeModel),
    Init(init::Init),
    Keys(keys::KeysCommand),
    Audit(audit::AuditCommand),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Document(document::Document),
    Doctor(doctor::Doctor),
    Schema(schema::Schema),
    Completions(completions::Completions),
}

impl Command {
    /// How its logs are written, where it says so itself: a server's.
    pub(crate) fn log_format(&self) -> Option<LogFormat> {
        match self {
            Self::Serve(serve) => Some(serve.log_format),
            _ => None,
        }
    }

    /// Does it.
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        match self {
            Self::Chat(chat) => chat.run(globals),
            Self::Run(run) => run.run(globals),
            Self::Serve(serve) => serve.run(globals),
            Self::Runs(runs) => runs.run(globals),
            Self::Show(show) => show.run(globals),
            Self::Holds(holds) => holds.run(globals),
            Self::Resume(resume) => resume.run(globals),
            Self::Check(check) => check.run(globals),
            Self::Test(test) => test.run(globals),
            Self::Scenes(scenes) => scenes.run(globals),
            Self::Eval(eval) => eval.run(globals),
            Self::FakeModel(fake) => fake.run(globals),
            Self::Init(init) => init.run(globals),
            Self::Keys(keys) => keys.run(globals),
            Self::Audit(audit) => audit.run(globals),
            Self::Backup(backup) => backup.run(globals),
            Self::Restore(restore) => restore.run(globals),
            Self::Document(document) => document.run(globals),
            Self::Doctor(doctor) => doctor.run(globals),
            Self::Schema(schema) => schema.run(),
            Self::Completions(completions) => completions.run(),
        }
    }
}

/// Does something that waits, on this thread alone. Whatever still runs when it is done is left.
pub(crate) fn wait_for(work: impl Future<Output = Ended>) -> Ended {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| {
        Failure::new(Exit::Other, format!("the program cannot wait for anything: {why}"), "free some memory or files")
    })?;
    let ended = runtime.block_on(work);
    runtime.shutdown_background();
    ended
}
