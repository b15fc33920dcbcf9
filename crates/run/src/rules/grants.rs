//! Grants of a document's tools: asked for by a running call, decided like a call, run, answered
//! (`spec/contract.md`, 7.1; `spec/documents.md`, 3.14).

use serde_json::Value;

use super::{classify, words};
use crate::admit::FeedError;
use crate::call::{Answer, CallEnd, CallStatus};
use crate::decision::{Decision, Ruling};
use crate::event::EventKind;
use crate::grant::{GrantCall, GrantStage};
use crate::id::CallId;
use crate::json::{self, Object};
use crate::plan::{OnHookError, Plan};
use crate::state::{Batch, CallState, Stage, State};
use crate::time::Timestamp;

/// A running call asks for its `n`th grant. One that cannot run is answered at once.
pub(crate) fn asked(
    plan: &Plan,
    state: &State,
    call: CallId,
    n: u32,
    grant: String,
    arguments: Object,
) -> Result<Vec<EventKind>, FeedError> {
    let found = state.call(&call).filter(|it| it.tool.as_ref().is_some_and(|tool| tool.spec.document));
    let Some(found) = found else { return Err(FeedError::OutOfTurn(format!("{call} is no call of a document"))) };
    if found.grants.len() != n as usize || found.grants.iter().any(|it| it.end().is_none()) {
        return Err(FeedError::OutOfTurn(format!("{call} asked for its grant {n} before")));
    }
    let refused = if n >= plan.spec.limits.grants_max {
        let text = format!("one call may use at most {} grants", plan.spec.limits.grants_max);
        Some((CallStatus::NotRun, text))
    } else {
        match plan.grants.get(&grant) {
            None => Some((CallStatus::UnknownTool, format!("grant {grant} is not available"))),
            Some(known) => known.check(&arguments).err().map(|issues| {
                (CallStatus::InvalidArguments, format!("the arguments of {grant} do not fit its schema: {issues}"))
            }),
        }
    };
    let mut events = vec![EventKind::GrantAsked { call: call.clone(), n, grant, arguments }];
    events.extend(refused.map(|(status, text)| answered_by_rule(plan, call, n, status, &text)));
    Ok(events)
}

fn answered_by_rule(plan: &Plan, call: CallId, n: u32, status: CallStatus, text: &str) -> EventKind {
    EventKind::GrantAnswered { call, n, end: failed(plan, status, text), duration_ms: 0 }
}

fn failed(plan: &Plan, status: CallStatus, text: &str) -> CallEnd {
    let result = Value::String(json::cut(text, plan.spec.limits.error_bytes_max).to_owned());
    CallEnd { status, result, is_error: true, refusal: None, by_hook_edit: false }
}

/// The decision on a grant. Run and deny take effect at once; there is nothing to resume in the middle of a function,
/// so that a defer is the error `needs approval`.
pub(crate) fn decided(plan: &Plan, state: &State, call: CallId, n: u32, ruling: Ruling) -> Vec<EventKind> {
    let ruling = match ruling {
        Ok(Decision::Deny { reason }) if reason.trim().is_empty() => Err("a denial needs a reason".to_owned()),
        Ok(decision) => Ok(decision),
        Err(why) => Err(why.0),
    };
    let found = state.grant(&call, n);
    let name = found.map(|it| it.name.clone()).unwrap_or_default();
    let ended = match &ruling {
        Ok(Decision::Run { arguments: None, .. }) => None,
        Ok(Decision::Run { arguments: Some(arguments), .. }) => {
            let checked = found.and_then(|it| it.grant.as_ref()).map(|grant| grant.check(arguments));
            let issues = checked.and_then(Result::err);
            issues.map(|issues| (CallStatus::InvalidArguments, words::hook_edit_broke_schema(&issues)))
        }
        Ok(Decision::Deny { reason }) => Some((CallStatus::Denied, reason.clone())),
        Ok(Decision::Defer { .. }) => Some((CallStatus::NotRun, words::grant_needs_approval(&name))),
        Err(_) if plan.spec.on_hook_error == OnHookError::Deny => {
            Some((CallStatus::Denied, words::POLICY_UNDECIDED.to_owned()))
        }
        Err(why) => Some((CallStatus::NotRun, format!("the decision on {name} failed: {why}"))),
    };
    let stops = ruling.is_err() && plan.spec.on_hook_error == OnHookError::Stop;
    let mut events = vec![EventKind::GrantDecided { call: call.clone(), n, ruling }];
    if let Some((status, text)) = ended {
        events.push(answered_by_rule(plan, call.clone(), n, status, &text));
        if stops {
            let end = failed(plan, CallStatus::Failed, &text);
            events.push(EventKind::Answered { call, end, duration_ms: 0 });
        }
    }
    events
}

/// A grant's body answered. A result over the limit is an error: half of it would be a lie.
pub(crate) fn answered(plan: &Plan, state: &State, call: CallId, n: u32, answer: Answer, at: Timestamp) -> EventKind {
    let max = plan.spec.limits.result_bytes_max;
    let end = match answer {
        Answer::Ok(value) if classify::is_longer(&value, max) => {
            failed(plan, CallStatus::Failed, &format!("the result has more than {max} bytes"))
        }
        Answer::Ok(result) => {
            CallEnd { status: CallStatus::Completed, result, is_error: false, refusal: None, by_hook_edit: false }
        }
        Answer::Error(text) => failed(plan, CallStatus::Failed, &text),
        Answer::TimedOut => classify::synthetic(CallStatus::TimedOut),
        Answer::TimedOutWith(text) => failed(plan, CallStatus::TimedOut, &text),
        Answer::Unknown => classify::synthetic(CallStatus::OutcomeUnknown),
    };
    let since = state.grant(&call, n).map_or(at, |it| it.since);
    EventKind::GrantAnswered { duration_ms: at.since_ms(since), call, n, end }
}

