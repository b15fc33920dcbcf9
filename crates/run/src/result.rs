//! What a run hands back: the same object for the library, the terminal and HTTP (`spec/contract.md`, 2.10).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{ArgumentsBy, CallRecord};
use crate::hold::Hold;
use crate::id::{CallId, RunId};
use crate::input::Attempt;
use crate::intervention::{Intervention, InterventionKind, InterventionOutcome};
use crate::json::Object;
use crate::message::Message;
use crate::outcome::{Outcome, RunError, Status};
use crate::plan::Prices;
use crate::reply::Usage;
use crate::rules::act;
use crate::run::Run;
use crate::state::{Action, ActionStage, InputLabel, Refusal};
use crate::time::Timestamp;

/// Version of this object's form.
pub const RESULT_VERSION: u32 = 1;

/// What a run hands back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Open, parked or ended.
    pub status: Status,
    /// How it ended; `stopped_by_hook` while it is parked; nothing while it is open.
    pub outcome: Option<Outcome>,
    /// The provider's own word for why the last answer stopped.
    pub finish_reason: String,
    /// What went wrong, where something did.
    pub error: Option<RunError>,
    /// The text of the last answer.
    pub text: String,
    /// The reply is blank.
    pub empty_reply: bool,
    /// The validated structured output.
    pub data: Option<Value>,
    /// Every call that has ended.
    pub tool_calls: Vec<CallRecord>,
    /// The holds that wait.
    pub deferred: Vec<Hold>,
    /// Every staged action, and what became of it.
    #[serde(default)]
    pub actions: Vec<ActionRecord>,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// What they cost in US dollars; nothing without a price.
    pub cost_usd: Option<f64>,
    /// Model calls that were answered.
    pub trips: u32,
    /// The messages of the run; calls carry the model's own arguments.
    pub transcript: Vec<Message>,
    /// What the contract saw and did.
    pub contract: ContractReport,
    /// Names, versions and times.
    pub report: RunReport,
}

/// What the contract saw and did (`spec/contract.md`, 3 and 5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContractReport {
    /// The user asked for a change.
    pub asked: bool,
    /// A required tool completed (or all of them, where all are required).
    pub acted: bool,
    /// Options that were not met when the answer was accepted.
    pub unmet: Vec<String>,
    /// Refusals that no later success cleared.
    pub refusals: Vec<Refusal>,
    /// Every intervention, in order.
    pub interventions: Vec<Intervention>,
    /// What caused each trip.
    pub input_labels: Vec<InputLabel>,
    /// How many interventions of each kind there were.
    #[serde(default)]
    pub counts: Counts,
}

/// How many interventions of each kind a run had (`spec/contract.md`, 5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Runs of backstops.
    pub backstop: Count,
    /// Prompts about refusals.
    pub tool_refusal: Count,
    /// Prompts to act.
    pub act_when_asked: Count,
}

/// How many interventions of one kind there were, by what came of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Their prompt was sent.
    pub sent: u32,
    /// There was nothing to send.
    pub no_prompt: u32,
    /// They were due and did not happen.
    pub skipped: u32,
}

/// What became of a staged action (`spec/contract.md`, 2.6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// The call that staged it.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// What it is, or was, performed with.
    pub arguments: Object,
    /// Whose arguments they are.
    pub arguments_by: ArgumentsBy,
    /// The trip on which it was staged.
    pub trip: u32,
    /// The place of its call in the answer, from 0.
    pub index: u32,
    /// How far it has come.
    pub status: ActionStatus,
    /// Why it failed or was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far a staged action has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionStatus {
    /// It waits for delivery or for a person.
    Staged,
    /// Its receiver has accepted it.
    Performed,
    /// Its single attempt was refused, came too late, or nobody knows what came of it.
    Failed,
    /// It was given up before any attempt.
    Discarded,
}

impl ActionRecord {
    fn of(action: &Action) -> Self {
        let (status, reason) = match &action.stage {
            ActionStage::Held | ActionStage::Staged | ActionStage::Attempting | ActionStage::Lost => {
                (ActionStatus::Staged, None)
            }
            ActionStage::Settled(Attempt::Performed) => (ActionStatus::Performed, None),
            ActionStage::Settled(Attempt::Failed { error }) => (ActionStatus::Failed, Some(error.clone())),
            ActionStage::Discarded(reason) => (ActionStatus::Discarded, Some(reason.clone())),
        };
        Self {
            id: action.call.clone(),
            name: action.tool.clone(),
            arguments: Object::clone(&action.arguments),
            arguments_by: action.arguments_by,
            trip: action.trip,
            index: action.index,
            status,
            reason,
        }
    }
}

