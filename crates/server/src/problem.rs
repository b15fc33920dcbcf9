//! What is answered in place of a result: a problem document (RFC 9457) with a stable code, what was wrong and the way out.

use axum::response::{IntoResponse, Response};
use gesta_run::{AnswerError, FeedError};
use gesta_runtime::{AgentError, OpenError};
use gesta_store::StoreError;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::app::SetupError;

/// The media type of a problem document.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Why a request was not done. Nothing has run because of it, unless the detail says so.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(crate) struct Problem(Box<ProblemBody>);

/// Why a request was not done.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// `urn:gesta:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The status of the response.
    status: u16,
    /// The status in words.
    title: String,
    /// A stable word that programs match on; docs/errors.md lists them.
    code: &'static str,
    /// What was wrong with this request.
    detail: String,
    /// What to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    help: String,
    /// What belongs to the code: `run`, `open`, `call`.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    more: Map<String, Value>,
    #[serde(skip)]
    retry_after_s: Option<u32>,
}

impl Problem {
    /// A problem with what is wrong and what to do.
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self(Box::new(ProblemBody {
            kind: format!("urn:gesta:problem:{code}"),
            status: status.as_u16(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            code,
            detail: detail.into(),
            help: help.into(),
            more: Map::new(),
            retry_after_s: None,
        }))
    }

    /// The request itself is wrong.
    pub(crate) fn bad(code: &'static str, detail: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail, help)
    }

    /// There is no such thing.
    pub(crate) fn missing(code: &'static str, detail: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail, help)
    }

    /// It does not fit how things stand.
    pub(crate) fn conflict(code: &'static str, detail: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail, help)
    }

    /// There is too much to do; the same request may succeed later.
    pub(crate) fn busy(code: &'static str, detail: impl Into<String>, retry_after_s: u32) -> Self {
        let help = format!("try again in {retry_after_s} s");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail, help).retry_after(retry_after_s)
    }

    /// A fault of the server's own.
    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail, "look into the server's log")
    }

    /// With something a program can use.
    #[must_use]
    pub(crate) fn with(mut self, key: &str, value: impl Serialize) -> Self {
        self.0.more.insert(key.to_owned(), json!(value));
        self
    }

    /// With the number of seconds after which another try makes sense.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after_s = Some(seconds);
        self
    }

    /// The stable word.
    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// The status of its response.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// What was wrong.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// What belongs to its code.
    pub(crate) fn more(&self, key: &str) -> Option<&Value> {
        self.0.more.get(key)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM_JSON)], body).into_response();
        if let Some(seconds) = self.0.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<AgentError> for Problem {
    fn from(why: AgentError) -> Self {
        let said = why.to_string();
        match why {
            AgentError::Input(FeedError::InputTooLong { bytes, max }) => {
                let help = "send less, or raise `input_bytes_max` under [limits] of the agent";
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "input_too_long", said, help)
                    .with("bytes", bytes)
                    .with("bytes_max", max)
            }
            AgentError::Input(_) => Self::bad("input_empty", said, "send a text, a picture or a file in `input`"),
            AgentError::Busy { run } => {
                let help = "wait for that run, cancel it, or send `queue: true` to wait for your turn";
                Self::conflict("conversation_busy", said, help).with("run", run)
            }
            AgentError::Waiting { run, open } => {
                let help = "answer the open holds first: POST /v1/runs/{run}/answers";
                Self::conflict("waiting", said, help).with("run", run).with("open", open)
            }
            AgentError::Answers(why) => why.into(),
            AgentError::CannotGoOn { run, .. } => {
                Self::conflict("cannot_go_on", said, "GET /v1/runs/{run} tells how it stands").with("run", run)
            }
            AgentError::ConfigChanged { run, .. } => {
                Self::conflict("config_changed", said, "begin a new run").with("run", run)
            }
            AgentError::Store(why) => why.into(),
            AgentError::OfAnother { agent, .. } => {
                Self::conflict("conversation_of_another", said, "name another conversation").with("agent", agent)
            }
            AgentError::Document(_) => {
                Self::conflict("image_unusable", said, "look at it with `gesta document`, or delete the conversation")
            }
            AgentError::WorkingCopy { run, .. } => {
                let help = "a new message of its conversation closes the run without it";
                Self::conflict("image_unusable", said, help).with("run", run)
            }
            AgentError::Unopened { .. } => {
                tracing::error!("a document cannot be opened");
                let detail = "the agent's document cannot be opened here; nothing of the run has happened";
                Self::conflict("agent_unusable", detail, "`gesta check` on the agent's folder says why")
            }
            _ => {
                tracing::error!("an agent cannot be used; `gesta check` on its folder says why");
                Self::internal(said)
            }
        }
    }
}

