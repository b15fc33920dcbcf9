//! What the calls of an answer become before any decision: ids, unknown tools, malformed arguments, schema failures
//! (`spec/contract.md`, 2.5 and 2.6).

use std::collections::BTreeSet;

use serde_json::Value;

use super::{classify, words};
use crate::arguments::Arguments;
use crate::call::{ArgumentsBy, CallEnd, CallStatus};
use crate::event::Resolved;
use crate::id::CallId;
use crate::json::{self, Object};
use crate::message::CallBlock;
use crate::plan::Plan;
use crate::reply::Reply;
use crate::state::{CallState, Stage, State};
use crate::tool::ToolList;

/// Gives every call of the answer its id, and those that cannot run their end.
pub(crate) fn resolve(
    plan: &Plan,
    state: &State,
    reply: &Reply,
    failures: &mut Vec<(String, String)>,
) -> Vec<Resolved> {
    let mut taken = BTreeSet::new();
    let none = ToolList::default();
    let offered = if state.offers_tools(plan) { state.tools.as_ref() } else { &none };
    let mut resolved = Vec::new();
    for (index, call) in reply.calls().enumerate() {
        let id = unique_id(call, state, index, &mut taken);
        let read = read_arguments(call, offered);
        let too_many = index >= plan.spec.limits.calls_max as usize;
        let (arguments, problem) = match read {
            _ if too_many => (None, Some((CallStatus::NotRun, words::too_many_calls(plan.spec.limits.calls_max)))),
            Ok(arguments) => (Some(arguments), None),
            Err((arguments, status, text)) => (arguments, Some((status, text))),
        };
        let end = problem.map(|(status, text)| {
            let end = CallEnd {
                status,
                refusal: (status == CallStatus::InvalidArguments).then(|| text.clone()),
                result: Value::String(json::cut(&text, plan.spec.limits.error_bytes_max).to_owned()),
                is_error: true,
                by_hook_edit: false,
            };
            let seen = as_call(call, &id, state.trips, index, arguments.clone());
            classify::ask_author(plan, &seen, end, failures)
        });
        resolved.push(Resolved { id, end, arguments: arguments.map(Arguments::from) });
    }
    resolved
}

fn as_call(call: &CallBlock, id: &CallId, trip: u32, index: usize, arguments: Option<Object>) -> CallState {
    CallState {
        id: id.clone(),
        name: call.name.clone(),
        raw_arguments: call.arguments.as_str().into(),
        model_arguments: arguments.unwrap_or_default().into(),
        arguments: Arguments::default(),
        arguments_by: ArgumentsBy::Model,
        trip,
        index: u32::try_from(index).unwrap_or(u32::MAX),
        recovered: call.recovered,
        stage: Stage::Undecided,
        tool: None,
        sound: false,
        since: crate::time::Timestamp::default(),
        hold_reason: None,
        expires_at: None,
        held: false,
        approved: None,
        grants: Vec::new(),
    }
}

fn unique_id(call: &CallBlock, state: &State, index: usize, taken: &mut BTreeSet<CallId>) -> CallId {
    let trip = state.trips;
    let mut is_free = |id: &CallId| !state.call_ids.contains(id) && taken.insert(id.clone());
    let written = call.id.as_str();
    let own = if written.trim().len() == written.len() { call.id.clone() } else { CallId::from(written.trim()) };
    if !own.as_str().is_empty() && is_free(&own) {
        return own;
    }
    let mut n = 0;
    loop {
        let suffix = if n == 0 { String::new() } else { format!("_{n}") };
        let made = CallId::new(format!("call_{trip}_{index}{suffix}"));
        if is_free(&made) {
            return made;
        }
        n += 1;
    }
}

type Unrunnable = (Option<Object>, CallStatus, String);

fn read_arguments(call: &CallBlock, tools: &ToolList) -> Result<Object, Unrunnable> {
    let Some(tool) = tools.get(&call.name) else {
        let offered: Vec<&str> = tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        let arguments = read_object(&call.arguments).ok();
        return Err((arguments, CallStatus::UnknownTool, words::unknown_tool(&call.name, &offered)));
    };
    let written = call.arguments.trim();
    let arguments = if is_nothing(written) && tool.takes_nothing() {
        Object::new()
    } else {
        read_object(written)
            .map_err(|why| (None, CallStatus::InvalidArguments, words::malformed_arguments(&why, &call.arguments)))?
    };
    match tool.check(&arguments) {
        Ok(()) => Ok(arguments),
        Err(issues) => Err((Some(arguments), CallStatus::InvalidArguments, words::broken_schema(&issues))),
    }
}

fn is_nothing(written: &str) -> bool {
    written.is_empty() || written == "null"
}

/// Whether the arguments are an object as the model wrote them; where they were read already, their text need not be.
pub(crate) fn is_object(call: &CallBlock, read: Option<&Object>) -> bool {
    match read {
        Some(_) => !is_nothing(call.arguments.trim()),
        None => read_object(&call.arguments).is_ok(),
    }
}

/// Reads arguments as the model wrote them.
pub(crate) fn read_object(text: &str) -> Result<Object, String> {
    match json::read_strict(text.trim()) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("it is JSON, but no object".to_owned()),
        Err(why) => Err(why.to_string()),
    }
}
