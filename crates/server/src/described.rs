//! The forms of answers as `/openapi.json` describes them. Nothing is made of these types: the tests check every answer
//! against them, so that they tell the truth.

#![allow(dead_code, reason = "they are read by the macro that describes them, and by nobody else")]

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

/// What an approval is bound to: it counts for exactly this and nothing else.
#[derive(ToSchema)]
#[schema(as = Binding)]
pub(crate) struct BindingBody {
    /// The run.
    run_id: String,
    /// The call.
    call_id: String,
    /// The tool.
    tool: String,
    /// SHA-256 over the tool's name, a zero byte and the exact arguments in canonical JSON.
    fingerprint: String,
    /// The hash of the configuration under which the run parked.
    config_version: String,
}

/// One call, or staged action, that waits for somebody outside.
#[derive(ToSchema)]
#[schema(as = Hold)]
pub(crate) struct HoldBody {
    /// The call's id.
    id: String,
    /// `call` or `action`.
    kind: HoldKind,
    /// The tool.
    name: String,
    /// The model's arguments, exactly.
    arguments: BTreeMap<String, Value>,
    /// Why it waits, where the decision said so.
    reason: Option<String>,
    /// The trip it was made on.
    trip: u32,
    /// Its place in the answer, from 0.
    index: u32,
    /// Which answers it takes.
    accepts: Accepts,
    /// When it runs out, in milliseconds since 1970, where it does.
    expires_at: Option<i64>,
    /// `undecided` after a crash in the middle of an approved call: only `result`, `error` or `outcome_unknown` help.
    state: HoldState,
    /// What an answer quotes.
    binding: BindingBody,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum HoldKind {
    Call,
    Action,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum HoldState {
    Open,
    Undecided,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum Accepts {
    Any,
    ApprovalOnly,
    External,
}

/// Whether a run goes on.
#[derive(ToSchema)]
#[schema(as = Status, rename_all = "snake_case")]
pub(crate) enum StatusBody {
    Open,
    Parked,
    Ended,
}

/// What went wrong.
#[derive(ToSchema)]
struct RunError {
    /// A stable word: the outcome.
    code: String,
    /// Its family.
    category: String,
    /// A sentence for people.
    message: String,
}

/// A call that has ended.
#[derive(ToSchema)]
struct CallRecord {
    /// The call.
    id: String,
    /// The tool.
    name: String,
    /// What it really ran with.
    arguments: Value,
    /// Whose arguments those are: `model`, `hook`, `approver`.
    arguments_by: String,
    /// The result, or the error's text.
    result: Value,
    /// It is an error.
    is_error: bool,
    /// How it ended; docs/errors.md lists the words.
    status: String,
    /// The trip.
    trip: u32,
    /// Its place in the answer, from 0.
    index: u32,
}

/// A run as it stands.
#[derive(ToSchema)]
#[schema(as = RunResult)]
pub(crate) struct ResultBody {
    /// Open, parked or ended.
    status: StatusBody,
    /// How it ended; `stopped_by_hook` while it is parked; nothing while it is open.
    outcome: Option<String>,
    /// The provider's own word for why the last answer stopped.
    finish_reason: String,
    /// What went wrong, where something did.
    error: Option<RunError>,
    /// The text of the last answer.
    text: String,
    /// The reply is blank.
    empty_reply: bool,
    /// The validated structured output.
    data: Value,
    /// Every call that has ended.
    tool_calls: Vec<CallRecord>,
    /// The holds that wait.
    deferred: Vec<HoldBody>,
    /// Every staged action, and what became of it.
    actions: Vec<BTreeMap<String, Value>>,
    /// Tokens of all model calls.
    usage: BTreeMap<String, u64>,
    /// What they cost in US dollars; nothing without a price.
    cost_usd: Option<f64>,
    /// Model calls that were answered.
    trips: u32,
    /// The messages of the run; calls carry the model's own arguments.
    transcript: Vec<BTreeMap<String, Value>>,
    /// What the contract saw and did.
    contract: BTreeMap<String, Value>,
    /// Run id, agent, versions and times.
    report: BTreeMap<String, Value>,
}

/// A run as it stands after answers.
#[derive(ToSchema)]
#[schema(as = Resumed)]
pub(crate) struct ResumedBody {
    /// The run.
    #[schema(inline)]
    #[serde(flatten)]
    result: ResultBody,
    /// Calls that had been answered like this before: for them nothing ran again.
    already_answered: Vec<String>,
}

/// What is known of a run without reading it.
#[derive(ToSchema)]
#[schema(as = RunHead)]
pub(crate) struct RunHeadBody {
    /// The run.
    run: String,
    /// The agent.
    agent: String,
    /// The conversation, where it belongs to one.
    conversation: Option<String>,
    /// Who is at the other end.
    contact: Option<String>,
    /// The hash of its configuration.
    config: String,
    /// Open, parked or ended.
    status: StatusBody,
    /// How it ended, once it has.
    outcome: Option<String>,
    /// It has ended and wants nothing more.
    closed: bool,
    /// How many events its log has.
    events: u64,
    /// When it began, in milliseconds since 1970.
    started_at: i64,
    /// The time of its last event.
    updated_at: i64,
    /// How often it was taken up.
    fence: u64,
    /// Who works on it now, where someone does.
    held_by: Option<BTreeMap<String, Value>>,
}

/// A hold that waits, and whose it is.
#[derive(ToSchema)]
#[schema(as = OpenHold)]
pub(crate) struct OpenHoldBody {
    /// The hold.
    hold: HoldBody,
    /// The agent.
    agent: String,
    /// The conversation, where the run belongs to one.
    conversation: Option<String>,
    /// Who is at the other end.
    contact: Option<String>,
    /// When it was opened, in milliseconds since 1970.
    opened_at: i64,
}

/// What is known of a conversation without reading its history.
#[derive(ToSchema)]
#[schema(as = ConversationHead)]
pub(crate) struct ConversationHeadBody {
    /// The conversation.
    conversation: String,
    /// The agent of its last run.
    agent: String,
    /// Who is at the other end.
    contact: Option<String>,
    /// How many turns its history has.
    turns: u64,
    /// The run that has it now: open, parked, or failed in a way that can go on.
    run: Option<String>,
    /// When something last changed in it, in milliseconds since 1970.
    updated_at: i64,
}

/// Something that somebody outside did, in its place in the chain.
#[derive(ToSchema)]
#[schema(as = AuditRecord)]
pub(crate) struct AuditBody {
    /// Its place, from 1, without gaps.
    seq: u64,
    /// The hash of the record before it; of the first, 64 zeros.
    previous: String,
    /// SHA-256 of this record.
    hash: String,
    /// When, in milliseconds since 1970.
    at: i64,
    /// The id of a key, or `local`.
    who: String,
    /// From which address.
    from: String,
    /// `approve`, `approve_edited`, `deny`, `result`, `error`, `outcome_unknown`, `cancel`, `erase`, `key_made`,
    /// `key_revoked`, `sign_in`, `sign_in_by_link`, `document_tool_` and what was done with it; or `refused: ` and the code
    /// of the problem, for the record before it.
    what: String,
    /// The run, conversation or key it is about.
    subject: String,
    /// The agent, where it is about one.
    agent: Option<String>,
    /// The call, where it is about one.
    call: Option<String>,
    /// The tool, where it is about a call.
    tool: Option<String>,
    /// The fingerprint of tool and arguments.
    fingerprint: Option<String>,
    /// The configuration that the answer was bound to.
    config: Option<String>,
}

/// One server-sent event.
#[derive(ToSchema)]
#[schema(as = StreamEvent)]
pub(crate) struct StreamEventBody {
    /// What happened.
    event: StreamEventName,
    /// Where it stands in the log, for `Last-Event-ID`; nothing where it is passing.
    id: Option<String>,
    /// A JSON object: `run`, and what belongs to the event.
    #[schema(content_media_type = "application/json")]
    data: String,
}

#[derive(ToSchema)]
enum StreamEventName {
    #[serde(rename = "run.started")]
    RunStarted,
    #[serde(rename = "trip.started")]
    TripStarted,
    #[serde(rename = "reply.delta")]
    ReplyDelta,
    #[serde(rename = "call.requested")]
    CallRequested,
    #[serde(rename = "call.decided")]
    CallDecided,
    #[serde(rename = "call.answered")]
    CallAnswered,
    #[serde(rename = "intervention.sent")]
    InterventionSent,
    #[serde(rename = "hold.opened")]
    HoldOpened,
    #[serde(rename = "hold.answered")]
    HoldAnswered,
    #[serde(rename = "reply.finished")]
    ReplyFinished,
    #[serde(rename = "run.parked")]
    RunParked,
    #[serde(rename = "run.ended")]
    RunEnded,
    #[serde(rename = "error")]
    Error,
}
