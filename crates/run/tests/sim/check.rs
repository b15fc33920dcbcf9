//! What must hold of every log, found out from its events alone: the machine's own state is not asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gesta_run::{
    CallId, CallStatus, Decision, Event, EventKind, Finish, HoldReply, Intervention, InterventionKind,
    InterventionOutcome, OnHookError, OnUndecided, Outcome, Phase, Plan, Reply, Run, Timestamp, ToolEffect, ToolSpec,
};

use super::{grants, order, sent};

/// How far a call has come, as the log tells it.
#[derive(Debug, Clone, Default)]
struct Call {
    trip: u32,
    tool: Option<ToolSpec>,
    ends: u32,
    decided: bool,
    started: bool,
    deferred: bool,
    held: bool,
    approved: bool,
    undecided: bool,
    edit_is_open: bool,
    handed_in: bool,
    staged: bool,
    /// Of each grant it asked for: whether it does more than read.
    grants: Vec<bool>,
    /// A grant with effects has begun.
    touched: bool,
}

#[derive(Debug, Clone, Default)]
struct Action {
    held: bool,
    begun: u32,
    settled: u32,
    discarded: bool,
}

#[derive(Default)]
struct Ledger {
    at: Timestamp,
    opened: bool,
    asked: bool,
    added: Vec<ToolSpec>,
    trips: u32,
    trips_max: u32,
    calls: BTreeMap<CallId, Call>,
    open_trip: Option<u32>,
    ran: BTreeSet<usize>,
    /// Backstops that ran, until what came of it is recorded.
    unrecorded: BTreeSet<usize>,
    retries: u32,
    reprompts: u32,
    prompts: u32,
    on_answer: BTreeSet<(InterventionKind, Option<String>)>,
    sent_on_answer: bool,
    actions: BTreeMap<CallId, Action>,
    stopped: Option<Outcome>,
    ended: Option<Outcome>,
    settled: bool,
    delivered: bool,
    faults: Vec<String>,
}

/// Everything about this log that must not be.
pub fn check(plan: &Arc<Plan>, log: &[Event]) -> Vec<String> {
    let mut ledger = Ledger { trips_max: plan.spec.limits.trips_max, ..Ledger::default() };
    for event in log {
        if event.at < ledger.at {
            ledger.fault("time goes backwards");
        }
        ledger.at = event.at;
        ledger.order_of(&event.what);
        ledger.of_run(plan, &event.what);
        ledger.of_call(plan, &event.what);
        ledger.of_action(plan, &event.what);
        ledger.of_contract(plan, &event.what);
    }
    ledger.faults.extend(grants::check(plan, log));
    let run = Run::replay(plan.clone(), log);
    if let Some(fault) = sent::refused(run.transcript()) {
        ledger.fault(format!("the transcript cannot be sent: {fault}"));
    }
    ledger.faults
}

impl Ledger {
    fn fault(&mut self, what: impl Into<String>) {
        self.faults.push(what.into());
    }

