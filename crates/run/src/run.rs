//! The run: told things, it says what happened and what it wants done.

use std::sync::Arc;

use serde_json::Value;

use crate::admit::{self, FeedError};
use crate::event::Event;
use crate::grant::{GrantCall, GrantStage};
use crate::hold::{Binding, Hold, HoldKind, HoldState};
use crate::id::{CallId, WantId, WantKind};
use crate::input::{Input, Opening};
use crate::json::{self, Object};
use crate::message::Message;
use crate::outcome::{Outcome, Status};
use crate::plan::Plan;
use crate::state::{ActionStage, Batch, CallState, Phase, Stage, State, WatchStage};
use crate::time::Timestamp;
use crate::tool::{Accepts, ToolList};
use crate::want::{Effect, Want};
use crate::{fold, follow};

/// One run of an agent: a pure value. It has no I/O, no clock and no randomness, and changes only through
/// [`Run::feed`]; the fold of its events gives it again.
#[derive(Debug, Clone)]
pub struct Run {
    plan: Arc<Plan>,
    state: State,
    fresh: Vec<Event>,
}

impl Run {
    /// A run that has not begun: the first input is [`crate::InputKind::Opened`].
    pub fn new(plan: Arc<Plan>) -> Self {
        let state = State::new(&plan);
        Self { plan, state, fresh: Vec::new() }
    }

