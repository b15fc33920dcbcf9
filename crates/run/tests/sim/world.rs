//! One run in the hands of the dice: it is fed, told things twice, killed and taken up again, and watched meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use gesta_run::{
    Binding, CallId, Effect, Event, EventKind, FeedError, HoldAnswer, HoldKind, HoldReply, Input, InputKind, Met,
    Opening, Outcome, Part, Plan, Run, Stage, Status, Timestamp, ToolEffect, Want, WantId,
};

use super::{dice, sent};

/// Inputs after which a run is left alone.
const STEPS_MAX: usize = 60;

/// Inputs between two replays of the whole log, which cost the square of its length. What differs once goes on to.
const INPUTS_PER_REPLAY: u32 = 3;

pub struct World {
    dice: Rng,
    run: Run,
    pub log: Vec<Event>,
    /// Inputs that were taken.
    taken: u32,
    /// The log as a store gives it back.
    stored: Vec<Event>,
    now: i64,
    pub faults: Vec<String>,
    /// Wants that were there once.
    old: Vec<WantId>,
    /// Holds that were there once, and what was said to them.
    bindings: Vec<Binding>,
    said: Vec<HoldAnswer>,
    /// What this process is doing.
    doing: BTreeSet<WantId>,
    /// How often each thing that has effects was begun, over all processes.
    begun: BTreeMap<WantId, u32>,
}

impl World {
    pub fn new(seed: u64, plan: Arc<Plan>) -> Self {
        Self {
            dice: Rng::with_seed(seed ^ 0x9e37_79b9_7f4a_7c15),
            run: Run::new(plan),
            log: Vec::new(),
            taken: 0,
            stored: Vec::new(),
            now: 0,
            faults: Vec::new(),
            old: Vec::new(),
            bindings: Vec::new(),
            said: Vec::new(),
            doing: BTreeSet::new(),
            begun: BTreeMap::new(),
        }
    }

    pub fn play(&mut self) {
        for _ in 0..STEPS_MAX {
            if !self.faults.is_empty() || (self.run.closed() && dice::one_in(&mut self.dice, 4)) {
                break;
            }
            self.now += i64::from(self.dice.u32(0..900));
            self.step();
        }
        self.watch_replay();
    }

    fn step(&mut self) {
        if self.run.opening().is_none() && !dice::one_in(&mut self.dice, 10) {
            return self.open();
        }
        match self.dice.u32(0..100) {
            0 => self.feed(InputKind::Cancelled),
            1..=4 => self.crash(),
            5..=7 => self.tick(),
            8..=10 => self.feed_stale(),
            11..=12 => self.feed_misfit(),
            13 => self.feed(InputKind::Superseded),
            14..=16 => self.resume(),
            17 => self.open(),
            18..=19 => self.say_again(),
            20..=35 => self.say(),
            _ => self.meet(),
        }
    }

    fn open(&mut self) {
        let input = vec![Part::text(dice::input(&mut self.dice))];
        let now = ["", "Monday"][self.dice.usize(0..2)].to_owned();
        let opening = Opening { run: "r".into(), conversation: None, contact: None, input, now, trace: None };
        self.feed(InputKind::Opened(opening));
    }

    fn tick(&mut self) {
        let due = self.run.next_deadline();
        if let Some(due) = due.filter(|_| self.dice.bool()) {
            self.now = self.now.max(due.0);
        }
        let before = self.log.len();
        self.feed(InputKind::Tick);
        if due.is_some_and(|due| due.0 <= self.now) && self.log.len() == before && self.faults.is_empty() {
            self.fault(format!("a tick at the deadline {due:?} changed nothing"));
        }
    }

    fn resume(&mut self) {
        let trips_max = [None, Some(self.dice.u32(0..8))][self.dice.usize(0..2)];
        self.feed(InputKind::Resumed { trips_max, now: "Tuesday".to_owned() });
    }

    /// Does one thing that the run wants.
    fn meet(&mut self) {
        let wants = self.run.wants();
        if wants.is_empty() {
            return;
        }
        let want = wants[self.dice.usize(0..wants.len())].clone();
        if let Some(met) = self.met(&want.effect) {
            let before = self.log.len();
            self.feed(InputKind::Met { want: want.id.clone(), met });
            if self.log.len() == before && want.effect != Effect::Offer {
                self.fault(format!("{} is wanted and its answer was refused", want.id));
            }
        }
    }

