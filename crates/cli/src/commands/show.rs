//! `gesta show`: what happened in a run, and why.

use clap::Args;
use gesta_run::event::EventKind;
use gesta_run::{Event, RunResult, Status, Timestamp};
use gesta_store::RunHead;

use super::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::holds;
use crate::live::summary;
use crate::place::Place;
use crate::remote::{At, Remote};
use crate::render::{Teller, Told, Voice};
use crate::stored::{self, Shown};
use crate::terminal::{Look, Screen};

/// Show what happened in a run, and why
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta show last                         the newest run, as a conversation with times
  gesta show 01a2b3c4 -v                  also tokens, decisions and what each trip cost
  gesta show last --scene > bug.scene     as a scene that can be played and kept as a test
  gesta show last --json | jq .contract   the result as programs get it
  gesta show last --wire                  the exact exchanges with the model, where they were kept")]
pub(crate) struct Show {
    /// The run: its id, the beginning of it, or `last`
    run: String,
    /// As a scene
    #[arg(long, group = "form")]
    scene: bool,
    /// The result as JSON, on one line
    #[arg(long, group = "form")]
    json: bool,
    /// The events of its log as JSON, one on a line
    #[arg(long, group = "form")]
    events: bool,
    /// The exact exchanges with the model
    #[arg(long, group = "form")]
    wire: bool,
    #[command(flatten)]
    at: At,
}

impl Show {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        if let Some(remote) = Remote::of(&self.at)? {
            return wait_for(self.from(globals, &remote));
        }
        let place = Place::open_to_read(globals)?;
        wait_for(async {
            let store = place.store();
            let head = stored::find(&place, &self.run).await?;
            let mut screen = Screen::stdout();
            if self.events {
                for event in store.load(&head.run).await?.events {
                    screen.json(&event);
                }
            } else if self.wire {
                wire(&mut screen, store.wire(&head.run).await?)?;
            } else {
                let shown = stored::read(&store, &head.run).await?;
                self.tell(&mut screen, globals, &shown, &place.flag);
            }
            screen.end_line();
            place.close().await;
            Ok(Exit::Done)
        })
    }
}

impl Show {
    async fn from(&self, globals: &Globals, remote: &Remote) -> Ended {
        if self.wire {
            let help = "read them where the server's data folder is, without --server";
            return Err(Failure::usage("exchanges with the model are not told over HTTP", help));
        }
        let shown = remote.read(&self.run).await?;
        let mut screen = Screen::stdout();
        if self.events {
            shown.stored.events.iter().for_each(|event| screen.json(event));
        } else {
            self.tell(&mut screen, globals, &shown, &remote.flag);
        }
        screen.end_line();
        Ok(Exit::Done)
    }

    fn tell(&self, screen: &mut Screen, globals: &Globals, shown: &Shown, flag: &str) {
        if self.scene {
            let scene = gesta_scene::from_log(&shown.run.plan().spec, &shown.stored.events);
            screen.data(&scene);
        } else if self.json {
            screen.json(&shown.run.result());
        } else {
            page(screen, globals, shown, flag);
        }
    }
}

fn wire(screen: &mut Screen, exchanges: Vec<gesta_store::WireRecord>) -> Result<(), Failure> {
    if exchanges.is_empty() {
        return Err(Failure::usage(
            "no exchange of this run was kept",
            "set `wire = true` under `[storage]` in agent.toml; a scripted model has none",
        ));
    }
    for it in exchanges {
        screen.line(Look::Strong, &format!("# trip {}, attempt {}, {}", it.trip, it.attempt, moment(it.at)));
        screen.data(&format!("{}\n\n{}\n\n", it.request.trim_end(), it.response.trim_end()));
    }
    Ok(())
}

/// Shows a run to a person.
pub(crate) fn page(screen: &mut Screen, globals: &Globals, shown: &Shown, flag: &str) {
    Page { screen, details: globals.verbose > 0 }.run(shown, flag);
}

/// A run, told to a person.
struct Page<'a> {
    screen: &'a mut Screen,
    details: bool,
}

