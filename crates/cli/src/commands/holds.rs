//! `gesta holds`: what waits for somebody, the oldest first.

use clap::Args;
use gesta_store::{HoldFilter, OpenHold};

use super::show::moment;
use super::{Globals, wait_for};
use crate::exit::{Ended, Exit};
use crate::holds::{commands_of, lines_of};
use crate::place::Place;
use crate::remote::{At, Remote};
use crate::terminal::{Look, Screen};

/// List what waits for somebody, the oldest first, with the commands that answer it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta holds
  gesta holds --agent desk --tool refund_order
  gesta holds --server https://desk.example.com --json | jq .hold.arguments")]
pub(crate) struct Holds {
    /// Of this agent's runs
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Print each as JSON, one on a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: At,
}

impl Holds {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        wait_for(async {
            if let Some(remote) = Remote::of(&self.at)? {
                let holds = remote.holds(self.agent.as_deref(), self.tool.as_deref()).await?;
                self.show(&holds, &remote.flag);
                return Ok(Exit::Done);
            }
            let place = Place::open_to_read(globals)?;
            let (store, mut holds) = (place.store(), Vec::new());
            let (agent, tool) = (self.agent.clone(), self.tool.clone());
            let mut filter = HoldFilter { agent, tool, ..HoldFilter::default() };
            loop {
                let page = store.holds(&filter).await?;
                let Some(last) = page.last() else { break };
                filter.after = Some(last.cursor());
                holds.extend(page);
            }
            self.show(&holds, &place.flag);
            place.close().await;
            Ok(Exit::Done)
        })
    }

    fn show(&self, holds: &[OpenHold], flag: &str) {
        let mut screen = Screen::stdout();
        if holds.is_empty() && !self.json {
            screen.line(Look::Faint, "nothing waits");
        }
        for open in holds {
            if self.json {
                screen.json(open);
                continue;
            }
            let whose = open.contact.as_ref().map(|contact| format!(", for {contact}")).unwrap_or_default();
            screen.line(Look::Faint, &format!("{}{whose}, since {}", open.agent, moment(open.opened_at)));
            for line in lines_of(&open.hold) {
                screen.line(Look::Warn, &line);
            }
            for command in commands_of(&open.hold, flag) {
                screen.line(Look::Plain, &format!("  {command}"));
            }
        }
    }
}
