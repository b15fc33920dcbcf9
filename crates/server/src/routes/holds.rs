//! Holds: what waits for somebody outside.

use axum::response::Response;
use gesta_run::message::text_of;
use gesta_run::{CallId, ContactId, HoldKind, RunId, Timestamp};
use gesta_store::{HoldFilter, OpenHold};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{agent_asked, head_of, json, runs::page_of};
use crate::app::App;
use crate::apps::Mine;
use crate::ask::Asker;
use crate::described::{OpenHoldBody, RunHeadBody};
use crate::extract::{Asked, Named, cursor_of, cursor_text};
use crate::keys::Scope;
use crate::problem::{Problem, ProblemBody};
use crate::told::answer_of;
use crate::wire::Page;

/// Who may look at holds.
const SEES_HOLDS: [Scope; 2] = [Scope::Read, Scope::Answer];

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum KindWord {
    Call,
    Action,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HoldsAsked {
    /// Of this agent's runs.
    agent: Option<String>,
    /// Of this run.
    run: Option<String>,
    /// Of this tool.
    tool: Option<String>,
    /// Of this contact.
    contact: Option<String>,
    /// Calls or actions only.
    #[param(inline)]
    kind: Option<KindWord>,
    /// Opened before this moment, in milliseconds since 1970: what waits for long.
    opened_before: Option<i64>,
    /// How many at most: 50 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before.
    #[param(min_length = 8, pattern = "^[A-Za-z0-9_-]+$")]
    after: Option<String>,
}

/// List the holds that wait, the oldest first.
#[utoipa::path(
    get, path = "/v1/holds", operation_id = "list_holds", tag = "holds", params(HoldsAsked),
    responses(
        (status = 200, description = "A page", body = Page<OpenHoldBody>, links(
            ("the_oldest" = (operation_id = "read_hold", parameters(
                ("run" = "$response.body#/items/0/hold/binding/run_id"), ("call" = "$response.body#/items/0/hold/id")
            ))),
            ("approve_the_oldest" = (
                operation_id = "answer_holds",
                parameters(("run" = "$response.body#/items/0/hold/binding/run_id")),
                request_body = json!({
                    "answers": [{ "binding": "$response.body#/items/0/hold/binding", "approve": true }]
                })
            )),
        )),
        (status = "default", description = "Not listed", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(Mine(app): Mine, asker: Asker, Asked(asked): Asked<HoldsAsked>) -> Result<Response, Problem> {
    asker.may(&SEES_HOLDS)?;
    let limit = page_of(asked.limit)?;
    let filter = HoldFilter {
        agent: agent_asked(&asker, asked.agent)?,
        run: asked.run.map(RunId::new),
        tool: asked.tool,
        contact: asked.contact.map(ContactId::new),
        kind: asked.kind.map(|it| match it {
            KindWord::Call => HoldKind::Call,
            KindWord::Action => HoldKind::Action,
        }),
        opened_before: asked.opened_before.map(Timestamp),
        limit,
        after: cursor_of(asked.after.as_deref())?,
    };
    let mut items = app.store.holds(&filter).await?;
    let full = items.len() == limit as usize;
    let next = items.last().filter(|_| full).map(|last| cursor_text(&last.cursor()));
    items.retain(|open| asker.knows(&open.agent));
    Ok(json(&Page { items, next }))
}

/// One hold, with all that somebody who decides on it should see.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HoldPage {
    #[serde(flatten)]
    #[schema(value_type = OpenHoldBody, inline)]
    open: OpenHold,
    /// The JSON schema of the tool's arguments, against which edited ones are checked.
    parameters: Value,
    /// What led to it.
    led_to_it: LedToIt,
}

/// What led to a hold.
#[derive(Debug, Serialize, ToSchema)]
struct LedToIt {
    /// What the contact said.
    said: String,
    /// What the model wrote beside the call.
    beside: String,
    /// Why the call was deferred, in the words of the rule or hook that did it.
    reason: Option<String>,
    /// The run it belongs to.
    #[schema(value_type = RunHeadBody)]
    run: gesta_store::RunHead,
}

/// Read one hold: the exact arguments, what led to it, when it runs out.
#[utoipa::path(
    get, path = "/v1/holds/{run}/{call}", operation_id = "read_hold", tag = "holds",
    params(
        ("run" = String, Path, description = "The run's id"),
        ("call" = String, Path, description = "The call's id"),
    ),
    responses(
        (status = 200, description = "The hold", body = HoldPage),
        (status = 410, description = "It no longer waits; `answer` says what it was told", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = "default", description = "Not read", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn read(
    Mine(app): Mine,
    asker: Asker,
    Named((run, call)): Named<(String, String)>,
) -> Result<Response, Problem> {
    let (id, call) = (RunId::new(run), CallId::new(call));
    head_of(&app, &asker, &SEES_HOLDS, &id).await?;
    let (stored, run) = app.read(&id).await?;
    let Some(hold) = run.holds().into_iter().find(|hold| hold.id == call) else {
        return Err(gone(&app, &id, &call).await?);
    };
    let filter = HoldFilter { run: Some(id), ..HoldFilter::default() };
    let listed = app.store.holds(&filter).await?.into_iter().find(|open| open.hold.id == call);
    let opened_at = listed.map_or(stored.head.updated_at, |open| open.opened_at);
    let head = stored.head;
    let said = run.opening().map(|opening| text_of(&opening.input)).unwrap_or_default();
    let beside = stored.events.iter().rev().find_map(|event| match &event.what {
        gesta_run::EventKind::Replied { trip, reply, .. } if *trip == hold.trip => Some(reply.joined_text()),
        _ => None,
    });
    let parameters = run.call(&call).and_then(|it| it.tool.as_ref()).map(|tool| tool.spec.parameters.clone());
    let parameters = parameters.or_else(|| {
        let tools = &run.plan().spec.tools;
        tools.iter().find(|tool| tool.name == hold.name).map(|tool| tool.parameters.clone())
    });
    let page = HoldPage {
        parameters: parameters.unwrap_or(Value::Null),
        led_to_it: LedToIt { said, beside: beside.unwrap_or_default(), reason: hold.reason.clone(), run: head.clone() },
        open: OpenHold { hold, agent: head.agent, conversation: head.conversation, contact: head.contact, opened_at },
    };
    Ok(json(&page))
}

/// Why there is no such hold: it was answered or closed, or never was.
async fn gone(app: &App, run: &RunId, call: &CallId) -> Result<Problem, Problem> {
    Ok(match app.store.hold_closed(run, call).await? {
        Some(closed) => {
            let detail = format!("hold `{call}` of run `{run}` no longer waits");
            Problem::new(StatusCode::GONE, "hold_closed", detail, "GET /v1/runs/{run} tells what came of it")
                .with("answer", closed.answer.as_ref().map(answer_of))
                .with("at", closed.at)
        }
        None => {
            let detail = format!("run `{run}` has no hold `{call}`");
            Problem::missing("no_such_hold", detail, "GET /v1/holds lists those that wait")
        }
    })
}