/// How wide the column of times is.
const MARGIN: usize = 10;

impl Page<'_> {
    fn run(&mut self, shown: &Shown, flag: &str) {
        let result = shown.run.result();
        self.heading(&shown.stored.head, &result, &shown.run.plan().spec.model);
        let mut teller = Teller::new(&shown.run.plan().spec);
        let begun = result.report.started_at;
        for event in &shown.stored.events {
            for told in teller.event(event) {
                if self.details || !told.detail {
                    self.told(event, begun, &told);
                }
            }
        }
        self.screen.line(Look::Plain, "");
        self.screen.line(Look::Plain, &summary(&result));
        self.why(&result);
        for hold in &result.deferred {
            for line in holds::lines_of(hold) {
                self.screen.line(Look::Warn, &line);
            }
            for command in holds::commands_of(hold, flag) {
                self.screen.line(Look::Plain, &format!("  {command}"));
            }
        }
    }

    fn heading(&mut self, head: &RunHead, result: &RunResult, model: &str) {
        let version = &result.report.agent_version;
        let version = if version.is_empty() { String::new() } else { format!(" {version}") };
        self.screen.line(Look::Strong, &format!("run {}", head.run));
        let conversation = head.conversation.as_ref().map(|it| format!(", conversation {it}")).unwrap_or_default();
        let text = format!("of {}{version}, model {model}{conversation}, {}", head.agent, moment(head.started_at));
        let text = self.screen.fit(&text, 0);
        self.screen.line(Look::Faint, &text);
        self.screen.line(Look::Plain, "");
    }

    fn told(&mut self, event: &Event, begun: Timestamp, told: &Told) {
        let after = event.at.since_ms(begun);
        let time = format!("{:>4}.{:03}  ", after / 1000, after % 1000);
        let (who, indent) = match told.voice {
            Voice::User => ("user: ", MARGIN),
            Voice::Model => ("model: ", MARGIN),
            Voice::Deed => ("", MARGIN + 2),
        };
        self.screen.text(Look::Faint, &time);
        self.screen.text(Look::Plain, &" ".repeat(indent - MARGIN));
        self.screen.text(Look::Strong, who);
        let long = told.voice == Voice::Deed && !self.details;
        let text = if long { self.screen.fit(&told.text, indent) } else { told.text.clone() };
        let mut lines = text.trim_end().lines();
        let prose = told.voice != Voice::Deed;
        let say = |screen: &mut Screen, text: &str| {
            if prose {
                screen.prose(told.look, text)
            } else {
                screen.text(told.look, text)
            }
            screen.end_line();
        };
        say(self.screen, lines.next().unwrap_or_default());
        for line in lines {
            say(self.screen, &format!("{}{line}", " ".repeat(indent)));
        }
        if let EventKind::Opened { opening, .. } = &event.what
            && self.details
        {
            self.screen.line(Look::Faint, &format!("{}NOW: {}", " ".repeat(MARGIN), opening.now));
        }
    }

    /// What the contract makes of it.
    fn why(&mut self, result: &RunResult) {
        let contract = &result.contract;
        let asked = match (contract.asked, contract.acted, result.status) {
            (true, true, _) => "a change was asked for, and made",
            (true, false, Status::Ended) => "a change was asked for, and not made",
            (true, false, _) => "a change was asked for, and not made yet",
            (false, ..) => "",
        };
        if !asked.is_empty() {
            self.screen.line(if contract.acted { Look::Good } else { Look::Warn }, asked);
        }
        for refusal in &contract.refusals {
            self.screen.line(
                Look::Warn,
                &format!("{} refused, and no later call made it good: {}", refusal.tool, refusal.reason),
            );
        }
        for unmet in &contract.unmet {
            self.screen.line(Look::Warn, &format!("not met: {unmet}"));
        }
        if let Some(error) = &result.error {
            self.screen.line(Look::Bad, &format!("{}: {}", error.code, error.message));
        }
    }
}

/// A moment in the zone of whoever looks.
pub(crate) fn moment(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    moment.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}
