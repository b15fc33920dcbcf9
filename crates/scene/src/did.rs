//! What a run did, in the words of the indented lines.

use gesta_run::Run;
use gesta_run::call::{CallEnd, CallRecord, CallStatus};
use gesta_run::event::{Event, EventKind};
use gesta_run::hold::{HoldKind, HoldReply};
use gesta_run::id::CallId;
use gesta_run::intervention::{Intervention, InterventionKind, InterventionOutcome};
use gesta_run::json::canonical;
use gesta_run::plan::Plan;
use gesta_run::want::{Effect, Want};
use serde::Serialize;
use serde_json::Value;

use crate::grants;
use crate::text::write_word;
use crate::world_print::said;

/// What an event says that no line at the margin says.
pub(crate) fn event(event: &Event, plan: &Plan) -> Vec<String> {
    match &event.what {
        EventKind::Replied { calls, .. } => {
            calls.iter().filter_map(|call| call.end.as_ref().and_then(|end| closed(&call.id, end))).collect()
        }
        EventKind::Answered { call, end, .. } => closed(call, end).into_iter().collect(),
        EventKind::Decided { call, ruling: Err(why) } => {
            vec![said(&format!("has no decision about {}:", write_word(call.as_str())), why)]
        }
        EventKind::GrantAnswered { call, n, end, .. } => {
            closed(&grants::id(call, *n).as_str().into(), end).into_iter().collect()
        }
        EventKind::GrantDecided { call, n, ruling: Err(why) } => {
            vec![said(&format!("has no decision about {}:", write_word(&grants::id(call, *n))), why)]
        }
        EventKind::Staged { call, .. } => vec![format!("stages {}", write_word(call.as_str()))],
        EventKind::Discarded { call, reason } => {
            vec![said(&format!("discards {}:", write_word(call.as_str())), reason)]
        }
        EventKind::Intervened(it) => intervened(it).into_iter().collect(),
        EventKind::FunctionFailed { function, error } => vec![said(&format!("notes that {function} failed:"), error)],
        EventKind::Detected { backstop, error: Some(error), .. }
        | EventKind::BackstopRan { backstop, error: Some(error), .. } => {
            vec![said(&format!("notes that backstop {} failed:", name_of(plan, *backstop)), error)]
        }
        EventKind::Settled => vec!["can no longer go on".to_owned()],
        _ => Vec::new(),
    }
}

/// What a crash hid, and what the model reads of it where nobody is asked.
pub(crate) fn lost(calls: &[CallId], run: &Run) -> Vec<String> {
    let records = run.result().tool_calls;
    let mut lines = Vec::new();
    for call in calls {
        lines.push(format!("does not know what came of {}", write_word(call.as_str())));
        let unknown = |record: &&CallRecord| record.id == *call && record.status == CallStatus::OutcomeUnknown;
        if let Some(record) = records.iter().find(unknown) {
            lines.push(said(&closed_as(call, &record.status, ""), record.result.as_str().unwrap_or_default()));
        }
    }
    lines
}

/// Answers that were there before, with what came of them as far as it is known.
pub(crate) fn repeated(calls: &[CallId], run: &Run) -> Vec<String> {
    let result = run.result();
    let line = |call: &CallId| {
        let head = format!("has the answer to {} already", write_word(call.as_str()));
        let action = result.actions.iter().find(|action| action.id == *call).map(|action| word(&action.status));
        let ended = result.tool_calls.iter().find(|record| record.id == *call).map(|record| word(&record.status));
        action.or(ended).map_or(head.clone(), |word| format!("{head}: {word}"))
    };
    calls.iter().map(line).collect()
}

/// A held action that a person did not let happen. That of a call is told by how the call is closed.
pub(crate) fn discarded(event: &Event, run: &Run) -> Option<String> {
    let EventKind::HoldAnswered { call, answer, .. } = &event.what else { return None };
    let (HoldReply::Deny { reason } | HoldReply::Error { text: reason }) = answer else { return None };
    run.action(call).map(|_| said(&format!("discards {}:", write_word(call.as_str())), reason))
}

