//! Whether the server lives, and whether it takes work.

use std::time::Duration;

use axum::Json;
use gesta_store::{RunFilter, StoreError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::apps::Mine;
use crate::problem::{Problem, ProblemBody};

/// How long the store has to answer.
const STORE_WAIT: Duration = Duration::from_secs(5);

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", operation_id = "is_alive", tag = "server", responses((status = 200, description = "It does", body = String)))]
pub(crate) async fn alive() -> &'static str {
    "ok"
}

/// What has to be so that the server takes work, and whether it is: `ok`, or the code of what is wrong.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Checks {
    /// It is not being stopped.
    serving: &'static str,
    /// Runs can be read.
    store: &'static str,
    /// The store has the form that this program writes.
    migrations: &'static str,
    /// Agents are open.
    agents: &'static str,
}

/// Whether it takes work: its store can be read, its agents are open, and it is not being stopped.
#[utoipa::path(
    get, path = "/readyz", operation_id = "is_ready", tag = "server",
    responses(
        (status = 200, description = "It does", body = Checks),
        (status = "default", description = "It does not; `checks` says what is wrong", body = ProblemBody,
            content_type = "application/problem+json"),
    )
)]
pub(crate) async fn ready(Mine(app): Mine) -> Result<Json<Checks>, Problem> {
    let mut checks = Checks { serving: "ok", store: "ok", migrations: "ok", agents: "ok" };
    if app.works.is_stopping() {
        checks.serving = "stopping";
    }
    if app.agents.is_empty() {
        checks.agents = "none";
    }
    // A store that hangs is none.
    let filter = RunFilter { limit: 1, ..RunFilter::default() };
    match tokio::time::timeout(STORE_WAIT, app.store.runs(&filter)).await {
        Ok(Ok(_)) => {}
        Ok(Err(why @ (StoreError::Newer { .. } | StoreError::Foreign { .. }))) => checks.migrations = why.code(),
        Ok(Err(why)) => checks.store = why.code(),
        Err(_) => checks.store = "timeout",
    }
    let all = [checks.serving, checks.store, checks.migrations, checks.agents];
    match all.into_iter().find(|it| *it != "ok") {
        None => Ok(Json(checks)),
        Some("stopping") => Err(Problem::busy("stopping", "the server is being stopped", 5).with("checks", checks)),
        Some(what) => {
            Err(Problem::busy("not_ready", format!("the server is not ready: {what}"), 5).with("checks", checks))
        }
    }
}
