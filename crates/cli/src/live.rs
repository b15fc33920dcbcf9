//! A run while it goes on: shows what happens as it happens, and lets Ctrl-C end it.

use std::future::Future;
use std::sync::Arc;

use gesta_run::{Delta, Outcome, RunResult, Status};
use gesta_runtime::{Cancel, Listener, Progress};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::render::{Teller, Told, Voice};
use crate::shell::quoted;
use crate::terminal::{Look, Screen};

/// Where it goes what is not the model's text.
pub(crate) enum Notes<'a> {
    /// Between the text.
    Between,
    /// To another screen.
    Beside(&'a mut Screen),
    /// To another screen, as long as it belongs to a run that was left before.
    Before(&'a mut Screen),
    /// Nowhere.
    Nowhere,
}

/// What is shown of a run that goes on.
pub(crate) struct Live<'a> {
    /// What the model says.
    text: &'a mut Screen,
    notes: Notes<'a>,
    teller: Teller,
    /// Also what is usually left out.
    details: bool,
    /// Some text of the present answer was shown as it came.
    streamed: bool,
    /// The run that was asked for has begun: what happens belongs to it.
    begun: bool,
    /// Something was told of a run that was left before.
    took_up: bool,
}

/// Someone pressed Ctrl-C a second time: nothing is waited for any more.
pub(crate) struct Left;

/// From now on Ctrl-C is a signal to this program and no longer its end, also between two things that are waited for.
pub(crate) async fn take_ctrl_c() {
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => {}
        () = std::future::ready(()) => {}
    }
}

/// A signal that ends the run, and a listener whose news arrive at the other end.
pub(crate) struct Line {
    /// Ends the run.
    pub(crate) cancel: Cancel,
    /// For the run.
    pub(crate) listener: Listener,
    news: UnboundedReceiver<Progress>,
}

impl Line {
    /// A fresh one.
    pub(crate) fn new() -> Self {
        let (send, news) = mpsc::unbounded_channel();
        // Nobody listens any more only when the command is over.
        let listener: Listener = Arc::new(move |progress| drop(send.send(progress)));
        Self { cancel: Cancel::new(), listener, news }
    }
}

impl<'a> Live<'a> {
    /// Shows a run on these screens.
    pub(crate) fn new(text: &'a mut Screen, notes: Notes<'a>, teller: Teller, details: bool) -> Self {
        Self { text, notes, teller, details, streamed: false, begun: true, took_up: false }
    }

    /// For a turn that has not begun yet: a run that was left in its conversation may be taken up first. What that one
    /// says is no answer to this turn, and goes to the notes.
    #[must_use]
    pub(crate) fn of_turn(mut self) -> Self {
        self.begun = false;
        self
    }

    /// Waits for the work and shows what it tells meanwhile. Ctrl-C cancels it; a second one leaves it as a crash would.
    ///
    /// # Errors
    /// It was left.
    pub(crate) async fn follow<T>(&mut self, work: impl Future<Output = T>, line: Line) -> Result<T, Left> {
        let Line { cancel, mut news, .. } = line;
        tokio::pin!(work);
        // Kept over the loop: a new one would miss what was pressed between two of them.
        let mut pressed = Box::pin(tokio::signal::ctrl_c());
        loop {
            tokio::select! {
                biased;
                Some(progress) = news.recv() => self.progress(&progress),
                listening = &mut pressed => {
                    if cancel.is_cancelled() && listening.is_ok() {
                        return Err(Left);
                    }
                    if listening.is_ok() {
                        cancel.cancel();
                        self.note(Look::Warn, "cancelling; Ctrl-C again leaves at once");
                    }
                    pressed = Box::pin(tokio::signal::ctrl_c());
                }
                done = &mut work => {
                    while let Ok(progress) = news.try_recv() {
                        self.progress(&progress);
                    }
                    self.text.end_line();
                    return Ok(done);
                }
            }
        }
    }

