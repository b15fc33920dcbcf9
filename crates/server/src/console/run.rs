//! One run: its turn, the holds that keep it, and the button that ends it.

use axum::response::{IntoResponse, Redirect, Response};
use gesta_run::{Run, RunId, Status};
use gesta_store::StoredRun;
use http::header;
use maud::{Markup, html};

use super::failed::Failed;
use super::page::{Page, Tab};
use super::parts::{
    agent_address, badge, conversation_address, moment, run_address, short, standing, step, token, visible,
};
use super::who::{Posted, Visitor};
use super::{Console, hold, now, turn};
use crate::extract::Named;
use crate::keys::Scope;
use crate::problem::Problem;
use crate::work;

/// The page of a run.
pub(super) async fn page(console: Console, visitor: Visitor, Named(id): Named<String>) -> Result<Response, Failed> {
    let id = RunId::new(id);
    let (stored, run) = read(&console, &visitor, &id).await?;
    let holds = hold::Waiting::of_run(&console.app, &stored, &run);
    let body = html! {
        header.top {
            p.crumb { a href="/console/runs" { "Runs" } }
            h1 { "Run " (short(&id)) }
            (state(&stored, &run, &visitor))
        }
        section.holds #holds data-region="holds" aria-label="Decisions to be made" {
            @for it in &holds { (hold::card(it, &visitor, None)) }
        }
        section #turns data-region="turns" { (turn::article(&stored, &run, true)) }
    };
    let live = (stored.head.status != Status::Ended).then(|| format!("of=run&name={}", step(id.as_str())));
    Ok(Page { title: &format!("Run {}", short(&id)), tab: Tab::Runs, live, body }.answer(&console, &visitor).await?)
}

/// A whole run, for who may read it.
async fn read(console: &Console, visitor: &Visitor, id: &RunId) -> Result<(StoredRun, Run), Problem> {
    visitor.asker()?.may(&[Scope::Read])?;
    let head = console.app.store.head(id).await?;
    visitor.may(&[Scope::Read], &head.agent)?;
    console.app.read(id).await
}

fn state(stored: &StoredRun, run: &Run, visitor: &Visitor) -> Markup {
    let head = &stored.head;
    let (word, tone) = standing(head.status, head.outcome);
    html! {
        div.state #state data-region="state" {
            div #state-now data-version=(head.events) {
                (badge(word, tone))
                p.when {
                    "of " a href=(agent_address(&head.agent)) { (visible(&head.agent)) }
                    @if let Some(name) = &head.conversation {
                        ", in " a href=(conversation_address(name.as_str())) { (visible(name.as_str())) }
                    }
                    @if let Some(contact) = &head.contact { ", with " (visible(contact.as_str())) }
                    ", begun " (moment(head.started_at, now()))
                    ", model " code { (visible(&run.plan().spec.model)) }
                }
                @if head.status != Status::Ended && visitor.has(Scope::Run) {
                    details.choice.small {
                        summary.button { "Cancel the run…" }
                        form method="post" action=(format!("{}/cancel", run_address(&head.run))) {
                            (token(&visitor.token))
                            p { "What is held is closed, and calls that have begun count as of unknown outcome." }
                            button.danger { "Cancel this run" }
                        }
                    }
                }
            }
        }
    }
}

/// A run as a scene.
pub(super) async fn scene(console: Console, visitor: Visitor, Named(id): Named<String>) -> Result<Response, Failed> {
    let (stored, run) = read(&console, &visitor, &RunId::new(id)).await?;
    // It is played line by line: too long for a thread that answers requests.
    let told = tokio::task::spawn_blocking(move || gesta_scene::from_log(&run.plan().spec, &stored.events));
    let text = told.await.map_err(|_| Problem::internal("the run cannot be told as a scene"))?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

/// Cancels a run.
pub(super) async fn cancel(
    console: Console,
    visitor: Visitor,
    Named(id): Named<String>,
    _posted: Posted,
) -> Result<Response, Failed> {
    visitor.asker()?.may(&[Scope::Run])?;
    let head = console.app.store.head(&RunId::new(id)).await?;
    visitor.may(&[Scope::Run], &head.agent)?;
    console.app.note(visitor.asker()?, "cancel", head.run.as_str(), Some(&head.agent)).await?;
    work::cancel(&console.app, &head).await?;
    Ok(Redirect::to(&run_address(&head.run)).into_response())
}
