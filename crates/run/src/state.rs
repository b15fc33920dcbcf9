//! What a run knows: the fold of its events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::call::{ArgumentsBy, CallEnd, CallRecord, GrantRecord};
use crate::grant::GrantCall;
use crate::hold::HoldReply;
use crate::id::CallId;
use crate::input::{Attempt, Opening};
use crate::intervention::{Intervention, InterventionKind};
use crate::json::Object;
use crate::message::{Block, BlockKind, Message};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::reply::Usage;
use crate::time::Timestamp;
use crate::tool::{Tool, ToolList};

#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) opening: Option<Opening>,
    pub(crate) opened_at: Timestamp,
    pub(crate) last_at: Timestamp,
    pub(crate) intent: Option<u32>,
    pub(crate) phase: Phase,
    /// Answers of the model so far; the number of the trip that comes next.
    pub(crate) trips: u32,
    pub(crate) trips_max: u32,
    /// How often the model call of the trip that comes next was resumed after a failure.
    pub(crate) attempt: u32,
    /// Model calls of the run that failed for good.
    pub(crate) model_failures: u32,
    pub(crate) tools: Arc<ToolList>,
    pub(crate) offered_for: Option<u32>,
    pub(crate) messages: Vec<Message>,
    pub(crate) now: String,
    pub(crate) records: Vec<CallRecord>,
    pub(crate) call_ids: BTreeSet<CallId>,
    pub(crate) usage: Usage,
    pub(crate) finish_reason: String,
    pub(crate) text: Arc<str>,
    pub(crate) acted: BTreeSet<String>,
    pub(crate) denied: BTreeSet<String>,
    pub(crate) outstanding: Vec<Refusal>,
    pub(crate) retries_used: u32,
    pub(crate) reprompts_used: u32,
    pub(crate) backstops_ran: BTreeSet<usize>,
    pub(crate) shared: Option<Value>,
    pub(crate) interventions: Vec<Intervention>,
    /// What caused the trip that comes next.
    pub(crate) label: InputLabel,
    pub(crate) labels: Vec<InputLabel>,
    /// What was said to each hold, in order: an undecided one is answered a second time.
    pub(crate) answered_holds: BTreeMap<CallId, Vec<HoldReply>>,
    pub(crate) parked_since: Option<Timestamp>,
    pub(crate) parked_ms: u64,
    pub(crate) stop: Option<(Outcome, String)>,
    pub(crate) ended: Option<Ended>,
    pub(crate) delivered: Option<String>,
    pub(crate) settled: bool,
    pub(crate) actions: Vec<Action>,
}

/// A refusal that no later success of its tool has cleared.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Refusal {
    /// The tool.
    pub tool: String,
    /// Why it refused.
    pub reason: String,
}

/// What caused a trip (`spec/contract.md`, 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum InputLabel {
    Input,
    ToolResults,
    Backstop,
    ToolRefusal,
    ActWhenAsked,
    Resume,
}

#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
    pub(crate) at: Timestamp,
}

#[derive(Debug, Clone)]
pub(crate) enum Phase {
    New,
    /// Before-backstops are being looked at.
    Before(Watch),
    /// A model call is due, as soon as the tools are known.
    Ready,
    /// The calls of an answer are being decided and run.
    Batch(Box<Batch>),
    /// An answer that would end the run is at the gate.
    Gate(Box<Gate>),
    /// Nothing is left but to end like this.
    Final(Outcome, String),
    Ended,
}

/// How far the backstops of one phase have come.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    /// Their places in the plan, those that have run left out.
    pub(crate) queue: Vec<usize>,
    pub(crate) next: usize,
    pub(crate) stage: WatchStage,
    pub(crate) since: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WatchStage {
    Detecting,
    Running,
    /// It has run, or its `detect` failed; what follows is one intervention.
    Done {
        prompt: Option<String>,
        error: Option<String>,
        duration_ms: u64,
    },
}

impl Watch {
    pub(crate) fn new(queue: Vec<usize>, since: Timestamp) -> Self {
        Self { queue, next: 0, stage: WatchStage::Detecting, since }
    }

    pub(crate) fn current(&self) -> Option<usize> {
        self.queue.get(self.next).copied()
    }

