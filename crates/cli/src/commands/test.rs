//! `gesta test`: plays the scenes of an agent's folder under its plan.

use std::path::PathBuf;

use clap::Args;

use super::Globals;
use super::scenes::{Playing, gather, is_updating};
use crate::environment::Environment;
use crate::exit::{Ended, Exit};
use crate::place::agent_folder;
use crate::terminal::{Look, Screen};

/// Play the scenes of an agent's folder under its plan
///
/// Nobody is reached: what the model and the tools answer stands in the scenes. Secrets that are not set do not matter.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta test examples/coach
  gesta test my-agent --update            write what the runs do under the margins

Exit codes: 0 all hold, 1 some do not, 2 usage or configuration.")]
pub(crate) struct Test {
    /// The agent's folder
    folder: PathBuf,
    /// Write what the runs did into the files
    #[arg(long)]
    update: bool,
    /// Use this model's name and price in place of the agent's
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<String>,
}

impl Test {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        let environment = Environment::with_model(self.model.as_deref()).with_placeholders();
        let folder = agent_folder(&self.folder, &environment)?;
        let scenes = self.folder.join("scenes");
        if !scenes.is_dir() {
            let text = format!("{} has no scenes; make one with `gesta show last --scene`", self.folder.display());
            Screen::stdout().line(Look::Warn, &text);
            return Ok(Exit::Done);
        }
        let mut files = Vec::new();
        gather(&scenes, &mut files)?;
        Playing { folder: Some(&folder), update: self.update || is_updating(), quiet: globals.quiet }.files(&files)
    }
}
