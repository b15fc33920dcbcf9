//! Conversations: the list, and one as all its turns.

use axum::response::Response;
use gesta_run::{ConversationId, Run};
use gesta_store::{ConversationHead, RunFilter, StoredRun};
use maud::{Markup, html};
use serde::Deserialize;

use super::failed::Failed;
use super::page::{Page, Tab, empty};
use super::parts::{
    agent_address, badge, conversation_address, moment, money, run_address, short, step, thousands, visible,
};
use super::who::Visitor;
use super::{Console, hold, now, turn};
use crate::extract::{Asked, Named, cursor_of, cursor_text};
use crate::keys::Scope;
use crate::problem::Problem;

/// How many conversations are listed.
const LISTED: u32 = 100;
/// How many turns stand on a page.
const TURNS: u32 = 20;

/// The list.
pub(super) async fn list(console: Console, visitor: Visitor) -> Result<Response, Failed> {
    visitor.asker()?.may(&[Scope::Read])?;
    let mut all = console.app.store.conversations(LISTED).await?;
    all.retain(|head| visitor.sees(&head.agent));
    let body = html! {
        header.top { h1 { "Conversations" } p.about { "Those that changed last come first." } }
        section #list data-region="list" aria-label="Conversations" {
            div #list-now data-version=(all.iter().map(|it| it.updated_at.0).max().unwrap_or_default()) { (table(&all)) }
        }
    };
    let live = Some("of=conversations".to_owned());
    Ok(Page { title: "Conversations", tab: Tab::Conversations, live, body }.answer(&console, &visitor).await?)
}

fn table(all: &[ConversationHead]) -> Markup {
    if all.is_empty() {
        return empty(
            "No conversation yet",
            &html! {
                p { "Turns that are begun with a " code { "conversation" } " belong together and are shown here as one talk." }
                p { a.button href="/console/agents" { "Try an agent" } }
            },
        );
    }
    html! {
        ul.rows {
            @for it in all {
                li {
                    a.row href=(conversation_address(it.conversation.as_str())) {
                        span.name { (visible(it.conversation.as_str())) }
                        span.about { (visible(&it.agent)) @if let Some(contact) = &it.contact { " with " (visible(contact.as_str())) } }
                        span.when {
                            @if it.run.is_some() { (badge("going on", "wait")) " " }
                            (it.turns) @if it.turns == 1 { " turn" } @else { " turns" } " · " (moment(it.updated_at, now())) }
                    }
                }
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct TurnsAsked {
    after: Option<String>,
}

/// One conversation.
pub(super) async fn page(
    console: Console,
    visitor: Visitor,
    Named(name): Named<String>,
    Asked(asked): Asked<TurnsAsked>,
) -> Result<Response, Failed> {
    visitor.asker()?.may(&[Scope::Read])?;
    let id = ConversationId::new(name.clone());
    let head = console.app.store.conversation(&id).await?.ok_or_else(|| {
        Problem::missing("no_such_conversation", format!("there is no conversation `{id}`"), "look at the list")
    })?;
    visitor.may(&[Scope::Read], &head.agent)?;
    let filter = RunFilter {
        conversation: Some(id),
        limit: TURNS,
        after: cursor_of(asked.after.as_deref())?,
        ..RunFilter::default()
    };
    let mut heads = console.app.store.runs(&filter).await?;
    let earlier = heads.last().filter(|_| heads.len() == TURNS as usize).map(|last| cursor_text(&last.cursor()));
    heads.retain(|head| visitor.sees(&head.agent));
    let mut turns = Vec::new();
    for head in heads.into_iter().rev() {
        turns.push((head.run.clone(), console.app.read(&head.run).await));
    }
    let read: Vec<&(StoredRun, Run)> = turns.iter().filter_map(|(_, turn)| turn.as_ref().ok()).collect();
    let holds = read.iter().flat_map(|(stored, run)| hold::Waiting::of_run(&console.app, stored, run));
    let holds: Vec<hold::Waiting> = holds.collect();
    let body = html! {
        header.top {
            p.crumb { a href="/console/conversations" { "Conversations" } }
            h1 { (visible(&name)) }
            (about(&head, &read, console.app.agents.get(&head.agent).is_some_and(|it| it.served.folder.settings.document.is_some())))
        }
        @if let Some(earlier) = earlier {
            nav.pages aria-label="Pages" { a.button href=(format!("?after={earlier}")) { "Earlier turns" } }
        }
        section.turns #turns data-region="turns" aria-label="Turns" {
            @for (run, turn) in &turns {
                @match turn {
                    Ok((stored, run)) => (turn::article(stored, run, false)),
                    Err(why) => article.card id=(format!("turn-{}", short(run))) data-version="unread" {
                        p.problem { a href=(run_address(run)) { "Run " (short(run)) } " cannot be read: " (why.detail()) }
                    },
                }
            }
        }
        section.holds #holds data-region="holds" aria-label="Decisions to be made" {
            @for it in &holds { (hold::card(it, &visitor, None)) }
        }
    };
    let live = Some(format!("of=conversation&name={}", step(&name)));
    Ok(Page { title: &name, tab: Tab::Conversations, live, body }.answer(&console, &visitor).await?)
}

fn about(head: &ConversationHead, turns: &[&(StoredRun, Run)], document: bool) -> Markup {
    let results: Vec<_> = turns.iter().map(|(_, run)| run.result()).collect();
    let tokens: u64 = results.iter().map(|it| it.usage.total).sum();
    let costs: Vec<f64> = results.iter().filter_map(|it| it.cost_usd).collect();
    let cost = (!costs.is_empty()).then(|| costs.iter().sum());
    html! {
        p.when {
            "with " a href=(agent_address(&head.agent)) { (visible(&head.agent)) }
            @if let Some(contact) = &head.contact { ", contact " (visible(contact.as_str())) }
            ", " (head.turns) @if head.turns == 1 { " finished turn" } @else { " finished turns" }
            ", " (thousands(tokens)) " tokens" @if cost.is_some() { ", " (money(cost)) } " on this page"
        }
        @if document {
            p { a.button href=(format!("{}/tools", conversation_address(head.conversation.as_str()))) { "Tools of its document" } }
        }
    }
}
