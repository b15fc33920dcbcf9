//! Each request as the log and the counters see it: its method, the template of its path, how it was answered. Neither
//! its path as it was asked for nor its body stands there: both may name people.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use gesta_run::TraceParent;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::apps::Apps;

const ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACE: HeaderName = HeaderName::from_static("traceparent");
/// How long a request's name may be that its client gives it, in bytes.
const ID_BYTES_MAX: usize = 128;
/// Paths that are asked for every few seconds: their lines are for those who look closely.
const OFTEN: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

tokio::task_local! {
    static CURRENT: Arc<Current>;
}

/// What is known of the request that is being answered.
struct Current {
    id: String,
    trace: Option<TraceParent>,
    key: OnceLock<String>,
}

/// The name of the request that is being answered.
pub(crate) fn id() -> Option<String> {
    CURRENT.try_with(|it| it.id.clone()).ok()
}

/// The trace that its client has.
pub(crate) fn trace() -> Option<TraceParent> {
    CURRENT.try_with(|it| it.trace).ok().flatten()
}

/// Says with which key it came.
pub(crate) fn has_key(key: &str) {
    let _ = CURRENT.try_with(|it| it.key.set(key.to_owned()));
}

/// Names a request, answers it, counts it and writes its line.
pub(crate) async fn seen(State(apps): State<Arc<Apps>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    // Methods are the client's to choose, so that only known ones are told apart.
    let known = ["GET", "POST", "DELETE"].into_iter().find(|it| *it == request.method().as_str());
    let method = known.unwrap_or("other");
    let path = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let current = Arc::new(Current::of(request.headers()));
    let mut response = CURRENT.scope(current.clone(), next.run(request)).await;
    if let Ok(id) = HeaderValue::from_str(&current.id) {
        response.headers_mut().insert(ID, id);
    }
    let status = response.status().as_u16();
    apps.first.metrics.request(method, &path, status);
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (key, request) = (current.key.get(), &current.id);
    match status {
        500.. => tracing::warn!(method, path, status, ms, key, request, "request failed"),
        _ if OFTEN.contains(&path.as_str()) => tracing::debug!(method, path, status, ms, key, request, "request"),
        _ => tracing::info!(method, path, status, ms, key, request, "request"),
    }
    response
}

/// The same request, in a task of its own.
pub(crate) fn within<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let current = CURRENT.try_with(Arc::clone).ok();
    async move {
        match current {
            Some(current) => CURRENT.scope(current, work).await,
            None => work.await,
        }
    }
}

impl Current {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name: HeaderName| headers.get(name).and_then(|it| it.to_str().ok());
        let given = text(ID).filter(|id| is_name(id)).map(str::to_owned);
        Self {
            id: given.unwrap_or_else(fresh),
            trace: text(TRACE).and_then(|it| it.parse().ok()),
            key: OnceLock::new(),
        }
    }
}

/// A name holds nothing that is more than one: letters, digits, and `-_.`.
fn is_name(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !id.is_empty() && id.len() <= ID_BYTES_MAX && id.bytes().all(plain)
}

fn fresh() -> String {
    gesta_store::new_run_id().as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_none_is_replaced_and_a_trace_that_is_none_is_left_out() {
        let of = |id: &str, trace: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ID, HeaderValue::from_str(id).unwrap());
            headers.insert(TRACE, HeaderValue::from_str(trace).unwrap());
            Current::of(&headers)
        };
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let taken = of("job-7.a_B", trace);
        assert_eq!((taken.id.as_str(), taken.trace.unwrap().to_string().as_str()), ("job-7.a_B", trace));
        for id in ["", "maria smith", "a\"b", "{}", &"a".repeat(129)] {
            let made = of(id, "00-0-0-01");
            assert!(made.id.len() == 36 && made.id != id && made.trace.is_none(), "{id}");
        }
    }
}
