//! What events do to the calls of an answer and to staged actions.

use serde_json::Value;

use crate::call::{ArgumentsBy, CallEnd, CallStatus};
use crate::decision::Decision;
use crate::hold::HoldReply;
use crate::id::CallId;
use crate::json;
use crate::message::Message;
use crate::outcome::Outcome;
use crate::plan::{OnHookError, Plan};
use crate::rules::{classify, words};
use crate::state::{Action, ActionStage, CallState, InputLabel, Phase, Stage, State};
use crate::time::Timestamp;

impl State {
    pub(crate) fn decide(&mut self, plan: &Plan, at: Timestamp, id: &CallId, ruling: &Result<Decision, String>) {
        let mut hook_error = None;
        let Some(call) = self.call_mut(id).filter(|call| call.stage == Stage::Undecided) else { return };
        call.since = at;
        match ruling {
            Ok(Decision::Run { arguments: None, .. }) => call.stage = Stage::Allowed,
            Ok(Decision::Run { arguments: Some(arguments), .. }) => {
                call.arguments = arguments.clone().into();
                call.arguments_by = ArgumentsBy::Hook;
                // Where they break the schema, the call's end is the next event; it is never free to run.
                if call.tool.as_ref().is_some_and(|tool| tool.check(arguments).is_ok()) {
                    call.stage = Stage::Allowed;
                }
            }
            Ok(Decision::Deny { reason }) => call.stage = Stage::Ended(denied(plan, reason)),
            Ok(Decision::Defer { reason }) => {
                call.hold_reason.clone_from(reason);
                call.stage = Stage::Deferred;
            }
            Err(_) if plan.spec.on_hook_error == OnHookError::Deny => {
                call.stage = Stage::Ended(denied(plan, words::POLICY_UNDECIDED));
            }
            Err(why) => {
                hook_error = Some(format!("the decision on `{}` failed: {why}", call.name));
                call.stage = Stage::Ended(classify::synthetic(CallStatus::NotRun));
            }
        }
        if let Some(message) = hook_error {
            self.stop.get_or_insert((Outcome::HookFailed, message));
        }
    }

    /// Moves a call on, where it stands at a stage that leads there.
    fn move_call(&mut self, id: &CallId, at: Timestamp, from: impl FnOnce(&Stage) -> bool, to: Stage) -> bool {
        let Some(call) = self.call_mut(id).filter(|call| from(&call.stage)) else { return false };
        call.stage = to;
        call.since = at;
        true
    }

    pub(crate) fn start(&mut self, at: Timestamp, id: &CallId) {
        self.move_call(id, at, |stage| *stage == Stage::Allowed, Stage::Executing);
    }

    pub(crate) fn answer(&mut self, at: Timestamp, id: &CallId, end: &CallEnd) {
        self.move_call(id, at, |stage| !matches!(stage, Stage::Ended(_)), Stage::Ended(end.clone()));
    }

    pub(crate) fn hold(&mut self, at: Timestamp, id: &CallId, expires_at: Option<Timestamp>) {
        if !self.move_call(id, at, |stage| *stage == Stage::Deferred, Stage::Held) {
            return;
        }
        if let Some(call) = self.call_mut(id) {
            call.held = true;
            call.expires_at = expires_at;
        }
        if let Phase::Batch(batch) = &mut self.phase {
            batch.was_parked = true;
        }
    }

    pub(crate) fn hold_answer(&mut self, plan: &Plan, at: Timestamp, id: &CallId, answer: &HoldReply, now: &str) {
        self.answered_holds.entry(id.clone()).or_default().push(answer.clone());
        if self.answer_action(id, answer) {
            return;
        }
        let Some(call) = self.call_mut(id).filter(|call| call.waits()) else { return };
        call.since = at;
        match answer {
            HoldReply::Approve { arguments } if call.stage == Stage::Held => {
                if let Some(arguments) = arguments {
                    call.arguments = arguments.clone().into();
                    call.arguments_by = ArgumentsBy::Approver;
                }
                call.approved = Some(json::fingerprint(&call.name, &call.arguments));
                call.stage = Stage::Allowed;
            }
            HoldReply::Deny { reason } => call.stage = Stage::Ended(denied(plan, reason)),
            // What someone hands in is an answer like a body's: it follows as an event of its own.
            HoldReply::Approve { .. } | HoldReply::Result { .. } | HoldReply::Error { .. } => {}
            HoldReply::OutcomeUnknown => call.stage = Stage::Ended(classify::synthetic(CallStatus::OutcomeUnknown)),
        }
        now.clone_into(&mut self.now);
    }

    /// Whether the answer was about a held action.
    fn answer_action(&mut self, id: &CallId, answer: &HoldReply) -> bool {
        let held = |action: &&mut Action| action.call == *id && action.stage == ActionStage::Held;
        let Some(action) = self.actions.iter_mut().find(held) else { return false };
        match answer {
            HoldReply::Approve { arguments } => {
                action.stage = ActionStage::Staged;
                if let Some(arguments) = arguments {
                    action.arguments = arguments.clone().into();
                    action.arguments_by = ArgumentsBy::Approver;
                    self.record_edit(id, arguments);
                }
            }
            HoldReply::Deny { reason } => action.stage = ActionStage::Discarded(reason.clone()),
            HoldReply::Error { text } => action.stage = ActionStage::Discarded(text.clone()),
            HoldReply::Result { .. } | HoldReply::OutcomeUnknown => {}
        }
        true
    }

