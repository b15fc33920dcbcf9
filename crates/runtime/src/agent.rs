//! An agent: a plan with bodies. Stateless: every run has its own counters, messages and state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gesta_model::Model;
use gesta_run::{ContactId, ConversationId, HoldAnswer, Part, Plan, RunId, RunResult, TraceParent};
use gesta_store::Store;
use gesta_telemetry::Traces;
use serde_json::Value;

use crate::builder::AgentBuilder;
use crate::cancel::Cancel;
use crate::clock::Clock;
use crate::document::Documents;
use crate::error::AgentError;
use crate::history::HistoryLimits;
use crate::hook::{Backstop, Hook};
use crate::progress::Listener;
use crate::stream::TurnStream;
use crate::tool::ToolBody;
use crate::{resume, turn};

/// An agent, ready to run. Cheap to clone and to share.
#[derive(Clone)]
pub struct Agent(pub(crate) Arc<Parts>);

/// Everything a driver needs of an agent.
pub(crate) struct Parts {
    pub(crate) plan: Arc<Plan>,
    /// The plan's instructions with what the runtime adds; what the model is sent as system text.
    pub(crate) system: String,
    /// The same with the text on how to write a tool, for trips that offer `add_tool`.
    pub(crate) system_adding: String,
    pub(crate) model: Arc<dyn Model>,
    /// The model without its provider's name.
    pub(crate) model_name: String,
    pub(crate) tools: BTreeMap<String, Arc<dyn ToolBody>>,
    /// The agent's document.
    pub(crate) documents: Option<Arc<Documents>>,
    /// Bodies of grants, by full name.
    pub(crate) grants: BTreeMap<String, Arc<dyn ToolBody>>,
    pub(crate) hook: Option<Arc<dyn Hook>>,
    pub(crate) backstops: Vec<Arc<dyn Backstop>>,
    pub(crate) store: Arc<dyn Store>,
    /// The store was configured: every run is written down as it goes.
    pub(crate) stored: bool,
    /// The folder that the agent was read from, where it was.
    pub(crate) folder: Option<Value>,
    pub(crate) snapshot_stored: AtomicBool,
    pub(crate) history: HistoryLimits,
    pub(crate) clock: Clock,
    pub(crate) zone: jiff::tz::TimeZone,
    pub(crate) stream: bool,
    pub(crate) wire: bool,
    pub(crate) secrets: Option<Arc<gesta_store::Secrets>>,
}

impl Parts {
    /// What is kept of the agent with its runs, so that they can go on with what they began with.
    pub(crate) fn snapshot(&self) -> Value {
        serde_json::json!({
            "plan": self.plan.spec,
            "signature": self.plan.signature(),
            "folder": self.folder,
        })
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("plan", &self.0.plan.spec.agent).finish_non_exhaustive()
    }
}

/// What a turn begins with. A text alone will do: `agent.run("Hello")`.
#[derive(Clone, Default)]
pub struct Ask {
    /// What was said.
    pub input: Vec<Part>,
    /// The conversation it belongs to; without one the turn has no history.
    pub conversation: Option<ConversationId>,
    /// Who is at the other end.
    pub contact: Option<ContactId>,
    /// The run's name; a time-ordered UUID is made without one.
    pub run: Option<RunId>,
    /// Waits for the conversation's turn while another run has it, instead of being refused.
    pub queue: bool,
    /// Ends the turn from outside.
    pub cancel: Cancel,
    /// Is told what happens meanwhile.
    pub listener: Option<Listener>,
    /// The trace that the turn belongs to. It is kept with the run, so that whoever goes on with it stays in that trace.
    pub trace: Option<TraceParent>,
    /// Where the turn's spans go.
    pub traces: Option<Traces>,
}

impl<T: Into<String>> From<T> for Ask {
    fn from(text: T) -> Self {
        Self { input: vec![Part::text(text)], ..Self::default() }
    }
}

/// What a run that was left goes on with.
#[derive(Clone, Default)]
pub struct Resume {
    /// Answers to its holds. Each quotes the binding of its hold.
    pub answers: Vec<HoldAnswer>,
    /// A higher limit of trips, for a run that ended for want of them.
    pub trips_max: Option<u32>,
    /// A held call whose tool is gone becomes an error for the model instead of an error for the caller.
    pub force: bool,
    /// Ends the turn from outside.
    pub cancel: Cancel,
    /// Is told what happens meanwhile.
    pub listener: Option<Listener>,
    /// The trace of whoever makes it go on: the run stays in its own, and names this one.
    pub trace: Option<TraceParent>,
    /// Where spans go.
    pub traces: Option<Traces>,
}

/// What came of resuming.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Resumed {
    /// The run as it stands now.
    #[serde(flatten)]
    pub result: RunResult,
    /// Answers that had been given before: they ran nothing.
    pub already_answered: Vec<gesta_run::CallId>,
}

impl Agent {
    /// Begins an agent.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }

    /// Runs one turn to its end, or until it is parked.
    ///
    /// # Errors
    /// Only what keeps a run from beginning; how it ends is in the result.
    pub async fn run(&self, ask: impl Into<Ask>) -> Result<RunResult, AgentError> {
        turn::run(&self.0, ask.into()).await.map(Arc::unwrap_or_clone)
    }

    /// Runs one turn and hands out what happens as it happens. The log of a streamed run equals that of a plain one.
    pub fn stream(&self, ask: impl Into<Ask>) -> TurnStream {
        TurnStream::new(self.clone(), ask.into())
    }

    /// Goes on with a run: answers its holds, gives it more trips, repeats a failed model call, or takes it up after a
    /// crash. A run may be resumed in another process, days later.
    ///
    /// # Errors
    /// The answers are refused, or the run cannot go on; nothing has run then.
    pub async fn resume(&self, run: &RunId, resume: Resume) -> Result<Resumed, AgentError> {
        resume::resume(&self.0, run, resume).await
    }

    /// The run as it stands, without doing anything.
    ///
    /// # Errors
    /// It is not in the store, or cannot be read.
    pub async fn look(&self, run: &RunId) -> Result<RunResult, AgentError> {
        Ok(resume::load(&self.0, run).await?.0.result())
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.0.plan
    }

    /// Where its runs are kept.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }
}
