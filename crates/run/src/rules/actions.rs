//! Staged actions: written down during the turn, performed one by one after delivery, once each, or discarded
//! (`spec/contract.md`, 2.11 and 7.3).

use crate::call::{CallEnd, CallStatus};
use crate::event::EventKind;
use crate::input::Attempt;
use crate::outcome::Outcome;
use crate::plan::{Plan, Stages, Staging};
use crate::state::{Action, ActionStage, CallState, State};
use crate::time::Timestamp;

/// What the machine answers to a call of a staged tool: it is written down, or it is there already, or refused, or there
/// are too many. Whether it is there already is looked at before the cap (`spec/channel.md`, 10).
pub(crate) fn stage(plan: &Plan, state: &State, call: &CallState, failures: &mut Vec<(String, String)>) -> EventKind {
    match stages(plan, state, call, failures) {
        Stages::New if state.actions.len() >= plan.spec.limits.actions_max as usize => {
            return refused(call, "over_cap");
        }
        Stages::New => {}
        Stages::Again => return again(call),
        Stages::No(reason) => return refused(call, &reason),
    }
    // Whoever approved the call has approved what it stages.
    let needs_approval = call.approved.is_none() && call.tool.as_ref().is_some_and(|tool| tool.spec.needs_approval);
    if needs_approval && plan.spec.live {
        let end = CallEnd {
            status: CallStatus::Failed,
            result: "needs approval".into(),
            is_error: true,
            refusal: None,
            by_hook_edit: false,
        };
        return EventKind::Answered { call: call.id.clone(), end, duration_ms: 0 };
    }
    EventKind::Staged { call: call.id.clone(), needs_approval }
}

fn stages(plan: &Plan, state: &State, call: &CallState, failures: &mut Vec<(String, String)>) -> Stages {
    // Who approved a call is not sent back to a hold of another: it repeats only what waits for nobody.
    let waits_for_one = |it: &Action| it.stage == ActionStage::Held && call.approved.is_none();
    let waiting = |it: &&Action| it.stage == ActionStage::Staged || waits_for_one(it);
    let Some(staging) = &plan.functions.staging else {
        let same = |it: &Action| it.tool == call.name && it.arguments == call.arguments;
        return if state.actions.iter().filter(waiting).any(same) { Stages::Again } else { Stages::New };
    };
    let earlier = state.actions.iter().filter(waiting).map(|it| (it.tool.as_str(), &*it.arguments)).collect();
    match staging(&Staging { tool: &call.name, arguments: &call.arguments, earlier }) {
        Ok(Stages::No(reason)) if reason.trim().is_empty() => Stages::No(NO_REASON.to_owned()),
        Ok(stages) => stages,
        Err(why) => {
            failures.push(("staging".to_owned(), why));
            Stages::No(NO_REASON.to_owned())
        }
    }
}

/// Said where a function refuses without a reason, or fails.
const NO_REASON: &str = "not_staged";

fn refused(call: &CallState, reason: &str) -> EventKind {
    let result = serde_json::json!({"staged": false, "reason": reason});
    let end = CallEnd {
        status: CallStatus::Refused,
        result,
        is_error: false,
        refusal: Some(reason.to_owned()),
        by_hook_edit: false,
    };
    EventKind::Answered { call: call.id.clone(), end, duration_ms: 0 }
}

fn again(call: &CallState) -> EventKind {
    let result = serde_json::json!({"staged": true});
    let end = CallEnd { status: CallStatus::Completed, result, is_error: false, refusal: None, by_hook_edit: false };
    EventKind::Answered { call: call.id.clone(), end, duration_ms: 0 }
}

/// The next thing that happens to the actions of a run that has ended.
pub(crate) fn follow(state: &State, at: Timestamp) -> Option<EventKind> {
    let ended = state.ended.as_ref()?;
    let discard = |call: &crate::id::CallId, reason: &str| {
        Some(EventKind::Discarded { call: call.clone(), reason: reason.to_owned() })
    };
    for action in &state.actions {
        match &action.stage {
            ActionStage::Lost => {
                let attempt = Attempt::Failed { error: "outcome_unknown".to_owned() };
                return Some(EventKind::Performed { call: action.call.clone(), attempt });
            }
            ActionStage::Held if action.expires_at.is_some_and(|until| until <= at) => {
                return discard(&action.call, "expired");
            }
            ActionStage::Held | ActionStage::Staged
                if ended.outcome != Outcome::Completed && (!ended.outcome.can_go_on() || state.settled) =>
            {
                return discard(&action.call, ended.outcome.as_str());
            }
            ActionStage::Held
            | ActionStage::Staged
            | ActionStage::Attempting
            | ActionStage::Settled(_)
            | ActionStage::Discarded(_) => {}
        }
    }
    if ended.outcome != Outcome::Completed || state.delivered.is_none() {
        return None;
    }
    if state.actions.iter().any(|action| action.stage == ActionStage::Attempting) {
        return None;
    }
    let next = state.actions.iter().find(|action| action.stage == ActionStage::Staged)?;
    Some(EventKind::Attempting { call: next.call.clone() })
}
