//! How a finished call ends: completed, refused, failed (`spec/contract.md`, 2.6 and 3.3).

use serde_json::Value;

use super::words;
use crate::call::{Answer, CallEnd, CallStatus};
use crate::contract::RefusalPreset;
use crate::json;
use crate::plan::{IsRefusal, Plan};
use crate::state::CallState;

/// Said where a function calls something a refusal and gives no reason.
const GENERIC_REASON: &str = "the tool did not accept the call";

/// The end of a call whose body, or someone outside, answered.
pub(crate) fn end_of(plan: &Plan, call: &CallState, answer: Answer, failures: &mut Vec<(String, String)>) -> CallEnd {
    let limits = &plan.spec.limits;
    let end = |status, result, is_error| CallEnd { status, result, is_error, refusal: None, by_hook_edit: false };
    let mut end = match answer {
        Answer::Ok(value) if json::is_deeper(&value, json::DEPTH_MAX) => {
            json::discard(value);
            end(CallStatus::Failed, Value::String(words::deep_result()), true)
        }
        Answer::Ok(value) => end(CallStatus::Completed, value, false),
        Answer::Error(text) => end(CallStatus::Failed, Value::String(text), true),
        Answer::TimedOut => return ask_author(plan, call, synthetic(CallStatus::TimedOut), failures),
        Answer::TimedOutWith(text) => {
            let text = json::cut(&text, limits.error_bytes_max).to_owned();
            return ask_author(plan, call, end(CallStatus::TimedOut, Value::String(text), true), failures);
        }
        Answer::Unknown => return synthetic(CallStatus::OutcomeUnknown),
    };
    // Read whole, before it is cut: a refusal may stand behind what is kept.
    end.refusal = default_refusal(plan, call, &end);
    let flagged = end.refusal.is_some();
    if flagged && (end.status != CallStatus::Failed || text_matches(plan, call, &end)) {
        end.status = CallStatus::Refused;
    }
    let by_pattern = own_pattern(call, &end).is_some();
    end.result = if end.is_error {
        let text = end.result.as_str().unwrap_or_default();
        Value::String(json::cut(text, limits.error_bytes_max).to_owned())
    } else {
        cut_result(end.result, limits.result_bytes_max)
    };
    if let Some(reason) = &mut end.refusal {
        reason.truncate(json::cut(reason, limits.result_bytes_max).len());
    }
    author_on(plan, call, end, by_pattern, failures)
}

/// The end of a call that gets no result of its own.
pub(crate) fn synthetic(status: CallStatus) -> CallEnd {
    CallEnd {
        status,
        result: Value::String(words::synthetic(status).to_owned()),
        is_error: true,
        refusal: None,
        by_hook_edit: false,
    }
}

/// Lets the author's `is_refusal` overrule the default test, but never the tool's own pattern.
pub(crate) fn ask_author(plan: &Plan, call: &CallState, end: CallEnd, failures: &mut Vec<(String, String)>) -> CallEnd {
    let by_pattern = own_pattern(call, &end).is_some();
    author_on(plan, call, end, by_pattern, failures)
}

fn author_on(
    plan: &Plan,
    call: &CallState,
    mut end: CallEnd,
    by_pattern: bool,
    failures: &mut Vec<(String, String)>,
) -> CallEnd {
    let Some(is_refusal) = &plan.functions.is_refusal else { return end };
    if plan.spec.contract.on_tool_refusal.is_none() || end.status == CallStatus::NotRun {
        return end;
    }
    let reason = match is_refusal(&call.record_with(&end)) {
        Ok(IsRefusal::Default) => return end,
        Ok(IsRefusal::No) if by_pattern => return end,
        Ok(IsRefusal::No) => None,
        Ok(IsRefusal::Yes) => Some(end.refusal.clone().unwrap_or_else(|| GENERIC_REASON.to_owned())),
        Ok(IsRefusal::Because(why)) if words::clean(&why).is_empty() => Some(GENERIC_REASON.to_owned()),
        Ok(IsRefusal::Because(why)) => Some(why),
        Err(why) => {
            failures.push(("is_refusal".to_owned(), why));
            return end;
        }
    };
    match (end.status, reason.is_some()) {
        (CallStatus::Completed, true) => end.status = CallStatus::Refused,
        (CallStatus::Refused, false) => {
            end.status = if end.is_error { CallStatus::Failed } else { CallStatus::Completed };
        }
        _ => {}
    }
    end.refusal = reason;
    end
}