    /// The run that this log tells of: it wants the same as the one that wrote it. No function of the author is called.
    pub fn replay<'a>(plan: Arc<Plan>, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut run = Self::new(plan);
        for event in events {
            fold::fold(&run.plan, &mut run.state, event);
        }
        run
    }

    /// Takes one input: admits it, folds its event, and follows with what happens by itself. Gives the events, which
    /// must be stored before what they lead to is performed.
    ///
    /// # Errors
    /// The input is out of turn or bad; nothing changed.
    pub fn feed(&mut self, input: Input) -> Result<&[Event], FeedError> {
        let at = Timestamp(input.at.0.max(self.state.last_at.0));
        let mut failures = Vec::new();
        let admitted = admit::admit(self, Input { at, ..input }, &mut failures)?;
        self.fresh.clear();
        for what in admitted {
            self.push(at, what);
        }
        loop {
            self.report(at, &mut failures);
            match follow::follow(&self.plan, &self.state, at, &mut failures) {
                Some(what) => self.push(at, what),
                None => break,
            }
        }
        self.report(at, &mut failures);
        Ok(&self.fresh)
    }

    /// As [`Run::feed`], for a driver that keeps the events.
    ///
    /// # Errors
    /// As [`Run::feed`].
    pub fn feed_owned(&mut self, input: Input) -> Result<Vec<Event>, FeedError> {
        self.feed(input)?;
        Ok(std::mem::take(&mut self.fresh))
    }

    fn push(&mut self, at: Timestamp, what: crate::event::EventKind) {
        let mut event = admit::event(at, what);
        fold::fold(&self.plan, &mut self.state, &event);
        event.what.forget();
        self.fresh.push(event);
    }

    fn report(&mut self, at: Timestamp, failures: &mut Vec<(String, String)>) {
        for (function, error) in failures.drain(..) {
            self.push(at, crate::event::EventKind::FunctionFailed { function, error });
        }
    }

    /// What the run wants now, derived from its state.
    pub fn wants(&self) -> Vec<Want> {
        let mut wants = Vec::new();
        if self.state.ended.is_some() {
            self.wants_after_end(&mut wants);
            return wants;
        }
        let state = &self.state;
        match &state.phase {
            Phase::Before(watch) => self.wants_of_watch(watch, 0, &mut wants),
            Phase::Gate(gate) => self.wants_of_watch(&gate.watch, gate.trip, &mut wants),
            Phase::Ready if state.stop.is_none() => {
                let offer = self.plan.spec.tools_change && state.offered_for != Some(state.trips);
                wants.push(if offer {
                    want(WantId::of_trip(WantKind::Offer, state.trips, 0), Effect::Offer)
                } else {
                    want(WantId::of_trip(WantKind::Model, state.trips, state.attempt), Effect::CallModel)
                });
            }
            Phase::Batch(batch) => self.wants_of_batch(batch, &mut wants),
            Phase::New | Phase::Ready | Phase::Final(..) | Phase::Ended => {}
        }
        self.wants_of_held_actions(&mut wants);
        wants
    }

    fn wants_of_watch(&self, watch: &crate::state::Watch, trip: u32, wants: &mut Vec<Want>) {
        let Some(backstop) = watch.current() else { return };
        let Some(spec) = self.plan.spec.contract.backstops.get(backstop) else { return };
        let id = |kind, trip| WantId::of_backstop(kind, &spec.name, trip);
        match watch.stage {
            WatchStage::Detecting => wants.push(want(id(WantKind::Detect, trip), Effect::Detect(backstop))),
            WatchStage::Running => wants.push(want(id(WantKind::Backstop, 0), Effect::RunBackstop(backstop))),
            WatchStage::Done { .. } => {}
        }
    }

    fn wants_of_batch(&self, batch: &Batch, wants: &mut Vec<Want>) {
        if let Some(call) = batch.calls.iter().find(|call| call.stage == Stage::Undecided) {
            wants.push(want(WantId::of_call(WantKind::Decide, &call.id), Effect::Decide(call.id.clone())));
            return;
        }
        for call in &batch.calls {
            match call.stage {
                Stage::Executing => {
                    wants.extend(want_of_grant(call));
                    wants.push(want(WantId::of_call(WantKind::Run, &call.id), Effect::RunTool(call.id.clone())));
                }
                Stage::Held | Stage::Undecidable if self.state.stop.is_none() => {
                    wants.push(want(WantId::of_call(WantKind::Hold, &call.id), Effect::Hold(call.id.clone())));
                }
                Stage::Held | Stage::Undecidable => {}
                Stage::Undecided | Stage::Allowed | Stage::Deferred | Stage::Ended(_) => {}
            }
        }
    }

    fn wants_of_held_actions(&self, wants: &mut Vec<Want>) {
        for action in self.state.actions.iter().filter(|action| action.stage == ActionStage::Held) {
            wants.push(want(WantId::of_call(WantKind::Hold, &action.call), Effect::Hold(action.call.clone())));
        }
    }

    fn wants_after_end(&self, wants: &mut Vec<Want>) {
        if self.state.delivered.is_none() && self.delivers() {
            wants.push(want(WantId::of_trip(WantKind::Deliver, 0, 0), Effect::Deliver));
        }
        for action in self.state.actions.iter().filter(|action| action.stage == ActionStage::Attempting) {
            wants.push(want(WantId::of_call(WantKind::Perform, &action.call), Effect::Perform(action.call.clone())));
        }
        self.wants_of_held_actions(wants);
    }

    fn delivers(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Completed | Outcome::LengthLimit))
    }

    /// The want of this name, while it is wanted.
    pub fn want(&self, id: &WantId) -> Option<Want> {
        self.wants().into_iter().find(|want| want.id == *id)
    }

    /// Whether the run goes on.
    pub fn status(&self) -> Status {
        if self.state.ended.is_some() {
            Status::Ended
        } else if self.state.parked() {
            Status::Parked
        } else {
            Status::Open
        }
    }

    /// The outcome, once it is fixed.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.state.ended.as_ref().map(|ended| &ended.outcome)
    }

    /// Whether the run wants nothing any more: the reply is delivered and every action settled.
    pub fn closed(&self) -> bool {
        self.state.ended.is_some() && self.wants().is_empty()
    }

    /// Whether a resuming input could open an ended run again.
    pub fn can_go_on(&self) -> bool {
        self.state.ended.as_ref().is_some_and(|ended| ended.outcome.can_go_on()) && !self.state.settled
    }

    /// The holds that wait for someone outside, in the model's order.
    pub fn holds(&self) -> Vec<Hold> {
        let calls = self.state.batch().into_iter().flat_map(|batch| &batch.calls);
        let stopping = self.state.stop.is_some();
        let of_calls = calls.filter(|call| call.waits() && !stopping).map(|call| {
            let state = if call.stage == Stage::Held { HoldState::Open } else { HoldState::Undecided };
            let accepts = call.tool.as_ref().map_or(Accepts::Any, |tool| tool.spec.accepts);
            Hold {
                id: call.id.clone(),
                kind: HoldKind::Call,
                name: call.name.clone(),
                arguments: Object::clone(&call.model_arguments),
                reason: call.hold_reason.clone(),
                trip: call.trip,
                index: call.index,
                accepts,
                expires_at: call.expires_at,
                state,
                binding: self.binding(&call.id, &call.name, &call.model_arguments),
            }
        });
        // A run that is to end by a stop discards its actions: an answer now would be taken and come to nothing.
        let held = self.state.actions.iter().filter(|action| action.stage == ActionStage::Held && !stopping);
        let of_actions = held.map(|action| Hold {
            id: action.call.clone(),
            kind: HoldKind::Action,
            name: action.tool.clone(),
            arguments: Object::clone(&action.arguments),
            reason: None,
            trip: action.trip,
            index: action.index,
            accepts: Accepts::ApprovalOnly,
            expires_at: action.expires_at,
            state: HoldState::Open,
            binding: self.binding(&action.call, &action.tool, &action.arguments),
        });
        of_calls.chain(of_actions).collect()
    }

    fn binding(&self, call: &CallId, tool: &str, arguments: &Object) -> Binding {
        Binding {
            run_id: self.state.opening.as_ref().map_or_else(|| "".into(), |opening| opening.run.clone()),
            call_id: call.clone(),
            tool: tool.to_owned(),
            fingerprint: json::fingerprint(tool, arguments),
            config_version: self.plan.hash().to_owned(),
        }
    }

    /// All that was said to a hold, in order: a call whose outcome a crash has hidden is answered a second time.
    pub fn hold_answers(&self, call: &CallId) -> &[crate::hold::HoldReply] {
        self.state.answered_holds.get(call).map_or(&[], Vec::as_slice)
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// How the run began, once it has.
    pub fn opening(&self) -> Option<&Opening> {
        self.state.opening.as_ref()
    }

    /// The messages of the run, whole trips only, with the model's own arguments.
    pub fn transcript(&self) -> &[Message] {
        &self.state.messages
    }

    /// The tools that the next model call offers; none where the profile's last trip has to answer.
    pub fn offered(&self) -> Option<&Arc<ToolList>> {
        self.state.offers_tools(&self.plan).then_some(&self.state.tools)
    }

    /// The number of the trip that comes next, or that is going on when the model is being asked.
    pub fn trip(&self) -> u32 {
        self.state.trips
    }

    /// How many model calls of the run failed for good, and so gave no answer.
    pub fn model_failures(&self) -> u32 {
        self.state.model_failures
    }

    /// What causes the trip that comes next.
    pub fn next_label(&self) -> crate::state::InputLabel {
        self.state.label
    }

    /// A call of the answer that is being worked on.
    pub fn call(&self, id: &CallId) -> Option<&CallState> {
        self.state.call(id)
    }

    /// A grant that a running call asked for.
    pub fn grant(&self, call: &CallId, n: u32) -> Option<&GrantCall> {
        self.state.grant(call, n)
    }

    /// How many calls the answer has that is being worked on.
    pub fn batch_size(&self) -> usize {
        self.state.batch().map_or(0, |batch| batch.calls.len())
    }

    /// The arguments a call is to run with, looked at once more just before its body: what was approved is what runs.
    /// Nothing where the call is not to run, or where they differ from what was approved.
    pub fn arguments_to_run(&self, id: &CallId) -> Option<&Object> {
        let call = self.call(id).filter(|call| call.stage == Stage::Executing)?;
        let approved = call.approved.as_ref();
        let same = approved.is_none_or(|it| *it == json::fingerprint(&call.name, &call.arguments));
        same.then_some(&*call.arguments)
    }

    /// A staged action's tool and arguments.
    pub fn action(&self, id: &CallId) -> Option<(&str, &Object)> {
        let action = self.state.actions.iter().find(|action| action.call == *id)?;
        Some((&action.tool, &action.arguments))
    }

    /// Every staged action with how far it has come, in the model's order.
    pub fn actions(&self) -> impl Iterator<Item = (&CallId, &str, &Object, &ActionStage)> {
        self.state.actions.iter().map(|it| (&it.call, it.tool.as_str(), &*it.arguments, &it.stage))
    }

    /// The text of the last answer: the reply, once the run has ended.
    pub fn reply_text(&self) -> &str {
        &self.state.text
    }

    /// The state that the run's backstops share.
    pub fn shared_state(&self) -> Option<&Value> {
        self.state.shared.as_ref()
    }

    /// The answer that is at the gate, while one is: its trip and text.
    pub fn at_gate(&self) -> Option<(u32, &str)> {
        let Phase::Gate(gate) = &self.state.phase else { return None };
        Some((gate.trip, &gate.text))
    }

    /// The moment at which the time budget or the first hold runs out, so that the driver ticks then. A tick at that
    /// moment changes the run.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let state = &self.state;
        if state.stop.is_some() || state.opening.is_none() {
            return None;
        }
        let ended = state.ended.is_some();
        let holds = state.batch().into_iter().flat_map(|batch| &batch.calls);
        let holds = holds.filter(|call| call.stage == Stage::Held).filter_map(|call| call.expires_at);
        let held = state.actions.iter().filter(|it| ended && it.stage == ActionStage::Held);
        let held = held.filter_map(|it| it.expires_at);
        let running = !ended && !state.parked();
        let budget =
            self.plan.spec.limits.seconds_max.filter(|_| running).map(|seconds| {
                state.opened_at.plus_ms(seconds.saturating_mul(1000)).plus_ms(state.parked_ms).plus_ms(1)
            });
        holds.chain(held).chain(budget).min()
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl State {
    pub(crate) fn offers_tools(&self, plan: &Plan) -> bool {
        plan.spec.tools_on_last_trip || self.trips + 1 < self.trips_max
    }
}

/// What a running call waits for, where it asked for a grant.
fn want_of_grant(call: &CallState) -> Option<Want> {
    let n = u32::try_from(call.grants.len().checked_sub(1)?).unwrap_or(u32::MAX);
    let id = |kind| WantId::of_grant(kind, &call.id, n);
    match call.grants.last()?.stage {
        GrantStage::Undecided => Some(want(id(WantKind::DecideGrant), Effect::DecideGrant(call.id.clone(), n))),
        GrantStage::Executing => Some(want(id(WantKind::Grant), Effect::RunGrant(call.id.clone(), n))),
        GrantStage::Allowed | GrantStage::Ended(_) => None,
    }
}

fn want(id: WantId, effect: Effect) -> Want {
    Want { id, effect }
}
