//! Answers to holds: all are checked before any counts, in one place (`spec/contract.md`, 7.5).

use crate::hold::{AnswerError, Hold, HoldAnswer, HoldKind, HoldReply, HoldState};
use crate::id::CallId;
use crate::json;
use crate::run::Run;
use crate::time::Timestamp;
use crate::tool::Accepts;

/// Checks the answers of one request. Those already given are left out; one that is bad refuses them all.
pub(crate) fn check(
    run: &Run,
    given: &[HoldAnswer],
    missing_tools: &[String],
    at: Timestamp,
) -> Result<Vec<HoldAnswer>, AnswerError> {
    let holds = run.holds();
    let mut fresh: Vec<HoldAnswer> = Vec::new();
    for answer in given {
        let call = &answer.binding.call_id;
        if let Some(other) = fresh.iter().find(|it| it.binding.call_id == *call) {
            if other != answer {
                return Err(AnswerError::Conflict { call: call.clone() });
            }
            continue;
        }
        if let Some(before) = run.state().answered_holds.get(call) {
            let undecided = holds.iter().find(|hold| hold.id == *call);
            match undecided {
                Some(hold) => check_binding(hold, answer)?,
                None => check_run(run, answer)?,
            }
            if before.contains(&answer.answer) {
                continue;
            }
            if undecided.is_none() {
                return Err(AnswerError::Conflict { call: call.clone() });
            }
        }
        let hold = find(run, &holds, call)?;
        check_binding(hold, answer)?;
        check_kind(hold, &answer.answer)?;
        if hold.expires_at.is_some_and(|until| until <= at) && hold.state == HoldState::Open {
            return Err(AnswerError::Expired { call: call.clone() });
        }
        check_approval(run, hold, &answer.answer, missing_tools)?;
        fresh.push(answer.clone());
    }
    Ok(fresh)
}

fn find<'a>(run: &Run, holds: &'a [Hold], call: &CallId) -> Result<&'a Hold, AnswerError> {
    holds.iter().find(|hold| hold.id == *call).ok_or_else(|| match run.outcome() {
        Some(outcome) if holds.is_empty() => AnswerError::RunEnded(outcome.as_str().to_owned()),
        _ => AnswerError::UnknownCall { call: call.clone(), open: holds.iter().map(|it| it.id.clone()).collect() },
    })
}

/// Of a hold that is closed, what a binding still has to name is its run and the run's plan.
fn check_run(run: &Run, answer: &HoldAnswer) -> Result<(), AnswerError> {
    let theirs = &answer.binding;
    let part = if run.opening().is_none_or(|opening| opening.run != theirs.run_id) {
        "run"
    } else if run.plan().hash() != theirs.config_version {
        "config_version"
    } else {
        return Ok(());
    };
    Err(AnswerError::Binding { call: theirs.call_id.clone(), part })
}

fn check_binding(hold: &Hold, answer: &HoldAnswer) -> Result<(), AnswerError> {
    let (ours, theirs) = (&hold.binding, &answer.binding);
    let parts = [
        ("run", ours.run_id == theirs.run_id),
        ("tool", ours.tool == theirs.tool),
        ("fingerprint", ours.fingerprint == theirs.fingerprint),
        ("config_version", ours.config_version == theirs.config_version),
    ];
    match parts.iter().find(|(_, same)| !same) {
        Some((part, _)) => Err(AnswerError::Binding { call: hold.id.clone(), part }),
        None => Ok(()),
    }
}

fn check_kind(hold: &Hold, answer: &HoldReply) -> Result<(), AnswerError> {
    let (kind, approves, hands_in) = match answer {
        HoldReply::Approve { .. } => ("approve", true, false),
        HoldReply::Deny { .. } => ("deny", false, false),
        HoldReply::Result { .. } => ("result", false, true),
        HoldReply::Error { .. } => ("error", false, false),
        HoldReply::OutcomeUnknown => ("outcome_unknown", false, false),
    };
    let undecided = hold.state == HoldState::Undecided;
    let accepts = match (undecided, hold.accepts) {
        (true, _) => "result, error or outcome_unknown",
        (false, Accepts::Any) => "approve, deny, result or error",
        (false, Accepts::ApprovalOnly) => "approve, deny or error",
        (false, Accepts::External) => "deny, result or error",
    };
    let fits = match (undecided, answer) {
        (true, HoldReply::Approve { .. } | HoldReply::Deny { .. }) => false,
        (true, _) => true,
        (false, HoldReply::OutcomeUnknown) => false,
        (false, _) => match hold.accepts {
            Accepts::Any => true,
            Accepts::ApprovalOnly => !hands_in,
            Accepts::External => !approves,
        },
    };
    if !fits {
        return Err(AnswerError::NotAccepted { call: hold.id.clone(), kind, accepts });
    }
    match answer {
        HoldReply::Deny { reason } if reason.trim().is_empty() => Err(AnswerError::NoReason { call: hold.id.clone() }),
        HoldReply::Approve { arguments: Some(arguments) } if json::are_deep(arguments) => {
            Err(AnswerError::TooDeep { call: hold.id.clone() })
        }
        HoldReply::Result { value } if json::is_deeper(value, json::DEPTH_MAX) => {
            Err(AnswerError::TooDeep { call: hold.id.clone() })
        }
        HoldReply::Approve { .. }
        | HoldReply::Deny { .. }
        | HoldReply::Result { .. }
        | HoldReply::Error { .. }
        | HoldReply::OutcomeUnknown => Ok(()),
    }
}

fn check_approval(run: &Run, hold: &Hold, answer: &HoldReply, missing: &[String]) -> Result<(), AnswerError> {
    let HoldReply::Approve { arguments } = answer else { return Ok(()) };
    if missing.contains(&hold.name) {
        return Err(AnswerError::ToolGone { call: hold.id.clone(), tool: hold.name.clone() });
    }
    let Some(arguments) = arguments else { return Ok(()) };
    let tool = match hold.kind {
        HoldKind::Call => run.state().call(&hold.id).and_then(|call| call.tool.clone()),
        HoldKind::Action => run.state().tools.get(&hold.name).cloned(),
    };
    let issues = tool.and_then(|tool| tool.check(arguments).err());
    match issues {
        Some(issues) => Err(AnswerError::Arguments { call: hold.id.clone(), issues }),
        None => Ok(()),
    }
}
