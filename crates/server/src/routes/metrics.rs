//! What the server counts, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use gesta_store::HoldFilter;
use http::header;

use crate::app::App;
use crate::keys::{Asker, Scope};
use crate::problem::{Problem, ProblemBody};

/// The content type that scrapers ask for.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// How old a count of the holds may be.
const COUNT_EVERY: Duration = Duration::from_secs(15);
/// Beyond so many holds they are not counted any more.
const PAGES_MAX: usize = 100;

/// Read counters and measures.
#[utoipa::path(
    get, path = "/metrics", operation_id = "read_metrics", tag = "server",
    responses(
        (status = 200, description = "In the text form of OpenMetrics", body = String,
            content_type = "application/openmetrics-text"),
        (status = "default", description = "Not read", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn read(State(app): State<Arc<App>>, asker: Asker) -> Result<Response, Problem> {
    asker.may(&[Scope::Read])?;
    if app.metrics.is_to_count(COUNT_EVERY) {
        count_holds(&app).await?;
    }
    app.metrics.going.set(i64::try_from(app.works.count()).unwrap_or(i64::MAX));
    Ok(([(header::CONTENT_TYPE, OPENMETRICS)], app.metrics.text()).into_response())
}

async fn count_holds(app: &App) -> Result<(), Problem> {
    let (mut filter, mut count, mut oldest) = (HoldFilter::default(), 0, None);
    for _ in 0..PAGES_MAX {
        let page = app.store.holds(&filter).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.cursor());
        oldest = oldest.or_else(|| page.first().map(|open| open.opened_at));
        count += page.len();
    }
    app.metrics.holds.set(i64::try_from(count).unwrap_or(i64::MAX));
    let age = oldest.map_or(0, |at| app.now().since_ms(at) / 1_000);
    app.metrics.oldest.set(i64::try_from(age).unwrap_or(i64::MAX));
    Ok(())
}

/// Counts requests, by the path as it is described and never as it was asked for.
pub(crate) async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    // Methods are the client's to choose, so that only known ones are told apart.
    let method = if ["GET", "POST", "DELETE"].contains(&method.as_str()) { method.as_str() } else { "other" };
    app.metrics.request(method, &path, response.status().as_u16());
    response
}
