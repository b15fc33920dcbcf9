//! One agent: its prompt, tools, contract, decision rules and limits.

use axum::response::Response;
use gesta_run::{Accepts, ConversationId, Phase, RefusalPreset, Require, ToolEffect, ToolSpec};
use gesta_runtime::folder::{Body, Folder};
use maud::{Markup, html};
use serde_json::Value;

use super::failed::Failed;
use super::page::{Page, Tab};
use super::parts::{agent_address, badge, conversation_address, length, moment, pretty, visible};
use super::who::Visitor;
use super::{Console, now, rules};
use crate::app::Live;
use crate::extract::Named;
use crate::keys::Scope;
use crate::problem::Problem;

/// How many conversations with a document are listed.
const DOCUMENTS: u32 = 50;

/// The page.
pub(super) async fn page(console: Console, visitor: Visitor, Named(name): Named<String>) -> Result<Response, Failed> {
    visitor.may(&[Scope::Read], &name)?;
    let live = console.app.agent(&name)?;
    let plan = live.agent.agent().plan();
    let folder = &live.served.folder;
    let documents = if plan.spec.document.is_some() { documents(&console, &name).await? } else { Vec::new() };
    let body = html! {
        header.top {
            p.crumb { a href="/console/agents" { "Agents" } }
            h1 { (visible(&name)) }
            p.when { "version " (visible(&plan.spec.version)) ", model " code { (visible(&plan.spec.model)) } ", configuration "
                code { (&plan.hash()[..12]) } }
            div.choices {
                a.button.primary href=(format!("{}/try", agent_address(&name))) { "Try it" }
                a.button href=(format!("/console/runs?agent={}", super::parts::step(&name))) { "Its runs" }
            }
        }
        section.card aria-labelledby="decisions" { h2 id="decisions" { "Decision rules" } (decisions(folder)) }
        section.card aria-labelledby="tools" {
            h2 id="tools" { "Tools" }
            @if plan.spec.tools.is_empty() { p.faint { "None of its own." } }
            @for tool in &plan.spec.tools { (one_tool(tool, folder)) }
        }
        @if let Some(document) = &folder.settings.document {
            section.card aria-labelledby="document" {
                h2 id="document" { "Document of tools" }
                p { "Every conversation begins with " code { (document.file) } " and may add tools of its own." }
                @if !plan.spec.grants.is_empty() {
                    p { "It reaches the world by "
                        @for (at, grant) in plan.spec.grants.iter().enumerate() {
                            @if at > 0 { ", " } code { (visible(&grant.library)) "." (visible(&grant.name)) }
                        } " alone." }
                }
                @if !documents.is_empty() {
                    h3 { "Conversations that have changed it" }
                    ul.plain { @for (name, changed) in &documents {
                        li { a href=(format!("{}/tools", conversation_address(name.as_str()))) { (visible(name.as_str())) } " " (changed) }
                    } }
                }
                details { summary { "Its source" } pre tabindex="0" { (visible(&document.base)) } }
            }
        }
        section.card aria-labelledby="contract" { h2 id="contract" { "Contract" } (contract(live)) }
        section.card aria-labelledby="prompt" {
            h2 id="prompt" { "Prompt" }
            pre.prose tabindex="0" { (visible(&plan.spec.instructions)) }
        }
        section.card aria-labelledby="limits" { h2 id="limits" { "Limits" } (limits(live)) }
    };
    Ok(Page { title: &name, tab: Tab::Agents, live: None, body }.answer(&console, &visitor).await?)
}

/// The agent's conversations whose document is not the file's any more.
async fn documents(console: &Console, agent: &str) -> Result<Vec<(ConversationId, Markup)>, Problem> {
    let mut found = Vec::new();
    for head in console.app.store.documents(DOCUMENTS).await? {
        let of = console.app.store.conversation(&head.conversation).await?;
        if of.is_some_and(|it| it.agent == agent) {
            found.push((head.conversation, html! { "version " (head.version) ", " (moment(head.changed_at, now())) }));
        }
    }
    Ok(found)
}

fn decisions(folder: &Folder) -> Markup {
    let all = &folder.settings.decisions;
    html! {
        @if all.is_empty() {
            p { "None: every call runs, except of tools that the caller runs." }
        } @else {
            p.hint { "The first rule that fits decides. Where none does, the call runs." }
            ol.rules {
                @for rule in all {
                    li { (rules::sentence(rule)) @if let Some(why) = &rule.reason { p.why { (visible(why)) } } }
                }
            }
        }
    }
}

