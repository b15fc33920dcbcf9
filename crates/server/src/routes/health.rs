//! Whether the server lives, and whether it takes work.

use gesta_store::RunFilter;

use crate::apps::Mine;
use crate::problem::{Problem, ProblemBody};

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", operation_id = "is_alive", tag = "server", responses((status = 200, description = "It does", body = String)))]
pub(crate) async fn alive() -> &'static str {
    "ok"
}

/// Whether it takes work: its store can be read, and it is not being stopped.
#[utoipa::path(
    get, path = "/readyz", operation_id = "is_ready", tag = "server",
    responses(
        (status = 200, description = "It does", body = String),
        (status = "default", description = "It does not", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn ready(Mine(app): Mine) -> Result<&'static str, Problem> {
    if app.works.is_stopping() {
        return Err(Problem::busy("stopping", "the server is being stopped", 5));
    }
    app.store.runs(&RunFilter { limit: 1, ..RunFilter::default() }).await?;
    Ok("ok")
}
