//! Answers to holds, and going on with a run that can.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use gesta_run::{CallId, RunId};
use gesta_runtime::Resume;
use gesta_store::HoldFilter;
use http::HeaderMap;

use super::{head_of, json, wants_events};
use crate::app::App;
use crate::described::ResumedBody;
use crate::extract::{Json, Named};
use crate::follow::{self, Until};
use crate::problem::{Problem, ProblemBody};
use crate::told::Mark;
use crate::wire::AnswersBody;
use crate::work;

/// Answer holds.
///
/// All answers of a request count, or none. The first answer to a hold counts: the same again runs nothing and is listed
/// in `already_answered`, another one is a conflict (409). The run goes on when its last held call is answered. Without
/// answers a run goes on that ended for want of trips or of its model, or that was left by a process that died.
#[utoipa::path(
    post, path = "/v1/runs/{run}/answers", operation_id = "answer_holds", tag = "runs",
    params(("run" = String, Path, description = "The run's id")),
    request_body = AnswersBody,
    responses(
        (status = 200, description = "The run as it stands, or its events from here on", content(
            (ResumedBody = "application/json"), (String = "text/event-stream")
        )),
        (status = "default", description = "Nothing was recorded and nothing has run", body = ProblemBody,
            content_type = "application/problem+json"),
    )
)]
pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    Named(run): Named<String>,
    headers: HeaderMap,
    Json(body): Json<AnswersBody>,
) -> Result<Response, Problem> {
    let run = RunId::new(run);
    let head = head_of(&app, &run).await?;
    let open = open_holds(&app, &run).await?;
    let answers = body.answers.into_iter().enumerate().map(|(at, answer)| answer.answer(at, &run, &open));
    let answers = answers.collect::<Result<Vec<_>, Problem>>()?;
    let resume = Resume { answers, trips_max: body.trips_max, force: body.force, ..Resume::default() };
    let begun = work::resume(&app, &head, resume).await?;
    if body.stream || wants_events(&headers) {
        let seen = Mark { event: head.events.saturating_sub(1), part: Mark::LAST };
        return Ok(follow::stream(&app, begun.run, Some(seen), Until::Quiet));
    }
    Ok(json(&begun.end().await?))
}

async fn open_holds(app: &App, run: &RunId) -> Result<Vec<CallId>, Problem> {
    let filter = HoldFilter { run: Some(run.clone()), ..HoldFilter::default() };
    Ok(app.store.holds(&filter).await?.into_iter().map(|open| open.hold.id).collect())
}
