//! A server that keeps the runs, in the place of a data folder.

mod follow;

pub(crate) use follow::Begun;

use std::time::{Duration, Instant};

use clap::Args;
use gesta_model::transport::{Body, Outgoing, Response};
use gesta_model::{Timeouts, Transport, TransportSpec};
use gesta_run::{ConversationId, Functions, HoldAnswer, HoldReply, Plan, PlanSpec, Run, RunId, RunResult};
use gesta_store::{ConversationHead, OpenHold, RunFilter, RunHead, StoredRun};
use http::{HeaderMap, HeaderValue, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::stored::Shown;

/// How long an answer may take: a run that goes on is waited for.
const WHOLE_MS: u64 = 60 * 60 * 1_000;
const CONNECT_MS: u64 = 10_000;
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// How many runs are looked through for the beginning of an id.
const PAGES_MAX: usize = 100;

/// Where runs are looked for.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct At {
    /// Ask this server in the place of the data folder; GESTA_API_KEY holds the key to it
    #[arg(long, value_name = "URL", env = "GESTA_SERVER")]
    server: Option<String>,
}

/// A server.
#[derive(Clone)]
pub(crate) struct Remote {
    /// Its address.
    pub(crate) base: String,
    headers: HeaderMap,
    transport: Transport,
    /// What a later command needs to find it again.
    pub(crate) flag: String,
}

#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Log {
    head: RunHead,
    plan: PlanSpec,
    events: Vec<gesta_run::Event>,
}

#[derive(Deserialize)]
struct Served {
    name: String,
    model: String,
}

/// A run as it stands after answers.
#[derive(Deserialize, serde::Serialize)]
pub(crate) struct Answered {
    #[serde(flatten)]
    pub(crate) result: RunResult,
    pub(crate) already_answered: Vec<gesta_run::CallId>,
}

/// Problems that programs know by their words.
const CODES: [&str; 23] = [
    "unauthorized",
    "not_permitted",
    "no_such_run",
    "no_such_hold",
    "run_ended",
    "hold_expired",
    "conflict",
    "tool_gone",
    "binding_differs",
    "not_accepted",
    "no_reason",
    "arguments_invalid",
    "too_deep",
    "cannot_go_on",
    "run_leased",
    "rate_exceeded",
    "overloaded",
    "stopping",
    "left",
    "request_in_progress",
    "conversation_busy",
    "no_such_agent",
    "no_such_conversation",
];

/// The word for a server that cannot be reached, or that goes away in the middle of an answer.
const AWAY: &str = "server_away";
/// Problems of a moment: the same request is taken later.
const PASSING: [&str; 5] = [AWAY, "stopping", "left", "overloaded", "request_in_progress"];
/// How long a server that goes away is waited for, and how long between two tries.
const AWAY_MAX: Duration = Duration::from_secs(120);
const AGAIN_AFTER: Duration = Duration::from_millis(250);

