//! What the dice throw: plans, answers of a model, decisions, results, answers to holds.

use fastrand::Rng;
use gesta_run::{
    Accepts, ActWhenAsked, Answer, BackstopSpec, Block, BlockKind, ContractSpec, Decision, Fault, FaultKind, Finish,
    GrantSpec, HoldReply, HookError, Limits, Met, OnHookError, OnMessageWhileParked, OnToolRefusal, OnUndecided,
    PatternSpec, Phase, PlanSpec, Prices, Ran, RefusalPreset, Reply, Require, Ruling, ToolEffect, ToolSpec, Usage,
};
use serde_json::{Value, json};

pub const GRANTS: [&str; 2] = ["pay", "read"];
pub const TOOLS: [&str; 5] = ["refund", "look", "tag", "note", "book"];

pub fn one_in(dice: &mut Rng, n: u32) -> bool {
    dice.u32(0..n) == 0
}

fn some<T>(dice: &mut Rng, n: u32, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    if one_in(dice, n) { Some(make(dice)) } else { None }
}

fn tool(dice: &mut Rng, name: &str) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let schema = if one_in(dice, 3) { json!({"type": "object", "properties": {}}) } else { schema };
    let mut tool = ToolSpec::new(name, "", schema);
    tool.effect = match (name, dice.u32(0..3)) {
        ("tag" | "note", _) | (_, 0) => ToolEffect::Staged,
        (_, 1) => ToolEffect::ReadsOnly,
        _ => ToolEffect::Once,
    };
    tool.needs_approval = tool.effect == ToolEffect::Staged && one_in(dice, 3);
    tool.document = tool.effect == ToolEffect::Once && one_in(dice, 2);
    tool.silent = one_in(dice, 6);
    tool.accepts = [Accepts::Any, Accepts::Any, Accepts::ApprovalOnly, Accepts::External][dice.usize(0..4)];
    tool.refusal = some(dice, 4, |_| PatternSpec::Substring("sorry".to_owned()));
    tool
}

fn grants(dice: &mut Rng) -> Vec<GrantSpec> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let effects = [ToolEffect::Once, ToolEffect::ReadsOnly];
    let names = GRANTS[..dice.usize(0..=GRANTS.len())].iter();
    names
        .map(|name| GrantSpec {
            parameters: schema.clone(),
            effect: effects[dice.usize(0..2)],
            ..GrantSpec::new("App", *name, ["n"])
        })
        .collect()
}

/// What a running call of a document asks for.
pub fn asked(dice: &mut Rng, n: u32) -> Met {
    let name = if one_in(dice, 6) { "none" } else { GRANTS[dice.usize(0..GRANTS.len())] };
    let arguments = if one_in(dice, 4) { json!({}) } else { json!({"n": dice.u32(0..3)}) };
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Met::Asked { n, grant: format!("App.{name}"), arguments }
}

fn contract(dice: &mut Rng) -> ContractSpec {
    let count = dice.usize(0..3);
    let backstops = (0..if one_in(dice, 2) { count } else { 0 })
        .map(|n| BackstopSpec {
            name: format!("b{n}"),
            phase: if dice.bool() { Phase::Before } else { Phase::After },
            time_limit_ms: 1000,
        })
        .collect();
    let act = |dice: &mut Rng| ActWhenAsked {
        intents: if one_in(dice, 5) { Vec::new() } else { vec![PatternSpec::Substring("please".to_owned())] },
        required_tools: TOOLS[..dice.usize(1..3)].iter().map(|&name| name.to_owned()).collect(),
        require: if dice.bool() { Require::All } else { Require::Any },
        hint: some(dice, 3, |_| "Act.".to_owned()),
        max_reprompts: dice.u32(0..3),
    };
    let refusal = |dice: &mut Rng| {
        let preset = [None, None, Some(RefusalPreset::Errors), Some(RefusalPreset::Patterns)][dice.usize(0..4)];
        let patterns = if preset == Some(RefusalPreset::Patterns) { vec!["no".to_owned()] } else { Vec::new() };
        OnToolRefusal {
            retries: dice.u32(0..3),
            hint: some(dice, 3, |_| "{tool}: {reason}".to_owned()),
            preset,
            patterns: patterns.into_iter().map(PatternSpec::Substring).collect(),
        }
    };
    ContractSpec { act_when_asked: some(dice, 2, act), on_tool_refusal: some(dice, 2, refusal), backstops }
}

pub fn plan(dice: &mut Rng) -> PlanSpec {
    let tools = TOOLS[..dice.usize(2..=TOOLS.len())].iter().map(|name| tool(dice, name)).collect();
    let limits = Limits {
        trips_max: dice.u32(1..8),
        calls_parallel_max: dice.u32(1..4),
        calls_max: dice.u32(2..5),
        actions_max: dice.u32(0..4),
        result_bytes_max: 64,
        error_bytes_max: 64,
        input_bytes_max: 64,
        tokens_max: some(dice, 6, |dice| dice.u64(50..400)),
        cost_usd_max: some(dice, 8, |_| 0.002),
        seconds_max: some(dice, 5, |dice| dice.u64(1..30)),
        grants_max: dice.u32(1..4),
        prices: some(dice, 2, |_| Prices { input: 1.0, output: 2.0, cached: None }),
    };
    PlanSpec {
        agent: "dice".to_owned(),
        tools,
        grants: grants(dice),
        tools_change: one_in(dice, 4),
        hook: !one_in(dice, 4),
        contract: if one_in(dice, 4) { ContractSpec::default() } else { contract(dice) },
        limits,
        output_schema: some(dice, 8, |_| json!({"type": ["object", "null"]})),
        on_hook_error: if dice.bool() { OnHookError::Stop } else { OnHookError::Deny },
        on_undecided: if dice.bool() { OnUndecided::Ask } else { OnUndecided::TellModel },
        on_message_while_parked: [OnMessageWhileParked::Supersede, OnMessageWhileParked::Refuse][dice.usize(0..2)],
        hold_ttl_ms: some(dice, 4, |dice| dice.u64(500..20_000)),
        live: one_in(dice, 8),
        tools_on_last_trip: !one_in(dice, 4),
        ..PlanSpec::default()
    }
}

