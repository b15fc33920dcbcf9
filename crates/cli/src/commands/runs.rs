//! `gesta runs`: which runs there are, and what waits.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use gesta_run::{Hold, Outcome, RunId, Status, Timestamp};
use gesta_store::{HoldFilter, OpenHold, RunFilter, RunHead};
use serde_json::json;

use super::{Globals, wait_for};
use crate::exit::{Ended, Exit};
use crate::holds;
use crate::live::short;
use crate::place::Place;
use crate::remote::{At, Remote};
use crate::shell::quoted;
use crate::terminal::{Look, Screen};

/// List runs, the newest first, with what waits for someone
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta runs
  gesta runs --status parked              what waits for a person
  gesta runs --outcome model_failed       what can go on, or was given up
  gesta runs --agent desk --limit 100 --json | jq -r .run")]
pub(crate) struct Runs {
    /// Of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only runs that stand like this; `parked` are all that wait for a person, those with an action to approve too
    #[arg(long, value_enum)]
    status: Option<StatusWord>,
    /// Only runs that ended so: `completed`, `max_trips`, `model_failed` and so on
    #[arg(long, value_name = "WORD", value_parser = outcome)]
    outcome: Option<Outcome>,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Print each as JSON, one on a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: At,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StatusWord {
    Open,
    Parked,
    Ended,
}

/// Reads the word of an outcome. Another one is refused with those there are.
fn outcome(word: &str) -> Result<Outcome, String> {
    serde_json::from_value(json!(word)).map_err(|why| why.to_string())
}

impl Runs {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        let status = self.status.map(|status| match status {
            StatusWord::Open => Status::Open,
            StatusWord::Parked => Status::Parked,
            StatusWord::Ended => Status::Ended,
        });
        wait_for(async {
            let (agent, limit, outcome) = (self.agent.clone(), self.limit, self.outcome);
            let filter = RunFilter { agent, status, outcome, limit, ..RunFilter::default() };
            if let Some(remote) = Remote::of(&self.at)? {
                let runs = remote.runs(&filter).await?;
                self.show(&runs, remote.holds(self.agent.as_deref(), None).await?, &remote.flag);
                return Ok(Exit::Done);
            }
            let Some(place) = Place::open_if_there(globals).await? else {
                if !self.json {
                    Screen::stdout().line(Look::Faint, NONE);
                }
                return Ok(Exit::Done);
            };
            let store = place.store();
            let mut runs = store.runs(&filter).await?;
            if runs.is_empty() {
                place.check().await?;
            }
            let waiting = HoldFilter { agent: self.agent.clone(), ..HoldFilter::default() };
            let holds = store.holds(&waiting).await?;
            if matches!(self.status, Some(StatusWord::Parked)) {
                // A run that has ended waits for a person too, where an action of it does.
                for run in holds.iter().map(|open| &open.hold.binding.run_id) {
                    if !runs.iter().any(|head| head.run == *run) {
                        runs.push(store.head(run).await?);
                    }
                }
                runs.sort_by(|a, b| (b.started_at, &b.run).cmp(&(a.started_at, &a.run)));
                runs.truncate(self.limit as usize);
            }
            self.show(&runs, holds, &place.flag);
            place.close().await;
            Ok(Exit::Done)
        })
    }

    fn show(&self, runs: &[RunHead], holds: Vec<OpenHold>, flag: &str) {
        let mut waiting: BTreeMap<RunId, Vec<Hold>> = BTreeMap::new();
        for open in holds {
            waiting.entry(open.hold.binding.run_id.clone()).or_default().push(open.hold);
        }
        let mut screen = Screen::stdout();
        if !self.json {
            let filtered = self.status.is_some() || self.agent.is_some() || self.outcome.is_some();
            return table(&mut screen, runs, &waiting, filtered, flag);
        }
        for head in runs {
            let mut line = json!(head);
            line["holds"] = json!(waiting.get(&head.run).cloned().unwrap_or_default());
            screen.json(&line);
        }
    }
}

/// What is said where nothing was run yet.
const NONE: &str = "no runs; begin one with `gesta chat FOLDER`";

fn table(screen: &mut Screen, runs: &[RunHead], waiting: &BTreeMap<RunId, Vec<Hold>>, filtered: bool, flag: &str) {
    if runs.is_empty() {
        return screen.line(Look::Faint, if filtered { "no run is like that; `gesta runs` lists all" } else { NONE });
    }
    let now = Timestamp(jiff::Timestamp::now().as_millisecond());
    let rows: Vec<[String; 6]> = runs.iter().map(|head| row(head, waiting.get(&head.run), now, flag)).collect();
    let heading = ["RUN", "AGENT", "STATUS", "OUTCOME", "AGE", "WAITS FOR"].map(str::to_owned);
    let mut widths = [0; 6];
    for row in rows.iter().chain([&heading]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let print = |row: &[String; 6]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    screen.line(Look::Faint, &print(&heading));
    for (row, head) in rows.iter().zip(runs) {
        let look = if head.status == Status::Parked { Look::Warn } else { Look::Plain };
        let text = screen.fit(&print(row), 0);
        screen.line(look, &text);
    }
}

fn row(head: &RunHead, holds: Option<&Vec<Hold>>, now: Timestamp, flag: &str) -> [String; 6] {
    let status = match head.status {
        Status::Open => "open",
        Status::Parked => "parked",
        Status::Ended => "ended",
    };
    let outcome = head.outcome.map_or("-", gesta_run::Outcome::as_str);
    let mut waits: Vec<String> = holds.into_iter().flatten().map(|hold| waits_for(hold, now)).collect();
    if head.status == Status::Open && head.held_by.as_ref().is_none_or(|holder| holder.until < now) {
        waits.push(format!("somebody to go on: gesta resume {}{flag}", quoted(short(head.run.as_str()))));
    }
    [
        short(head.run.as_str()).to_owned(),
        head.agent.clone(),
        status.to_owned(),
        outcome.to_owned(),
        age(now.since_ms(head.started_at)),
        waits.join(", "),
    ]
}

fn waits_for(hold: &Hold, now: Timestamp) -> String {
    let expired = if hold.expires_at.is_some_and(|at| at <= now) { ", has expired" } else { "" };
    format!("{} ({}){expired}", hold.name, holds::name(hold))
}

/// How long ago, in the largest unit that fits.
fn age(ms: u64) -> String {
    let seconds = ms / 1000;
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let (length, unit) = units.into_iter().find(|(length, _)| seconds >= *length).unwrap_or((1, "s"));
    format!("{} {unit}", seconds / length)
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn an_age_has_one_unit() {
        let ages = [0, 59_999, 60_000, 7_200_000, 172_800_000].map(age);
        assert_eq!(ages, ["0 s", "59 s", "1 min", "2 h", "2 d"]);
    }
}