impl Remote {
    /// The server that the command line or the environment names.
    ///
    /// # Errors
    /// Its address or its key cannot be used.
    pub(crate) fn of(at: &At) -> Result<Option<Self>, Failure> {
        let Some(server) = at.server.as_deref().map(str::trim).filter(|it| !it.is_empty()) else { return Ok(None) };
        if !server.starts_with("http://") && !server.starts_with("https://") {
            return Err(Failure::usage(
                format!("{server} is no server"),
                "write https://HOST or http://127.0.0.1:7450",
            ));
        }
        let environment = Environment::default();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        if let Some(key) = environment.get("GESTA_API_KEY").filter(|key| !key.trim().is_empty()) {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.trim()));
            let mut value =
                value.map_err(|_| Failure::usage("GESTA_API_KEY holds no key", "set it to one of `gesta keys new`"))?;
            value.set_sensitive(true);
            headers.insert("authorization", value);
        }
        let lookup = environment.lookup();
        let transport = Transport::new(TransportSpec { lookup: Some(&*lookup), ..TransportSpec::default() });
        let base = server.trim_end_matches('/').to_owned();
        let flag = format!(" --server {}", crate::shell::quoted(&base));
        Ok(Some(Self { base, headers, transport, flag }))
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<Value>) -> Result<T, Failure> {
        let response = self.open(self.request(method, path, body)?).await?;
        let body = response.whole().await.map_err(|why| self.off(why))?;
        gesta_run::json::read_stored(&body).map_err(|why| self.off(format!("its answer cannot be read: {why}")))
    }

    fn off(&self, why: impl std::fmt::Display) -> Failure {
        let help = "start it with `gesta serve FOLDER`, or name another one with --server";
        Failure::new(Exit::Other, format!("{} does not answer: {why}", self.base), help).coded(AWAY)
    }

    fn request(&self, method: Method, path: &str, body: Option<Value>) -> Result<Outgoing, Failure> {
        let uri = format!("{}{path}", self.base).parse().map_err(|why| self.off(why))?;
        let body = body.map(|it| it.to_string()).unwrap_or_default();
        Ok(Outgoing { method, uri, headers: self.headers.clone(), body: body.into() })
    }

    /// Sends a request and waits until the answer begins.
    async fn open(&self, request: Outgoing) -> Result<Body, Failure> {
        let timeouts =
            Timeouts { connect_ms: CONNECT_MS, first_byte_ms: WHOLE_MS, idle_ms: WHOLE_MS, whole_ms: WHOLE_MS };
        let sent = self.transport.open(&request, timeouts, ANSWER_BYTES_MAX).await;
        let Response { status, body, .. } = sent.map_err(|why| self.off(why))?;
        if status.is_success() {
            return Ok(body);
        }
        Err(refused(status, &body.whole().await.map_err(|why| self.off(why))?))
    }

    /// Does what can be repeated until the server takes it, as long as it is only away for a moment.
    async fn patiently<T, F: Future<Output = Result<T, Failure>>>(&self, ask: impl Fn() -> F) -> Result<T, Failure> {
        let since = Instant::now();
        loop {
            match ask().await {
                Err(why) if PASSING.contains(&why.code) && since.elapsed() < AWAY_MAX => {
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
                other => return other,
            }
        }
    }

    /// Runs, the newest first, as many as the filter has room for.
    pub(crate) async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunHead>, Failure> {
        let status = filter.status.and_then(|it| json!(it).as_str().map(str::to_owned));
        let outcome = filter.outcome.map(gesta_run::Outcome::as_str);
        let (mut runs, mut after): (Vec<RunHead>, Option<String>) = (Vec::new(), None);
        let room = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        // A page may have fewer than were asked for, where the key is not for all of them.
        for _ in 0..PAGES_MAX {
            let query = query(&[
                ("agent", filter.agent.as_deref()),
                ("status", status.as_deref()),
                ("outcome", outcome),
                ("limit", Some(&(room - runs.len()).to_string())),
                ("after", after.as_deref()),
            ]);
            let page: Page<RunHead> = self.ask(Method::GET, &format!("/v1/runs?{query}"), None).await?;
            runs.extend(page.items);
            after = page.next;
            if after.is_none() || runs.len() >= room {
                break;
            }
        }
        Ok(runs)
    }

    /// The holds that wait, the oldest first.
    pub(crate) async fn holds(&self, agent: Option<&str>, tool: Option<&str>) -> Result<Vec<OpenHold>, Failure> {
        let (mut holds, mut after) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let query =
                query(&[("agent", agent), ("tool", tool), ("limit", Some("1000")), ("after", after.as_deref())]);
            let page: Page<OpenHold> = self.ask(Method::GET, &format!("/v1/holds?{query}"), None).await?;
            holds.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(holds)
    }

    /// The run that is named: by its whole id, the beginning or the end of one, or `last`.
    async fn find(&self, named: &str) -> Result<RunId, Failure> {
        let none = || {
            Failure::usage(
                format!("there is no run `{named}`"),
                format!("`gesta runs{}` lists those there are", self.flag),
            )
        };
        if named.len() >= 36 {
            return Ok(RunId::new(named));
        }
        let mut after: Option<String> = None;
        let mut found: Vec<RunId> = Vec::new();
        for _ in 0..PAGES_MAX {
            let limit = if named == "last" { "1" } else { "1000" };
            let query = query(&[("limit", Some(limit)), ("after", after.as_deref())]);
            let page: Page<RunHead> = self.ask(Method::GET, &format!("/v1/runs?{query}"), None).await?;
            let fits = |id: &str| named == "last" || id.starts_with(named) || id.ends_with(named);
            found.extend(page.items.into_iter().map(|head| head.run).filter(|run| fits(run.as_str())));
            after = page.next;
            if after.is_none() || named == "last" {
                break;
            }
        }
        match found.len() {
            0 => Err(none()),
            1 => found.pop().ok_or_else(none),
            several => Err(Failure::usage(format!("{several} runs are named by `{named}`"), "write more of the id")),
        }
    }

    /// A run that is named, replayed from its log.
    pub(crate) async fn read(&self, named: &str) -> Result<Shown, Failure> {
        self.log(&self.find(named).await?).await
    }

    async fn log(&self, run: &RunId) -> Result<Shown, Failure> {
        let log: Log = self.ask(Method::GET, &format!("/v1/runs/{}/log", encoded(run.as_str())), None).await?;
        let strange = |why: gesta_run::PlanError| {
            Failure::new(
                Exit::Other,
                format!("its plan cannot be read: {why}"),
                "use the program of the server's version",
            )
        };
        let plan = Plan::new(log.plan, Functions::default()).map_err(strange)?;
        let run = Run::replay(plan, &log.events);
        Ok(Shown { stored: StoredRun { head: log.head, events: log.events }, run })
    }

    /// The model of an agent that is served there.
    ///
    /// # Errors
    /// It is not served there.
    pub(crate) async fn model_of(&self, agent: &str) -> Result<String, Failure> {
        let page: Page<Served> = self.ask(Method::GET, "/v1/agents", None).await?;
        if let Some(served) = page.items.iter().find(|it| it.name == agent) {
            return Ok(served.model.clone());
        }
        let names: Vec<&str> = page.items.iter().map(|it| it.name.as_str()).collect();
        let help = format!("agents there: {}", names.join(", "));
        Err(Failure::usage(format!("{} serves no agent `{agent}`", self.base), help))
    }

    /// A conversation, where anything was said in it.
    pub(crate) async fn conversation(&self, name: &ConversationId) -> Result<Option<ConversationHead>, Failure> {
        let path = format!("/v1/conversations/{}?turns=1", encoded(name.as_str()));
        match self.ask(Method::GET, &path, None).await {
            Err(why) if why.code == "no_such_conversation" => Ok(None),
            other => other.map(Some),
        }
    }

    /// Answers holds, or goes on with a run that can.
    pub(crate) async fn answer(
        &self,
        run: &RunId,
        answers: &[HoldAnswer],
        trips_max: Option<u32>,
        force: bool,
    ) -> Result<Answered, Failure> {
        let answers: Vec<Value> = answers.iter().map(wire).collect();
        let body = json!({ "answers": answers, "trips_max": trips_max, "force": force });
        self.ask(Method::POST, &format!("/v1/runs/{}/answers", encoded(run.as_str())), Some(body)).await
    }
}