pub fn input(dice: &mut Rng) -> String {
    ["please do it", "hello", "Please refund", "", &"x".repeat(100)][dice.choice([0, 0, 0, 1, 1, 2, 3, 4]).unwrap_or(0)]
        .to_owned()
}

fn arguments(dice: &mut Rng) -> &'static str {
    ["{\"n\":1}", "{\"n\":2}", "{\"n\":0.5}", "{}", "", "null", "[1]", "{\"n\":1,\"n\":2}", "{\"n\":", "{\"n\":1e999}"]
        [if one_in(dice, 3) { dice.usize(0..10) } else { dice.usize(0..2) }]
}

fn text(dice: &mut Rng) -> String {
    match dice.u32(0..8) {
        0 => String::new(),
        1 => "```json\n{\"name\":\"refund\",\"arguments\":{\"n\":1}}\n```".to_owned(),
        2 => "{\"name\":\"look\",\"parameters\":{}}".to_owned(),
        3 => "{\"ok\":true}".to_owned(),
        4 => "null".to_owned(),
        _ => "I have done it.".to_owned(),
    }
}

pub fn reply(dice: &mut Rng) -> Reply {
    let mut blocks = Vec::new();
    if one_in(dice, 5) {
        blocks.push(BlockKind::Thinking("hm".to_owned()).into());
    }
    if one_in(dice, 2) {
        blocks.push(Block::text(text(dice)));
    }
    let calls = if one_in(dice, 2) { dice.usize(1..6) } else { 0 };
    for _ in 0..calls {
        let id = ["", "c1", "c2", "c3", "c4", "c5", " c1 ", "call_0_0"][dice.usize(0..8)];
        let name = if one_in(dice, 8) { "nothing" } else { TOOLS[dice.usize(0..TOOLS.len())] };
        blocks.push(Block::call(id, name, arguments(dice)));
    }
    let finish = match dice.u32(0..20) {
        0 => Finish::Length,
        1 => Finish::ContentFilter,
        2 => Finish::Refusal,
        _ if calls > 0 => Finish::ToolCalls,
        _ => Finish::Stop,
    };
    let (input, output) = (dice.u64(0..30), dice.u64(0..30));
    let usage = Usage { input, output, total: input + output, ..Usage::default() };
    Reply { blocks, finish, finish_reason: "stop".to_owned(), usage, model: String::new() }
}

pub fn fault(dice: &mut Rng) -> Fault {
    let usage = Usage { total: dice.u64(0..10), ..Usage::default() };
    let message = "the provider is gone".to_owned();
    Fault { kind: FaultKind::Overloaded, message, retryable: true, status: Some(503), retry_after_ms: None, usage }
}

pub fn ruling(dice: &mut Rng) -> Ruling {
    let object = |value: Value| value.as_object().cloned().unwrap_or_default();
    match dice.u32(0..16) {
        0 | 1 => Ok(Decision::deny("not today")),
        2 => Ok(Decision::deny(" ")),
        3 => Ok(Decision::run_with(object(json!({"n": 7})))),
        4 => Ok(Decision::run_with(object(json!({"n": "seven"})))),
        5 => Err(HookError("it fell over".to_owned())),
        6..=8 => Ok(Decision::Defer { reason: None }),
        _ => Ok(Decision::run()),
    }
}

pub fn answer(dice: &mut Rng) -> Answer {
    match dice.u32(0..12) {
        0 => Answer::Error("sorry, it broke".to_owned()),
        1 => Answer::Error("no".to_owned()),
        2 => Answer::TimedOut,
        3 => Answer::Unknown,
        4 => Answer::Ok(json!({"ok": false, "reason": "no id 9"})),
        5 => Answer::Ok(json!("sorry")),
        6 => Answer::Ok(json!("é".repeat(100))),
        7 => Answer::Ok(Value::Null),
        _ => Answer::Ok(json!({"done": true})),
    }
}

pub fn hold_reply(dice: &mut Rng) -> HoldReply {
    let edited = |n: Value| HoldReply::Approve { arguments: json!({ "n": n }).as_object().cloned() };
    match dice.u32(0..12) {
        0 => HoldReply::Deny { reason: "no".to_owned() },
        1 => HoldReply::Deny { reason: String::new() },
        2 => HoldReply::Result { value: json!({"by": "hand"}) },
        3 => HoldReply::Error { text: "cannot".to_owned() },
        4 | 5 => HoldReply::OutcomeUnknown,
        6 => edited(json!(9)),
        7 => edited(json!("nine")),
        _ => HoldReply::Approve { arguments: None },
    }
}

pub fn ran(dice: &mut Rng) -> Result<Ran, String> {
    if one_in(dice, 5) {
        return Err("it fell over".to_owned());
    }
    let prompt = [None, Some("Look again.".to_owned()), Some(" ".to_owned())][dice.usize(0..3)].clone();
    let state = [None, Some(json!({"x": 1})), Some(Value::Null)][dice.usize(0..3)].clone();
    Ok(Ran { prompt, state })
}

pub fn added(dice: &mut Rng) -> Vec<ToolSpec> {
    (0..dice.usize(0..3)).map(|n| ToolSpec::new(format!("added{}", n / dice.usize(1..3)), "", json!({}))).collect()
}
