//! `gesta document guidance`: what a model is told about writing a tool.

use clap::Args;

use crate::exit::{Ended, Exit};
use crate::terminal::Screen;

/// Print what a model is told about writing a tool
///
/// It is put behind the prompt by itself on every trip that offers `add_tool`.
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
