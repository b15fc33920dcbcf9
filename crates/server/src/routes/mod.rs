//! The routes: one file for each group of paths. What stands here exists, and what does not is not answered.

mod agents;
mod answers;
mod audit;
mod conversations;
mod health;
mod holds;
mod keys;
mod log;
mod metrics;
mod run_events;
mod runs;

use std::sync::Arc;

pub(crate) use answers::{deed, unbroken};

use axum::Router;
use axum::response::{IntoResponse, Response};
use gesta_run::RunId;
use gesta_store::RunHead;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::apps::Apps;
use crate::ask::Asker;
use crate::keys::Scope;
use crate::problem::Problem;

/// What the document says of the server itself.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Gesta",
        description = "Agents over HTTP: runs, the holds in which calls wait for people and programs, conversations."
    ),
    tags(
        (name = "runs", description = "Turns of agents: begin, follow, answer, cancel."),
        (name = "holds", description = "Calls and actions that wait for somebody outside."),
        (name = "conversations", description = "All turns with one contact."),
        (name = "agents", description = "What is served here."),
        (name = "keys", description = "Who may ask, and for what."),
        (name = "server", description = "How the server itself is.")
    )
)]
struct Document;

/// All routes, and the document that describes them.
pub(crate) fn all() -> (Router<Arc<Apps>>, utoipa::openapi::OpenApi) {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(runs::begin))
        .routes(routes!(runs::list))
        .routes(routes!(runs::read))
        .routes(routes!(log::read))
        .routes(routes!(runs::cancel))
        .routes(routes!(run_events::follow))
        .routes(routes!(answers::answer))
        .routes(routes!(holds::list))
        .routes(routes!(holds::read))
        .routes(routes!(conversations::list))
        .routes(routes!(conversations::read, conversations::erase))
        .routes(routes!(agents::list))
        .routes(routes!(agents::tools))
        .routes(routes!(keys::list, keys::make))
        .routes(routes!(keys::revoke))
        .routes(routes!(audit::read))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::read))
        .split_for_parts()
}

/// A path that does not exist.
pub(crate) async fn nowhere(method: Method, uri: Uri) -> Problem {
    let detail = format!("there is no {method} {}", uri.path());
    Problem::missing("no_such_path", detail, "/openapi.json lists what there is")
}

/// A path that exists, asked in a way that does not.
pub(crate) async fn not_like_this(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not take {method}", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail, "/openapi.json lists what it takes")
}

/// Whether the client asks for a stream of events.
fn wants_events(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    accepts
        .flat_map(|it| it.split(','))
        .any(|kind| kind.split(';').next().is_some_and(|it| it.trim() == "text/event-stream"))
}

/// The head of a run that is named in a path, for who may use it.
async fn head_of(app: &App, asker: &Asker, scopes: &[Scope], run: &RunId) -> Result<RunHead, Problem> {
    asker.may(scopes)?;
    let head = app.store.head(run).await?;
    asker.may_with(scopes, &head.agent)?;
    Ok(head)
}

/// Which agents a listing is about: the one that was asked for, else the only one that the key is for. The rest of what
/// is listed has still to be looked at.
fn agent_asked(asker: &Asker, asked: Option<String>) -> Result<Option<String>, Problem> {
    match asked {
        Some(agent) if !asker.knows(&agent) => asker.may_with(&Scope::ALL, &agent).map(|()| None),
        Some(agent) => Ok(Some(agent)),
        None => Ok(asker.only_agent()),
    }
}

/// An answer of JSON.
fn json(value: &impl serde::Serialize) -> Response {
    axum::Json(value).into_response()
}