fn default_refusal(plan: &Plan, call: &CallState, end: &CallEnd) -> Option<String> {
    if let Some(text) = own_pattern(call, end) {
        return Some(text);
    }
    if let Some(reason) = flagged(&end.result).filter(|_| !end.is_error) {
        return Some(reason);
    }
    let option = plan.spec.contract.on_tool_refusal.as_ref()?;
    match option.preset {
        Some(RefusalPreset::Errors) if end.is_error => text_of(&end.result),
        Some(RefusalPreset::Patterns) => {
            let text = text_of(&end.result)?;
            plan.refusal_patterns.iter().any(|pattern| pattern.is_in(&text)).then_some(text)
        }
        Some(RefusalPreset::Errors) | None => None,
    }
}

/// A failed call is *refused* where a pattern says so; the preset `errors` leaves it *failed* and quotes it.
fn text_matches(plan: &Plan, call: &CallState, end: &CallEnd) -> bool {
    let preset = text_of(&end.result).is_some_and(|text| plan.refusal_patterns.iter().any(|it| it.is_in(&text)));
    own_pattern(call, end).is_some() || preset
}

fn own_pattern(call: &CallState, end: &CallEnd) -> Option<String> {
    let pattern = call.tool.as_ref()?.refusal.as_ref()?;
    text_of(&end.result).filter(|text| pattern.is_in(text))
}

fn text_of(result: &Value) -> Option<String> {
    result.as_str().map(str::to_owned)
}

/// The default test: an object that raises a flag and explains itself.
fn flagged(result: &Value) -> Option<String> {
    let object = result.as_object()?;
    let raised = object.get("ok") == Some(&Value::Bool(false)) || object.get("refused") == Some(&Value::Bool(true));
    if !raised {
        return None;
    }
    let texts = ["reason", "error", "message"].into_iter().filter_map(|key| object.get(key)?.as_str());
    texts.map(str::trim).find(|text| !words::clean(text).is_empty()).map(str::to_owned)
}

/// More bytes than the JSON of a value can have, found without writing it.
fn bytes_at_most(value: &Value) -> usize {
    let text = |text: &str| text.len().saturating_mul(6).saturating_add(3);
    match value {
        Value::Null | Value::Bool(_) => 6,
        Value::Number(_) => 32,
        Value::String(it) => text(it),
        Value::Array(list) => list.iter().map(bytes_at_most).fold(3, usize::saturating_add),
        Value::Object(object) => {
            let entries = object.iter().map(|(key, value)| text(key).saturating_add(bytes_at_most(value)));
            entries.fold(3, usize::saturating_add)
        }
    }
}

/// Whether the JSON of a value has more bytes than this.
pub(crate) fn is_longer(value: &Value, bytes_max: usize) -> bool {
    bytes_at_most(value) > bytes_max && value.to_string().len() > bytes_max
}

fn cut_result(value: Value, bytes_max: usize) -> Value {
    let text = match &value {
        Value::String(text) if text.len() <= bytes_max => return value,
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => return value,
        Value::Array(_) | Value::Object(_) if bytes_at_most(&value) <= bytes_max => return value,
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.len() <= bytes_max {
                return value;
            }
            text
        }
    };
    let kept = json::cut(&text, bytes_max);
    Value::String(format!("{kept}\n[cut: the result had {} bytes, the limit is {bytes_max}]", text.len()))
}
