//! The stage that a scene is played on: its runs, its clock, and the way of playing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gesta_run::Run;
use gesta_run::event::{Event, EventKind};
use gesta_run::hold::Binding;
use gesta_run::id::{CallId, ConversationId, WantId, WantKind};
use gesta_run::input::{Input, InputKind, Met, Opening};
use gesta_run::outcome::Status;
use gesta_run::plan::{OnMessageWhileParked, Plan};
use gesta_run::time::Timestamp;
use gesta_run::want::Effect;

use crate::play::{LINE_MS, START, Step, Way};
use crate::world::UserLine;
use crate::{deltas, world_print};

/// One run of a scene.
#[derive(Debug)]
struct Track {
    run: Run,
    log: Vec<Event>,
    bindings: BTreeMap<CallId, Binding>,
    calls: BTreeSet<CallId>,
    parked: bool,
    ended: bool,
}

/// Where a scene is played.
#[derive(Debug)]
pub(crate) struct Stage {
    plan: Arc<Plan>,
    way: Way,
    dice: fastrand::Rng,
    tracks: Vec<Track>,
    now: Timestamp,
    /// The clock was set for the next line.
    clock_is_set: bool,
    missing_tools: BTreeSet<String>,
    /// The cancellation signal fired before anything was said.
    cancelled: bool,
}

impl Stage {
    pub(crate) fn new(plan: Arc<Plan>, way: Way) -> Self {
        let seed = if let Way::Cut(seed) = way { seed } else { 0 };
        let now = Timestamp(START.0 - i64::try_from(LINE_MS).unwrap_or(0));
        let dice = fastrand::Rng::with_seed(seed);
        Self {
            plan,
            way,
            dice,
            tracks: Vec::new(),
            now,
            clock_is_set: false,
            missing_tools: BTreeSet::new(),
            cancelled: false,
        }
    }