/// The end of a document's call whose grant was still running: whoever waited for it is gone, so nobody knows.
pub(crate) fn cut_short(call: &CallState) -> Option<CallEnd> {
    call.grants.iter().any(|it| it.stage == GrantStage::Executing && it.had_effect()).then(|| lost(call))
}

/// Ends what the process that died was in the middle of, so that the next grant has a name of its own.
pub(crate) fn leave(call: &mut CallState) {
    for grant in call.grants.iter_mut().filter(|it| it.end().is_none()) {
        let began = grant.stage == GrantStage::Executing;
        let status = if began { CallStatus::OutcomeUnknown } else { CallStatus::NotRun };
        grant.stage = GrantStage::Ended(classify::synthetic(status));
    }
}

/// A call whose outcome is unknown, with the grants that ran or may have: their effects stand.
pub(crate) fn lost(call: &CallState) -> CallEnd {
    let mut end = classify::synthetic(CallStatus::OutcomeUnknown);
    let ran: Vec<String> = call
        .grants
        .iter()
        .filter(|it| it.had_effect())
        .map(|it| {
            let open = if it.end().is_some() { "" } else { " (unknown)" };
            format!("{}{open}", it.name)
        })
        .collect();
    if !ran.is_empty() {
        let text = words::synthetic(CallStatus::OutcomeUnknown);
        end.result = Value::String(format!("{text} It had called: {}.", ran.join(", ")));
    }
    end
}

/// The next event of a running document's call, where one follows by itself.
pub(crate) fn follow(batch: &Batch) -> Option<EventKind> {
    let running = batch.calls.iter().filter(|call| call.stage == Stage::Executing);
    running.filter_map(|call| Some((call, call.grants.last()?))).find_map(|(call, grant)| {
        let n = u32::try_from(call.grants.len() - 1).unwrap_or(u32::MAX);
        (grant.stage == GrantStage::Allowed).then(|| EventKind::GrantStarted { call: call.id.clone(), n })
    })
}

impl State {
    /// The `n`th grant of a call.
    pub(crate) fn grant(&self, call: &CallId, n: u32) -> Option<&GrantCall> {
        self.call(call)?.grants.get(n as usize)
    }

    fn move_grant(&mut self, call: &CallId, n: u32, at: Timestamp, change: impl FnOnce(&mut GrantCall)) {
        let Some(call) = self.call_mut(call).filter(|it| it.stage == Stage::Executing) else { return };
        if let Some(grant) = call.grants.get_mut(n as usize).filter(|it| it.end().is_none()) {
            change(grant);
            grant.since = at;
        }
    }

    pub(crate) fn ask_grant(&mut self, plan: &Plan, at: Timestamp, id: &CallId, n: u32, name: &str, asked: &Object) {
        let Some(call) = self.call_mut(id).filter(|it| it.stage == Stage::Executing) else { return };
        if call.grants.len() != n as usize {
            return;
        }
        call.grants.push(GrantCall {
            name: name.to_owned(),
            asked: asked.clone(),
            arguments: asked.clone(),
            stage: if plan.spec.hook { GrantStage::Undecided } else { GrantStage::Allowed },
            grant: plan.grants.get(name).cloned(),
            since: at,
        });
    }

    pub(crate) fn decide_grant(
        &mut self,
        plan: &Plan,
        at: Timestamp,
        id: &CallId,
        n: u32,
        ruling: &Result<Decision, String>,
    ) {
        let mut name = String::new();
        // Whatever does not run is answered by the event that comes next, so only what runs is moved on.
        self.move_grant(id, n, at, |grant| {
            name.clone_from(&grant.name);
            match ruling {
                Ok(Decision::Run { arguments: None, .. }) => grant.stage = GrantStage::Allowed,
                Ok(Decision::Run { arguments: Some(arguments), .. }) => {
                    grant.arguments.clone_from(arguments);
                    if grant.grant.as_ref().is_some_and(|it| it.check(arguments).is_ok()) {
                        grant.stage = GrantStage::Allowed;
                    }
                }
                Ok(Decision::Deny { .. } | Decision::Defer { .. }) | Err(_) => {}
            }
        });
        if let Err(why) = ruling
            && plan.spec.on_hook_error == OnHookError::Stop
        {
            let message = format!("the decision on `{name}` failed: {why}");
            self.stop.get_or_insert((crate::outcome::Outcome::HookFailed, message));
        }
    }

    pub(crate) fn start_grant(&mut self, at: Timestamp, id: &CallId, n: u32) {
        self.move_grant(id, n, at, |grant| {
            if grant.stage == GrantStage::Allowed {
                grant.stage = GrantStage::Executing;
            }
        });
    }

    pub(crate) fn answer_grant(&mut self, at: Timestamp, id: &CallId, n: u32, end: &CallEnd) {
        self.move_grant(id, n, at, |grant| grant.stage = GrantStage::Ended(end.clone()));
    }
}
