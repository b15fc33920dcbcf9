//! The log of a run, whole: what shows it, plays it again, or makes a scene of it.

use axum::response::Response;
use gesta_run::{Event, PlanSpec};
use gesta_store::RunHead;
use serde::Serialize;
use utoipa::ToSchema;

use super::{head_of, json};
use crate::apps::Mine;
use crate::ask::Asker;
use crate::described::RunHeadBody;
use crate::extract::Named;
use crate::keys::Scope;
use crate::problem::{Problem, ProblemBody};

/// A run's log, and the plan under which it is read.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogBody {
    /// What is known of the run without reading it.
    #[schema(value_type = RunHeadBody)]
    head: RunHead,
    /// The plan it was begun under, prompt and tools among it.
    #[schema(value_type = Object)]
    plan: PlanSpec,
    /// Its events, in order.
    #[schema(value_type = Vec<Object>)]
    events: Vec<Event>,
}

/// Read the log of a run: its plan and its events, as they are stored.
#[utoipa::path(
    get, path = "/v1/runs/{run}/log", operation_id = "read_log", tag = "runs",
    params(("run" = String, Path, description = "The run's id")),
    responses(
        (status = 200, description = "The log", body = LogBody),
        (status = "default", description = "Not read", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn read(Mine(app): Mine, asker: Asker, Named(run): Named<String>) -> Result<Response, Problem> {
    let head = head_of(&app, &asker, &[Scope::Read], &run.as_str().into()).await?;
    let (stored, run) = app.read(&head.run).await?;
    Ok(json(&LogBody { head: stored.head, plan: run.plan().spec.clone(), events: stored.events }))
}