    fn must(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(what());
        }
    }

    /// What may stand where.
    fn order_of(&mut self, what: &EventKind) {
        let opens = matches!(what, EventKind::Opened { .. });
        self.must(opens != self.opened, || format!("not begun, or begun twice: {what:?}"));
        self.opened |= opens;
        let after_end = matches!(
            what,
            EventKind::Delivered { .. }
                | EventKind::Attempting { .. }
                | EventKind::Performed { .. }
                | EventKind::Discarded { .. }
                | EventKind::HoldAnswered { .. }
                | EventKind::Resumed { .. }
                | EventKind::Recovered
                | EventKind::Settled
        );
        let during = !matches!(
            what,
            EventKind::Delivered { .. } | EventKind::Attempting { .. } | EventKind::Resumed { .. } | EventKind::Settled
        );
        let fits = if self.ended.is_some() { after_end } else { during };
        self.must(fits, || format!("out of place: {what:?}"));
        // What somebody approved is carried on when a new message, or the time, closes the other holds.
        let carried_on = match what {
            EventKind::Started { call } | EventKind::Staged { call, .. } => {
                matches!(self.stopped, Some(Outcome::Superseded | Outcome::Expired))
                    && self.calls.get(call).is_some_and(|call| call.approved)
            }
            _ => false,
        };
        let closing = carried_on || order::closes(what);
        let stopping = self.stopped.is_some() && self.ended.is_none();
        self.must(!stopping || closing, || format!("a stopped run goes on: {what:?}"));
    }

    fn of_run(&mut self, plan: &Plan, what: &EventKind) {
        match what {
            EventKind::Opened { intent, .. } => {
                self.asked = intent.is_some();
                self.must(intent.is_none() || plan.spec.contract.act_when_asked.is_some(), || {
                    "an intent of none".into()
                });
            }
            EventKind::Offered { trip, added, .. } => {
                self.added.clone_from(added);
                self.must(plan.spec.tools_change, || "tools are offered anew and do not change".to_owned());
                self.must(*trip == self.trips, || format!("tools offered for trip {trip}"));
            }
            EventKind::ModelFailed { trip, .. } => {
                self.must(self.open_trip.is_none(), || "the model was asked while calls were open".to_owned());
                self.must(*trip == self.trips, || format!("trip {trip} failed out of order"));
            }
            EventKind::Replied { trip, reply, calls } => self.replied(plan, *trip, reply, calls),
            EventKind::Stopped { outcome, .. } => {
                self.must(self.stopped.is_none(), || "stopped twice".to_owned());
                self.stopped = Some(*outcome);
            }
            EventKind::Ended { outcome, .. } => {
                self.must(self.open_trip.is_none(), || "ended while calls were open".to_owned());
                let stopped = self.stopped;
                self.must(stopped.is_none_or(|it| it == *outcome), || {
                    format!("stopped {stopped:?}, ended {outcome:?}")
                });
                self.must(*outcome != Outcome::StoppedByHook, || "parked is no end".to_owned());
                self.ended = Some(*outcome);
                self.stopped = None;
            }
            EventKind::Resumed { trips_max, .. } => {
                let may = self.ended.is_some_and(Outcome::can_go_on) && !self.settled;
                self.must(may, || "resumed and could not go on".to_owned());
                self.must(*trips_max > self.trips && *trips_max >= self.trips_max, || {
                    "resumed without trips".to_owned()
                });
                self.trips_max = *trips_max;
                self.ended = None;
            }
            EventKind::Delivered { .. } => {
                let reply = matches!(self.ended, Some(Outcome::Completed | Outcome::LengthLimit));
                self.must(reply && !self.delivered, || "delivered twice, or nothing".to_owned());
                self.delivered = true;
            }
            EventKind::Settled => self.settled = true,
            _ => {}
        }
    }

    fn replied(&mut self, plan: &Plan, trip: u32, reply: &Reply, calls: &[gesta_run::event::Resolved]) {
        self.must(self.open_trip.is_none(), || "the model was asked while calls were open".to_owned());
        self.must(trip == self.trips, || format!("trip {trip} is out of order"));
        self.trips += 1;
        self.must(self.trips <= self.trips_max, || format!("trip {trip} is beyond the limit"));
        self.on_answer.clear();
        self.sent_on_answer = false;
        let written: Vec<_> = reply.calls().cloned().collect();
        if reply.finish == Finish::Length {
            self.must(calls.is_empty(), || "calls of a cut answer".to_owned());
            return;
        }
        self.must(written.len() == calls.len(), || "a call of the answer was lost".to_owned());
        for (n, (block, resolved)) in written.iter().zip(calls).enumerate() {
            let mut tools = plan.spec.tools.iter().chain(&self.added);
            let call = Call {
                trip,
                tool: tools.find(|tool| tool.name == block.name).cloned(),
                ends: u32::from(resolved.end.is_some()),
                ..Call::default()
            };
            let many = n >= plan.spec.limits.calls_max as usize;
            self.must(!many || resolved.end.is_some(), || format!("call {} of an answer may run", n + 1));
            self.must(call.tool.is_some() || resolved.end.is_some(), || format!("{} is no tool", block.name));
            let fresh = self.calls.insert(resolved.id.clone(), call).is_none();
            self.must(fresh && !resolved.id.as_str().is_empty(), || format!("call id {} is not unique", resolved.id));
        }
        self.open_trip = (!calls.is_empty()).then_some(trip);
    }

    fn of_call(&mut self, plan: &Plan, what: &EventKind) {
        if let EventKind::TripEnded { trip } = what {
            self.must(self.open_trip == Some(*trip), || format!("trip {trip} ends and is not open"));
            let open: Vec<_> = self.calls.iter().filter(|(_, it)| it.trip == *trip && it.ends != 1).collect();
            if !open.is_empty() {
                let fault = format!("trip {trip} ends with {open:?}");
                self.fault(fault);
            }
            self.open_trip = None;
        }
        if *what == EventKind::Recovered {
            self.recovered(plan);
        }
        self.of_grant(plan, what);
        let Some(id) = call_of(what) else { return };
        if self.actions.contains_key(&id) && !matches!(what, EventKind::Staged { .. }) {
            return;
        }
        let Some(mut call) = self.calls.get(&id).cloned() else {
            return self.fault(format!("no call {id}: {what:?}"));
        };
        let ended_before = call.ends;
        self.step_call(plan, &id, &mut call, what);
        self.must(ended_before == 0, || format!("{id} had ended: {what:?}"));
        self.must(call.ends <= 1, || format!("{id} ends twice"));
        self.calls.insert(id, call);
    }

    fn of_grant(&mut self, plan: &Plan, what: &EventKind) {
        match what {
            EventKind::GrantAsked { call, grant, .. } => {
                let effects = plan.grant(grant).is_some_and(|it| it.effect == ToolEffect::Once);
                self.calls.entry(call.clone()).or_default().grants.push(effects);
            }
            EventKind::GrantStarted { call, n } => {
                let call = self.calls.entry(call.clone()).or_default();
                call.touched |= call.grants.get(*n as usize).copied().unwrap_or(true);
            }
            _ => {}
        }
    }

    fn step_call(&mut self, plan: &Plan, id: &CallId, call: &mut Call, what: &EventKind) {
        self.must(!call.edit_is_open || matches!(what, EventKind::Answered { .. }), || {
            format!("{id} goes on with arguments that break its schema")
        });
        match what {
            EventKind::Decided { ruling, .. } => {
                self.must(plan.spec.hook, || format!("{id} was decided without a hook"));
                self.must(!call.decided, || format!("{id} was decided twice"));
                call.decided = true;
                match ruling {
                    Ok(Decision::Run { arguments, .. }) => {
                        call.edit_is_open = arguments.as_ref().is_some_and(|it| !fits(plan, call, it));
                    }
                    Ok(Decision::Deny { reason }) => {
                        self.must(!reason.trim().is_empty(), || format!("{id} was denied without a reason"));
                        call.ends += 1;
                    }
                    Ok(Decision::Defer { .. }) => call.deferred = true,
                    Err(_) => {
                        call.ends += 1;
                        if plan.spec.on_hook_error == OnHookError::Stop {
                            self.stopped = Some(Outcome::HookFailed);
                        }
                    }
                }
            }
            EventKind::Started { .. } | EventKind::Staged { .. } => self.begun(plan, id, call, what),
            EventKind::Answered { end, .. } => {
                call.ends += 1;
                call.edit_is_open = false;
                let ran = matches!(end.status, CallStatus::Completed | CallStatus::Refused | CallStatus::TimedOut);
                let may = call.started || call.handed_in || call.tool.as_ref().is_some_and(is_staged);
                self.must(!ran || may, || format!("{id} has a result and never ran"));
                let not_begun = matches!(end.status, CallStatus::NotRun | CallStatus::Cancelled);
                self.must(!(not_begun && call.started), || format!("{id} ran and is said not to have"));
            }
            EventKind::Held { .. } => {
                self.must(call.deferred && !call.held, || format!("{id} is held and was not deferred"));
                self.must(!plan.spec.live, || "a live run holds a call".to_owned());
                self.all_decided(plan, id);
                call.held = true;
            }
            EventKind::HoldAnswered { answer, .. } => {
                self.must(call.held, || format!("{id} is answered and was not held"));
                self.must(!call.approved || call.undecided, || format!("{id} was approved and is answered again"));
                match answer {
                    HoldReply::Approve { arguments } => {
                        let sound = arguments.as_ref().is_none_or(|it| fits(plan, call, it));
                        self.must(sound && !call.undecided, || format!("the approval of {id} does not fit"));
                        call.approved = true;
                    }
                    HoldReply::Deny { .. } | HoldReply::OutcomeUnknown => call.ends += 1,
                    HoldReply::Result { .. } | HoldReply::Error { .. } => call.handed_in = true,
                }
            }
            _ => {}
        }
    }

    /// A body starts, or a staged action is written down.
    fn begun(&mut self, plan: &Plan, id: &CallId, call: &mut Call, what: &EventKind) {
        let stages = matches!(what, EventKind::Staged { .. });
        self.must(!call.started && !call.staged, || format!("{id} began twice"));
        self.must(call.tool.as_ref().is_some_and(|it| is_staged(it) == stages), || {
            format!("{id} began in the wrong way")
        });
        self.must(!plan.spec.hook || call.decided, || format!("{id} began undecided"));
        self.must(!call.deferred || call.approved, || format!("{id} began without approval"));
        self.all_decided(plan, id);
        let running = self.calls.values().filter(|it| it.started && it.ends == 0 && !it.undecided).count();
        let room = stages || running < plan.spec.limits.calls_parallel_max as usize;
        self.must(room, || format!("{id} is one too many at the same time"));
        if stages {
            call.staged = true;
            call.ends += 1;
        } else {
            call.started = true;
        }
    }

    fn all_decided(&mut self, plan: &Plan, id: &CallId) {
        let open = self.calls.values().any(|it| plan.spec.hook && it.ends == 0 && !it.decided);
        self.must(!open, || format!("{id} goes on before the batch is decided"));
    }

    /// What had begun and was not answered has an unknown outcome.
    fn recovered(&mut self, plan: &Plan) {
        for call in self.calls.values_mut().filter(|it| it.started && it.ends == 0) {
            if call.tool.as_ref().is_some_and(|it| it.document) && !call.touched {
                continue;
            }
            let once = call.tool.as_ref().is_none_or(|it| it.effect == ToolEffect::Once);
            if once && call.approved && plan.spec.on_undecided == OnUndecided::Ask {
                call.undecided = true;
            } else if once && !call.undecided {
                call.ends += 1;
            }
        }
        for action in self.actions.values_mut().filter(|it| it.begun > it.settled) {
            action.begun = 1;
        }
    }

    fn of_action(&mut self, plan: &Plan, what: &EventKind) {
        if let EventKind::Staged { call, needs_approval } = what {
            let action = Action { held: *needs_approval, ..Action::default() };
            self.must(self.actions.len() < plan.spec.limits.actions_max as usize, || "too many actions".to_owned());
            let twice = self.actions.insert(call.clone(), action).is_some();
            self.must(!twice, || format!("{call} was staged twice"));
            return;
        }
        let Some(id) = call_of(what) else { return };
        let Some(mut action) = self.actions.get(&id).cloned() else {
            let about = matches!(
                what,
                EventKind::Attempting { .. } | EventKind::Performed { .. } | EventKind::Discarded { .. }
            );
            return self.must(!about, || format!("{id} was not staged: {what:?}"));
        };
        let going_on = self.actions.values().any(|it| it.begun > it.settled);
        let over = action.discarded || action.begun > 0;
        match what {
            EventKind::HoldAnswered { answer, .. } => {
                self.must(action.held && !over, || format!("the action {id} is not held"));
                let given = matches!(answer, HoldReply::Approve { .. });
                action.held = false;
                action.discarded = !given;
            }
            EventKind::Attempting { .. } => {
                let may = self.delivered && self.ended == Some(Outcome::Completed);
                self.must(may, || format!("{id} is attempted before its reply was delivered"));
                self.must(!action.held, || format!("{id} is attempted without approval"));
                self.must(!over, || format!("{id} is attempted and is over"));
                self.must(!going_on, || "two actions are attempted at the same time".to_owned());
                action.begun += 1;
            }
            EventKind::Performed { .. } => {
                action.settled += 1;
                self.must(action.begun == 1 && action.settled == 1, || format!("{id} was performed and not attempted"));
            }
            EventKind::Discarded { .. } => {
                self.must(!over, || format!("{id} is discarded and is over"));
                action.discarded = true;
            }
            _ => {}
        }
        self.actions.insert(id, action);
    }

    fn of_contract(&mut self, plan: &Plan, what: &EventKind) {
        match what {
            EventKind::Detected { backstop, .. } => {
                self.must(*backstop < plan.spec.contract.backstops.len(), || "no such backstop".to_owned());
                self.must(!self.ran.contains(backstop), || format!("backstop {backstop} has run and is looked at"));
            }
            EventKind::BackstopRan { backstop, .. } => {
                self.must(*backstop < plan.spec.contract.backstops.len(), || "no such backstop".to_owned());
                self.unrecorded.insert(*backstop);
                let fresh = self.ran.insert(*backstop);
                self.must(fresh, || format!("backstop {backstop} ran twice"));
            }
            EventKind::Intervened(it) => {
                let name = |at: &usize| plan.spec.contract.backstops.get(*at).map(|spec| &spec.name);
                self.unrecorded.retain(|at| name(at) != it.name.as_ref());
                self.intervened(plan, it);
            }
            EventKind::Ended { .. } => {
                self.must(self.unrecorded.is_empty(), || "a backstop ran and is not recorded".to_owned());
            }
            _ => {}
        }
    }

    fn intervened(&mut self, plan: &Plan, it: &Intervention) {
        let contract = &plan.spec.contract;
        let on = match it.kind {
            InterventionKind::Backstop => contract.backstops.iter().any(|spec| Some(&spec.name) == it.name.as_ref()),
            InterventionKind::ToolRefusal => contract.on_tool_refusal.is_some(),
            InterventionKind::ActWhenAsked => contract.act_when_asked.is_some() && self.asked,
        };
        self.must(on, || format!("{:?} is off", it.kind));
        let sent = it.outcome == InterventionOutcome::Sent;
        self.must(sent == it.prompt.is_some(), || "a prompt that was not sent, or none that was".to_owned());
        let skipped = it.outcome == InterventionOutcome::Skipped;
        self.must(skipped == it.skipped.is_some(), || "a skip without a reason, or a reason without a skip".to_owned());
        if it.phase == Phase::Before {
            return self.must(self.trips == 0, || "a prompt before the model comes after it".to_owned());
        }
        self.must(it.trip + 1 == self.trips, || format!("an intervention on trip {}", it.trip));
        let fresh = self.on_answer.insert((it.kind, it.name.clone()));
        self.must(fresh, || format!("{:?} twice on one answer", it.kind));
        self.must(!self.sent_on_answer, || "something follows a prompt on one answer".to_owned());
        if !sent {
            return;
        }
        self.sent_on_answer = true;
        self.prompts += 1;
        match it.kind {
            InterventionKind::ToolRefusal => self.retries += 1,
            InterventionKind::ActWhenAsked => self.reprompts += 1,
            InterventionKind::Backstop => {}
        }
        let retries = contract.on_tool_refusal.as_ref().map_or(0, |it| it.retries);
        let reprompts = contract.act_when_asked.as_ref().map_or(0, |it| it.max_reprompts);
        self.must(self.retries <= retries && self.reprompts <= reprompts, || "more prompts than permitted".to_owned());
        let after = contract.backstops.iter().filter(|it| it.phase == Phase::After).count();
        let most = retries + reprompts + u32::try_from(after).unwrap_or(u32::MAX);
        self.must(self.prompts <= most, || "more extra trips than permitted".to_owned());
        self.must(self.trips < self.trips_max, || "a prompt and no trip left".to_owned());
    }
}

fn is_staged(tool: &ToolSpec) -> bool {
    tool.effect == ToolEffect::Staged
}

fn fits(plan: &Plan, call: &Call, arguments: &gesta_run::json::Object) -> bool {
    let Some(tool) = &call.tool else { return false };
    match plan.tools().get(&tool.name) {
        Some(tool) => tool.check(arguments).is_ok(),
        None => gesta_run::Tool::new(tool.clone()).is_ok_and(|tool| tool.check(arguments).is_ok()),
    }
}

fn call_of(what: &EventKind) -> Option<CallId> {
    match what {
        EventKind::Decided { call, .. }
        | EventKind::Started { call }
        | EventKind::Answered { call, .. }
        | EventKind::Held { call, .. }
        | EventKind::HoldAnswered { call, .. }
        | EventKind::Staged { call, .. }
        | EventKind::Performed { call, .. }
        | EventKind::Attempting { call }
        | EventKind::Discarded { call, .. } => Some(call.clone()),
        _ => None,
    }
}
