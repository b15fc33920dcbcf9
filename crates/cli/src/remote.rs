//! A server that keeps the runs, in the place of a data folder.

use clap::Args;
use gesta_model::transport::Outgoing;
use gesta_model::{Timeouts, Transport, TransportSpec};
use gesta_run::{Functions, HoldAnswer, HoldReply, Plan, PlanSpec, Run, RunId, RunResult, Status};
use gesta_store::{OpenHold, RunHead, StoredRun};
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
pub(crate) struct Remote {
    base: String,
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

/// A run as it stands after answers.
#[derive(Deserialize, serde::Serialize)]
pub(crate) struct Answered {
    #[serde(flatten)]
    pub(crate) result: RunResult,
    pub(crate) already_answered: Vec<gesta_run::CallId>,
}

/// Problems that programs know by their words.
const CODES: [&str; 18] = [
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
];

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
        let off = |why: String| {
            let help = "start it with `gesta serve FOLDER`, or name another one with --server";
            Failure::new(Exit::Other, format!("{} does not answer: {why}", self.base), help)
        };
        let uri = format!("{}{path}", self.base).parse().map_err(|why| off(format!("{why}")))?;
        let body = body.map(|it| it.to_string()).unwrap_or_default();
        let request = Outgoing { method, uri, headers: self.headers.clone(), body: body.into() };
        let timeouts =
            Timeouts { connect_ms: CONNECT_MS, first_byte_ms: WHOLE_MS, idle_ms: WHOLE_MS, whole_ms: WHOLE_MS };
        let received = self.transport.send(&request, timeouts, ANSWER_BYTES_MAX).await;
        let received = received.map_err(|why| off(why.to_string()))?;
        if !received.status.is_success() {
            return Err(refused(received.status, &received.body));
        }
        gesta_run::json::read_stored(&received.body).map_err(|why| off(format!("its answer cannot be read: {why}")))
    }

    /// Runs, the newest first.
    pub(crate) async fn runs(
        &self,
        agent: Option<&str>,
        status: Option<Status>,
        limit: u32,
    ) -> Result<Vec<RunHead>, Failure> {
        let status = status.and_then(|it| json!(it).as_str().map(str::to_owned));
        let query = query(&[("agent", agent), ("status", status.as_deref()), ("limit", Some(&limit.to_string()))]);
        Ok(self.ask::<Page<RunHead>>(Method::GET, &format!("/v1/runs?{query}"), None).await?.items)
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

    /// A run, replayed from its log.
    pub(crate) async fn read(&self, named: &str) -> Result<Shown, Failure> {
        let run = self.find(named).await?;
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
