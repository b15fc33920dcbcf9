//! Runs: begin, list, read, cancel.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use gesta_run::{ContactId, ConversationId, Outcome, RunId, Status, Timestamp};
use gesta_runtime::Ask;
use gesta_store::{PAGE_MAX, RunFilter};
use http::HeaderMap;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{agent_asked, head_of, json, wants_events};
use crate::apps::{Apps, Mine};
use crate::ask::Asker;
use crate::described::{ResultBody, RunHeadBody, StreamEventBody};
use crate::extract::{Asked, Json, Named, cursor_of, cursor_text};
use crate::follow::{self, Until};
use crate::keys::Scope;
use crate::problem::{Problem, ProblemBody};
use crate::repeat::ItsRun;
use crate::wire::{NewRunBody, Page};
use crate::work;

/// Who may look at a run: also who began it, or is to answer it.
pub(super) const SEES: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Answer];

/// How long a name may be that a caller gives a conversation or a contact, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Begin a run.
///
/// Answers when it is parked or has ended, with the run as it stands then; with `stream: true`, or where
/// `text/event-stream` is asked for, at once with its events. It goes on when the connection is lost.
#[utoipa::path(
    post, path = "/v1/agents/{agent}/runs", operation_id = "begin_run", tag = "runs",
    params(("agent" = String, Path, description = "The agent's name")),
    request_body(content = NewRunBody, examples(
        ("a text" = (value = json!({ "input": "Refund order 7, 250 dollars", "conversation": "ticket-4711" })))
    )),
    responses(
        (status = 200, description = "The run as it stands, or its events", content(
            (ResultBody = "application/json"), (StreamEventBody = "text/event-stream")
        ), links(
            ("its_state" = (operation_id = "read_run", parameters(("run" = "$response.body#/report/run_id")))),
            ("its_events" = (operation_id = "follow_run", parameters(("run" = "$response.body#/report/run_id")))),
            ("its_log" = (operation_id = "read_log", parameters(("run" = "$response.body#/report/run_id")))),
            ("its_first_hold" = (operation_id = "read_hold", parameters(
                ("run" = "$response.body#/report/run_id"), ("call" = "$response.body#/deferred/0/id")
            ))),
            ("answer" = (operation_id = "answer_holds", parameters(("run" = "$response.body#/report/run_id")))),
            ("cancel" = (operation_id = "cancel_run", parameters(("run" = "$response.body#/report/run_id")))),
        )),
        (status = "default", description = "It has not begun", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn begin(
    Mine(app): Mine,
    asker: Asker,
    Named(agent): Named<String>,
    its: Option<Extension<ItsRun>>,
    headers: HeaderMap,
    State(apps): State<Arc<Apps>>,
    request: Request,
) -> Result<Response, Problem> {
    asker.may_with(&[Scope::Run], &agent)?;
    let Json(body) = Json::<NewRunBody>::from_request(request, &apps).await?;
    let streams = body.stream || wants_events(&headers);
    let its = its.map(|Extension(ItsRun(run))| run);
    if let Some(run) = &its
        && app.store.head(run).await.is_ok()
    {
        // The same request began it before, and its answer was lost.
        if streams {
            return Ok(follow::stream(&app, &asker, run.clone(), None, Until::Quiet));
        }
        return Ok(json(&work::end_of(&app, run).await?));
    }
    let agent = app.agent_with(app.agent(&agent)?, &body.tools)?;
    let ask = Ask {
        input: body.input.parts()?,
        conversation: named("conversation", body.conversation)?.map(ConversationId::new),
        contact: named("contact", body.contact)?.map(ContactId::new),
        queue: body.queue,
        run: its,
        ..Ask::default()
    };
    let begun = work::start(&app, &agent, ask).await?;
    if streams {
        return Ok(follow::stream(&app, &asker, begun.run, None, Until::Quiet));
    }
    Ok(json(&begun.end().await?))
}

/// A name that a caller gave something.
fn named(what: &str, name: Option<String>) -> Result<Option<String>, Problem> {
    let usable = |name: &str| !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
    match name {
        Some(name) if !usable(&name) => {
            let detail = format!("`{what}` must have 1 to {NAME_BYTES_MAX} bytes and no control characters");
            Err(Problem::bad("name_invalid", detail, "use an id of your own system"))
        }
        name => Ok(name),
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StatusWord {
    Open,
    Parked,
    Ended,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunsAsked {
    /// Of this agent.
    agent: Option<String>,
    /// In this status.
    #[param(inline)]
    status: Option<StatusWord>,
    /// That ended so: `completed`, `cancelled`, or another outcome as runs tell it.
    #[param(value_type = Option<String>)]
    outcome: Option<Outcome>,
    /// Of this conversation.
    conversation: Option<String>,
    /// Of this contact.
    contact: Option<String>,
    /// Wanting nothing more, or still wanting something.
    closed: Option<bool>,
    /// Begun at or after this moment, in milliseconds since 1970.
    since: Option<i64>,
    /// How many at most: 50 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before.
    #[param(min_length = 8, pattern = "^[A-Za-z0-9_-]+$")]
    after: Option<String>,
}

/// List runs, the newest first.
#[utoipa::path(
    get, path = "/v1/runs", operation_id = "list_runs", tag = "runs", params(RunsAsked),
    responses(
        (status = 200, description = "A page", body = Page<RunHeadBody>, links(
            ("the_newest" = (operation_id = "read_run", parameters(("run" = "$response.body#/items/0/run"))))
        )),
        (status = "default", description = "Not listed", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(Mine(app): Mine, asker: Asker, Asked(asked): Asked<RunsAsked>) -> Result<Response, Problem> {
    asker.may(&[Scope::Read])?;
    let limit = page_of(asked.limit)?;
    let filter = RunFilter {
        agent: agent_asked(&asker, asked.agent)?,
        status: asked.status.map(|it| match it {
            StatusWord::Open => Status::Open,
            StatusWord::Parked => Status::Parked,
            StatusWord::Ended => Status::Ended,
        }),
        outcome: asked.outcome,
        closed: asked.closed,
        conversation: asked.conversation.map(ConversationId::new),
        contact: asked.contact.map(ContactId::new),
        since: asked.since.map(Timestamp),
        limit,
        after: cursor_of(asked.after.as_deref())?,
    };
    let mut items = app.store.runs(&filter).await?;
    let full = items.len() == limit as usize;
    let next = items.last().filter(|_| full).map(|last| cursor_text(&last.cursor()));
    items.retain(|head| asker.knows(&head.agent));
    Ok(json(&Page { items, next }))
}

/// How many are listed where nothing is said.
const LISTED: u32 = 50;

/// How many are to be listed.
pub(super) fn page_of(limit: Option<u32>) -> Result<u32, Problem> {
    match limit {
        None => Ok(LISTED),
        Some(limit) if (1..=PAGE_MAX).contains(&limit) => Ok(limit),
        Some(_) => {
            let detail = format!("`limit` must be 1 to {PAGE_MAX}");
            Err(Problem::bad("query_invalid", detail, "ask for the pages behind with `after`"))
        }
    }
}

/// Read a run as it stands.
#[utoipa::path(
    get, path = "/v1/runs/{run}", operation_id = "read_run", tag = "runs",
    params(("run" = String, Path, description = "The run's id")),
    responses(
        (status = 200, description = "The run", body = ResultBody),
        (status = "default", description = "Not read", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn read(Mine(app): Mine, asker: Asker, Named(run): Named<String>) -> Result<Response, Problem> {
    let head = head_of(&app, &asker, &SEES, &RunId::new(run)).await?;
    let (_, run) = app.read(&head.run).await?;
    Ok(json(&run.result()))
}

/// Cancel a run.
///
/// Calls that have begun are of unknown outcome; what is held is closed. A run that has ended stays as it is.
#[utoipa::path(
    post, path = "/v1/runs/{run}/cancel", operation_id = "cancel_run", tag = "runs",
    params(("run" = String, Path, description = "The run's id")),
    responses(
        (status = 200, description = "The run as it stands now", body = ResultBody),
        (status = "default", description = "Not cancelled", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn cancel(Mine(app): Mine, asker: Asker, Named(run): Named<String>) -> Result<Response, Problem> {
    let head = head_of(&app, &asker, &[Scope::Run], &RunId::new(run)).await?;
    app.note(&asker, "cancel", head.run.as_str(), Some(&head.agent)).await?;
    Ok(json(&work::cancel(&app, &head).await?))
}
