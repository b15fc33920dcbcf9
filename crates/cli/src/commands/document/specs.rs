//! `gesta document specs`: the tools of a document as a model is told of them.

use clap::Args;

use super::opened::Opening;
use super::told;
use crate::commands::wait_for;
use crate::exit::{Ended, Exit};
use crate::terminal::Screen;

/// Print the tools as the model is told of them: name, description and a JSON schema
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta document specs tools.stof | jq .[].name
  gesta document specs tools.stof --add new_tool.stof

A document that defines `tool_specs` is asked; for any other the schema is made of the parameters: their types, those \
without a default as `required`, and the comments above the function as descriptions.

Exit codes: 0 printed, 2 usage, or the document cannot be opened.")]
pub(super) struct Specs {
    #[command(flatten)]
    opening: Opening,
}

impl Specs {
    pub(super) fn run(self) -> Ended {
        wait_for(async {
            let opened = self.opening.open().await?;
            let mut session = self.opening.session(&opened).await?;
            let specs = session.specs().await.map_err(|why| told::failed(&why, &self.opening.file))?;
            let shown: Vec<_> = specs
                .iter()
                .map(|tool| {
                    serde_json::json!({
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    })
                })
                .collect();
            Screen::stdout().data(&serde_json::to_string_pretty(&shown).unwrap_or_default());
            Ok(Exit::Done)
        })
    }
}
