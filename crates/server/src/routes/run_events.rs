//! The events of a run, as a stream that can be taken up again where it broke off.

use axum::response::{IntoResponse, Response};
use gesta_run::{RunId, Status};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{head_of, runs::SEES};
use crate::apps::Mine;
use crate::ask::Asker;
use crate::described::StreamEventBody;
use crate::extract::{Asked, Named};
use crate::follow::{self, Until};
use crate::problem::{Problem, ProblemBody};
use crate::told::Mark;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsAsked {
    /// Only what comes after this event's id; `Last-Event-ID` goes ahead.
    #[param(pattern = r"^[0-9]+\.[0-9]+$")]
    after: Option<String>,
}

/// Follow a run.
///
/// First what has happened so far, then what happens, until the run has ended; it stays open while the run is parked. A
/// client that comes back with the `id` of its last event in `Last-Event-ID` misses nothing. `reply.delta` and
/// `trip.started` may come without an id: `offset` says where a delta's text stands in its trip's, in bytes, and
/// `reply.finished` has the whole text. Where nothing can follow the answer is 204.
#[utoipa::path(
    get, path = "/v1/runs/{run}/events", operation_id = "follow_run", tag = "runs",
    params(
        ("run" = String, Path, description = "The run's id"),
        ("last-event-id" = Option<String>, Header, description = "The id of the last event that was seen"),
        EventsAsked,
    ),
    responses(
        (status = 200, description = "Its events, each of this form",
            body = StreamEventBody, content_type = "text/event-stream"),
        (status = 204, description = "Nothing can follow"),
        (status = "default", description = "Not followed", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn follow(
    Mine(app): Mine,
    asker: Asker,
    Named(run): Named<String>,
    headers: HeaderMap,
    Asked(asked): Asked<EventsAsked>,
) -> Result<Response, Problem> {
    let run = RunId::new(run);
    let last = headers.get("last-event-id").map(|it| it.to_str().unwrap_or("?").to_owned());
    let after = match last.or(asked.after).filter(|it| !it.is_empty()) {
        None => None,
        Some(text) => Some(text.parse::<Mark>().map_err(|()| {
            let detail = format!("`{}` is no event's id", gesta_run::json::cut(&text, 64));
            Problem::bad("event_id_invalid", detail, "send the `id` of the last event as it came, or none")
        })?),
    };
    let head = head_of(&app, &asker, &SEES, &run).await?;
    let is_end = after.is_some_and(|mark| mark.part == Mark::LAST && mark.event.saturating_add(1) >= head.events);
    if is_end && head.status == Status::Ended {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(follow::stream(&app, &asker, run, after, Until::Ended))
}
