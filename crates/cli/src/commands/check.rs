//! `gesta check`: whether an agent's folder can be used, and what is doubtful in it.

use std::path::PathBuf;

use clap::Args;
use gesta_runtime::http::{HttpCaller, Policy};
use gesta_runtime::{OpenError, folder};

use super::{Globals, wait_for};
use crate::environment::Environment;
use crate::exit::{Ended, Exit, Failure};
use crate::folder_document;
use crate::place::is_agent;
use crate::terminal::{Look, Screen};

/// Check an agent's folder without running it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta check examples/coach
  gesta check my-agent --json | jq .problems

Exit codes: 0 it can be used, 2 it cannot.")]
pub(crate) struct Check {
    /// The agent's folder
    folder: PathBuf,
    /// Print what was found as JSON on one line
    #[arg(long)]
    json: bool,
    /// Use this model in place of the agent's
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<String>,
}

impl Check {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        is_agent(&self.folder)?;
        let environment = Environment::with_model(self.model.as_deref());
        let env = |name: &str| environment.get(name);
        let mut report = folder::check(&self.folder, &env);
        if HttpCaller::new(Policy::default(), &environment.lookup()).has_wrong_proxy() {
            return Err(OpenError::EgressProxy.into());
        }
        let document = if report.problems.is_empty() { self.document(&env, &mut report)? } else { None };
        let exit = if report.problems.is_empty() { Exit::Done } else { Exit::Usage };
        let mut screen = Screen::stdout();
        if self.json {
            screen.json(&report);
            return Ok(exit);
        }
        for problem in &report.problems {
            screen.text(Look::Bad, "error: ");
            screen.line_on(&problem.to_string());
        }
        for warning in &report.warnings {
            screen.text(Look::Warn, "warning: ");
            screen.line_on(&warning.to_string());
        }
        if exit == Exit::Done && !globals.quiet {
            document.iter().for_each(|told| screen.line(Look::Faint, told));
            let more = if report.warnings.is_empty() { "" } else { ", with warnings" };
            screen.line(Look::Good, &format!("{} can be used{more}", self.folder.display()));
        }
        Ok(exit)
    }

    /// Opens the folder's document in a worker, as a run would.
    fn document(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        report: &mut folder::Report,
    ) -> Result<Option<String>, Failure> {
        let Ok(folder) = folder::Folder::load(&self.folder, env) else { return Ok(None) };
        let mut told = None;
        wait_for(async {
            told = folder_document::check(&folder, report).await;
            Ok(Exit::Done)
        })?;
        Ok(told)
    }
}
