//! What happens by itself: the state gives the next automatic event, or none.

use crate::call::{CallEnd, CallStatus};
use crate::event::EventKind;
use crate::intervention::{InterventionKind, InterventionOutcome, Phase as Side, Skipped};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::rules::{act, actions, backstop, budget, classify, grants, output, refusal};
use crate::state::{Batch, CallState, Gate, Phase, Stage, State};
use crate::time::Timestamp;
use crate::tool::Effect;

type Failures = Vec<(String, String)>;

/// The next automatic event. Failures of the author's functions are handed out beside it.
pub(crate) fn follow(plan: &Plan, state: &State, at: Timestamp, failures: &mut Failures) -> Option<EventKind> {
    if state.ended.is_some() {
        return actions::follow(state, at);
    }
    if let Some((outcome, message)) = &state.stop {
        return close(plan, state, *outcome, message, at, failures);
    }
    match &state.phase {
        Phase::New | Phase::Ended => return None,
        Phase::Final(outcome, message) => return Some(end(*outcome, message)),
        Phase::Before(_) | Phase::Ready | Phase::Batch(_) | Phase::Gate(_) => {}
    }
    if !state.parked()
        && let Some(message) = budget::exceeded(plan, state, at)
    {
        return Some(EventKind::Stopped { outcome: Outcome::BudgetExceeded, message });
    }
    match &state.phase {
        Phase::Before(watch) => backstop::intervene(plan, state, watch, Side::Before, 0, at).map(EventKind::Intervened),
        Phase::Batch(batch) => follow_batch(plan, state, batch, at, failures),
        Phase::Gate(gate) => Some(follow_gate(plan, state, gate, at, failures)?),
        Phase::New | Phase::Ready | Phase::Final(..) | Phase::Ended => None,
    }
}

fn end(outcome: Outcome, message: &str) -> EventKind {
    EventKind::Ended { outcome, message: message.to_owned(), data: None }
}

fn follow_batch(
    plan: &Plan,
    state: &State,
    batch: &Batch,
    at: Timestamp,
    failures: &mut Failures,
) -> Option<EventKind> {
    if batch.calls.iter().any(|call| call.stage == Stage::Undecided) {
        return None;
    }
    if let Some(call) = batch.calls.iter().find(|call| call.stage == Stage::Deferred) {
        if plan.spec.live {
            let message = format!("the call of `{}` was deferred, and a live session has nothing to resume", call.name);
            return Some(EventKind::Stopped { outcome: Outcome::DeferUnsupported, message });
        }
        let expires_at = plan.spec.hold_ttl_ms.map(|ttl| at.plus_ms(ttl));
        return Some(EventKind::Held { call: call.id.clone(), expires_at });
    }
    if let Some(event) = grants::follow(batch) {
        return Some(event);
    }
    if batch.undecided() {
        return None;
    }
    let running = batch.calls.iter().filter(|call| call.stage == Stage::Executing).count();
    let in_document = |call: &CallState| call.tool.as_ref().is_some_and(|tool| tool.spec.document);
    let busy = batch.calls.iter().any(|call| call.stage == Stage::Executing && in_document(call));
    for call in batch.calls.iter().filter(|call| call.stage == Stage::Allowed) {
        let staged = call.tool.as_ref().is_some_and(|tool| tool.spec.effect == Effect::Staged);
        if staged {
            return Some(actions::stage(plan, state, call, failures));
        }
        if running < plan.spec.limits.calls_parallel_max as usize && !(busy && in_document(call)) {
            return Some(EventKind::Started { call: call.id.clone() });
        }
    }
    let ended = batch.calls.iter().all(|call| call.end().is_some());
    ended.then_some(EventKind::TripEnded { trip: batch.trip })
}

fn follow_gate(plan: &Plan, state: &State, gate: &Gate, at: Timestamp, failures: &mut Failures) -> Option<EventKind> {
    if gate.watch.current().is_some() {
        let fired = backstop::intervene(plan, state, &gate.watch, Side::After, gate.trip, at)?;
        let sent = fired.outcome == InterventionOutcome::Sent;
        let beside = if sent { prompts(plan, state, gate, at, true, failures) } else { None };
        return Some(beside.unwrap_or(EventKind::Intervened(fired)));
    }
    if let Some(event) = prompts(plan, state, gate, at, false, failures) {
        return Some(event);
    }
    Some(match output::read(plan, &gate.text) {
        Ok(data) => EventKind::Ended { outcome: Outcome::Completed, message: String::new(), data },
        Err(message) => end(Outcome::OutputInvalid, &message),
    })
}

