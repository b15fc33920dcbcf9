//! `gesta init`: a new agent's folder that runs at once.

use std::path::PathBuf;

use clap::Args;
use gesta_runtime::folder::init::{InitError, init};

use super::Globals;
use crate::exit::{Ended, Exit, Failure};
use crate::shell::quoted;
use crate::terminal::{Look, Screen};

/// Make a new agent's folder, which runs at once and without a key
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta init my-agent
  gesta chat my-agent

Files that are there already are left as they are.")]
pub(crate) struct Init {
    /// The folder; it is made where it is not there
    dir: PathBuf,
}

impl Init {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        let written = init(&self.dir).map_err(|why| match why {
            InitError::Exists(_) => Failure::usage(why.to_string(), format!("try `gesta chat {}`", quoted(&self.dir))),
            other => Failure::usage(other.to_string(), "name a folder that can be written"),
        })?;
        let mut screen = Screen::stdout();
        for path in &written {
            screen.line(Look::Plain, &path.display().to_string());
        }
        if !globals.quiet {
            let dir = quoted(&self.dir);
            screen.line(
                Look::Faint,
                &format!(
                    "talk to it with `gesta chat {dir}`; check it with `gesta check {dir}` and `gesta test {dir}`"
                ),
            );
        }
        Ok(Exit::Done)
    }
}