impl From<AnswerError> for Problem {
    fn from(why: AnswerError) -> Self {
        let said = why.to_string();
        let again = "fetch the hold again and answer what it shows now";
        let unfit = StatusCode::UNPROCESSABLE_ENTITY;
        match why {
            AnswerError::UnknownCall { call, open } => {
                Self::missing("no_such_hold", said, "answer one of those in `open`")
                    .with("call", call)
                    .with("open", open)
            }
            AnswerError::RunEnded(_) => Self::conflict("run_ended", said, "begin a new run"),
            AnswerError::Binding { call, part } => {
                Self::conflict("binding_differs", said, again).with("call", call).with("part", part)
            }
            AnswerError::TooDeep { call } => {
                Self::new(unfit, "too_deep", said, "hand in something flatter").with("call", call)
            }
            AnswerError::Conflict { call } => {
                Self::conflict("conflict", said, "the first answer counts; look at the run").with("call", call)
            }
            AnswerError::NotAccepted { call, accepts, .. } => {
                Self::new(unfit, "not_accepted", said, format!("answer with {accepts}")).with("call", call)
            }
            AnswerError::NoReason { call } => {
                Self::new(unfit, "no_reason", said, "give a reason: the model reads it").with("call", call)
            }
            AnswerError::Arguments { call, issues } => {
                let help = "GET /v1/holds/{run}/{call} shows the schema in `parameters`";
                Self::new(unfit, "arguments_invalid", said, help).with("call", call).with("issues", issues)
            }
            AnswerError::Expired { call } => Self::conflict("hold_expired", said, "begin a new run").with("call", call),
            AnswerError::ToolGone { call, tool } => {
                let help = "bring the tool back and answer again, or send `force: true`";
                Self::conflict("tool_gone", said, help).with("call", call).with("tool", tool)
            }
            _ => Self::conflict("answer_refused", said, again),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(why: StoreError) -> Self {
        let said = why.to_string();
        let code = why.code();
        match why {
            StoreError::NoSuchRun { .. } => Self::missing(code, said, "GET /v1/runs lists those there are"),
            StoreError::ConversationBusy { run, .. } => {
                Self::conflict(code, said, "wait for that run, or cancel it").with("run", run)
            }
            StoreError::Leased { run, .. } => {
                Self::conflict(code, said, "try again in a few seconds").with("run", run).retry_after(5)
            }
            StoreError::RunExists { .. }
            | StoreError::Fenced { .. }
            | StoreError::Conflict { .. }
            | StoreError::HoldSettled { .. }
            | StoreError::DocumentConflict { .. } => Self::conflict(code, said, "read it again and look"),
            _ => {
                tracing::error!(why = file_of(&why), code, "the store failed");
                // The error's own text may name files of the server: that is for its log.
                let detail = format!("the store failed ({code})");
                let help = "look into the server's log";
                if why.is_passing() {
                    Self::busy(code, detail, 5)
                } else {
                    Self::new(StatusCode::INTERNAL_SERVER_ERROR, code, detail, help)
                }
            }
        }
    }
}

impl From<SetupError> for Problem {
    fn from(why: SetupError) -> Self {
        match why {
            SetupError::Agent { why, .. } => why.into(),
            other => Self::internal(other.to_string()),
        }
    }
}

/// What a failure of the store says of its files, for the log. Of a record that is damaged it would say whose it is.
fn file_of(why: &StoreError) -> Option<String> {
    let named = matches!(
        why,
        StoreError::Io { .. }
            | StoreError::DiskFull { .. }
            | StoreError::ReadOnly { .. }
            | StoreError::NoPermission { .. }
            | StoreError::Folder { .. }
            | StoreError::Locked { .. }
            | StoreError::Closed { .. }
    );
    named.then(|| why.to_string())
}

impl From<OpenError> for Problem {
    fn from(why: OpenError) -> Self {
        match why {
            OpenError::Agent(why) => why.into(),
            OpenError::Store(why) => why.into(),
            OpenError::NotAFolder { run } => {
                let detail = format!("run `{run}` was begun by a program and not from a folder");
                Self::conflict("not_a_folder", detail, "resume it in the program that began it").with("run", run)
            }
            other => {
                // What is wrong with a folder may quote it.
                let why = (!matches!(other, OpenError::Folder(_))).then(|| other.to_string());
                tracing::error!(why, "the agent of a run cannot be used");
                let detail = "the agent's model, network or secrets cannot be used here; the run still waits";
                Self::conflict("agent_unusable", detail, "look into the server's log, mend it and try again")
            }
        }
    }
}
