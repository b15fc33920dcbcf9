//! `gesta document check`: whether a document opens, which tools it has, and which grants they need.

use clap::Args;
use gesta_document::{GrantName, Report};
use gesta_run::ToolSpec;
use serde_json::{Value, json};

use super::kept::Whose;
use super::opened::Opening;
use super::told;
use super::watch::watch;
use crate::commands::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::terminal::{Look, Screen};

/// Check a document: where it does not parse, its tools, the grants that they need
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta document check tools.stof
  gesta document check tools.stof --watch             again after each change
  gesta document check tools.stof --add new_tool.stof whether this could be added
  gesta document check tools.stof --json | jq .grants_missing
  gesta document check my-agent --conversation anna   what a conversation has of it, by now

It is opened in a worker as a run would open it: its fields are computed and its #[init] functions run.

Exit codes: 0 it can be opened and every --add is accepted, 2 not, 130 Ctrl-C.")]
pub(super) struct Check {
    #[command(flatten)]
    opening: Opening,
    /// Check what this conversation has of the document, with its added tools and data; FILE is the agent's folder
    #[arg(long, value_name = "NAME", conflicts_with_all = ["watch", "add", "grants", "added_tools", "call_time_max", "grants_max", "unsafe_in_process"])]
    conversation: Option<String>,
    /// Check again whenever a file changes
    #[arg(long)]
    watch: bool,
    /// Print what was found as JSON on one line
    #[arg(long, conflicts_with = "watch")]
    json: bool,
}

impl Check {
    pub(super) fn run(self, globals: &Globals) -> Ended {
        let ended = wait_for(async {
            if self.watch {
                watch(&self.opening.files(), async || self.once(globals).await).await
            } else {
                self.once(globals).await
            }
        });
        match ended {
            Err(failure) if self.json => {
                Screen::stdout().json(&failure.json());
                Ok(failure.exit)
            }
            other => other,
        }
    }

    /// Opens a conversation's document as its next turn would.
    async fn of_conversation(&self, name: &str, globals: &Globals) -> Ended {
        let whose = Whose::of(self.opening.file.clone(), name.to_owned());
        let kept = whose.read(globals).await?;
        let mut session = kept.session(&kept.record);
        let specs = session.specs().await.map_err(|why| told::unopened(&why, &whose.file()))?;
        let added = &session.record().added;
        let mut screen = Screen::stdout();
        if self.json {
            screen.json(&kept.listed(&specs, added));
        } else {
            for tool in added {
                if let Some(why) = &tool.set_aside {
                    screen.text(Look::Warn, "warning: ");
                    screen.line_on(&format!("{} is not offered: {}", tool.name, why.replace('\n', "\n  ")));
                }
            }
            if !globals.quiet {
                let signatures: Vec<String> = specs.iter().map(signature).collect();
                screen.line(Look::Plain, &format!("  {}", signatures.join(", ")));
                let text = format!(
                    "the document of {} can be used: version {}, {} added",
                    kept.name(),
                    kept.version,
                    if added.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", added.len()) }
                );
                screen.line(Look::Good, &text);
            }
        }
        kept.close().await;
        Ok(Exit::Done)
    }

    async fn once(&self, globals: &Globals) -> Ended {
        if let Some(name) = &self.conversation {
            return self.of_conversation(name, globals).await;
        }
        let opened = self.opening.open().await?;
        let file = &self.opening.file;
        let report = opened.pool.check(&opened.base, &opened.terms).await.map_err(|why| told::unopened(&why, file))?;
        let added = if self.opening.add.is_empty() {
            Vec::new()
        } else {
            let session = self.opening.session(&opened).await?;
            session.record().added.iter().map(|tool| tool.name.clone()).collect()
        };
        if self.json {
            Screen::stdout().json(&self.json(&report, &added)?);
        } else {
            self.tell(&report, &added, &opened.walls.to_string(), globals);
        }
        Ok(Exit::Done)
    }

    fn json(&self, report: &Report, added: &[String]) -> Result<Value, Failure> {
        let mut line = serde_json::to_value(report)
            .map_err(|why| Failure::new(Exit::Other, format!("the report cannot be written: {why}"), ""))?;
        line["added"] = json!(added);
        Ok(line)
    }

    fn tell(&self, report: &Report, added: &[String], walls: &str, globals: &Globals) {
        let mut screen = Screen::stdout();
        for warning in &report.warnings {
            screen.text(Look::Warn, "warning: ");
            screen.line_on(warning);
        }
        if globals.quiet {
            return;
        }
        let width = report.tools.iter().map(|tool| signature(tool).chars().count()).max().unwrap_or(0).min(40);
        for tool in &report.tools {
            let head = signature(tool);
            screen.text(Look::Strong, &format!("  {head:width$}"));
            let needs = report.needs.iter().find(|needs| needs.tool == tool.name);
            let needs = needs.map(|needs| format!("  [{}]", names(&needs.grants))).unwrap_or_default();
            let about = screen.fit(&format!("  {}{needs}", tool.description.replace('\n', " ")), width + 4);
            screen.line_on(&format!("  {about}"));
        }
        for name in added {
            screen.line(Look::Good, &format!("  {name} can be added"));
        }
        if !report.grants_missing.is_empty() {
            let missing = names(&report.grants_missing);
            let text = format!("needs {missing}: declare them in agent.toml, or give them here with --grant");
            screen.line(Look::Warn, &text);
        }
        if !report.grants_unused.is_empty() {
            screen.line(Look::Faint, &format!("given and not called by name: {}", names(&report.grants_unused)));
        }
        let adds = if report.adds_tools {
            "an agent can add tools to it"
        } else {
            "an agent cannot add tools to it unless `added_tools` is on"
        };
        screen.line(Look::Faint, adds);
        if globals.verbose > 0 {
            screen.line(Look::Faint, &format!("its data takes {} bytes", report.data_bytes));
            screen.line(Look::Faint, &format!("walls: {walls}"));
        }
        screen.line(Look::Good, &format!("{} can be used", self.opening.file.display()));
    }
}

fn names(grants: &[GrantName]) -> String {
    grants.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// `refund(order_id, amount)`; `limit?` may be left out.
fn signature(tool: &ToolSpec) -> String {
    let required = tool.parameters.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|it| it.as_str() == Some(name)));
    let all = tool.parameters.get("properties").and_then(Value::as_object);
    let params = all.into_iter().flatten().map(|(name, _)| {
        let mark = if is_required(name) { "" } else { "?" };
        format!("{name}{mark}")
    });
    format!("{}({})", tool.name, params.collect::<Vec<_>>().join(", "))
}