/// Refusals first, then `act_when_asked`; each is looked at once per answer, and a skip is recorded too.
fn prompts(
    plan: &Plan,
    state: &State,
    gate: &Gate,
    at: Timestamp,
    other_fired: bool,
    failures: &mut Failures,
) -> Option<EventKind> {
    let mut other_fired = other_fired;
    let mut refusal = None;
    if !gate.seen.contains(&InterventionKind::ToolRefusal) {
        refusal = refusal::intervene(plan, state, gate, at, other_fired, failures);
        if refusal.as_ref().is_some_and(|it| it.outcome != InterventionOutcome::Sent) {
            return refusal.map(EventKind::Intervened);
        }
        other_fired |= refusal.is_some();
    }
    if !gate.seen.contains(&InterventionKind::ActWhenAsked) {
        let act = act::intervene(plan, state, gate, at, other_fired, failures);
        if act.is_some() {
            return act.map(EventKind::Intervened);
        }
    }
    refusal.map(EventKind::Intervened)
}

/// A run that is to end closes its open calls first, then its trip, then itself.
fn close(
    plan: &Plan,
    state: &State,
    outcome: Outcome,
    message: &str,
    at: Timestamp,
    failures: &mut Failures,
) -> Option<EventKind> {
    match &state.phase {
        Phase::Batch(batch) => {
            let Some(call) = batch.calls.iter().find(|call| call.end().is_none()) else {
                return Some(EventKind::TripEnded { trip: batch.trip });
            };
            let executing = batch.calls.iter().any(|call| call.stage == Stage::Executing);
            if executing && matches!(outcome, Outcome::Superseded | Outcome::Expired | Outcome::HookFailed) {
                return grants::follow(batch);
            }
            if matches!(outcome, Outcome::Superseded | Outcome::Expired)
                && let Some(event) = carry_on(plan, state, batch, failures)
            {
                return Some(event);
            }
            Some(EventKind::Answered { call: call.id.clone(), end: closing(call, outcome), duration_ms: 0 })
        }
        Phase::Before(watch) => {
            let skipped = backstop::stopped(plan, state, watch, Side::Before, 0, at, skipped_for(outcome));
            Some(skipped.map_or_else(|| end(outcome, message), EventKind::Intervened))
        }
        Phase::Gate(gate) => {
            let ran = backstop::stopped(plan, state, &gate.watch, Side::After, gate.trip, at, skipped_for(outcome));
            let due = match ran {
                None if outcome == Outcome::Cancelled => cancelled_prompts(plan, state, gate, at, failures),
                ran => ran.map(EventKind::Intervened),
            };
            Some(due.unwrap_or_else(|| end(outcome, message)))
        }
        Phase::New | Phase::Ready | Phase::Final(..) | Phase::Ended => Some(end(outcome, message)),
    }
}

/// A call that somebody approved is carried on, one after another, whatever closes the holds that are left
/// (`spec/contract.md`, 7.5, points 3 and 10). What a crash hid is settled before it: until then nothing begins.
fn carry_on(plan: &Plan, state: &State, batch: &Batch, failures: &mut Failures) -> Option<EventKind> {
    let waits = |call: &&CallState| call.stage == Stage::Allowed && call.approved.is_some();
    let approved = batch.calls.iter().find(waits)?;
    if let Some(hidden) = batch.calls.iter().find(|call| call.stage == Stage::Undecidable) {
        return Some(EventKind::Answered { call: hidden.id.clone(), end: grants::lost(hidden), duration_ms: 0 });
    }
    let staged = approved.tool.as_ref().is_some_and(|tool| tool.spec.effect == Effect::Staged);
    Some(if staged {
        actions::stage(plan, state, approved, failures)
    } else {
        EventKind::Started { call: approved.id.clone() }
    })
}

/// Why a prompt was not sent that was due when the run was stopped.
fn skipped_for(outcome: Outcome) -> Skipped {
    if outcome == Outcome::Cancelled { Skipped::Cancelled } else { Skipped::BudgetUsed }
}

fn cancelled_prompts(
    plan: &Plan,
    state: &State,
    gate: &Gate,
    at: Timestamp,
    failures: &mut Failures,
) -> Option<EventKind> {
    let mut event = prompts(plan, state, gate, at, false, failures)?;
    if let EventKind::Intervened(due) = &mut event
        && due.outcome == InterventionOutcome::Sent
    {
        (due.outcome, due.skipped, due.prompt) = (InterventionOutcome::Skipped, Some(Skipped::Cancelled), None);
    }
    Some(event)
}

fn closing(call: &CallState, outcome: Outcome) -> CallEnd {
    let hidden = matches!(call.stage, Stage::Undecidable | Stage::Executing);
    if hidden {
        return grants::lost(call);
    }
    classify::synthetic(match outcome {
        Outcome::Cancelled => CallStatus::Cancelled,
        // A call that waited for its turn alone was never held: nobody was to answer it.
        Outcome::Superseded | Outcome::Expired if !call.held => CallStatus::Cancelled,
        Outcome::Superseded => CallStatus::Superseded,
        Outcome::Expired => CallStatus::Expired,
        Outcome::Completed
        | Outcome::LengthLimit
        | Outcome::StoppedByHook
        | Outcome::MaxTrips
        | Outcome::HookFailed
        | Outcome::BudgetExceeded
        | Outcome::Blocked
        | Outcome::OutputInvalid
        | Outcome::ModelFailed
        | Outcome::StoreFailed
        | Outcome::DeferUnsupported => CallStatus::NotRun,
    })
}