fn closed_as(call: &CallId, status: &CallStatus, by: &str) -> String {
    format!("closes {} as {}{by}:", write_word(call.as_str()), word(status))
}

/// How a call was closed, unless it completed.
fn closed(call: &CallId, end: &CallEnd) -> Option<String> {
    if end.status == CallStatus::Completed {
        return None;
    }
    let by = if end.by_hook_edit { ", by the hook's edit" } else { "" };
    let head = format!("closes {} as {}{by}", write_word(call.as_str()), word(&end.status));
    let text = match (&end.refusal, &end.result) {
        (Some(reason), _) if end.status == CallStatus::Refused => reason.clone(),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Null) => return Some(head),
        (_, other) => canonical(other),
    };
    Some(said(&format!("{head}:"), &text))
}

fn intervened(it: &Intervention) -> Option<String> {
    let kind = match (it.kind, &it.name) {
        (InterventionKind::Backstop, Some(name)) => format!("backstop {name}"),
        (kind, _) => word(&kind).replace('_', " "),
    };
    match it.outcome {
        InterventionOutcome::Sent => {
            let prompt = it.prompt.as_deref().unwrap_or("").lines().next().unwrap_or("");
            Some(said(&format!("prompts the model ({kind}):"), prompt))
        }
        InterventionOutcome::Skipped => {
            let why = it.skipped.map_or_else(|| "skipped".to_owned(), |why| word(&why));
            Some(format!("does not prompt the model ({kind}): {why}"))
        }
        InterventionOutcome::NoPrompt => None,
    }
}

/// What a want asks for.
pub(crate) fn want(want: &Want, run: &Run, plan: &Plan) -> Vec<String> {
    vec![match &want.effect {
        Effect::Offer => "asks which tools there are".to_owned(),
        Effect::CallModel if run.offered().is_none() => "asks the model, without tools".to_owned(),
        Effect::CallModel => "asks the model".to_owned(),
        Effect::Decide(call) => format!("asks whether {} may run", write_word(call.as_str())),
        Effect::RunTool(call) => format!("runs {}", named(run, call)),
        Effect::DecideGrant(call, n) => format!("asks whether {} may run", grants::named(run, call, *n)),
        Effect::RunGrant(call, n) => format!("runs grant {}", grants::named(run, call, *n)),
        Effect::Detect(at) => format!("asks whether backstop {} is wanted", name_of(plan, *at)),
        Effect::RunBackstop(at) => {
            let head = format!("runs backstop {}", name_of(plan, *at));
            run.shared_state().map_or(head.clone(), |state| format!("{head} {}", canonical(state)))
        }
        Effect::Hold(call) => held(run, call),
        Effect::Deliver => said("says:", run.reply_text()),
        Effect::Perform(call) => format!("performs {}", named(run, call)),
    }]
}

fn held(run: &Run, call: &CallId) -> String {
    let holds = run.holds();
    let Some(hold) = holds.iter().find(|hold| hold.id == *call) else { return format!("holds {call}") };
    let what = if hold.kind == HoldKind::Action { "the action " } else { "" };
    let arguments = canonical(&Value::Object(hold.arguments.clone()));
    let head = format!("holds {what}{} {} {arguments}", write_word(call.as_str()), write_word(&hold.name));
    match &hold.reason {
        Some(reason) => said(&format!("{head}:"), reason),
        None => head,
    }
}

/// A call with its tool and the arguments it runs with.
fn named(run: &Run, call: &CallId) -> String {
    let head = write_word(call.as_str());
    let found = run.call(call).map(|it| (it.name.as_str(), &*it.arguments)).or_else(|| run.action(call));
    found.map_or(head.clone(), |(tool, arguments)| {
        format!("{head} {} {}", write_word(tool), canonical(&Value::Object(arguments.clone())))
    })
}

fn name_of(plan: &Plan, at: usize) -> String {
    plan.spec.contract.backstops.get(at).map_or_else(|| at.to_string(), |it| write_word(&it.name))
}

/// The word of a closed list as it stands on the wire.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}