    pub(crate) fn advance(&mut self, at: Timestamp) {
        self.next += 1;
        self.stage = WatchStage::Detecting;
        self.since = at;
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) trip: u32,
    pub(crate) text: Arc<str>,
    /// The answer's blocks while they are not yet in the transcript.
    pub(crate) blocks: Option<Vec<Block>>,
    pub(crate) watch: Watch,
    pub(crate) seen: BTreeSet<InterventionKind>,
}

#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) trip: u32,
    pub(crate) blocks: Vec<Block>,
    pub(crate) calls: Vec<CallState>,
    pub(crate) was_parked: bool,
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// Its decision is wanted.
    Undecided,
    /// It may run and waits for a place.
    Allowed,
    /// The decision deferred it; its hold is about to be opened.
    Deferred,
    /// It waits for someone outside.
    Held,
    /// Its body runs.
    Executing,
    /// Its body was running when the process died, and someone has to say what came of it.
    Undecidable,
    /// It ended.
    Ended(CallEnd),
}

/// One call of the answer that is being worked on.
#[derive(Debug, Clone)]
pub struct CallState {
    /// The run's id of the call.
    pub id: CallId,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them.
    pub raw_arguments: Arc<str>,
    /// The arguments as the model meant them; empty where they could not be read.
    pub model_arguments: Arguments,
    /// The arguments to run with.
    pub arguments: Arguments,
    /// Whose they are.
    pub arguments_by: ArgumentsBy,
    /// The trip it was made on.
    pub trip: u32,
    /// Its place in the answer, from 0.
    pub index: u32,
    /// It was found in text.
    pub recovered: bool,
    /// How far it has come.
    pub stage: Stage,
    /// The tool, where one of that name was offered.
    pub tool: Option<Arc<Tool>>,
    /// The arguments are a JSON object as the model wrote them.
    pub(crate) sound: bool,
    /// When it came to its stage.
    pub(crate) since: Timestamp,
    pub(crate) hold_reason: Option<String>,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) held: bool,
    pub(crate) approved: Option<String>,
    /// The grants it asked for, in order.
    pub(crate) grants: Vec<GrantCall>,
}

/// A staged action: written down during the turn, performed after delivery, once.
#[derive(Debug, Clone)]
pub(crate) struct Action {
    pub(crate) call: CallId,
    pub(crate) tool: String,
    pub(crate) arguments: Arguments,
    pub(crate) arguments_by: ArgumentsBy,
    pub(crate) trip: u32,
    pub(crate) index: u32,
    pub(crate) stage: ActionStage,
    pub(crate) expires_at: Option<Timestamp>,
}

/// How far a staged action has come.
#[derive(Debug, Clone, PartialEq)]
pub enum ActionStage {
    /// It waits for a person, and for delivery.
    Held,
    /// It waits for delivery.
    Staged,
    /// Its single attempt has begun.
    Attempting,
    /// Its single attempt had begun when the process died.
    Lost,
    /// Its single attempt was made.
    Settled(Attempt),
    /// It will not be performed.
    Discarded(String),
}

impl State {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            opening: None,
            opened_at: Timestamp::default(),
            last_at: Timestamp::default(),
            intent: None,
            phase: Phase::New,
            trips: 0,
            trips_max: plan.spec.limits.trips_max,
            attempt: 0,
            model_failures: 0,
            tools: plan.tools.clone(),
            offered_for: None,
            messages: Vec::new(),
            now: String::new(),
            records: Vec::new(),
            call_ids: BTreeSet::new(),
            usage: Usage::default(),
            finish_reason: String::new(),
            text: Arc::default(),
            acted: BTreeSet::new(),
            denied: BTreeSet::new(),
            outstanding: Vec::new(),
            retries_used: 0,
            reprompts_used: 0,
            backstops_ran: BTreeSet::new(),
            shared: None,
            interventions: Vec::new(),
            label: InputLabel::Input,
            labels: Vec::new(),
            answered_holds: BTreeMap::new(),
            parked_since: None,
            parked_ms: 0,
            stop: None,
            ended: None,
            delivered: None,
            settled: false,
            actions: Vec::new(),
        }
    }

    pub(crate) fn batch(&self) -> Option<&Batch> {
        let Phase::Batch(batch) = &self.phase else { return None };
        Some(batch)
    }

    pub(crate) fn call(&self, id: &CallId) -> Option<&CallState> {
        self.batch()?.calls.iter().find(|call| call.id == *id)
    }

    pub(crate) fn call_mut(&mut self, id: &CallId) -> Option<&mut CallState> {
        let Phase::Batch(batch) = &mut self.phase else { return None };
        batch.calls.iter_mut().find(|call| call.id == *id)
    }

    /// Every call of the batch has been decided: holds are open, bodies may run.
    pub(crate) fn parked(&self) -> bool {
        let Some(batch) = self.batch() else { return false };
        self.stop.is_none() && batch.calls.iter().any(CallState::waits) && !batch.calls.iter().any(CallState::pending)
    }

    pub(crate) fn trip_left(&self) -> bool {
        self.trips < self.trips_max
    }

    /// The tools the next trip offers: none where the profile's last trip has to answer.
    pub(crate) fn next_trip_has_tools(&self, plan: &Plan) -> bool {
        plan.spec.tools_on_last_trip || self.trips + 1 < self.trips_max
    }

    /// Milliseconds since the start, time spent parked left out.
    pub(crate) fn elapsed_ms(&self, at: Timestamp) -> u64 {
        let until = self.parked_since.unwrap_or(at);
        until.since_ms(self.opened_at).saturating_sub(self.parked_ms)
    }
}

