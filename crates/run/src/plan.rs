//! What an agent may and must do: fixed for a run, plain data, known by its hash.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::CallRecord;
use crate::contract::ContractSpec;
use crate::grant::{self, GrantError, GrantSpec, Grants};
use crate::intervention::Phase;
use crate::json::{self, Object};
pub use crate::limits::{Limits, Prices};
use crate::message::Part;
use crate::pattern::{Pattern, PatternError, PatternSpec};
use crate::schema::Schema;
use crate::tool::{ToolError, ToolList, ToolSpec};

/// A plan as it is written down and stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanSpec {
    /// The agent's name.
    pub agent: String,
    /// Its version, for reports.
    pub version: String,
    /// The system prompt, read verbatim.
    pub instructions: String,
    /// `provider:model`.
    pub model: String,
    /// Options of the model, such as `temperature` or `max_tokens`.
    pub model_options: Object,
    /// Tools that every trip offers. A document's are added per trip.
    pub tools: Vec<ToolSpec>,
    /// Tools are read anew on each trip, because a document or a server may add some.
    pub tools_change: bool,
    /// SHA-256 of the document that every conversation begins with, where the agent has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// What the host lends to a document's tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<GrantSpec>,
    /// Each call is put to a hook before it may run.
    pub hook: bool,
    /// The contract's options.
    pub contract: ContractSpec,
    /// Everything has a limit.
    pub limits: Limits,
    /// JSON schema of the final answer.
    pub output_schema: Option<Value>,
    /// What a failed hook does.
    pub on_hook_error: OnHookError,
    /// What becomes of an approved call whose outcome a crash hid.
    pub on_undecided: OnUndecided,
    /// What a new message does to a parked run.
    pub on_message_while_parked: OnMessageWhileParked,
    /// How long a hold waits, in milliseconds. Without end by default.
    pub hold_ttl_ms: Option<u64>,
    /// IANA time zone of the `NOW:` notice.
    pub timezone: String,
    /// A turn of a live session: defer is refused.
    pub live: bool,
    /// The last permitted trip offers tools. Off in the channel profile, whose last trip has to answer.
    pub tools_on_last_trip: bool,
    /// Each natural end is put to guardrails before it is accepted. A place for the channel profile: refused until then.
    pub judged: bool,
}

impl Default for PlanSpec {
    fn default() -> Self {
        Self {
            agent: String::new(),
            version: String::new(),
            instructions: String::new(),
            model: String::new(),
            model_options: Object::new(),
            tools: Vec::new(),
            tools_change: false,
            document: None,
            grants: Vec::new(),
            hook: false,
            contract: ContractSpec::default(),
            limits: Limits::default(),
            output_schema: None,
            on_hook_error: OnHookError::default(),
            on_undecided: OnUndecided::default(),
            on_message_while_parked: OnMessageWhileParked::default(),
            hold_ttl_ms: None,
            timezone: "UTC".to_owned(),
            live: false,
            tools_on_last_trip: true,
            judged: false,
        }
    }
}

/// What a failed hook does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnHookError {
    /// The run ends and nothing of the batch runs.
    #[default]
    Stop,
    /// The call concerned is denied.
    Deny,
}

/// What becomes of an approved call whose outcome a crash hid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUndecided {
    /// The hold waits for someone who knows.
    #[default]
    Ask,
    /// The model reads that the outcome is unknown.
    TellModel,
}

/// What a new message does to a parked run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMessageWhileParked {
    /// Its holds are closed and the new turn runs.
    #[default]
    Supersede,
    /// The message is refused with an error that lists the open holds.
    Refuse,
}

/// The author's own functions, called only while an input is admitted or followed up; what they answer is in the
/// log, so a replay calls none of them. One that fails costs a log line and counts as *no*.
#[derive(Default, Clone)]
pub struct Functions {
    /// Further intents, after those of the plan.
    pub intents: Vec<IntentFn>,
    /// Writes the hint of `act_when_asked`.
    pub act_hint: Option<ActHintFn>,
    /// Writes one refusal's part of the prompt, from tool and reason.
    pub refusal_hint: Option<RefusalHintFn>,
    /// Says whether a finished call is a refusal.
    pub is_refusal: Option<IsRefusalFn>,
    /// Says what becomes of a staged call, ahead of the cap.
    pub staging: Option<StagingFn>,
}