    /// A stage on which one run has already come so far, at this moment.
    pub(crate) fn of(plan: Arc<Plan>, run: Option<Run>, now: Timestamp) -> Self {
        let mut stage = Self::new(plan, Way::Plainly);
        stage.now = now;
        if let Some(run) = run {
            stage.tracks.push(Track::of(run));
        }
        stage
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn into_logs(self) -> (Vec<Vec<Event>>, Vec<Run>) {
        self.tracks.into_iter().map(|track| (track.log, track.run)).unzip()
    }

    /// Sets the moment at which the next line happens.
    pub(crate) fn set_clock(&mut self, at: Timestamp) {
        self.now = at;
        self.clock_is_set = true;
    }

    /// The next line takes no time.
    pub(crate) fn stand_still(&mut self) {
        self.clock_is_set = true;
    }

    /// Goes on to the next line.
    pub(crate) fn tick(&mut self) {
        if !std::mem::take(&mut self.clock_is_set) {
            self.now = self.now.plus_ms(LINE_MS);
        }
    }

    pub(crate) fn last(&self) -> Option<&Run> {
        self.tracks.last().map(|track| &track.run)
    }

    /// The log of the run that was opened last.
    pub(crate) fn last_log(&self) -> &[Event] {
        self.tracks.last().map_or(&[], |track| track.log.as_slice())
    }

    pub(crate) fn run(&self, track: usize) -> Option<&Run> {
        self.tracks.get(track).map(|track| &track.run)
    }

    pub(crate) fn lose_tool(&mut self, name: &str) {
        self.missing_tools.insert(name.to_owned());
    }

    pub(crate) fn regain_tool(&mut self, name: &str) {
        self.missing_tools.remove(name);
    }

    pub(crate) fn missing_tools(&self) -> Vec<String> {
        self.missing_tools.iter().cloned().collect()
    }

    /// The `NOW:` notice of this moment.
    pub(crate) fn now_text(&self) -> String {
        now_text(self.now, &self.plan.spec.timezone)
    }

    /// The cancellation signal fires ahead of the first run, which finds it.
    pub(crate) fn cancel_first(&mut self) {
        self.cancelled = true;
    }

    /// A new message is about to open a run: what becomes of the one before it in its conversation.
    pub(crate) fn make_room(&mut self, line: &UserLine) -> Result<Option<Step>, String> {
        let conversation = line.conversation.as_deref().map(ConversationId::new);
        let same = |track: &Track| track.run.opening().is_some_and(|opening| opening.conversation == conversation);
        let Some(at) = self.tracks.iter().rposition(same) else { return Ok(None) };
        let run = &self.tracks[at].run;
        let parked = run.status() == Status::Parked;
        if parked && self.plan.spec.on_message_while_parked == OnMessageWhileParked::Refuse {
            let open: Vec<String> = run.holds().iter().map(|hold| hold.id.to_string()).collect();
            return Err(format!("the run before waits for answers to {}", open.join(", ")));
        }
        match run.status() {
            Status::Open => Err("a run is going on".to_owned()),
            Status::Parked => Ok(Some(self.feed(at, InputKind::Superseded, false))),
            Status::Ended if run.can_go_on() => Ok(Some(self.feed(at, InputKind::Superseded, false))),
            Status::Ended => Ok(None),
        }
    }

    /// Opens a run.
    pub(crate) fn open(&mut self, line: &UserLine) -> Step {
        let number = self.tracks.len() + 1;
        let opening = Opening {
            run: line.run.as_deref().map_or_else(|| format!("run-{number}").as_str().into(), Into::into),
            conversation: line.conversation.as_deref().map(Into::into),
            contact: line.contact.as_deref().map(Into::into),
            input: line.parts.clone(),
            now: line.now.clone().unwrap_or_else(|| self.now_text()),
            trace: None,
        };
        self.tracks.push(Track::of(Run::new(self.plan.clone())));
        let mut step = self.feed(number - 1, InputKind::Opened(opening), false);
        if step.refused.is_some() {
            self.tracks.pop();
        } else if std::mem::take(&mut self.cancelled) {
            let then = self.feed(number - 1, InputKind::Cancelled, false);
            step.events.extend(then.events);
            step.faults.extend(then.faults);
            step.wants = then.wants;
        }
        step
    }

    /// The run that a line about this call is for: the latest that knows the call.
    pub(crate) fn track_of(&self, call: &CallId) -> Option<usize> {
        let knows = |track: &Track| track.calls.contains(call);
        self.tracks.iter().rposition(knows).or(self.tracks.len().checked_sub(1))
    }

    pub(crate) fn last_track(&self) -> Option<usize> {
        self.tracks.len().checked_sub(1)
    }

    /// The latest run that wants such a thing; where none does, the latest.
    pub(crate) fn wanting(&self, kind: WantKind, subject: Option<&str>) -> Option<usize> {
        let wanting = (0..self.tracks.len()).rev().find(|track| self.wants(*track, kind, subject));
        wanting.or(self.last_track())
    }

    /// The want that an answer of this kind meets. Where there is none, one that the run does not have.
    pub(crate) fn want(&self, track: usize, kind: WantKind, subject: Option<&str>) -> WantId {
        let wants = self.tracks[track].run.wants();
        let fits = |id: &WantId| id.kind == kind && (subject.is_none() || id.subject.as_deref() == subject);
        let found = wants.into_iter().map(|want| want.id).find(fits);
        found.unwrap_or(WantId { kind, subject: subject.map(Into::into), trip: 0, attempt: 0 })
    }

    /// Whether the run wants such a thing.
    pub(crate) fn wants(&self, track: usize, kind: WantKind, subject: Option<&str>) -> bool {
        let wants = self.tracks[track].run.wants();
        wants.iter().any(|want| want.id.kind == kind && (subject.is_none() || want.id.subject.as_deref() == subject))
    }

    /// The binding under which the call was held, also when the hold is answered by now.
    pub(crate) fn binding(&self, track: usize, call: &CallId) -> Binding {
        let known = self.tracks[track].bindings.get(call).cloned();
        known.unwrap_or_else(|| Binding {
            run_id: format!("run-{}", track + 1).as_str().into(),
            call_id: call.clone(),
            tool: String::new(),
            fingerprint: String::new(),
            config_version: self.plan.hash().to_owned(),
        })
    }

    /// Tells a run something.
    pub(crate) fn feed(&mut self, track: usize, kind: InputKind, crashed: bool) -> Step {
        let kind = self.cut(kind);
        let plan = self.plan.clone();
        let way = self.way;
        let now = self.now;
        let it = &mut self.tracks[track];
        let mut step = Step { track, ..Step::default() };
        if crashed {
            it.run = replayed(&plan, &it.log, &mut step.faults);
        }
        let before: BTreeSet<WantId> = it.run.wants().into_iter().map(|want| want.id).collect();
        match it.run.feed(Input { at: now, kind: kind.clone() }) {
            Ok(events) => step.events = events.to_vec(),
            Err(why) => step.refused = Some(why.to_string()),
        }
        it.log.extend(step.events.iter().cloned());
        if matches!(kind, InputKind::Recovered) {
            step.lost = lost(&before, &it.run);
        }
        match way {
            Way::Twice => feed_again(&mut it.run, Input { at: now, kind }, &mut step),
            Way::Replayed => it.replay(&plan, &mut step.faults),
            Way::Plainly | Way::Cut(_) => {}
        }
        for event in &step.events {
            if let EventKind::Replied { calls, .. } = &event.what {
                it.calls.extend(calls.iter().map(|call| call.id.clone()));
            }
        }
        for hold in it.run.holds() {
            it.bindings.insert(hold.id.clone(), hold.binding.clone());
        }
        step.wants = it.run.wants().into_iter().filter(|want| !before.contains(&want.id)).collect();
        step
    }

    fn cut(&mut self, kind: InputKind) -> InputKind {
        match kind {
            InputKind::Met { want, met: Met::Replied(reply) } if matches!(self.way, Way::Cut(_)) => {
                let pieces = deltas::cut(&reply, &mut self.dice);
                InputKind::Met { want, met: Met::Replied(deltas::fold(&reply, pieces)) }
            }
            other => other,
        }
    }

    /// What is to be said about a run's status, when it has changed.
    pub(crate) fn status_lines(&mut self, track: usize) -> Vec<String> {
        let Some(it) = self.tracks.get_mut(track) else { return Vec::new() };
        let mut lines = Vec::new();
        let parked = it.run.status() == Status::Parked;
        if parked && !std::mem::replace(&mut it.parked, parked) {
            lines.push("parks".to_owned());
        }
        it.parked = parked;
        match it.run.outcome() {
            Some(outcome) if it.run.wants().is_empty() => {
                if !std::mem::replace(&mut it.ended, true) {
                    let error = it
                        .run
                        .result()
                        .error
                        .map(|error| error.message)
                        .filter(|text| !text.is_empty() && text != outcome.as_str());
                    let head = format!("ends: {}", outcome.as_str());
                    lines.push(error.map_or(head.clone(), |text| world_print::said(&format!("{head}:"), &text)));
                }
            }
            Some(_) => {}
            None => it.ended = false,
        }
        lines
    }
}

impl Track {
    fn of(run: Run) -> Self {
        let bindings = run.holds().iter().map(|hold| (hold.id.clone(), hold.binding.clone())).collect();
        Self { run, log: Vec::new(), bindings, calls: BTreeSet::new(), parked: false, ended: false }
    }

