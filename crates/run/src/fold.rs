//! An event changes the state. It cannot fail: what does not fit is left alone.

use serde_json::Value;

use crate::call::ArgumentsBy;
use crate::event::{Event, EventKind, Resolved};
use crate::grant::GrantCall;
use crate::input::Opening;
use crate::intervention::{Intervention, InterventionKind, InterventionOutcome, Phase as Side};
use crate::message::{CallBlock, Message, Part};
use crate::outcome::Outcome;
use crate::plan::{OnUndecided, Plan, backstops_of};
use crate::reply::{Fault, Finish, Reply};
use crate::rules::{grants, resolve};
use crate::state::{
    ActionStage, Batch, CallState, Ended, Gate, InputLabel, Phase, Stage, State, Watch, WatchStage, has_content,
};
use crate::time::Timestamp;
use crate::tool::Effect;

/// Folds one event into the state, and keeps the account of time spent parked.
pub(crate) fn fold(plan: &Plan, state: &mut State, event: &Event) {
    state.apply(plan, event.at, &event.what);
    state.last_at = event.at;
    match (state.parked(), state.parked_since) {
        (true, None) => state.parked_since = Some(event.at),
        (false, Some(since)) => {
            state.parked_ms = state.parked_ms.saturating_add(event.at.since_ms(since));
            state.parked_since = None;
        }
        _ => {}
    }
}

impl Batch {
    /// A crash hid what came of a call: until someone says it, no other call begins (`spec/contract.md`, 7.5, point 6).
    pub(crate) fn undecided(&self) -> bool {
        self.calls.iter().any(|call| call.stage == Stage::Undecidable)
    }
}

impl State {
    fn apply(&mut self, plan: &Plan, at: Timestamp, what: &EventKind) {
        match what {
            EventKind::Opened { opening, intent } => self.open(plan, at, opening, *intent),
            EventKind::Offered { trip, added, .. } => self.offer(plan, *trip, added),
            EventKind::Replied { reply, calls, .. } => self.reply(plan, at, reply, calls),
            EventKind::ModelFailed { fault, .. } => self.fail(fault),
            EventKind::Decided { call, ruling } => self.decide(plan, at, call, ruling),
            EventKind::Started { call } => self.start(at, call),
            EventKind::Answered { call, end, .. } => self.answer(at, call, end),
            EventKind::GrantAsked { call, n, grant, arguments } => {
                self.ask_grant(plan, at, call, *n, grant, arguments);
            }
            EventKind::GrantDecided { call, n, ruling } => self.decide_grant(plan, at, call, *n, ruling),
            EventKind::GrantStarted { call, n } => self.start_grant(at, call, *n),
            EventKind::GrantAnswered { call, n, end, .. } => self.answer_grant(at, call, *n, end),
            EventKind::Held { call, expires_at } => self.hold(at, call, *expires_at),
            EventKind::HoldAnswered { call, answer, now } => self.hold_answer(plan, at, call, answer, now),
            EventKind::TripEnded { .. } => self.end_trip(plan, at),
            EventKind::Staged { call, needs_approval } => self.stage_action(plan, at, call, *needs_approval),
            EventKind::Attempting { call } => self.move_action(call, ActionStage::Attempting),
            EventKind::Performed { call, attempt } => self.move_action(call, ActionStage::Settled(attempt.clone())),
            EventKind::Discarded { call, reason } => self.move_action(call, ActionStage::Discarded(reason.clone())),
            EventKind::Detected { wanted, error, duration_ms, .. } => self.detect(at, *wanted, error, *duration_ms),
            EventKind::BackstopRan { backstop, prompt, state, error, duration_ms } => {
                self.backstops_ran.insert(*backstop);
                if let Some(state) = state {
                    self.shared = Some(state.clone());
                }
                let done = WatchStage::Done { prompt: prompt.clone(), error: error.clone(), duration_ms: *duration_ms };
                self.watch_mut(|watch| watch.stage = done);
            }
            EventKind::Intervened(intervention) => self.intervene(at, intervention),
            EventKind::FunctionFailed { .. } => {}
            EventKind::Stopped { outcome, message } => {
                if self.stop.is_none() {
                    self.stop = Some((*outcome, message.clone()));
                }
            }
            EventKind::Ended { outcome, message, data } => self.end(at, *outcome, message, data.as_ref()),
            EventKind::Delivered { path } => self.delivered = self.ended.as_ref().map(|_| path.clone()),
            EventKind::Resumed { trips_max, now } => self.resume(at, *trips_max, now),
            EventKind::Recovered => self.recover(plan),
            EventKind::Settled => self.settled = true,
        }
    }

    fn open(&mut self, plan: &Plan, at: Timestamp, opening: &Opening, intent: Option<u32>) {
        if !matches!(self.phase, Phase::New) {
            return;
        }
        self.opened_at = at;
        self.intent = intent;
        self.now.clone_from(&opening.now);
        self.notice();
        self.messages.push(Message::User { parts: opening.input.clone(), prompted: false });
        self.opening = Some(opening.clone());
        let before = backstops_of(&plan.spec, Side::Before);
        self.phase = if before.is_empty() { Phase::Ready } else { Phase::Before(Watch::new(before, at)) };
    }