/// Whether an input asks for a change.
pub type IntentFn = Arc<dyn Fn(&str) -> Result<bool, String> + Send + Sync>;
/// Writes a hint.
pub type ActHintFn = Arc<dyn Fn(&ActHint<'_>) -> Result<String, String> + Send + Sync>;
/// Writes one refusal's part of the prompt.
pub type RefusalHintFn = Arc<dyn Fn(&str, &str) -> Result<String, String> + Send + Sync>;
/// Says whether a finished call is a refusal.
pub type IsRefusalFn = Arc<dyn Fn(&CallRecord) -> Result<IsRefusal, String> + Send + Sync>;

/// Says what becomes of a staged call.
pub type StagingFn = Arc<dyn Fn(&Staging<'_>) -> Result<Stages, String> + Send + Sync>;

/// What a staging function is given.
#[derive(Debug)]
pub struct Staging<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The call's arguments, which fit the schema.
    pub arguments: &'a Object,
    /// What is staged already, in the model's order: tool and arguments.
    pub earlier: Vec<(&'a str, &'a Object)>,
}

/// What becomes of a staged call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stages {
    /// It is written down, where there is room.
    New,
    /// It is written down already: told as a success, and it takes no room.
    Again,
    /// It is refused for this reason, and takes no room.
    No(String),
}

/// What a hint function is given.
#[derive(Debug)]
pub struct ActHint<'a> {
    /// The user's input.
    pub input: &'a str,
    /// The reply that did not act.
    pub reply: &'a str,
    /// The tools still missing.
    pub required_tools: &'a [String],
    /// The trip whose answer it was.
    pub trip_index: u32,
}

/// What `is_refusal` may answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IsRefusal {
    /// Nothing: the default test and the presets decide.
    Default,
    /// It is one; the reason is the default test's, or a generic one.
    Yes,
    /// It is one, for this reason; a blank one becomes generic.
    Because(String),
    /// It is none, except where the tool's own pattern says so.
    No,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions")
            .field("intents", &self.intents.len())
            .field("act_hint", &self.act_hint.is_some())
            .field("refusal_hint", &self.refusal_hint.is_some())
            .field("is_refusal", &self.is_refusal.is_some())
            .field("staging", &self.staging.is_some())
            .finish()
    }
}

/// A plan that has been checked and compiled. Cheap to share.
#[derive(Debug)]
pub struct Plan {
    /// As it was written down.
    pub spec: PlanSpec,
    /// The author's functions.
    pub functions: Functions,
    pub(crate) tools: Arc<ToolList>,
    pub(crate) grants: Grants,
    pub(crate) intents: Vec<Pattern>,
    pub(crate) refusal_patterns: Vec<Pattern>,
    pub(crate) output: Option<Schema>,
    hash: String,
}

