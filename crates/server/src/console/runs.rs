//! The list of runs, with a filter, pages and the charts.

use axum::response::Response;
use gesta_run::{ContactId, ConversationId, Outcome, Status};
use gesta_store::{PAGE_MAX, RunFilter, RunHead};
use maud::{Markup, html};
use serde::Deserialize;
use url::form_urlencoded;

use super::facts::Facts;
use super::failed::Failed;
use super::page::{Page, Tab, empty};
use super::parts::{badge, length, moment, run_address, short, standing, visible, word};
use super::who::Visitor;
use super::{Console, chart, now};
use crate::extract::{Asked, cursor_of, cursor_text};
use crate::keys::Scope;
use crate::problem::Problem;

/// How many runs stand on a page.
const LISTED: u32 = 50;

const OUTCOMES: [Outcome; 12] = [
    Outcome::Completed,
    Outcome::ModelFailed,
    Outcome::MaxTrips,
    Outcome::HookFailed,
    Outcome::BudgetExceeded,
    Outcome::LengthLimit,
    Outcome::OutputInvalid,
    Outcome::StoreFailed,
    Outcome::Cancelled,
    Outcome::Superseded,
    Outcome::Expired,
    Outcome::Blocked,
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunsAsked {
    agent: String,
    /// `open`, `parked`, or an outcome.
    state: String,
    conversation: String,
    contact: String,
    after: Option<String>,
}

impl RunsAsked {
    fn filter(&self) -> Result<RunFilter, Problem> {
        let outcome = OUTCOMES.into_iter().find(|it| it.as_str() == self.state);
        let status = match self.state.as_str() {
            "open" => Some(Status::Open),
            "parked" => Some(Status::Parked),
            _ => outcome.map(|_| Status::Ended),
        };
        let some = |text: &String| Some(text.trim().to_owned()).filter(|it| !it.is_empty());
        Ok(RunFilter {
            agent: some(&self.agent),
            status,
            outcome,
            conversation: some(&self.conversation).map(ConversationId::new),
            contact: some(&self.contact).map(ContactId::new),
            after: cursor_of(self.after.as_deref().filter(|it| !it.is_empty()))?,
            ..RunFilter::default()
        })
    }

    fn is_narrowed(&self) -> bool {
        [&self.agent, &self.state, &self.conversation, &self.contact].iter().any(|it| !it.trim().is_empty())
    }

    fn next(&self, head: &RunHead) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let kept = [
            ("agent", &self.agent),
            ("state", &self.state),
            ("conversation", &self.conversation),
            ("contact", &self.contact),
        ];
        for (name, value) in kept.into_iter().filter(|(_, value)| !value.is_empty()) {
            query.append_pair(name, value);
        }
        query.append_pair("after", &cursor_text(&head.cursor()));
        format!("/console/runs?{}", query.finish())
    }
}

/// The page.
pub(super) async fn page(
    console: Console,
    visitor: Visitor,
    Asked(asked): Asked<RunsAsked>,
) -> Result<Response, Failed> {
    visitor.asker()?.may(&[Scope::Read])?;
    let (mut listed, next) = find(&console, &visitor, &asked).await?;
    listed.retain(|head| visitor.sees(&head.agent));
    let facts = console.app.facts.of(&console.app, &listed).await;
    let recent = RunFilter { since: Some(chart::since(now())), limit: PAGE_MAX, ..RunFilter::default() };
    let mut recent = console.app.store.runs(&recent).await?;
    recent.retain(|head| visitor.sees(&head.agent));
    let of_recent = console.app.facts.of(&console.app, &recent).await;
    let whole = recent.len() < PAGE_MAX as usize && of_recent.iter().all(Option::is_some);
    let version: u64 = recent.iter().map(|head| head.events).sum();
    let body = html! {
        header.top { h1 { "Runs" } p.about { "Every turn of every agent, the newest first." } }
        @if !recent.is_empty() {
            section #charts data-region="charts" aria-label="The last two weeks" {
                div #charts-now data-version=(version) { (chart::charts(&recent, &of_recent, now(), whole)) }
            }
        }
        (filters(&console, &visitor, &asked))
        section #list data-region="list" aria-label="Runs" {
            div #list-now data-version=(format!("{}-{}", listed.len(), listed.iter().map(|it| it.events).sum::<u64>())) {
                (table(&listed, &facts, &asked))
            }
        }
        @if let Some(next) = next { nav.pages aria-label="Pages" { a.button href=(next) { "Older runs" } } }
    };
    Ok(Page { title: "Runs", tab: Tab::Runs, live: Some("of=runs".to_owned()), body }
        .answer(&console, &visitor)
        .await?)
}