    pub(crate) fn notice(&mut self) {
        if !self.now.is_empty() {
            self.messages.push(Message::Notice { text: format!("NOW: {}", self.now) });
        }
    }

    fn offer(&mut self, plan: &Plan, trip: u32, added: &[crate::tool::ToolSpec]) {
        if let Ok(Some(list)) = self.tools.with(&plan.tools, added) {
            self.tools = std::sync::Arc::new(list);
        }
        self.offered_for = Some(trip);
    }

    fn fail(&mut self, fault: &Fault) {
        self.usage += fault.usage;
        if matches!(self.phase, Phase::Ready) {
            self.model_failures = self.model_failures.saturating_add(1);
            self.phase = Phase::Final(Outcome::ModelFailed, fault.message.clone());
        }
    }

    fn reply(&mut self, plan: &Plan, at: Timestamp, reply: &Reply, calls: &[Resolved]) {
        if !matches!(self.phase, Phase::Ready) || !self.fits(reply, calls) {
            return;
        }
        let trip = self.trips;
        self.trips += 1;
        self.attempt = 0;
        self.labels.push(self.label);
        self.usage += reply.usage;
        self.text = reply.joined_text().into();
        self.finish_reason.clone_from(&reply.finish_reason);
        if reply.finish == Finish::Length {
            self.push_assistant(without_calls(reply));
            self.phase = Phase::Final(Outcome::LengthLimit, "the provider cut the answer for its length".to_owned());
            return;
        }
        if calls.is_empty() {
            self.phase = self.gate(plan, at, trip, Some(reply.blocks.clone()));
            return;
        }
        self.call_ids.extend(calls.iter().map(|call| call.id.clone()));
        let written = reply.calls().zip(calls).enumerate();
        let states: Vec<CallState> =
            written.map(|(index, (block, resolved))| self.call_of(plan, at, trip, index, block, resolved)).collect();
        let blocks = crate::transcript::assistant_blocks(reply, &states);
        self.phase = Phase::Batch(Box::new(Batch { trip, blocks, calls: states, was_parked: false }));
    }

    /// Every call that may run has one name, and no other call of the run has it.
    fn fits(&self, reply: &Reply, calls: &[Resolved]) -> bool {
        if reply.finish == Finish::Length {
            return true;
        }
        let mut ids = std::collections::BTreeSet::new();
        reply.calls().count() == calls.len()
            && calls.iter().all(|call| ids.insert(&call.id) && !self.call_ids.contains(&call.id))
    }

    fn call_of(
        &self,
        plan: &Plan,
        at: Timestamp,
        trip: u32,
        index: usize,
        block: &CallBlock,
        resolved: &Resolved,
    ) -> CallState {
        let arguments = match &resolved.arguments {
            Some(arguments) => arguments.clone(),
            None => resolve::read_object(&block.arguments).unwrap_or_default().into(),
        };
        let unrunnable = resolved.end.clone().map(Stage::Ended);
        CallState {
            id: resolved.id.clone(),
            name: block.name.clone(),
            raw_arguments: block.arguments.as_str().into(),
            model_arguments: arguments.clone(),
            arguments,
            arguments_by: ArgumentsBy::Model,
            trip,
            index: u32::try_from(index).unwrap_or(u32::MAX),
            recovered: block.recovered,
            stage: unrunnable.unwrap_or(if plan.spec.hook { Stage::Undecided } else { Stage::Allowed }),
            tool: self.tools.get(&block.name).cloned(),
            sound: resolve::is_object(block, resolved.arguments.as_deref()),
            since: at,
            hold_reason: None,
            expires_at: None,
            held: false,
            approved: None,
            grants: Vec::new(),
        }
    }

    pub(crate) fn gate(
        &self,
        plan: &Plan,
        at: Timestamp,
        trip: u32,
        blocks: Option<Vec<crate::message::Block>>,
    ) -> Phase {
        let mut queue = backstops_of(&plan.spec, Side::After);
        queue.retain(|backstop| !self.backstops_ran.contains(backstop));
        let text = self.text.clone();
        Phase::Gate(Box::new(Gate { trip, text, blocks, watch: Watch::new(queue, at), seen: Default::default() }))
    }

    fn watch_mut(&mut self, change: impl FnOnce(&mut Watch)) {
        match &mut self.phase {
            Phase::Before(watch) => change(watch),
            Phase::Gate(gate) => change(&mut gate.watch),
            Phase::New | Phase::Ready | Phase::Batch(_) | Phase::Final(..) | Phase::Ended => {}
        }
    }