    fn met(&mut self, effect: &Effect) -> Option<Met> {
        let dice = &mut self.dice;
        Some(match effect {
            Effect::Offer => Met::Offered { added: dice::added(dice) },
            Effect::CallModel if dice::one_in(dice, 40) => Met::Failed(dice::fault(dice)),
            Effect::CallModel => Met::Replied(dice::reply(dice)),
            Effect::Decide(_) => Met::Decided(dice::ruling(dice)),
            Effect::RunTool(call) => match self.run.call(call).and_then(asks) {
                Some(n) if dice.bool() => dice::asked(dice, n),
                _ => Met::Answered(dice::answer(dice)),
            },
            Effect::DecideGrant(..) => Met::Decided(dice::ruling(dice)),
            Effect::RunGrant(..) => Met::Answered(dice::answer(dice)),
            Effect::Detect(_) if dice::one_in(dice, 6) => Met::Detected(Err("it fell over".to_owned())),
            Effect::Detect(_) => Met::Detected(Ok(dice.bool())),
            Effect::RunBackstop(_) => Met::Ran(dice::ran(dice)),
            Effect::Deliver => Met::Delivered { path: "inline".to_owned() },
            Effect::Perform(_) if dice.bool() => Met::Performed(gesta_run::Attempt::Performed),
            Effect::Perform(_) => Met::Performed(gesta_run::Attempt::Failed { error: "no".to_owned() }),
            Effect::Hold(_) => return None,
        })
    }

    /// Answers something that is not wanted any more, or that never was.
    fn feed_stale(&mut self) {
        if self.old.is_empty() {
            return;
        }
        let want = self.old[self.dice.usize(0..self.old.len())].clone();
        if self.run.want(&want).is_some() {
            return;
        }
        let all = [Effect::CallModel, Effect::Decide("c1".into()), Effect::RunTool("c1".into()), Effect::Deliver];
        let effect = all[self.dice.usize(0..all.len())].clone();
        let Some(met) = self.met(&effect) else { return };
        self.refused(InputKind::Met { want, met });
    }

    /// Answers a want with what answers another kind of want.
    fn feed_misfit(&mut self) {
        let Some(want) = self.run.wants().into_iter().next() else { return };
        let met = if want.effect == Effect::Deliver {
            Met::Detected(Ok(true))
        } else {
            Met::Delivered { path: String::new() }
        };
        self.refused(InputKind::Met { want: want.id, met });
    }

    /// Answers one or several holds, sometimes wrongly.
    fn say(&mut self) {
        let holds = self.run.holds();
        let mut answers = Vec::new();
        for hold in &holds {
            if self.dice.bool() {
                answers.push(HoldAnswer { binding: hold.binding.clone(), answer: dice::hold_reply(&mut self.dice) });
            }
        }
        if let Some(first) = answers.first_mut().filter(|_| dice::one_in(&mut self.dice, 8)) {
            match self.dice.u32(0..5) {
                0 => first.binding.run_id = "other".into(),
                1 => first.binding.call_id = "other".into(),
                2 => first.binding.tool.push('x'),
                3 => first.binding.fingerprint.clear(),
                _ => first.binding.config_version.clear(),
            }
            return self.refused(InputKind::Answers { answers, missing_tools: Vec::new(), now: String::new() });
        }
        let missing_tools = if dice::one_in(&mut self.dice, 10) { vec!["refund".to_owned()] } else { Vec::new() };
        let before = self.log.len();
        self.feed(InputKind::Answers { answers: answers.clone(), missing_tools, now: "Wednesday".to_owned() });
        if self.log.len() > before {
            self.said.extend(answers);
        }
    }

    /// Says again what was said to a hold before, to the letter or otherwise.
    fn say_again(&mut self) {
        if self.said.is_empty() {
            return;
        }
        let mut again = self.said[self.dice.usize(0..self.said.len())].clone();
        let open = self.run.holds().iter().any(|hold| hold.id == again.binding.call_id);
        let same = self.dice.bool();
        if !same {
            again.answer = HoldReply::Deny { reason: "on second thoughts".to_owned() };
        }
        let before = self.log.len();
        let kind = InputKind::Answers { answers: vec![again], missing_tools: Vec::new(), now: String::new() };
        let told = matches!(self.try_feed(kind), Err(FeedError::Answers(_)));
        let acted = self.log[before..].iter().any(|it| matches!(it.what, EventKind::HoldAnswered { .. }));
        if (!open && !same && !told) || acted {
            self.fault("an answer that was given already counted again".to_owned());
        }
    }

    /// The process dies; another takes the log up.
    fn crash(&mut self) {
        self.run = Run::replay(self.run.plan().clone(), &self.stored);
        self.doing.clear();
        if self.run.opening().is_none() {
            return;
        }
        self.feed(InputKind::Recovered);
    }

    fn refused(&mut self, kind: InputKind) {
        if let Ok(events) = self.try_feed(kind) {
            self.fault(format!("a wrong input was taken: {events:?}"));
        }
    }

    fn feed(&mut self, kind: InputKind) {
        let _ = self.try_feed(kind);
    }

    fn try_feed(&mut self, kind: InputKind) -> Result<usize, FeedError> {
        let before = (self.run.wants(), self.run.status());
        match self.run.feed(Input { at: Timestamp(self.now), kind }) {
            Ok(events) => {
                let events = events.to_vec();
                self.keep(&events);
                self.watch();
                Ok(events.len())
            }
            Err(why) => {
                let same = before == (self.run.wants(), self.run.status());
                if !same || (dice::one_in(&mut self.dice, 8) && !self.same_as_replayed()) {
                    self.fault(format!("an input was refused ({why}) and changed the run"));
                }
                Err(why)
            }
        }
    }

