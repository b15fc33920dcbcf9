//! Tells somebody outside that a hold was opened, is about to expire, or that a run has ended: signed requests in the form
//! of Standard Webhooks, sent until they are taken.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gesta_model::transport::Outgoing;
use gesta_model::{Lookup, Timeouts, Transport, TransportSpec};
use gesta_run::json::sha256_hex;
use gesta_run::{CallId, Event, EventKind, Hold, RunId, Status, Timestamp};
use gesta_store::{Dispatch, Front, HeadChange, HoldFilter, StoreError};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::sync::Notify;

use crate::app::{self, App};
use crate::apps::Apps;
use crate::problem::Problem;

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(15);
/// How long whoever took a dispatch has it to himself.
const TAKEN_MS: u64 = 60_000;
/// How many are sent side by side.
const SIDE_BY_SIDE: u32 = 16;
/// How often is looked for dispatches that another process wrote, or whose time has come.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long a dispatch waits for what it tells of to come true: it is written ahead.
const COMES_TRUE_MS: u64 = 10 * 60_000;
/// How many bytes of an answer are read; nothing is done with them.
const ANSWER_BYTES_MAX: usize = 64 << 10;

const OPENED: &str = "hold.opened";
const EXPIRING: &str = "hold.expiring";
const ENDED: &str = "run.ended";

/// Where dispatches go, and how.
pub struct Webhook {
    url: Uri,
    keys: Vec<Vec<u8>>,
    transport: Transport,
    /// How long after each attempt that failed the next one is made; with the last of them it is given up.
    pub retries: Vec<Duration>,
    /// How long ahead of its expiry a hold is told to be expiring. An hour by default, and half of the time that it
    /// has where that is less.
    pub expiring: Duration,
}

/// Why dispatches cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The address is none, or without encryption.
    #[error("the webhook's address must begin with https:// (or name this machine)")]
    Address,
    /// The secret has another form.
    #[error("a webhook's secret is `whsec_` and at least 24 bytes in base64; several are separated by spaces")]
    Secret,
}

impl Webhook {
    /// To this address, signed with these secrets: each is `whsec_` and base64, several are separated by spaces, and all
    /// of them sign, so that they can be changed one after another.
    ///
    /// # Errors
    /// The address or a secret cannot be used.
    pub fn new(url: &str, secrets: &str, env: &Lookup) -> Result<Self, WebhookError> {
        let url: Uri = url.parse().map_err(|_| WebhookError::Address)?;
        let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback());
        match url.scheme_str() {
            Some("https") => {}
            Some("http") if local => {}
            _ => return Err(WebhookError::Address),
        }
        let key = |secret: &str| {
            let key = secret.strip_prefix("whsec_").and_then(|it| STANDARD.decode(it).ok());
            key.filter(|key| key.len() >= 24).ok_or(WebhookError::Secret)
        };
        let keys = secrets.split_whitespace().map(key).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(WebhookError::Secret);
        }
        let transport = Transport::new(TransportSpec { lookup: Some(&**env), ..TransportSpec::default() });
        let minutes = [1, 5, 30, 120, 300, 600, 840, 1_200].map(|it| Duration::from_secs(it * 60));
        let retries = [Duration::from_secs(5)].into_iter().chain(minutes).collect();
        Ok(Self { url, keys, transport, retries, expiring: Duration::from_secs(3_600) })
    }

    /// What the events of one append are going to be told as. To be written ahead of them.
    pub(crate) fn dispatches(&self, run: &RunId, events: &[Event], holds: &[Hold], now: Timestamp) -> Vec<Dispatch> {
        let mut dispatches = Vec::new();
        // Where it is taken before the append that follows is done, it waits for that.
        let due = now;
        for event in events {
            match &event.what {
                EventKind::Held { call, .. } | EventKind::Staged { call, needs_approval: true } => {
                    dispatches.push(dispatch(OPENED, run, Some(call), now, due));
                    let until = holds.iter().find(|hold| hold.id == *call).and_then(|hold| hold.expires_at);
                    if let Some(until) = until {
                        let left = until.since_ms(now);
                        let ahead = u64::try_from(self.expiring.as_millis()).unwrap_or(u64::MAX).min(left / 2);
                        dispatches.push(dispatch(EXPIRING, run, Some(call), now, now.plus_ms(left - ahead)));
                    }
                }
                EventKind::Ended { .. } => dispatches.push(dispatch(ENDED, run, None, now, due)),
                _ => {}
            }
        }
        dispatches
    }

    async fn send(&self, id: &str, body: String, now: Timestamp) -> Result<(), String> {
        let seconds = now.0 / 1_000;
        let signed = |key: &Vec<u8>| {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|why| why.to_string())?;
            mac.update(format!("{id}.{seconds}.{body}").as_bytes());
            Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
        };
        let signatures = self.keys.iter().map(signed).collect::<Result<Vec<_>, String>>()?.join(" ");
        let mut headers = HeaderMap::new();
        let plain = |text: &str| HeaderValue::from_str(text).map_err(|why| why.to_string());
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("webhook-id", plain(id)?);
        headers.insert("webhook-timestamp", plain(&seconds.to_string())?);
        headers.insert("webhook-signature", plain(&signatures)?);
        let request = Outgoing { method: Method::POST, uri: self.url.clone(), headers, body: body.into() };
        let ms = u64::try_from(ATTEMPT.as_millis()).unwrap_or(u64::MAX);
        let timeouts = Timeouts { connect_ms: ms, first_byte_ms: ms, idle_ms: ms, whole_ms: ms };
        let received =
            // The error's own text may hold the address, and that a password.
            self.transport.send(&request, timeouts, ANSWER_BYTES_MAX).await.map_err(|_| "it was not reached".to_owned())?;
        if received.status.is_success() { Ok(()) } else { Err(format!("it answered {}", received.status)) }
    }
}