    fn detect(&mut self, at: Timestamp, wanted: bool, error: &Option<String>, duration_ms: u64) {
        self.watch_mut(|watch| match error {
            Some(_) => watch.stage = WatchStage::Done { prompt: None, error: error.clone(), duration_ms },
            None if wanted => {
                watch.stage = WatchStage::Running;
                watch.since = at;
            }
            None => watch.advance(at),
        });
        self.leave_before();
    }

    fn leave_before(&mut self) {
        if matches!(&self.phase, Phase::Before(watch) if watch.current().is_none()) {
            self.phase = Phase::Ready;
        }
    }

    fn intervene(&mut self, at: Timestamp, it: &Intervention) {
        self.interventions.push(it.clone());
        let sent = it.prompt.as_ref().filter(|_| it.outcome == InterventionOutcome::Sent);
        if it.kind == InterventionKind::Backstop {
            self.watch_mut(|watch| watch.advance(at));
        } else if let Phase::Gate(gate) = &mut self.phase {
            gate.seen.insert(it.kind);
        }
        let used = u32::from(sent.is_some());
        match it.kind {
            InterventionKind::ActWhenAsked => self.reprompts_used += used,
            InterventionKind::ToolRefusal => self.retries_used += used,
            InterventionKind::Backstop => {}
        }
        let Some(prompt) = sent else {
            self.leave_before();
            return;
        };
        let fits = match it.phase {
            Side::Before => matches!(self.phase, Phase::Before(_)),
            Side::After => matches!(self.phase, Phase::Gate(_)),
        };
        if !fits {
            return;
        }
        if it.phase == Side::After {
            self.push_gate_answer();
            self.phase = Phase::Ready;
            self.label = match it.kind {
                InterventionKind::Backstop => InputLabel::Backstop,
                InterventionKind::ToolRefusal => InputLabel::ToolRefusal,
                InterventionKind::ActWhenAsked => InputLabel::ActWhenAsked,
            };
        }
        self.messages.push(Message::User { parts: vec![Part::text(prompt.clone())], prompted: true });
        self.leave_before();
    }

    fn push_gate_answer(&mut self) {
        if let Phase::Gate(gate) = &mut self.phase
            && let Some(blocks) = gate.blocks.take()
        {
            self.push_assistant(blocks);
        }
    }

    fn push_assistant(&mut self, blocks: Vec<crate::message::Block>) {
        if has_content(&blocks) {
            self.messages.push(Message::Assistant { blocks });
        }
    }

    fn end(&mut self, at: Timestamp, outcome: Outcome, message: &str, data: Option<&Value>) {
        if self.ended.is_some() {
            return;
        }
        self.push_gate_answer();
        self.phase = Phase::Ended;
        self.stop = None;
        self.ended = Some(Ended { outcome, message: message.to_owned(), data: data.cloned(), at });
    }

    fn resume(&mut self, at: Timestamp, trips_max: u32, now: &str) {
        let Some(ended) = self.ended.take() else { return };
        if ended.outcome == Outcome::ModelFailed {
            self.attempt += 1;
        }
        self.parked_ms = self.parked_ms.saturating_add(at.since_ms(ended.at));
        self.offered_for = None;
        self.trips_max = trips_max;
        now.clone_into(&mut self.now);
        self.notice();
        self.label = InputLabel::Resume;
        self.phase = Phase::Ready;
    }

    /// Another process took the run up: what had begun and is not answered has an unknown outcome.
    fn recover(&mut self, plan: &Plan) {
        if let Phase::Batch(batch) = &mut self.phase {
            for call in batch.calls.iter_mut().filter(|call| call.stage == Stage::Executing) {
                let document = call.tool.as_ref().is_some_and(|tool| tool.spec.document);
                if document && !call.grants.iter().any(GrantCall::had_effect) {
                    // It has touched nothing: it is run again, on the document as it was before.
                    grants::leave(call);
                    continue;
                }
                let once = call.tool.as_ref().is_none_or(|tool| tool.spec.effect == Effect::Once);
                if once && call.approved.is_some() && plan.spec.on_undecided == OnUndecided::Ask {
                    call.stage = Stage::Undecidable;
                } else if once {
                    call.stage = Stage::Ended(grants::lost(call));
                }
            }
        }
        let mut hidden = None;
        self.watch_mut(|watch| {
            if watch.stage == WatchStage::Running {
                hidden = watch.current();
                let error = Some("the process died while it ran; it is not run again".to_owned());
                watch.stage = WatchStage::Done { prompt: None, error, duration_ms: 0 };
            }
        });
        self.backstops_ran.extend(hidden);
        for action in self.actions.iter_mut().filter(|action| action.stage == ActionStage::Attempting) {
            action.stage = ActionStage::Lost;
        }
    }
}

fn without_calls(reply: &Reply) -> Vec<crate::message::Block> {
    let is_call = |block: &&crate::message::Block| !matches!(block.kind, crate::message::BlockKind::Call(_));
    reply.blocks.iter().filter(is_call).cloned().collect()
}