/// An author's mistake, found before anything runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A tool cannot be offered.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A grant cannot be lent.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// A pattern cannot be used.
    #[error("{place}: {reason}")]
    Pattern {
        /// Where it stands.
        place: String,
        /// Why not.
        reason: PatternError,
    },
    /// `act_when_asked` names no tool.
    #[error("act_when_asked: required_tools is empty")]
    NoRequiredTools,
    /// `act_when_asked` names a tool that does not exist.
    #[error("act_when_asked: required tool `{tool}` is not registered; registered: {registered}")]
    RequiredTool {
        /// The tool named.
        tool: String,
        /// The tools there are.
        registered: String,
    },
    /// The preset `patterns` without patterns, or patterns without the preset.
    #[error("on_tool_refusal: {0}")]
    Refusal(&'static str),
    /// A backstop's name is blank or there twice.
    #[error("backstop `{0}`: its name is blank or there twice")]
    Backstop(String),
    /// A limit of zero.
    #[error("limits: {0} must be more than zero")]
    Limit(&'static str),
    /// An amount of money that is none.
    #[error("limits: {0} must be a finite amount of dollars, {1}")]
    Money(&'static str, &'static str),
    /// Options that are too deep to be kept.
    #[error("model_options: nested more than {} levels deep", json::SCHEMA_DEPTH_MAX)]
    Options,
    /// Something that the machine has a place for and does not do yet.
    #[error("{0} cannot be had yet; leave it out")]
    NotYet(&'static str),
    /// The output schema does not compile.
    #[error("output_schema: {0}")]
    OutputSchema(String),
}

impl Plan {
    /// Checks and compiles a plan.
    ///
    /// # Errors
    /// An author's mistake; nothing has run.
    pub fn new(spec: PlanSpec, functions: Functions) -> Result<Arc<Self>, PlanError> {
        spec.limits.check()?;
        if spec.model_options.values().any(|it| json::is_deeper(it, json::SCHEMA_DEPTH_MAX - 1)) {
            return Err(PlanError::Options);
        }
        if spec.judged {
            return Err(PlanError::NotYet("the judging of replies by guardrails"));
        }
        let tools = ToolList::compile(spec.tools.iter().cloned())?;
        let grants = grant::compile(&spec.grants)?;
        check_act(&spec, &tools)?;
        check_backstops(&spec)?;
        let intents = match &spec.contract.act_when_asked {
            Some(act) => compile_all("act_when_asked: intents", &act.intents)?,
            None => Vec::new(),
        };
        let refusal_patterns = match &spec.contract.on_tool_refusal {
            Some(refusal) => {
                let wanted = refusal.preset == Some(crate::contract::RefusalPreset::Patterns);
                if wanted && refusal.patterns.is_empty() {
                    return Err(PlanError::Refusal("the preset `patterns` needs `patterns`"));
                }
                if !wanted && !refusal.patterns.is_empty() {
                    return Err(PlanError::Refusal("`patterns` need the preset `patterns`"));
                }
                compile_all("on_tool_refusal: patterns", &refusal.patterns)?
            }
            None => Vec::new(),
        };
        let output = spec.output_schema.as_ref().map(compile_output).transpose().map_err(PlanError::OutputSchema)?;
        let text = serde_json::to_value(&spec).map(|spec| json::canonical(&spec)).unwrap_or_default();
        let hash = json::sha256_hex(text.as_bytes());
        Ok(Arc::new(Self { spec, functions, tools: Arc::new(tools), grants, intents, refusal_patterns, output, hash }))
    }

    /// The plan's hash: the config version that a run is pinned to.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The tools that every trip offers.
    pub fn tools(&self) -> &Arc<ToolList> {
        &self.tools
    }

    /// A grant, by its full name.
    pub fn grant(&self, name: &str) -> Option<&GrantSpec> {
        self.grants.get(name).map(|grant| &grant.spec)
    }

    /// What decides whether a parked run may go on under a plan that is not the one it parked under
    /// (`spec/contract.md`, 7.5): everything but the prompt's text.
    pub fn signature(&self) -> String {
        let tools: Vec<Value> =
            self.spec.tools.iter().map(|tool| serde_json::json!([tool.name, tool.parameters])).collect();
        let contract = &self.spec.contract;
        let shape = serde_json::json!({
            "agent": self.spec.agent,
            "model": self.spec.model,
            "tools": tools,
            "trips_max": self.spec.limits.trips_max,
            "output_schema": self.spec.output_schema.is_some(),
            "act_when_asked": contract.act_when_asked.as_ref().map(|act| (&act.required_tools, act.max_reprompts)),
            "on_tool_refusal": contract.on_tool_refusal.as_ref().map(|refusal| refusal.retries),
            "backstops": contract.backstops.iter().map(|it| &it.name).collect::<Vec<_>>(),
        });
        json::sha256_hex(json::canonical(&shape).as_bytes())
    }

    /// The index of the first intent that the input matches, and the functions that failed meanwhile.
    pub(crate) fn matched_intent(&self, input: &[Part], failures: &mut Vec<(String, String)>) -> Option<u32> {
        self.spec.contract.act_when_asked.as_ref()?;
        let text = crate::message::text_of(input);
        let patterns = self.intents.iter().map(|pattern| Ok(pattern.is_in(&text)));
        let functions = self.functions.intents.iter().map(|intent| intent(&text));
        for (at, matched) in patterns.chain(functions).enumerate() {
            match matched {
                Ok(true) => return u32::try_from(at).ok(),
                Ok(false) => {}
                Err(why) => failures.push((format!("intents[{at}]"), why)),
            }
        }
        None
    }
}

fn compile_output(schema: &Value) -> Result<Schema, String> {
    if json::is_deeper(schema, json::SCHEMA_DEPTH_MAX) {
        return Err(format!("it is nested more than {} levels deep", json::SCHEMA_DEPTH_MAX));
    }
    Schema::compile(schema)
}

fn check_act(spec: &PlanSpec, tools: &ToolList) -> Result<(), PlanError> {
    let Some(act) = &spec.contract.act_when_asked else { return Ok(()) };
    if act.required_tools.is_empty() {
        return Err(PlanError::NoRequiredTools);
    }
    if spec.tools_change {
        return Ok(());
    }
    match act.required_tools.iter().find(|name| tools.get(name).is_none()) {
        Some(name) => {
            let registered: Vec<&str> = tools.iter().map(|tool| tool.spec.name.as_str()).collect();
            let registered = if registered.is_empty() { "none".to_owned() } else { registered.join(", ") };
            Err(PlanError::RequiredTool { tool: name.clone(), registered })
        }
        None => Ok(()),
    }
}

fn check_backstops(spec: &PlanSpec) -> Result<(), PlanError> {
    let mut names = BTreeSet::new();
    for backstop in &spec.contract.backstops {
        if backstop.name.trim().is_empty() || !names.insert(&backstop.name) {
            return Err(PlanError::Backstop(backstop.name.clone()));
        }
    }
    Ok(())
}

fn compile_all(place: &str, specs: &[PatternSpec]) -> Result<Vec<Pattern>, PlanError> {
    specs
        .iter()
        .enumerate()
        .map(|(at, spec)| {
            spec.compile().map_err(|reason| PlanError::Pattern { place: format!("{place}[{at}]"), reason })
        })
        .collect()
}

/// The phase's backstops, with their index in the plan.
pub(crate) fn backstops_of(spec: &PlanSpec, phase: Phase) -> Vec<usize> {
    let all = spec.contract.backstops.iter().enumerate();
    all.filter(|(_, backstop)| backstop.phase == phase).map(|(at, _)| at).collect()
}
