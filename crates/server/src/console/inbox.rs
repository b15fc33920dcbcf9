//! The inbox: what waits for a person, the oldest first.

use axum::response::Response;
use gesta_run::RunId;
use gesta_store::{HoldFilter, OpenHold};
use maud::html;
use serde::Deserialize;

use super::Console;
use super::failed::Failed;
use super::hold::{Waiting, card};
use super::page::{Page, Tab, empty};
use super::parts::{run_address, short};
use super::who::Visitor;
use crate::extract::{Asked, cursor_of, cursor_text};

/// How many holds stand on a page: each is shown whole.
const LISTED: u32 = 25;

#[derive(Debug, Deserialize)]
pub(super) struct InboxAsked {
    agent: Option<String>,
    after: Option<String>,
}

/// The inbox.
pub(super) async fn page(
    console: Console,
    visitor: Visitor,
    Asked(asked): Asked<InboxAsked>,
) -> Result<Response, Failed> {
    visitor.may_look()?;
    let agent = asked.agent.filter(|it| !it.is_empty()).or_else(|| visitor.only_agent());
    let filter =
        HoldFilter { agent, limit: LISTED, after: cursor_of(asked.after.as_deref())?, ..HoldFilter::default() };
    let mut open = console.app.store.holds(&filter).await?;
    let next = open.last().filter(|_| open.len() == LISTED as usize).map(|last| cursor_text(&last.cursor()));
    open.retain(|open| visitor.sees(&open.agent));
    let (waiting, unread) = gather(&console, open).await;
    let body = html! {
        header.top {
            h1 { "Inbox" }
            p.about { "Calls that wait for a person. The longest waiting comes first." }
        }
        section.holds #holds data-region="holds" aria-label="Holds" {
            @for it in &waiting { (card(it, &visitor, None)) }
            @for run in &unread {
                article.card id=(format!("unread-{}", short(run))) data-version="unread" {
                    p.problem { "A call of run " a href=(run_address(run)) { (short(run)) } " waits and cannot be read here." }
                }
            }
        }
        div #none data-region="none" hidden[!waiting.is_empty() || !unread.is_empty()] {
            (empty("Nothing waits for you", &html! {
                p { "When a rule of an agent leaves a call to a person, it stands here at once, and the run waits as long "
                    "as it takes." }
                p { a.button href="/console/agents" { "See what each agent may do" } }
            }))
        }
        @if let Some(next) = next {
            nav.pages aria-label="Pages" { a.button href=(format!("/console?after={next}")) { "Younger holds" } }
        }
    };
    Ok(Page { title: "Inbox", tab: Tab::Inbox, live: Some("of=inbox".to_owned()), body }
        .answer(&console, &visitor)
        .await?)
}

/// The listed holds with what led to each, and the runs that cannot be read.
async fn gather(console: &Console, open: Vec<OpenHold>) -> (Vec<Waiting>, Vec<RunId>) {
    let mut runs: Vec<(RunId, Vec<Waiting>)> = Vec::new();
    let (mut waiting, mut unread) = (Vec::new(), Vec::new());
    for listed in open {
        let run = listed.hold.binding.run_id;
        if !runs.iter().any(|(known, _)| *known == run) {
            match console.app.read(&run).await {
                Ok((stored, replayed)) => {
                    runs.push((run.clone(), Waiting::of_run(&console.app, &stored, &replayed)));
                }
                Err(why) => {
                    tracing::warn!(%run, code = why.code(), "a run with a hold cannot be read");
                    unread.push(run.clone());
                    runs.push((run.clone(), Vec::new()));
                }
            }
        }
        let of_run = runs.iter_mut().find(|(known, _)| *known == run).map(|(_, all)| all);
        if let Some(all) = of_run
            && let Some(at) = all.iter().position(|it| it.hold.id == listed.hold.id)
        {
            waiting.push(all.swap_remove(at));
        }
    }
    (waiting, unread)
}
