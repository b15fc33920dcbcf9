//! The frame of all pages.

use axum::response::{Html, IntoResponse, Response};
use gesta_store::HoldFilter;
use maud::{DOCTYPE, Markup, html};

use super::parts::token;
use super::who::Visitor;
use super::{Console, assets};
use crate::problem::Problem;

/// Which part of the console a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Inbox,
    Conversations,
    Runs,
    Agents,
    None,
}

const TABS: [(Tab, &str, &str); 4] = [
    (Tab::Inbox, "Inbox", "/console"),
    (Tab::Conversations, "Conversations", "/console/conversations"),
    (Tab::Runs, "Runs", "/console/runs"),
    (Tab::Agents, "Agents", "/console/agents"),
];

/// How many holds are counted for the mark beside the inbox.
pub(super) const COUNTED_MAX: u32 = 100;

/// A page.
pub(super) struct Page<'a> {
    pub(super) title: &'a str,
    pub(super) tab: Tab,
    /// What news it wants to hear, as `of=…`.
    pub(super) live: Option<String>,
    pub(super) body: Markup,
}

impl Page<'_> {
    /// The page with its frame.
    pub(super) async fn answer(self, console: &Console, visitor: &Visitor) -> Result<Response, Problem> {
        let waiting = waiting(console, visitor).await?;
        Ok(shell(self.title, self.tab, self.live.as_deref(), Some((waiting, visitor)), &self.body))
    }
}

/// How many holds wait, at most [`COUNTED_MAX`].
async fn waiting(console: &Console, visitor: &Visitor) -> Result<usize, Problem> {
    let filter = HoldFilter { agent: visitor.only_agent(), limit: COUNTED_MAX, ..HoldFilter::default() };
    Ok(console.app.store.holds(&filter).await?.iter().filter(|open| visitor.sees(&open.agent)).count())
}

/// The number beside the inbox.
pub(super) fn count_text(waiting: usize) -> String {
    if waiting >= COUNTED_MAX as usize { format!("{}+", COUNTED_MAX - 1) } else { waiting.to_string() }
}

/// A page's frame. Whoever is not known sees no more than the page.
pub(super) fn shell(
    title: &str,
    tab: Tab,
    live: Option<&str>,
    seen_by: Option<(usize, &Visitor)>,
    body: &Markup,
) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Gesta" }
                link rel="icon" type="image/svg+xml" href=(assets::address("icon.svg"));
                link rel="stylesheet" href=(assets::address("console.css"));
                script type="module" src=(assets::address("console.js")) {}
            }
            body data-live=[live] {
                a.skip href="#main" { "Skip to the content" }
                (navigation(tab, seen_by))
                main #main tabindex="-1" { (body) }
                div #said .hidden role="status" aria-live="polite" {}
            }
        }
    };
    Html(page.into_string()).into_response()
}

fn navigation(here: Tab, seen_by: Option<(usize, &Visitor)>) -> Markup {
    let count = seen_by.map_or(0, |(waiting, _)| waiting);
    html! {
        header.bar {
            a.brand href="/console" aria-label="Gesta, to the inbox" {
                svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" {
                    path d="M15.5 6.2A6.5 6.5 0 1 0 16.5 10H10.5" fill="none" stroke="currentColor"
                        stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round";
                }
                span { "Gesta" }
            }
            nav aria-label="Console" {
                ul {
                    @for (tab, name, address) in TABS {
                        li {
                            a href=(address) aria-current=[(tab == here).then_some("page")] {
                                (name)
                                @if tab == Tab::Inbox {
                                    span.count #waiting hidden[count == 0] {
                                        span { (count_text(count)) }
                                        span.hidden { " waiting" }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if let Some((_, visitor)) = seen_by.filter(|(_, visitor)| visitor.has_key()) {
                form.leave method="post" action="/console/sign-out" { (token(&visitor.token)) button.plain { "Sign out" } }
            }
            p.live #live hidden { span.dot aria-hidden="true" {} span #live-word { "Live" } }
        }
    }
}

/// What is shown where a list is empty: what that means, and what to do next.
pub(super) fn empty(title: &str, more: &Markup) -> Markup {
    html! { div.empty { h2 { (title) } (more) } }
}
