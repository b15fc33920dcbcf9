//! The server: routes, keys, the check of each request, the answer with its faults, the journal.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gesta_run::reply::{Fault, FaultKind, Reply};
use gesta_scene::Script;
use http::request::Parts;
use http::{Method, Request, Response};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::deliver::{Written, deliver, refused};
use super::faults::{Cut, Faults};
use super::place::{Place, place};
use super::refusal::{Checked, Protocol, Refusal};
use super::{anthropic, openai, pieces};
use crate::body::Steps;
use crate::journal::{Journal, Seen, Shown};
use crate::server::{Answers, LOOPBACK, Listening, headers_of, plain};

/// How many request bodies the fault `once` remembers.
const ONCE_MAX: usize = 100_000;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it binds. A free port of this machine by default.
    pub bind: SocketAddr,
    /// The key that each request must carry. None takes every request.
    pub key: Option<String>,
    /// The models that there are. Blank takes every name.
    pub models: Vec<String>,
    /// What goes wrong with every answer.
    pub faults: Faults,
    /// How many requests the journal keeps. 1,000 by default.
    pub journal_entries_max: usize,
    /// The longest request that is taken, in bytes. 32 MiB by default.
    pub body_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bind: LOOPBACK,
            key: None,
            models: Vec::new(),
            faults: Faults::default(),
            journal_entries_max: 1_000,
            body_bytes_max: 32 << 20,
        }
    }
}

/// A fake model service that runs until this is dropped.
#[derive(Debug)]
pub struct ModelServer {
    listening: Listening,
    service: Arc<Model>,
}

/// Answers requests from a script. Must be called inside a tokio runtime.
///
/// # Errors
/// The address cannot be bound.
pub async fn serve(script: Script, options: Options) -> io::Result<ModelServer> {
    let bind = options.bind;
    let service = Arc::new(Model {
        journal: Journal::new(options.journal_entries_max),
        memory: Mutex::new(Memory { dice: fastrand::Rng::with_seed(options.faults.seed), shown: HashSet::new() }),
        script,
        options,
    });
    let listening = Listening::start(bind, Arc::clone(&service)).await?;
    Ok(ModelServer { listening, service })
}

impl ModelServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// The address without a path: what Anthropic's clients want as their base.
    pub fn url(&self) -> String {
        format!("http://{}", self.listening.address)
    }

    /// The address with `/v1`: what OpenAI's clients want as their base.
    pub fn url_v1(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// What was asked and what was done.
    pub fn journal(&self) -> &Journal {
        &self.service.journal
    }

    /// Stops, and waits a moment for answers that are under way.
    pub async fn shut_down(self) {
        self.listening.shut_down().await;
    }
}

/// What a request asks for, beside its messages.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// OpenAI: usage at the end of a stream.
    pub(crate) stream_usage: bool,
    /// Anthropic: the model must think.
    pub(crate) thinking: bool,
}

#[derive(Debug)]
struct Model {
    script: Script,
    options: Options,
    journal: Journal,
    memory: Mutex<Memory>,
}

/// What faults need to remember. Answers need nothing.
#[derive(Debug)]
struct Memory {
    dice: fastrand::Rng,
    /// Digests of the bodies whose faults were shown.
    shown: HashSet<[u8; 32]>,
}

/// What is done about a request.
enum Done {
    /// This response, after a pause.
    Answer(Duration, Response<Steps>),
    /// The connection is closed.
    Dropped,
    /// The connection stays open and silent.
    Silent,
}

impl Answers for Model {
    fn body_bytes_max(&self) -> usize {
        self.options.body_bytes_max
    }

    async fn answer(&self, request: Request<Option<Bytes>>) -> Option<Response<Steps>> {
        let (head, body) = request.into_parts();
        let (done, shown) = match self.route(&head) {
            Route::Model(protocol, deployment) => self.model(protocol, deployment, &head, body.as_ref()),
            Route::Journal => (now(plain(200, "application/json", self.journal.to_json().to_string())), None),
            Route::Health => (now(plain(200, "text/plain", "ok\n")), None),
            Route::Models => self.models(&head),
            Route::Wrong(refusal) => self.refuse(protocol_of(&head), refusal),
        };
        if let Some(shown) = shown {
            self.journal.push(Seen {
                number: 0,
                method: head.method.to_string(),
                target: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
                headers: headers_of(&head.headers),
                body: body.unwrap_or_default(),
                shown,
            });
        }
        match done {
            Done::Answer(pause, response) => {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                Some(response)
            }
            Done::Dropped => None,
            Done::Silent => std::future::pending().await,
        }
    }
}

