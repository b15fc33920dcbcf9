//! `gesta document run`: what a document's `main` prints.

use std::time::Instant;

use clap::Args;
use gesta_document::CallError;
use gesta_run::json::Object;
use gesta_runtime::folder::duration::Length;
use gesta_sandbox::Cause;

use super::call::asked;
use super::opened::Opening;
use super::told::{self, Measured};
use super::watch::watch;
use crate::commands::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::terminal::{Look, Screen};

/// Run the functions tagged #[main] and print what they print
///
/// It is how a document is tried by itself: no model, no agent. Where a grant is not given with --grant, a root of its
/// library's name answers in its place (`root App { fn orders() -> list { [] } }`).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta document run tools.stof
  gesta document run tools.stof --watch   again after each change
  gesta document run tools.stof --grant 'App.orders=[]'

What `pln` and `err` print goes to standard output, up to 16 kB, also where it fails; what it took goes to standard error.

Exit codes: 0 done, 1 it failed or met a limit, 2 usage, or the document cannot be opened, 130 Ctrl-C.")]
pub(super) struct Run {
    #[command(flatten)]
    opening: Opening,
    /// How long it may take with its worker and its grants [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = Length::parse)]
    time_limit: Option<Length>,
    /// Run it again whenever a file changes
    #[arg(long)]
    watch: bool,
}

impl Run {
    pub(super) fn run(self, globals: &Globals) -> Ended {
        wait_for(async {
            if self.watch {
                watch(&self.opening.files(), async || self.once(globals).await).await
            } else {
                self.once(globals).await
            }
        })
    }

    async fn once(&self, globals: &Globals) -> Ended {
        let opened = self.opening.open().await?;
        if globals.verbose > 0 {
            Screen::stderr().line(Look::Faint, &format!("walls: {}", opened.walls));
        }
        let mut session = self.opening.session(&opened).await?;
        let began = Instant::now();
        let outcome = session.main(asked("main", &Object::new(), self.time_limit), &opened.desk).await;
        let measured = Measured::of(began, &outcome, session, &opened).await;
        let log = outcome.as_ref().map_or_else(|why| &why.log, |called| &called.log);
        if !log.is_empty() {
            Screen::stdout().data(log);
        }
        if !globals.quiet {
            measured.tell();
        }
        outcome.map(|_| Exit::Done).map_err(|why| match &why.cause {
            Cause::Document(CallError::UnknownTool { .. }) => {
                let help = "tag a function of the root with #[main], or call a tool with `gesta document call`";
                let what = format!("{} has no function tagged #[main]", self.opening.file.display());
                Failure::usage(what, help).coded("no_such_tool")
            }
            _ => told::failed(&why, &self.opening.file),
        })
    }
}
