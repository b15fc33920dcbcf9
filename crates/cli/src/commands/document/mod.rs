//! `gesta document`: for people who write a document of tools.

mod call;
mod check;
mod export;
mod guidance;
mod import;
mod kept;
mod lent;
mod opened;
mod run;
mod specs;
mod told;
mod tools;
mod watch;

use clap::{Args, Subcommand};

pub(crate) use told::failed;

use super::Globals;
use crate::exit::Ended;

/// Check, describe, call, run, move a document of tools
///
/// A document runs in a worker process without network, files or environment; what it may do in the world are the
/// grants that it is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta document check tools.stof --watch
  gesta document call tools.stof recent_orders '{\"limit\": 3}' --grant 'App.orders=[]'
  gesta document run tools.stof           what its `main` prints
  gesta document tools my-agent           what the agent has added, and when
  gesta document export my-agent --conversation anna --stof   a conversation's document, to read

check, specs, call and run take a file; tools, export and import take an agent's folder and a conversation.

How documents are written: docs/guides/documents.md. Exit codes: 0 done, 1 the call failed, 2 usage, or the document \
cannot be opened.")]
pub(crate) struct Document {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Check(check::Check),
    Specs(specs::Specs),
    Call(call::Call),
    Run(run::Run),
    Guidance(guidance::Guidance),
    Tools(tools::Tools),
    Export(export::Export),
    Import(import::Import),
}

impl Document {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        match self.command {
            What::Check(check) => check.run(globals),
            What::Specs(specs) => specs.run(),
            What::Call(call) => call.run(globals),
            What::Run(run) => run.run(globals),
            What::Guidance(guidance) => guidance.run(),
            What::Tools(tools) => tools.run(globals),
            What::Export(export) => export.run(globals),
            What::Import(import) => import.run(globals),
        }
    }
}
