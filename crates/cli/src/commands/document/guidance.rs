//! `gesta document guidance`: what a model is told about writing a tool.

use clap::Args;

use crate::exit::{Ended, Exit};
use crate::terminal::Screen;

/// Print what a model is told about writing a tool
///
/// A short text with examples of the language. It is put behind the prompt by itself on every trip that offers
/// `add_tool`, so that nothing has to be copied; read it to see what a model knows of your document.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta document guidance | less

Exit codes: 0 printed.")]
pub(super) struct Guidance {}

impl Guidance {
    pub(super) fn run(self) -> Ended {
        Screen::stdout().data(gesta_document::ADD_TOOL_GUIDANCE);
        Ok(Exit::Done)
    }
}
