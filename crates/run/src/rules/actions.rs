//! Staged actions: written down during the turn, performed one by one after delivery, once each, or discarded
//! (`spec/contract.md`, 2.11 and 7.3).

use crate::call::{CallEnd, CallStatus};
use crate::event::EventKind;
use crate::input::Attempt;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::state::{ActionStage, CallState, State};
use crate::time::Timestamp;

/// What the machine answers to a call of a staged tool: it is written down, or there are too many.
pub(crate) fn stage(plan: &Plan, state: &State, call: &CallState) -> EventKind {
    let max = plan.spec.limits.actions_max as usize;
    if state.actions.len() >= max {
        let end = CallEnd {
            status: CallStatus::Refused,
            result: serde_json::json!({"staged": false, "reason": "over_cap"}),
            is_error: false,
            refusal: Some("over_cap".to_owned()),
            by_hook_edit: false,
        };
        return EventKind::Answered { call: call.id.clone(), end, duration_ms: 0 };
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