    fn progress(&mut self, progress: &Progress) {
        match progress {
            Progress::Started { .. } if !self.begun => {
                self.begun = true;
                if std::mem::take(&mut self.took_up) {
                    self.note(Look::Warn, "now to what was said:");
                }
            }
            Progress::TakenUp { events, .. } => self.teller.know(events),
            Progress::TripStarted { .. } => self.streamed = false,
            Progress::Delta { delta: Delta::Text { text, .. }, .. } if self.begun => {
                self.streamed |= !text.is_empty();
                self.text.prose(Look::Plain, text);
                self.text.flush();
            }
            Progress::Happened(event) => {
                for told in self.teller.event(event) {
                    self.tell(&told);
                }
            }
            Progress::Finished(result) if !self.begun => {
                let text = format!("that was {}", summary(result));
                self.note(Look::Faint, &text);
            }
            Progress::Started { .. } | Progress::Delta { .. } | Progress::Finished(_) => {}
        }
    }

    fn tell(&mut self, told: &Told) {
        if !self.begun && !std::mem::replace(&mut self.took_up, true) {
            self.note(Look::Warn, "the turn before was left unfinished, and is taken up first:");
        }
        match told.voice {
            Voice::User => {}
            Voice::Model if !self.begun => self.note_whole(told.look, &format!("it says: {}", told.text)),
            Voice::Model if self.streamed => self.text.end_line(),
            Voice::Model => self.text.prose_line(&told.text),
            Voice::Deed if told.detail && !self.details => {}
            Voice::Deed => self.note(told.look, &told.text),
        }
    }

    /// A line beside the answer, cut to the screen.
    fn note(&mut self, look: Look, text: &str) {
        self.note_as(look, text, !self.details);
    }

    fn note_whole(&mut self, look: Look, text: &str) {
        self.note_as(look, text, false);
    }

    fn note_as(&mut self, look: Look, text: &str, fit: bool) {
        self.text.end_line();
        let screen = match &mut self.notes {
            Notes::Between => &mut *self.text,
            Notes::Beside(screen) => screen,
            Notes::Before(screen) if !self.begun => screen,
            Notes::Before(_) | Notes::Nowhere => return,
        };
        // A caret means nothing unless it stands below its place.
        let whole = !fit || has_caret(text);
        let text = if whole { text.replace('\n', "\n  ") } else { screen.fit(text, 2) };
        screen.line(look, &format!("  {text}"));
    }
}

/// Whether a text shows a line of a source with a caret below it.
fn has_caret(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with('|') && line.ends_with('^'))
}

/// One line about how a run stands.
pub(crate) fn summary(result: &RunResult) -> String {
    let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let status = match (result.status, result.outcome) {
        (Status::Parked, _) => "parked",
        (_, Some(outcome)) => outcome.as_str(),
        (_, None) => "open",
    };
    let mut parts = vec![
        status.to_owned(),
        count(result.trips as usize, "trip"),
        count(result.tool_calls.len(), "call"),
        seconds(result.report.duration_ms),
    ];
    if result.usage.total > 0 {
        parts.push(count(usize::try_from(result.usage.total).unwrap_or(usize::MAX), "token"));
    }
    if let Some(cost) = result.cost_usd.filter(|cost| *cost > 0.0) {
        parts.push(format!("{cost:.4} USD"));
    }
    parts.push(format!("run {}", short(result.report.run_id.as_str())));
    parts.join(", ")
}

/// How a person goes on with a run that failed and can go on, with what no event has told: why the store failed.
/// `flag` names the data folder.
pub(crate) fn ways_on(result: &RunResult, flag: &str) -> Vec<(Look, String)> {
    let go_on =
        format!("help: go on from here with `gesta resume {}{flag}", quoted(short(result.report.run_id.as_str())));
    match (result.outcome, &result.error) {
        (Some(Outcome::StoreFailed), Some(error)) => {
            let go_on = format!("{go_on}` once that is mended");
            vec![(Look::Bad, format!("  ends: store_failed: {}", error.message)), (Look::Plain, go_on)]
        }
        (Some(Outcome::ModelFailed), _) => vec![(Look::Plain, format!("{go_on}`"))],
        (Some(Outcome::MaxTrips), _) => vec![(Look::Plain, format!("{go_on} --trips N`"))],
        _ => Vec::new(),
    }
}

/// Milliseconds as seconds.
pub(crate) fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

/// The beginning of a run's id that is enough to name it: its time to the millisecond.
pub(crate) fn short(run: &str) -> &str {
    run.get(..13).unwrap_or(run)
}