impl Counts {
    fn of(interventions: &[Intervention]) -> Self {
        let mut counts = Self::default();
        for it in interventions {
            let count = match it.kind {
                InterventionKind::Backstop => &mut counts.backstop,
                InterventionKind::ToolRefusal => &mut counts.tool_refusal,
                InterventionKind::ActWhenAsked => &mut counts.act_when_asked,
            };
            match it.outcome {
                InterventionOutcome::Sent => count.sent += 1,
                InterventionOutcome::NoPrompt => count.no_prompt += 1,
                InterventionOutcome::Skipped => count.skipped += 1,
            }
        }
        counts
    }
}

/// Names, versions and times of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run.
    pub run_id: RunId,
    /// The agent.
    pub agent: String,
    /// Its version.
    pub agent_version: String,
    /// The hash of its plan.
    pub config_version: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Milliseconds, time spent parked left out.
    pub duration_ms: u64,
    /// Tokens of all model calls.
    #[serde(default)]
    pub usage: Usage,
    /// Model calls that were answered.
    #[serde(default)]
    pub trips: u32,
    /// Version of this object's form.
    pub schema_version: u32,
}

impl Run {
    /// What the run hands back as it stands now.
    pub fn result(&self) -> RunResult {
        let state = self.state();
        let status = self.status();
        let ended = state.ended.as_ref();
        let outcome = match status {
            Status::Ended => ended.map(|it| it.outcome),
            Status::Parked => Some(Outcome::StoppedByHook),
            Status::Open => None,
        };
        let error = ended
            .filter(|it| !matches!(it.outcome, Outcome::Completed))
            .map(|it| RunError::of(it.outcome, it.message.clone()));
        let mut tool_calls = state.records.clone();
        tool_calls.extend(state.batch().into_iter().flat_map(|batch| &batch.calls).filter_map(|call| call.record()));
        let cost = self.plan().spec.limits.prices;
        RunResult {
            status,
            outcome,
            finish_reason: state.finish_reason.clone(),
            error,
            empty_reply: status == Status::Ended && state.text.trim().is_empty(),
            text: state.text.as_ref().to_owned(),
            data: ended.and_then(|it| it.data.clone()),
            tool_calls,
            deferred: self.holds(),
            actions: state.actions.iter().map(ActionRecord::of).collect(),
            usage: state.usage,
            cost_usd: cost.as_ref().map(|prices: &Prices| prices.cost_usd(&state.usage)),
            trips: state.trips,
            transcript: state.messages.clone(),
            contract: self.contract_report(),
            report: self.run_report(),
        }
    }

    /// As [`Run::result`], for a driver that is done with the run: what is long is moved, not copied.
    pub fn into_result(mut self) -> RunResult {
        let state = self.state_mut();
        let transcript = std::mem::take(&mut state.messages);
        let mut records = std::mem::take(&mut state.records);
        let mut result = self.result();
        records.append(&mut result.tool_calls);
        RunResult { transcript, tool_calls: records, ..result }
    }

    fn contract_report(&self) -> ContractReport {
        let state = self.state();
        let missing = act::missing(self.plan(), state).is_some();
        let required = self.plan().spec.contract.act_when_asked.as_ref();
        let met = required.is_some_and(|it| {
            let done = |tool: &String| state.acted.contains(tool);
            match it.require {
                crate::contract::Require::Any => it.required_tools.iter().any(done),
                crate::contract::Require::All => it.required_tools.iter().all(done),
            }
        });
        let judged = state.ended.as_ref().is_some_and(|it| it.outcome == Outcome::Completed);
        ContractReport {
            asked: state.intent.is_some(),
            acted: met,
            unmet: if missing && judged { vec!["act_when_asked".to_owned()] } else { Vec::new() },
            refusals: state.outstanding.clone(),
            interventions: state.interventions.clone(),
            input_labels: state.labels.clone(),
            counts: Counts::of(&state.interventions),
        }
    }

    fn run_report(&self) -> RunReport {
        let (plan, state) = (self.plan(), self.state());
        let ended_at = state.ended.as_ref().map(|it| it.at);
        RunReport {
            run_id: state.opening.as_ref().map_or_else(|| "".into(), |it| it.run.clone()),
            agent: plan.spec.agent.clone(),
            agent_version: plan.spec.version.clone(),
            config_version: plan.hash().to_owned(),
            started_at: state.opened_at,
            ended_at,
            duration_ms: state.elapsed_ms(ended_at.unwrap_or(state.last_at)),
            usage: state.usage,
            trips: state.trips,
            schema_version: RESULT_VERSION,
        }
    }
}