fn dispatch(kind: &str, run: &RunId, call: Option<&CallId>, at: Timestamp, due: Timestamp) -> Dispatch {
    // A run that can go on may end more than once, and then it is told again.
    let which = if kind == ENDED { at.0.to_string() } else { String::new() };
    let what = [kind, run.as_str(), call.map_or("", CallId::as_str), &which].join("\0");
    let id = format!("msg_{}", &sha256_hex(what.as_bytes())[..32]);
    Dispatch { id, kind: kind.to_owned(), run: run.clone(), call: call.cloned(), at, due, attempts: 0 }
}

/// How the store's events become dispatches.
pub(crate) struct Bell {
    pub(crate) front: Arc<dyn Front>,
    pub(crate) webhook: Arc<Webhook>,
    /// Wakes the sender.
    pub(crate) hurry: Arc<Notify>,
}

impl Bell {
    /// Writes down what is going to be told, ahead of the append that makes it true.
    pub(crate) async fn write(&self, run: &RunId, events: &[Event], change: &HeadChange) -> Result<bool, StoreError> {
        let dispatches = self.webhook.dispatches(run, events, &change.holds, app::now());
        if dispatches.is_empty() {
            return Ok(false);
        }
        self.front.put_dispatches(dispatches).await.map(|()| true)
    }
}

/// Sends what is due until the server is stopped, of all tenants side by side.
pub(crate) async fn send(apps: Arc<Apps>, hurry: Arc<Notify>) {
    let works = &apps.first.works;
    loop {
        let opened = apps.opened().await;
        let sent = futures_util::future::join_all(opened.iter().map(|app| some(app))).await;
        if sent.contains(&true) && !works.is_stopping() {
            continue;
        }
        tokio::select! {
            () = works.stopping() => return,
            () = hurry.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Sends some of what is due for one tenant, and says whether there was anything.
async fn some(app: &App) -> bool {
    let Some(bell) = &app.bell else { return false };
    let now = app.now();
    match app.front.take_dispatches(now, now.plus_ms(TAKEN_MS), SIDE_BY_SIDE).await {
        Ok(due) if !due.is_empty() => {
            futures_util::future::join_all(due.into_iter().map(|dispatch| one(app, &bell.webhook, dispatch))).await;
            true
        }
        Ok(_) => false,
        Err(why) => {
            tracing::warn!(code = why.code(), "dispatches cannot be read");
            false
        }
    }
}

async fn one(app: &App, webhook: &Webhook, dispatch: Dispatch) {
    let now = app.now();
    let due = match content(app, &dispatch).await {
        Ok(Some(data)) => {
            let at = jiff::Timestamp::from_millisecond(dispatch.at.0).unwrap_or_default();
            let body = json!({ "type": dispatch.kind, "timestamp": at.to_string(), "data": data }).to_string();
            match webhook.send(&dispatch.id, body, now).await {
                Ok(()) => None,
                Err(why) => again(webhook, &dispatch, &why, now),
            }
        }
        // It has not come true, or not any more.
        Ok(None)
            if dispatch.kind != EXPIRING
                && now.since_ms(dispatch.at) < COMES_TRUE_MS
                && is_open(app, &dispatch).await =>
        {
            Some(now.plus_ms(1_000))
        }
        Ok(None) => None,
        Err(why) => again(webhook, &dispatch, why.code(), now),
    };
    if let Err(why) = app.front.settle_dispatch(&dispatch.id, due).await {
        tracing::warn!(dispatch = dispatch.id, code = why.code(), "a dispatch was sent and is going to be sent again");
    }
}

/// When it is tried again, if it is.
fn again(webhook: &Webhook, dispatch: &Dispatch, why: &str, now: Timestamp) -> Option<Timestamp> {
    let before = usize::try_from(dispatch.attempts).unwrap_or(usize::MAX).saturating_sub(1);
    let wait = webhook.retries.get(before).map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    match wait {
        Some(_) => tracing::warn!(dispatch = dispatch.id, kind = dispatch.kind, why, "a dispatch was not taken"),
        None => tracing::error!(dispatch = dispatch.id, kind = dispatch.kind, why, "a dispatch was given up"),
    }
    wait.map(|wait| now.plus_ms(wait))
}

/// Whether what a dispatch tells of may still come true: the append that it was written ahead of may be on its way.
async fn is_open(app: &App, dispatch: &Dispatch) -> bool {
    app.store.head(&dispatch.run).await.is_ok_and(|head| head.status == Status::Open)
}

/// What is told: nothing where it is not so.
async fn content(app: &App, dispatch: &Dispatch) -> Result<Option<Value>, Problem> {
    if let Some(call) = &dispatch.call {
        let filter = HoldFilter { run: Some(dispatch.run.clone()), ..HoldFilter::default() };
        let open = app.store.holds(&filter).await?.into_iter().find(|open| open.hold.id == *call);
        return Ok(open.map(|open| json!(open)));
    }
    let Ok(head) = app.store.head(&dispatch.run).await else { return Ok(None) };
    Ok((head.status == Status::Ended).then(|| {
        json!({
            "run": head.run, "agent": head.agent, "conversation": head.conversation, "contact": head.contact,
            "outcome": head.outcome, "started_at": head.started_at, "ended_at": head.updated_at,
        })
    }))
}
