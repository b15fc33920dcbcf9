//! Prints a plan as the clauses of a scene.

use gesta_run::contract::{ActWhenAsked, OnToolRefusal, RefusalPreset, Require};
use gesta_run::intervention::Phase;
use gesta_run::json::canonical;
use gesta_run::plan::{Limits, OnHookError, OnMessageWhileParked, OnUndecided, PlanSpec};
use gesta_run::tool::{Accepts, Effect, TIME_LIMIT_MS, ToolSpec};
use serde_json::Value;

use crate::text::{write_text, write_word};
use crate::world_print::{duration, said};
use crate::{grants, patterns, plan_read};

/// The clauses of a plan, one a line, each with `plan: ` in front.
pub(crate) fn plan(spec: &PlanSpec) -> Vec<String> {
    let mut clauses = Vec::new();
    names(spec, &mut clauses);
    clauses.extend(spec.tools.iter().map(|it| format!("tool {}", tool(it))));
    clauses.extend(spec.grants.iter().map(grants::print));
    clauses.push("no other tools".to_owned());
    if let Some(act) = &spec.contract.act_when_asked {
        act_when_asked(act, &mut clauses);
    }
    if let Some(refusal) = &spec.contract.on_tool_refusal {
        on_tool_refusal(refusal, &mut clauses);
    }
    for it in &spec.contract.backstops {
        let phase = if it.phase == Phase::Before { "before" } else { "after" };
        let limit = if it.time_limit_ms == TIME_LIMIT_MS { String::new() } else { within(it.time_limit_ms) };
        clauses.push(format!("backstop {} {phase}{limit}", write_word(&it.name)));
    }
    limits(&spec.limits, &mut clauses);
    switches(spec, &mut clauses);
    clauses.into_iter().map(|clause| format!("plan: {clause}")).collect()
}

fn within(ms: u64) -> String {
    format!(" within {}", duration(ms))
}

fn names(spec: &PlanSpec, clauses: &mut Vec<String>) {
    let texts = [
        ("agent:", &spec.agent),
        ("version:", &spec.version),
        ("model:", &spec.model),
        ("instructions:", &spec.instructions),
    ];
    clauses.extend(texts.iter().filter(|(_, text)| !text.is_empty()).map(|(word, text)| said(word, text)));
    if spec.timezone != "UTC" {
        clauses.push(said("timezone:", &spec.timezone));
    }
    if !spec.model_options.is_empty() {
        clauses.push(format!("model options {}", canonical(&Value::Object(spec.model_options.clone()))));
    }
}

/// A tool: its name, its schema where it has one, its options, its description.
pub(crate) fn tool(tool: &ToolSpec) -> String {
    let mut out = write_name(&tool.name);
    if tool.parameters != plan_read::permissive() {
        out.push_str(&format!(" {}", canonical(&tool.parameters)));
    }
    match tool.effect {
        Effect::ReadsOnly => out.push_str(", reads only"),
        Effect::Staged => out.push_str(", staged"),
        Effect::Once => {}
    }
    match tool.accepts {
        Accepts::ApprovalOnly => out.push_str(", approval only"),
        Accepts::External => out.push_str(", external"),
        Accepts::Any => {}
    }
    if tool.needs_approval {
        out.push_str(", needs approval");
    }
    if tool.silent {
        out.push_str(", silent");
    }
    if tool.document {
        out.push_str(", in the document");
    }
    if tool.time_limit_ms != TIME_LIMIT_MS {
        out.push_str(&format!(",{}", within(tool.time_limit_ms)));
    }
    if let Some(refusal) = &tool.refusal {
        out.push_str(&format!(", refuses by {}", patterns::write_one(refusal)));
    }
    if tool.description.is_empty() { out } else { said(&format!("{out}:"), &tool.description) }
}

/// A name that a comma or a colon may stand behind.
fn write_name(name: &str) -> String {
    if name.contains([',', ':']) { Value::from(name).to_string() } else { write_word(name) }
}

fn act_when_asked(act: &ActWhenAsked, clauses: &mut Vec<String>) {
    let intents = if act.intents.is_empty() { "nothing".to_owned() } else { patterns::write(&act.intents) };
    let all = if act.require == Require::All { "all of " } else { "" };
    let names: Vec<String> = act.required_tools.iter().map(|name| write_name(name)).collect();
    let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    clauses.push(format!("on {intents} must call {all}{names}"));
    if act.max_reprompts != 1 {
        clauses.push(format!("prompts to act at most {}", act.max_reprompts));
    }
    clauses.extend(act.hint.iter().map(|hint| said("hint to act:", hint)));
}

fn on_tool_refusal(refusal: &OnToolRefusal, clauses: &mut Vec<String>) {
    clauses.push(match refusal.retries {
        0 => "refusals are retried never".to_owned(),
        1 => "refusals are retried once".to_owned(),
        n => format!("refusals are retried {n} times"),
    });
    match refusal.preset {
        Some(RefusalPreset::Errors) => clauses.push("failures are refusals".to_owned()),
        Some(RefusalPreset::Patterns) => clauses.push(format!("refusals match {}", patterns::write(&refusal.patterns))),
        None => {}
    }
    clauses.extend(refusal.hint.iter().map(|hint| write_text("hint on refusal:", hint, 8, |_| false)));
}

fn limits(limits: &Limits, clauses: &mut Vec<String>) {
    let usual = Limits::default();
    let counts = [
        ("trips", limits.trips_max as usize, usual.trips_max as usize),
        ("calls at once", limits.calls_parallel_max as usize, usual.calls_parallel_max as usize),
        ("calls", limits.calls_max as usize, usual.calls_max as usize),
        ("actions", limits.actions_max as usize, usual.actions_max as usize),
        ("result bytes", limits.result_bytes_max, usual.result_bytes_max),
        ("input bytes", limits.input_bytes_max, usual.input_bytes_max),
        ("grants of a call", limits.grants_max as usize, usual.grants_max as usize),
        ("error bytes", limits.error_bytes_max, usual.error_bytes_max),
    ];
    let changed = counts.iter().filter(|(_, now, usual)| now != usual);
    clauses.extend(changed.map(|(word, now, _)| format!("{word} at most {now}")));
    clauses.extend(limits.tokens_max.map(|n| format!("tokens at most {n}")));
    clauses.extend(limits.seconds_max.map(|n| format!("seconds at most {n}")));
    clauses.extend(limits.cost_usd_max.map(|n| format!("cost at most {n}")));
    if let Some(prices) = &limits.prices {
        let value = serde_json::to_value(prices).unwrap_or_default();
        clauses.push(format!("prices {}", canonical(&value)));
    }
}

fn switches(spec: &PlanSpec, clauses: &mut Vec<String>) {
    if let Some(schema) = &spec.output_schema {
        clauses.push(format!("output {}", canonical(schema)));
    }
    clauses.push(if spec.hook { "hook on" } else { "hook off" }.to_owned());
    let switches = [
        ("a failed hook denies", spec.on_hook_error == OnHookError::Deny),
        ("undecided calls are told to the model", spec.on_undecided == OnUndecided::TellModel),
        ("messages are refused while parked", spec.on_message_while_parked == OnMessageWhileParked::Refuse),
        ("live", spec.live),
        ("the last trip has no tools", !spec.tools_on_last_trip),
        ("replies are judged", spec.judged),
        ("tools change", spec.tools_change),
    ];
    clauses.extend(switches.iter().filter(|(_, on)| *on).map(|(word, _)| (*word).to_owned()));
    clauses.extend(spec.hold_ttl_ms.map(|ms| format!("holds expire after {}", duration(ms))));
}