/// A page of runs, and where it goes on.
async fn find(
    console: &Console,
    visitor: &Visitor,
    asked: &RunsAsked,
) -> Result<(Vec<RunHead>, Option<String>), Problem> {
    let mut filter = asked.filter()?;
    filter.agent = filter.agent.or_else(|| visitor.only_agent());
    filter.limit = LISTED + 1;
    let mut found = console.app.store.runs(&filter).await?;
    let has_more = found.len() > LISTED as usize;
    found.truncate(LISTED as usize);
    let next = found.last().filter(|_| has_more).map(|last| asked.next(last));
    Ok((found, next))
}

fn filters(console: &Console, visitor: &Visitor, asked: &RunsAsked) -> Markup {
    let states = [("open", "running"), ("parked", "waiting")].into_iter();
    let states: Vec<(&str, &str)> = states.chain(OUTCOMES.into_iter().map(|it| (it.as_str(), word(it)))).collect();
    html! {
        form.filters method="get" action="/console/runs" role="search" aria-label="Filter" {
            div.field {
                label for="f-agent" { "Agent" }
                select id="f-agent" name="agent" {
                    option value="" { "All" }
                    @for name in console.app.agents.keys().filter(|name| visitor.sees(name)) { option value=(name) selected[*name == asked.agent] { (name) } }
                }
            }
            div.field {
                label for="f-state" { "Outcome" }
                select id="f-state" name="state" {
                    option value="" { "All" }
                    @for (value, word) in states { option value=(value) selected[value == asked.state] { (word) } }
                }
            }
            div.field { label for="f-conversation" { "Conversation" } input id="f-conversation" name="conversation" value=(asked.conversation); }
            div.field { label for="f-contact" { "Contact" } input id="f-contact" name="contact" value=(asked.contact); }
            div.send { button { "Filter" } @if asked.is_narrowed() { a.button.plain href="/console/runs" { "Clear" } } }
        }
    }
}

fn table(heads: &[RunHead], facts: &[Option<Facts>], asked: &RunsAsked) -> Markup {
    if heads.is_empty() {
        return if asked.is_narrowed() {
            empty("No run fits", &html! { p { a.button href="/console/runs" { "Show all runs" } } })
        } else {
            empty(
                "No run yet",
                &html! {
                    p { "Each message to an agent is a run. Begin one here, or over HTTP as " a href="/openapi.json" { "/openapi.json" } " says." }
                    p { a.button href="/console/agents" { "Try an agent" } }
                },
            )
        };
    }
    html! {
        table.list {
            thead {
                tr {
                    th scope="col" { "Run" } th scope="col" { "Outcome" } th scope="col" { "Agent" }
                    th scope="col" { "With" } th.number scope="col" { "Calls" } th.number scope="col" { "Interventions" }
                    th.number scope="col" { "Lasted" } th.number scope="col" { "Begun" }
                }
            }
            tbody { @for (head, facts) in heads.iter().zip(facts) { (row(head, facts.as_ref())) } }
        }
    }
}

fn row(head: &RunHead, facts: Option<&Facts>) -> Markup {
    let (word, tone) = standing(head.status, head.outcome);
    let count = |count: Option<u32>| html! { @match count { Some(0) => span.faint { "0" }, Some(n) => (n), None => span.faint { "?" } } };
    let with = head.conversation.as_ref().map(|it| it.as_str()).or(head.contact.as_ref().map(|it| it.as_str()));
    html! {
        tr {
            th scope="row" { a href=(run_address(&head.run)) { code { (short(&head.run)) } } }
            td { (badge(word, tone)) }
            td { span.key { "Agent " } (visible(&head.agent)) }
            td.with { @if let Some(with) = with { span.key { "With " } (visible(with)) } @else { span.faint { "—" } } }
            td.number { span.key { "Calls " } (count(facts.map(|it| it.calls))) }
            td.number { span.key { "Interventions " } (count(facts.map(|it| it.interventions))) }
            td.number { span.key { "Lasted " } (length((head.updated_at.0 - head.started_at.0).max(0))) }
            td.number { (moment(head.started_at, now())) }
        }
    }
}