    /// Makes the run anew from its log; it must want the same.
    fn replay(&mut self, plan: &Arc<Plan>, faults: &mut Vec<String>) {
        let before = Picture::of(&self.run);
        self.run = replayed(plan, &self.log, faults);
        let after = Picture::of(&self.run);
        if before != after {
            faults.push(format!("a replay differs: {before:?} became {after:?}"));
        }
    }
}

/// What was going on when the process died and is not done again: nobody knows what came of it.
fn lost(before: &BTreeSet<WantId>, run: &Run) -> Vec<CallId> {
    let once = |id: &&WantId| matches!(id.kind, WantKind::Run | WantKind::Perform) && run.want(id).is_none();
    before.iter().filter(once).filter_map(|id| id.subject.as_deref().map(CallId::new)).collect()
}

/// What two runs must have in common to be the same.
#[derive(Debug, PartialEq)]
struct Picture {
    wants: Vec<(WantId, Effect)>,
    status: Status,
    outcome: Option<gesta_run::outcome::Outcome>,
    transcript: String,
}

impl Picture {
    fn of(run: &Run) -> Self {
        Self {
            wants: run.wants().into_iter().map(|want| (want.id, want.effect)).collect(),
            status: run.status(),
            outcome: run.outcome().copied(),
            transcript: serde_json::to_string(run.transcript()).unwrap_or_default(),
        }
    }
}

/// The run that a log gives, written and read as a store does it.
fn replayed(plan: &Arc<Plan>, log: &[Event], faults: &mut Vec<String>) -> Run {
    let written = serde_json::to_vec(log).map_err(|why| why.to_string());
    let stored = written.and_then(|json| gesta_run::json::read_stored::<Vec<Event>>(&json));
    match stored {
        Ok(stored) => Run::replay(plan.clone(), &stored),
        Err(why) => {
            faults.push(format!("the log cannot be stored: {why}"));
            Run::replay(plan.clone(), log)
        }
    }
}

/// The same input once more. It must be refused, or at least change nothing.
fn feed_again(run: &mut Run, input: Input, step: &mut Step) {
    if matches!(input.kind, InputKind::Resumed { .. } | InputKind::Superseded | InputKind::Recovered) {
        return;
    }
    let may_repeat = matches!(input.kind, InputKind::Tick | InputKind::Cancelled | InputKind::Answers { .. });
    let before = Picture::of(run);
    match run.feed(input) {
        Err(_) => {}
        Ok([]) if may_repeat => {}
        Ok(events) => step.faults.push(format!("the second time it was admitted: {events:?}")),
    }
    let after = Picture::of(run);
    if before != after {
        step.faults.push(format!("the second time changed the run: {before:?} became {after:?}"));
    }
}

/// A moment as the `NOW:` notice of a scene shows it.
pub(crate) fn now_text(at: Timestamp, timezone: &str) -> String {
    let seconds = at.0.div_euclid(1_000);
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, date) = date_of(day);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02} UTC, in {timezone}")
}

/// Year, month and day of a number of days since 1970 (proleptic Gregorian calendar).
fn date_of(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_a_date() {
        assert_eq!(now_text(START, "UTC"), "2026-01-01 00:00:00 UTC, in UTC");
        assert_eq!(date_of(11_016), (2000, 2, 29));
    }
}