/// What a request is about.
enum Route<'a> {
    /// An answer of the model, with the deployment of an Azure path.
    Model(Protocol, Option<&'a str>),
    Models,
    Health,
    Journal,
    Wrong(Refusal),
}

fn now(response: Response<Steps>) -> Done {
    Done::Answer(Duration::ZERO, response)
}

/// The protocol whose errors a client understands, where the path does not tell.
fn protocol_of(head: &Parts) -> Protocol {
    let is_anthropic = head.headers.contains_key("anthropic-version") || head.headers.contains_key("x-api-key");
    if is_anthropic { Protocol::Anthropic } else { Protocol::OpenAi }
}

fn header<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    head.headers.get(name).and_then(|value| value.to_str().ok())
}

/// The values of a key in the query, undecoded.
fn query<'a>(head: &'a Parts, key: &'a str) -> impl Iterator<Item = &'a str> {
    let pairs = head.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(move |(it, _)| *it == key).map(|(_, value)| value)
}

impl Model {
    fn route<'a>(&self, head: &'a Parts) -> Route<'a> {
        let path = head.uri.path();
        let (post, get) = (head.method == Method::POST, head.method == Method::GET);
        let wanted = if path.ends_with("/chat/completions") {
            let deployment = path.split_once("/openai/deployments/").and_then(|(_, rest)| rest.split('/').next());
            if deployment.is_some() && query(head, "api-version").next().is_none() {
                return Route::Wrong(Refusal::with_status(404, "Resource not found: the query has no api-version"));
            }
            (post, "POST", Route::Model(Protocol::OpenAi, deployment))
        } else if path.ends_with("/messages") {
            (post, "POST", Route::Model(Protocol::Anthropic, None))
        } else if path == "/models" || path.ends_with("/v1/models") || path.ends_with("/openai/models") {
            (get, "GET", Route::Models)
        } else if path == "/healthz" {
            (get, "GET", Route::Health)
        } else if path == "/__journal" {
            (get, "GET", Route::Journal)
        } else {
            let why = format!(
                "Unknown request URL: {} {path}. There are /v1/chat/completions, /v1/messages, /v1/models, \
                 /healthz and /__journal.",
                head.method
            );
            return Route::Wrong(Refusal::with_status(404, why).code("unknown_url"));
        };
        match wanted {
            (true, _, route) => route,
            (false, method, _) => {
                let why = format!("Not allowed to {} on {path} (HINT: use {method})", head.method);
                Route::Wrong(Refusal::with_status(405, why).code("method_not_supported"))
            }
        }
    }

    fn refuse(&self, protocol: Protocol, refusal: Refusal) -> (Done, Option<Shown>) {
        let shown = Shown::Refused { status: refusal.status, message: refusal.message.clone() };
        (now(refused(protocol, &refusal)), Some(shown))
    }

    fn models(&self, head: &Parts) -> (Done, Option<Shown>) {
        let protocol = protocol_of(head);
        if let Err(refusal) = self.key(protocol, head) {
            return self.refuse(protocol, refusal);
        }
        let fallback = ["script".to_owned()];
        let names = if self.options.models.is_empty() { &fallback[..] } else { &self.options.models };
        let body = match protocol {
            Protocol::OpenAi => {
                let one = |name: &String| json!({"id": name, "object": "model", "created": 0, "owned_by": "script"});
                json!({"object": "list", "data": names.iter().map(one).collect::<Vec<_>>()})
            }
            Protocol::Anthropic => {
                let one = |name: &String| json!({"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"});
                json!({"data": names.iter().map(one).collect::<Vec<_>>(), "has_more": false,
                    "first_id": names.first(), "last_id": names.last()})
            }
        };
        (now(plain(200, "application/json", body.to_string())), Some(Shown::Plain { status: Some(200) }))
    }

    /// A request for an answer: checked first, so that no fault hides a refusal.
    fn model(
        &self,
        protocol: Protocol,
        deployment: Option<&str>,
        head: &Parts,
        body: Option<&Bytes>,
    ) -> (Done, Option<Shown>) {
        let checked = self.check(protocol, deployment, head, body);
        let (asked, place, wanted) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return self.refuse(protocol, refusal),
        };
        let turn = self.script.turn(place.n, &place.user_text);
        let scripted = turn.map(|answer| Faults::from(&answer.faults)).unwrap_or_default();
        let faults = self.options.faults.clone().and(&scripted).and(&wanted);
        let body = body.cloned().unwrap_or_default();
        let mut faults = self.roll(faults, &body);
        let outcome = self.script.answer(place.n, &place.user_text);
        let (reply, refusal) = match outcome {
            Ok(reply) => (reply, None),
            Err(fault) => {
                let refusal = show_failure(protocol, &fault, &mut faults);
                (Reply { usage: fault.usage, ..Reply::default() }, refusal)
            }
        };
        let words = faults.to_string();
        let done = if let Some(refusal) = refusal {
            now(failed(protocol, &refusal))
        } else if faults.drop_percent.is_some() {
            Done::Dropped
        } else if faults.hang {
            Done::Silent
        } else {
            let written = write(protocol, &reply, &asked, &body);
            Done::Answer(Duration::from_millis(faults.delay_ms), deliver(protocol, &written, &faults))
        };
        (done, Some(Shown::Answered { n: place.n, user_text: place.user_text, faults: words }))
    }

    /// Checks everything about a request that is not the script's business.
    fn check(
        &self,
        protocol: Protocol,
        deployment: Option<&str>,
        head: &Parts,
        body: Option<&Bytes>,
    ) -> Checked<(Asked, Place, Faults)> {
        self.key(protocol, head)?;
        let wanted = wanted_faults(head)?;
        let Some(body) = body else {
            let max = self.options.body_bytes_max;
            return Err(Refusal::with_status(413, format!("Request exceeds the maximum size: more than {max} bytes")));
        };
        let kind = header(head, "content-type").unwrap_or_default();
        if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
            return Err(Refusal::bad(format!(
                "Unsupported content type: '{kind}'. This API method only accepts 'application/json' requests."
            )));
        }
        if protocol == Protocol::Anthropic && header(head, "anthropic-version").is_none() {
            return Err(Refusal::bad("anthropic-version: header is required"));
        }
        let body: Map<String, Value> = serde_json::from_slice(body)
            .map_err(|why| Refusal::bad(format!("The request body is no JSON object: {why}")))?;
        let asked = match protocol {
            Protocol::OpenAi => openai::check(&body, deployment)?,
            Protocol::Anthropic => anthropic::check(&body)?,
        };
        if !self.options.models.is_empty() && !self.options.models.contains(&asked.model) {
            let model = &asked.model;
            return Err(match protocol {
                Protocol::OpenAi => {
                    let why = format!("The model `{model}` does not exist or you do not have access to it.");
                    Refusal::with_status(404, why).code("model_not_found")
                }
                Protocol::Anthropic => Refusal::with_status(404, format!("model: {model}")),
            });
        }
        let messages = body.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let place = place(protocol, messages);
        Ok((asked, place, wanted))
    }

    fn key(&self, protocol: Protocol, head: &Parts) -> Checked {
        let Some(key) = &self.options.key else { return Ok(()) };
        let bearer = header(head, "authorization").and_then(|value| value.strip_prefix("Bearer "));
        let own = match protocol {
            Protocol::OpenAi => header(head, "api-key"),
            Protocol::Anthropic => header(head, "x-api-key"),
        };
        match (bearer.or(own), protocol) {
            (Some(given), _) if given == key => Ok(()),
            (None, Protocol::OpenAi) => {
                let why = "You didn't provide an API key. You need to provide your API key in an Authorization header using \
                           Bearer auth (i.e. Authorization: Bearer YOUR_KEY).";
                Err(Refusal::with_status(401, why))
            }
            (Some(_), Protocol::OpenAi) => {
                Err(Refusal::with_status(401, "Incorrect API key provided.").code("invalid_api_key"))
            }
            (None, Protocol::Anthropic) => Err(Refusal::with_status(401, "x-api-key header is required")),
            (Some(_), Protocol::Anthropic) => Err(Refusal::with_status(401, "invalid x-api-key")),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Nothing that is done under the lock can leave it half done.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The faults that this request sees: what `once`, `chance` and `drop` say is decided here.
    fn roll(&self, mut faults: Faults, body: &Bytes) -> Faults {
        let mut memory = self.memory();
        let chance = faults.chance_percent.take();
        let dropped = faults.drop_percent.take().is_some_and(|part| memory.dice.u8(0..100) < part);
        if chance.is_some_and(|part| memory.dice.u8(0..100) >= part) {
            faults = Faults { once: faults.once, ..Faults::default() };
        }
        faults.seed = 0;
        if dropped {
            faults.drop_percent = Some(100);
        }
        if faults.once && !faults.is_none() {
            if memory.shown.len() >= ONCE_MAX {
                memory.shown.clear();
            }
            if !memory.shown.insert(Sha256::digest(body).into()) {
                return Faults::default();
            }
        }
        faults
    }
}

fn wanted_faults(head: &Parts) -> Checked<Faults> {
    let mut faults = Faults::default();
    for words in header(head, "x-fake-fault").into_iter().chain(query(head, "fault")) {
        // The only characters of the words that a query may have to quote.
        let words = words.replace("%2C", ",").replace("%3D", "=").replace("%20", " ").replace("%25", "%");
        let more = words.parse().map_err(|why| Refusal::bad(format!("the fault that the request asks for: {why}")))?;
        faults = faults.and(&more);
    }
    Ok(faults)
}

/// How a server shows that a script's call fails: as a fault, or as an error.
fn show_failure(protocol: Protocol, fault: &Fault, faults: &mut Faults) -> Option<FailedCall> {
    let status = match (fault.status, fault.kind) {
        (Some(status), _) => status,
        (None, FaultKind::Network) => {
            faults.drop_percent = Some(100);
            return None;
        }
        (None, FaultKind::Timeout) => {
            faults.hang = true;
            return None;
        }
        (None, FaultKind::CutShort) => {
            faults.cut = Some(Cut::Half);
            return None;
        }
        (None, FaultKind::Malformed) => {
            faults.malformed = true;
            return None;
        }
        (None, FaultKind::Auth) => 401,
        (None, FaultKind::RateLimit) => 429,
        (None, FaultKind::Overloaded) if protocol == Protocol::Anthropic => 529,
        (None, FaultKind::Overloaded) => 503,
        (None, FaultKind::ContextLength | FaultKind::BadRequest | FaultKind::Config) => 400,
    };
    let refusal = match (fault.kind, protocol) {
        (FaultKind::ContextLength, Protocol::OpenAi) => {
            Refusal::with_status(status, &*fault.message).code("context_length_exceeded").at("messages")
        }
        (FaultKind::ContextLength, Protocol::Anthropic) => {
            Refusal::with_status(status, format!("prompt is too long: {}", fault.message))
        }
        _ => Refusal::with_status(status, &*fault.message),
    };
    let usually = matches!(status, 408 | 409 | 429 | 500..);
    Some(FailedCall {
        refusal,
        should_retry: (usually != fault.retryable).then_some(fault.retryable),
        retry_after_ms: fault.retry_after_ms,
    })
}

/// A call that fails with an error of the protocol.
struct FailedCall {
    refusal: Refusal,
    /// Said where the status alone would tell the client otherwise.
    should_retry: Option<bool>,
    retry_after_ms: Option<u64>,
}

fn failed(protocol: Protocol, call: &FailedCall) -> Response<Steps> {
    let mut response = refused(protocol, &call.refusal);
    let headers = response.headers_mut();
    if let Some(retry) = call.should_retry {
        headers.insert("x-should-retry", http::HeaderValue::from_static(if retry { "true" } else { "false" }));
    }
    if let Some(ms) = call.retry_after_ms {
        headers.insert("retry-after-ms", ms.into());
        headers.insert(http::header::RETRY_AFTER, ms.div_ceil(1000).into());
    }
    response
}

/// The answer in the bytes of the protocol. Its id follows from the request.
fn write(protocol: Protocol, reply: &Reply, asked: &Asked, body: &Bytes) -> Written {
    let usage = pieces::usage(reply, body.len());
    let digest = Sha256::digest(body);
    let id: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    match protocol {
        Protocol::OpenAi => openai::write(reply, &usage, asked, &id),
        Protocol::Anthropic => anthropic::write(reply, &usage, asked, &id),
    }
}