fn one_tool(tool: &ToolSpec, folder: &Folder) -> Markup {
    let run_by = match folder.settings.bodies.get(&tool.name) {
        _ if tool.document => "the document",
        Some(Body::Http(_)) => "a server that is called",
        Some(Body::Answers(_)) => "fixed answers of the folder",
        Some(Body::External) | None => "whoever began the run",
    };
    let effect = match tool.effect {
        ToolEffect::ReadsOnly => ("reads only", "off"),
        ToolEffect::Staged => ("staged until the reply", "info"),
        ToolEffect::Once => ("has effects", "wait"),
    };
    html! {
        div.tool {
            h3 { code { (visible(&tool.name)) } " " (badge(effect.0, effect.1))
                @if tool.needs_approval { " " (badge("each action is approved", "wait")) }
                @match tool.accepts {
                    Accepts::Any => {}
                    Accepts::ApprovalOnly => { " " (badge("results cannot be handed in", "info")) }
                    Accepts::External => { " " (badge("run by the caller", "info")) }
                }
            }
            @if !tool.description.is_empty() { p { (visible(&tool.description)) } }
            p.hint { "Run by " (run_by) ", at most " (length(i64::try_from(tool.time_limit_ms).unwrap_or(i64::MAX))) "." }
            (parameters(&tool.parameters))
        }
    }
}

fn parameters(schema: &Value) -> Markup {
    let all: Vec<(&String, &Value)> =
        schema.get("properties").and_then(Value::as_object).into_iter().flatten().collect();
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|it| it.as_str() == Some(name)));
    html! {
        @if !all.is_empty() {
            dl.args { @for (name, of) in all {
                div {
                    dt { (visible(name)) }
                    dd {
                        span.faint { (of.get("type").and_then(Value::as_str).unwrap_or("any")) @if !is_required(name) { ", may be left out" } }
                        @if let Some(about) = of.get("description").and_then(Value::as_str) { " " (visible(about)) }
                    }
                }
            } }
        }
        details.json { summary { "Schema" } pre tabindex="0" { (visible(&pretty(schema))) } }
    }
}

fn contract(live: &Live) -> Markup {
    let contract = &live.agent.agent().plan().spec.contract;
    let written = &live.served.folder.settings.backstops;
    html! {
        @if let Some(act) = &contract.act_when_asked {
            h3 { "Acts when asked" }
            p { "When somebody says "
                @for (at, intent) in act.intents.iter().enumerate() { @if at > 0 { " or " } code { (visible(&rules::pattern(intent))) } }
                ", "
                @if act.require == Require::All { "all of " } @else if act.required_tools.len() > 1 { "one of " }
                @for (at, tool) in act.required_tools.iter().enumerate() { @if at > 0 { ", " } code { (visible(tool)) } }
                " must succeed; else the model is asked again, at most " (act.max_reprompts) "×." }
        }
        @if let Some(refusal) = &contract.on_tool_refusal {
            h3 { "Tries again after a refusal" }
            p { "At most " (refusal.retries) "× a turn the model is told why a tool refused."
                @match refusal.preset {
                    Some(RefusalPreset::Errors) => " A failed call counts as a refusal.",
                    Some(RefusalPreset::Patterns) => " Results that match a pattern count as refusals.",
                    None => "",
                } }
        }
        @for backstop in written {
            h3 { "Backstop " code { (visible(&backstop.name)) } }
            p { @if backstop.phase == Phase::Before { "Before the model" } @else { "After each answer that would be final" }
                @if let Some(all) = &backstop.when_input { ", where the message has " @for it in all.as_slice() { code { (visible(&rules::pattern(it))) } " " } }
                @if let Some(all) = &backstop.when_reply { ", where the reply has " @for it in all.as_slice() { code { (visible(&rules::pattern(it))) } " " } } }
            @if let Some(prompt) = &backstop.prompt { p.why { (visible(prompt)) } }
            @if backstop.url.is_some() { p.hint { "A server is told." } }
        }
        @if contract.act_when_asked.is_none() && contract.on_tool_refusal.is_none() && written.is_empty() {
            p { "None: the model's answers are taken as they are." }
        }
    }
}

fn limits(live: &Live) -> Markup {
    let spec = &live.agent.agent().plan().spec;
    let it = &spec.limits;
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    let rows = [
        ("Trips of a run", it.trips_max.to_string()),
        ("Calls of an answer", it.calls_max.to_string()),
        ("Staged actions", it.actions_max.to_string()),
        ("Tokens of a run", or_none(it.tokens_max.map(super::parts::thousands))),
        ("Cost of a run", or_none(it.cost_usd_max.map(|it| format!("${it:.2}")))),
        ("Seconds of work", or_none(it.seconds_max.map(|it| it.to_string()))),
        (
            "A hold waits",
            spec.hold_ttl_ms.map_or("without end".to_owned(), |ms| length(i64::try_from(ms).unwrap_or(i64::MAX))),
        ),
    ];
    html! { dl.figures { @for (name, value) in rows { div { dt { (name) } dd { (value) } } } } }
}