impl CallState {
    /// The grants it asked for, in order, where it is a document's.
    pub fn grants(&self) -> &[GrantCall] {
        &self.grants
    }

    /// The status of the call, once it has ended.
    pub fn end(&self) -> Option<&CallEnd> {
        let Stage::Ended(end) = &self.stage else { return None };
        Some(end)
    }

    /// Someone outside has to speak.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.stage, Stage::Held | Stage::Undecidable)
    }

    /// Not yet decided, or its hold not yet opened.
    fn pending(&self) -> bool {
        matches!(self.stage, Stage::Undecided | Stage::Deferred)
    }

    pub(crate) fn record(&self) -> Option<CallRecord> {
        let end = self.end()?;
        Some(self.record_with(end))
    }

    /// As [`CallState::record`], when the call is not needed any more.
    pub(crate) fn into_record(self) -> Option<CallRecord> {
        let grants = self.grant_records();
        let Stage::Ended(end) = self.stage else { return None };
        let by_model = end.status.never_began() || self.arguments_by == ArgumentsBy::Model;
        // The other goes first: what nobody else has is moved.
        let arguments = if by_model {
            drop(self.arguments);
            self.model_arguments
        } else {
            self.arguments
        };
        Some(CallRecord {
            id: self.id,
            name: self.name,
            arguments: Value::Object(arguments.into_object()),
            arguments_by: if by_model { ArgumentsBy::Model } else { self.arguments_by },
            result: end.result,
            is_error: end.is_error,
            status: end.status,
            trip: self.trip,
            index: self.index,
            recovered: self.recovered,
            grants,
        })
    }

    pub(crate) fn record_with(&self, end: &CallEnd) -> CallRecord {
        let arguments_by = if end.status.never_began() { ArgumentsBy::Model } else { self.arguments_by };
        let by_model = arguments_by == ArgumentsBy::Model;
        let arguments = if by_model { &self.model_arguments } else { &self.arguments };
        CallRecord {
            id: self.id.clone(),
            name: self.name.clone(),
            arguments: Value::Object(Object::clone(arguments)),
            arguments_by,
            result: end.result.clone(),
            is_error: end.is_error,
            status: end.status,
            trip: self.trip,
            index: self.index,
            recovered: self.recovered,
            grants: self.grant_records(),
        }
    }

    fn grant_records(&self) -> Vec<GrantRecord> {
        let ended = |(n, grant): (usize, &GrantCall)| {
            let end = grant.end()?;
            let arguments = if end.began() { &grant.arguments } else { &grant.asked };
            Some(GrantRecord {
                id: CallId::new(format!("{}/{n}", self.id)),
                name: grant.name.clone(),
                arguments: Value::Object(arguments.clone()),
                result: end.result.clone(),
                is_error: end.is_error,
                status: end.status,
            })
        };
        self.grants.iter().enumerate().filter_map(ended).collect()
    }
}

/// The text of an answer, without its calls and thinking.
pub(crate) fn has_content(blocks: &[Block]) -> bool {
    blocks.iter().any(|block| match &block.kind {
        BlockKind::Text(text) => !text.trim().is_empty(),
        BlockKind::Thinking(_) | BlockKind::Other => block.raw.is_some(),
        BlockKind::Call(_) => true,
    })
}