    fn keep(&mut self, events: &[Event]) {
        for event in events {
            let text = serde_json::to_string(event).expect("events are plain data");
            match serde_json::from_str::<Event>(&text) {
                Ok(read) if read == *event => self.stored.push(read),
                Ok(read) => self.fault(format!("{text} comes back as {read:?}")),
                Err(why) => self.fault(format!("{text} is not read again: {why}")),
            }
        }
        self.log.extend_from_slice(events);
    }

    fn same_as_replayed(&self) -> bool {
        let again = Run::replay(self.run.plan().clone(), &self.stored);
        again.wants() == self.run.wants() && again.result() == self.run.result()
    }

    fn watch(&mut self) {
        self.taken += 1;
        if self.taken.is_multiple_of(INPUTS_PER_REPLAY) {
            self.watch_replay();
        }
        let wants = self.run.wants();
        self.watch_wants(&wants);
        self.watch_status(&wants);
        for want in wants {
            self.begin(want);
        }
        self.bindings.extend(self.run.holds().into_iter().map(|hold| hold.binding));
    }

    fn watch_replay(&mut self) {
        if !self.same_as_replayed() {
            self.fault("the replayed run differs".to_owned());
        }
    }

    fn watch_wants(&mut self, wants: &[Want]) {
        let ids: BTreeSet<String> = wants.iter().map(|want| want.id.to_string()).collect();
        if ids.len() != wants.len() {
            self.fault(format!("two wants of one name: {ids:?}"));
        }
        for want in wants {
            match &want.effect {
                Effect::RunTool(call) if self.run.arguments_to_run(call).is_none() => {
                    self.fault(format!("{call} is to run with other arguments than those approved"));
                }
                Effect::CallModel => {
                    let fault = sent::refused(self.run.transcript());
                    if let Some(fault) = fault.or_else(|| self.run.batch_size().gt(&0).then(|| "calls are open".into()))
                    {
                        self.fault(format!("the model is asked with an unsound transcript: {fault}"));
                    }
                }
                _ => {}
            }
        }
    }

    fn watch_status(&mut self, wants: &[Want]) {
        let asks = |it: &&Want| matches!(it.effect, Effect::CallModel | Effect::Offer | Effect::Decide(_));
        let holds = self.run.holds().iter().any(|hold| hold.kind == HoldKind::Call);
        let parked = self.run.outcome().is_none() && holds && !wants.iter().any(|it| asks(&it));
        let shown = self.run.result().outcome == Some(Outcome::StoppedByHook);
        if (self.run.status() == Status::Parked) != parked || shown != parked {
            self.fault(format!("status {:?}, parked: {parked}", self.run.status()));
        }
        if self.run.opening().is_some() && self.run.status() == Status::Open && wants.is_empty() {
            self.fault("an open run wants nothing".to_owned());
        }
        if self.run.plan().spec.live && holds {
            self.fault("a live run holds a call".to_owned());
        }
        let waiting = |call: &CallId| self.run.call(call).is_some_and(|it| it.stage == Stage::Executing);
        if wants.iter().any(|it| matches!(&it.effect, Effect::RunTool(call) if !waiting(call))) {
            self.fault("a call is to run that was not started".to_owned());
        }
    }

    /// A want that appears is performed, once in each process.
    fn begin(&mut self, want: Want) {
        if !self.old.contains(&want.id) {
            self.old.push(want.id.clone());
        }
        if !self.doing.insert(want.id.clone()) {
            return;
        }
        let once = match &want.effect {
            Effect::RunTool(call) => {
                let tool = self.run.call(call).and_then(|it| it.tool.as_ref());
                // A document's call that has called no grant with effects may begin again.
                tool.is_none_or(|it| it.spec.effect == ToolEffect::Once && !it.spec.document)
            }
            Effect::RunGrant(call, n) => {
                let name = self.run.grant(call, *n).map(|it| it.name.clone()).unwrap_or_default();
                self.run.plan().grant(&name).is_none_or(|it| it.effect == ToolEffect::Once)
            }
            Effect::Perform(_) | Effect::RunBackstop(_) => true,
            _ => false,
        };
        let begun = self.begun.entry(want.id.clone()).or_insert(0);
        *begun += 1;
        if once && *begun > 1 {
            self.fault(format!("{} was begun twice", want.id));
        }
    }

    fn fault(&mut self, what: String) {
        self.faults.push(what);
    }
}

/// Which grant a document's call may ask for next, while none is under way.
fn asks(call: &gesta_run::CallState) -> Option<u32> {
    let document = call.tool.as_ref().is_some_and(|tool| tool.spec.document);
    let idle = call.grants().iter().all(|grant| grant.end().is_some());
    (document && idle).then(|| u32::try_from(call.grants().len()).unwrap_or(u32::MAX))
}
