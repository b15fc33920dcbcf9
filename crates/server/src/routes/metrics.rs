//! What the server counts, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use gesta_run::Timestamp;
use gesta_store::HoldFilter;
use http::header;

use crate::apps::Apps;
use crate::ask::Asker;
use crate::keys::Scope;
use crate::problem::{Problem, ProblemBody};

/// The content type that scrapers ask for.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// How old a count of the holds may be.
const COUNT_EVERY: Duration = Duration::from_secs(15);
/// Beyond so many holds they are not counted any more.
const PAGES_MAX: usize = 100;

/// Read counters and measures of the whole server: no key for some agents, or of another tenant, opens them.
#[utoipa::path(
    get, path = "/metrics", operation_id = "read_metrics", tag = "server",
    responses(
        (status = 200, description = "In the text form of OpenMetrics", body = String,
            content_type = "application/openmetrics-text"),
        (status = "default", description = "Not read", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn read(State(apps): State<Arc<Apps>>, asker: Asker) -> Result<Response, Problem> {
    asker.may_with_all(&[Scope::Read])?;
    let app = &apps.first;
    if app.metrics.is_to_count(COUNT_EVERY) {
        count_holds(&apps).await?;
    }
    app.metrics.going.set(i64::try_from(app.works.count()).unwrap_or(i64::MAX));
    Ok(([(header::CONTENT_TYPE, OPENMETRICS)], app.metrics.text()).into_response())
}

async fn count_holds(apps: &Apps) -> Result<(), Problem> {
    let (mut count, mut oldest) = (0, None::<Timestamp>);
    for app in apps.opened().await {
        let mut filter = HoldFilter::default();
        for _ in 0..PAGES_MAX {
            let page = app.store.holds(&filter).await?;
            let Some(last) = page.last() else { break };
            filter.after = Some(last.cursor());
            oldest = page.iter().map(|open| open.opened_at).chain(oldest).min();
            count += page.len();
        }
    }
    let app = &apps.first;
    app.metrics.holds.set(i64::try_from(count).unwrap_or(i64::MAX));
    let age = oldest.map_or(0, |at| app.now().since_ms(at) / 1_000);
    app.metrics.oldest.set(i64::try_from(age).unwrap_or(i64::MAX));
    Ok(())
}
