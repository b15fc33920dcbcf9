//! `gesta completions`: what a shell needs to complete commands.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::exit::{Ended, Exit};
use crate::terminal::Screen;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta completions bash > ~/.local/share/bash-completion/completions/gesta
  gesta completions zsh > ~/.zfunc/_gesta
  gesta completions fish > ~/.config/fish/completions/gesta.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Ended {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "gesta", &mut script);
        Screen::stdout().data(&String::from_utf8_lossy(&script));
        Ok(Exit::Done)
    }
}
