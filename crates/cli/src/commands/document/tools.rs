//! `gesta document tools`: the tools of a conversation's document, who wrote each, and switching one off.

use clap::Args;
use gesta_document::{AddedTool, Author, SWITCHED_OFF};
use gesta_run::ToolSpec;

use super::kept::{Kept, Whose};
use super::told;
use crate::commands::show::moment;
use crate::commands::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::terminal::{Look, Screen};

/// List the tools of a conversation's document, or switch one off
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta document tools examples/shop --conversation anna
  gesta document tools examples/shop --conversation anna --disable total_spent
  gesta document tools examples/shop --conversation anna --remove total_spent
  gesta document tools examples/shop --json | jq .added[].source

What is changed counts from the conversation's next turn on. A tool that is switched off keeps its name: the agent \
cannot write another in its place.

Exit codes: 0 done, 1 a run of the conversation is going on, 2 usage or configuration, 5 the store failed.")]
pub(super) struct Tools {
    #[command(flatten)]
    whose: Whose,
    /// Offer this added tool no more; it is kept
    #[arg(long, value_name = "TOOL", group = "change")]
    disable: Option<String>,
    /// Offer it again
    #[arg(long, value_name = "TOOL", group = "change")]
    enable: Option<String>,
    /// Take it out of the document
    #[arg(long, value_name = "TOOL", group = "change")]
    remove: Option<String>,
    /// Print them as JSON on one line
    #[arg(long)]
    json: bool,
}

impl Tools {
    pub(super) fn run(self, globals: &Globals) -> Ended {
        wait_for(async {
            let mut kept = self.whose.read(globals).await?;
            let said = self.change(&mut kept).await?;
            let mut session = kept.session(&kept.record);
            let specs = session.specs().await.map_err(|why| told::failed(&why, &self.whose.file()))?;
            let added = &session.record().added;
            let mut screen = Screen::stdout();
            if self.json {
                screen.json(&kept.listed(&specs, added));
            } else {
                tell(&mut screen, &specs, added);
                if let Some(said) = said.filter(|_| !globals.quiet) {
                    screen.line(Look::Good, &said);
                }
            }
            kept.close().await;
            Ok(Exit::Done)
        })
    }

    /// Changes one tool, and keeps the document.
    async fn change(&self, kept: &mut Kept) -> Result<Option<String>, Failure> {
        let Some(name) = self.disable.as_ref().or(self.enable.as_ref()).or(self.remove.as_ref()) else {
            return Ok(None);
        };
        let Some(at) = kept.record.added.iter().rposition(|tool| tool.name == *name) else {
            let help = "only added tools can be switched off; those of the file are changed there";
            return Err(Failure::usage(format!("no tool `{name}` was added to {}", kept.name()), help));
        };
        let what = if self.remove.is_some() {
            kept.record.added.remove(at);
            "was removed"
        } else if self.disable.is_some() {
            kept.record.added[at].set_aside = Some(SWITCHED_OFF.to_owned());
            "is offered no more"
        } else {
            kept.record.added[at].set_aside = None;
            "is offered again, where it passes the check"
        };
        kept.version = kept.put(&kept.record).await?;
        Ok(Some(format!("{name} {what}")))
    }
}

fn tell(screen: &mut Screen, specs: &[ToolSpec], added: &[AddedTool]) {
    let of_file =
        specs.iter().filter(|spec| !added.iter().any(|tool| tool.name == spec.name && tool.set_aside.is_none()));
    for spec in of_file {
        screen.text(Look::Strong, &format!("  {}", spec.name));
        screen.line_on("  of the file");
    }
    for tool in added {
        screen.text(Look::Strong, &format!("  {}", tool.name));
        screen.line_on(&format!(
            "  {}{}",
            author(tool),
            tool.at.map(|at| format!(", {}", moment(at))).unwrap_or_default()
        ));
        if let Some(why) = &tool.set_aside {
            screen.line(Look::Warn, &format!("    not offered: {}", why.replace('\n', " ")));
        }
        for line in tool.source.trim().lines() {
            screen.line(Look::Faint, &format!("    {line}"));
        }
    }
}

fn author(tool: &AddedTool) -> String {
    match &tool.author {
        Some(Author::Agent { run }) => format!("by the agent, in run {run}"),
        Some(Author::Person { name }) => format!("by {name}"),
        None => "by nobody known".to_owned(),
    }
}