    /// The record of a call shows what its action is performed with, as that of a call that runs (`spec/contract.md`, 7.5).
    fn record_edit(&mut self, id: &CallId, arguments: &json::Object) {
        if let Some(call) = self.call_mut(id) {
            call.arguments = arguments.clone().into();
            call.arguments_by = ArgumentsBy::Approver;
        }
        if let Some(record) = self.records.iter_mut().find(|record| record.id == *id) {
            record.arguments = Value::Object(arguments.clone());
            record.arguments_by = ArgumentsBy::Approver;
        }
    }

    pub(crate) fn end_trip(&mut self, plan: &Plan, at: Timestamp) {
        if !self.batch().is_some_and(|batch| batch.calls.iter().all(|call| call.end().is_some())) {
            return;
        }
        let Phase::Batch(batch) = std::mem::replace(&mut self.phase, Phase::Ready) else { return };
        self.messages.push(Message::Assistant { blocks: batch.blocks });
        self.messages.push(crate::transcript::tool_message(&batch.calls));
        let silent = batch.calls.iter().all(|call| call.tool.as_ref().is_some_and(|tool| tool.spec.silent));
        for call in batch.calls {
            self.tally(&call);
            self.records.extend(call.into_record());
        }
        if batch.was_parked && self.stop.is_none() {
            self.notice();
        }
        self.label = if batch.was_parked { InputLabel::Resume } else { InputLabel::ToolResults };
        if self.stop.is_some() {
        } else if silent {
            self.phase = self.gate(plan, at, batch.trip, None);
        } else if !self.trip_left() {
            self.phase = Phase::Final(Outcome::MaxTrips, too_many_trips(self.trips_max));
        }
    }

    /// Keeps the account of what acted, what was denied and what was refused, in the model's order.
    fn tally(&mut self, call: &CallState) {
        let Some(end) = call.end() else { return };
        match end.status {
            CallStatus::Completed => {
                if !self.acted.contains(&call.name) {
                    self.acted.insert(call.name.clone());
                }
                self.outstanding.retain(|refusal| refusal.tool != call.name);
            }
            CallStatus::Denied => {
                self.denied.insert(call.name.clone());
            }
            CallStatus::Refused
            | CallStatus::Failed
            | CallStatus::TimedOut
            | CallStatus::InvalidArguments
            | CallStatus::UnknownTool
            | CallStatus::NotRun
            | CallStatus::Cancelled
            | CallStatus::Superseded
            | CallStatus::Expired
            | CallStatus::OutcomeUnknown => {}
        }
        if let Some(reason) = &end.refusal {
            self.outstanding.retain(|refusal| refusal.tool != call.name);
            self.outstanding.push(crate::state::Refusal { tool: call.name.clone(), reason: reason.clone() });
        }
    }

    pub(crate) fn stage_action(&mut self, plan: &Plan, at: Timestamp, id: &CallId, needs_approval: bool) {
        let result = if needs_approval {
            serde_json::json!({"needs_approval": true, "staged": true})
        } else {
            serde_json::json!({"staged": true})
        };
        let expires_at = plan.spec.hold_ttl_ms.filter(|_| needs_approval).map(|ttl| at.plus_ms(ttl));
        let Some(call) = self.call_mut(id).filter(|call| call.stage == Stage::Allowed) else { return };
        let stage = if needs_approval { ActionStage::Held } else { ActionStage::Staged };
        let action = Action {
            call: id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            arguments_by: call.arguments_by,
            trip: call.trip,
            index: call.index,
            stage,
            expires_at,
        };
        call.stage = Stage::Ended(completed(result));
        // In the model's order, also where an earlier call waited for its approval and is staged later.
        let before = self.actions.iter().rposition(|it| (it.trip, it.index) < (action.trip, action.index));
        self.actions.insert(before.map_or(0, |place| place + 1), action);
    }

    /// Moves an action on, where it stands at a stage that leads there.
    pub(crate) fn move_action(&mut self, id: &CallId, to: ActionStage) {
        let Some(action) = self.actions.iter_mut().find(|action| action.call == *id) else { return };
        let fits = match &to {
            ActionStage::Attempting => action.stage == ActionStage::Staged,
            ActionStage::Settled(_) => matches!(action.stage, ActionStage::Attempting | ActionStage::Lost),
            ActionStage::Discarded(_) => matches!(action.stage, ActionStage::Staged | ActionStage::Held),
            ActionStage::Held | ActionStage::Staged | ActionStage::Lost => false,
        };
        if fits {
            action.stage = to;
        }
    }
}

fn denied(plan: &Plan, reason: &str) -> CallEnd {
    CallEnd {
        status: CallStatus::Denied,
        result: Value::String(json::cut(reason, plan.spec.limits.error_bytes_max).to_owned()),
        is_error: true,
        refusal: None,
        by_hook_edit: false,
    }
}

fn completed(result: Value) -> CallEnd {
    CallEnd { status: CallStatus::Completed, result, is_error: false, refusal: None, by_hook_edit: false }
}

fn too_many_trips(max: u32) -> String {
    format!("the model still made calls on the last of {max} trips; resume with a higher trips_max to go on")
}
