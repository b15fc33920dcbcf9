//! `gesta schema`: the JSON schema of `agent.toml`, so that editors complete it.

use clap::Args;

use crate::exit::{Ended, Exit};
use crate::terminal::Screen;

/// Print the JSON schema of agent.toml
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta schema > agent.schema.json        then, as the first line of agent.toml:
                                          #:schema ./agent.schema.json")]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn run(self) -> Ended {
        let schema = gesta_runtime::folder::schema();
        Screen::stdout().data(&serde_json::to_string_pretty(&schema).unwrap_or_default());
        Ok(Exit::Done)
    }
}
