//! Requests that may come again: with an `Idempotency-Key` a write is done once, and answered the same however often it
//! comes (draft-ietf-httpapi-idempotency-key-header).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use gesta_run::RunId;
use gesta_run::json::sha256_hex;
use gesta_store::{RequestName, Reserved, StoreError, StoredAnswer};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::app::App;
use crate::apps::Mine;
use crate::ask::Asker;
use crate::extract::body_of;
use crate::follow::{self, Until};
use crate::problem::Problem;
use crate::requests;
use crate::told::Mark;

/// The longest key, in bytes.
const KEY_BYTES_MAX: usize = 255;
const HEADER: &str = "idempotency-key";
/// Says that an answer was given before.
const REPEATED: &str = "idempotency-replayed";
const EVENTS: &str = "text/event-stream";

/// The run that a request begins, where it begins one: the same however often it comes.
#[derive(Clone)]
pub(crate) struct ItsRun(pub(crate) RunId);

/// Marks an answer that is made again and not kept: it says what is kept nowhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotKept;

/// The event after which an answer's stream begins, where it is not that of the whole run.
#[derive(Clone, Copy)]
pub(crate) struct Since(pub(crate) Mark);

/// Requests that are being done here.
#[derive(Debug, Default)]
pub(crate) struct Doing(Mutex<HashSet<RequestName>>);

impl Doing {
    fn set(&self) -> std::sync::MutexGuard<'_, HashSet<RequestName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a request off the list when it is done, however that ends.
struct Done {
    app: Arc<App>,
    request: RequestName,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.app.doing.set().remove(&self.request);
    }
}

/// Does a write once. What has no key, and what only reads, passes.
///
/// Of somebody who may write nothing no body is read: whoever answers the path refuses them.
pub(crate) async fn once(Mine(app): Mine, request: Request, next: Next) -> Result<Response, Problem> {
    let asker = request.extensions().get::<Asker>().filter(|it| it.writes() && !request.method().is_safe()).cloned();
    let Some(asker) = asker else { return Ok(next.run(request).await) };
    let Some(name) = name_of(request.headers())? else { return Ok(next.run(request).await) };
    let name = RequestName { owner: asker.id.clone(), name };
    let (parts, body) = request.into_parts();
    let body = body_of(body, app.limits.body_bytes_max).await?;
    // What kind of answer is wanted is part of the request: an answer of another kind would not be the same.
    let accept = parts.headers.get(header::ACCEPT).map_or(&b""[..], HeaderValue::as_bytes);
    let what = [parts.method.as_str().as_bytes(), parts.uri.to_string().as_bytes(), accept, &body].map(sha256_hex);
    let fingerprint = sha256_hex(what.concat().as_bytes());
    if !app.doing.set().insert(name.clone()) {
        return Err(in_progress());
    }
    let done = Done { app: app.clone(), request: name.clone() };
    // The answer is erased with the run that it tells of.
    let about = about(parts.uri.path());
    let fresh = about.clone().unwrap_or_else(gesta_store::new_run_id);
    let run = match app.front.reserve(&name, &fingerprint, &fresh, app.now()).await? {
        Reserved::New { run } | Reserved::Begun { run } => run,
        Reserved::Answered(answer) => return Ok(again(&app, &asker, answer)),
        Reserved::Other => {
            let detail = "another request came with this Idempotency-Key";
            return Err(Problem::conflict("idempotency_conflict", detail, "give each request a key of its own"));
        }
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(ItsRun(run.clone()));
    // In a task of its own: a client that goes away in the middle finds the answer when it comes back.
    let doing = tokio::spawn(requests::within(async move {
        let response = next.run(request).await;
        let kept = keep(&app, &name, &run, about.is_none(), response).await;
        drop(done);
        kept
    }));
    doing.await.unwrap_or_else(|_| Err(Problem::internal("the server met a bug of its own")))
}

/// The run that a path names, where it names one: `/v1/runs/{id}/…`.
fn about(path: &str) -> Option<RunId> {
    let id = path.strip_prefix("/v1/runs/")?.split('/').next()?;
    Some(RunId::from(id)).filter(|_| !id.is_empty())
}

fn in_progress() -> Problem {
    let detail = "the request with this Idempotency-Key is still being done";
    Problem::conflict("request_in_progress", detail, "ask again in a second, with the same key").retry_after(1)
}

fn name_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get(HEADER) else { return Ok(None) };
    let is_plain =
        |key: &&str| (1..=KEY_BYTES_MAX).contains(&key.len()) && !key.contains(|c: char| c.is_ascii_control());
    let key = key.to_str().ok().filter(is_plain);
    let wrong = || {
        let detail = format!("`Idempotency-Key` must have 1 to {KEY_BYTES_MAX} visible characters of ASCII");
        Problem::bad("idempotency_key_invalid", detail, "a fresh UUID for each request is good")
    };
    key.map(|key| Some(key.to_owned())).ok_or_else(wrong)
}

/// Keeps the answer to what was done.
async fn keep(
    app: &App,
    name: &RequestName,
    run: &RunId,
    begins: bool,
    response: Response,
) -> Result<Response, Problem> {
    let status = response.status();
    if !status.is_success() {
        // A refusal is not kept: nothing was done, and the same may be good later. Unless the run has begun all the same.
        if !begins || matches!(app.store.head(run).await, Err(StoreError::NoSuchRun { .. })) {
            app.front.let_go(name).await?;
        }
        return Ok(response);
    }
    if response.extensions().get::<NotKept>().is_some() {
        return Ok(response);
    }
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let content_type = kind.to_owned();
    if content_type == EVENTS {
        // What follows is in the run's log; which run it was, and from where, is all that has to be kept.
        let run = response.extensions().get::<ItsRun>().map_or(run, |it| &it.0);
        let from = response.extensions().get::<Since>().map(|it| format!(" {}", it.0)).unwrap_or_default();
        let body = format!("{run}{from}").into();
        let answer = StoredAnswer { status: status.as_u16(), content_type, body };
        app.front.settle(name, answer).await?;
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.map_err(|why| Problem::internal(why.to_string()))?;
    let answer = StoredAnswer { status: status.as_u16(), content_type, body: body.to_vec() };
    app.front.settle(name, answer).await?;
    Ok(Response::from_parts(parts, Body::from(body)))
}

fn again(app: &Arc<App>, asker: &Asker, answer: StoredAnswer) -> Response {
    let mut response = if answer.content_type == EVENTS {
        let kept = String::from_utf8_lossy(&answer.body);
        let (run, from) = kept.split_once(' ').unwrap_or((&kept, ""));
        follow::stream(app, asker, RunId::new(run), from.parse().ok(), Until::Quiet)
    } else {
        let mut response = Body::from(answer.body).into_response();
        *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
        response.headers_mut().remove(header::CONTENT_TYPE);
        if let Ok(kind) = HeaderValue::from_str(&answer.content_type)
            && !kind.is_empty()
        {
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        response
    };
    response.headers_mut().insert(REPEATED, HeaderValue::from_static("true"));
    response
}