/// An answer as the server takes it.
fn wire(answer: &HoldAnswer) -> Value {
    let mut said = match &answer.answer {
        HoldReply::Approve { arguments: None } => json!({ "approve": true }),
        HoldReply::Approve { arguments: Some(arguments) } => json!({ "approve": true, "arguments": arguments }),
        HoldReply::Deny { reason } => json!({ "deny": reason }),
        HoldReply::Result { value } => json!({ "result": value }),
        HoldReply::Error { text } => json!({ "error": text }),
        HoldReply::OutcomeUnknown => json!({ "outcome_unknown": true }),
    };
    said["binding"] = json!(answer.binding);
    said
}

/// What the server says in place of a result.
fn refused(status: http::StatusCode, body: &[u8]) -> Failure {
    let problem: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |field: &str| problem.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (detail, help, code) = (text("detail"), text("help"), text("code"));
    let message = if detail.is_empty() { format!("the server answered {status}") } else { detail };
    let exit = if status.is_client_error() && status != http::StatusCode::CONFLICT { Exit::Usage } else { Exit::Other };
    let known = CODES.into_iter().find(|it| *it == code).unwrap_or("refused");
    Failure::new(exit, message, help).coded(known)
}

fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded((*value)?))));
    given.collect::<Vec<_>>().join("&")
}

/// Percent-encoded, for paths and queries.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let each = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(each).collect()
}
