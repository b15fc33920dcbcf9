//! Puts an agent together.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use gesta_model::Model;
use gesta_run::{
    Accepts, ActHint, ActWhenAsked, BackstopSpec, CallRecord, Decision, Functions, HookError, IsRefusal, Limits,
    OnHookError, OnMessageWhileParked, OnToolRefusal, OnUndecided, Phase, Plan, PlanSpec, Ran, Ruling, ToolEffect,
};
use gesta_store::{Memory, Store};
use serde_json::Value;

use crate::agent::{Agent, Parts};
use crate::clock::Clock;
use crate::document::{DocumentSettings, Documents};
use crate::error::AgentError;
use crate::grant::Grant;
use crate::history::HistoryLimits;
use crate::hook::{Backstop, CallAsked, DetectFuture, Hook, RanFuture, RulingFuture, TurnSeen};
use crate::system;
use crate::tool::{Tool, ToolBody};

/// Puts an agent together: a model is all it needs, and every option of the contract is off until it is named.
#[derive(Default)]
pub struct AgentBuilder {
    spec: PlanSpec,
    functions: Functions,
    model: Option<Arc<dyn Model>>,
    model_name: String,
    tools: Vec<Tool>,
    document: Option<String>,
    document_settings: DocumentSettings,
    grants: Vec<Grant>,
    hook: Option<Arc<dyn Hook>>,
    backstops: Vec<Arc<dyn Backstop>>,
    store: Option<Arc<dyn Store>>,
    history: HistoryLimits,
    clock: Option<Clock>,
    plain: bool,
    wire: bool,
    secrets: Option<Arc<gesta_store::Secrets>>,
    snapshot: Option<Value>,
}

impl AgentBuilder {
    /// The agent's name, for logs and stored runs.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.spec.agent);
        self
    }

    /// The agent's version, for reports. Part of the configuration's hash.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.spec.version);
        self
    }

    /// The model, and its name as the provider knows it.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>, name: &str) -> Self {
        self.spec.model = format!("{}:{name}", model.protocol());
        self.model = Some(model);
        name.clone_into(&mut self.model_name);
        self
    }

    /// A setting of the model, such as `temperature`, handed to the provider as it stands.
    #[must_use]
    pub fn model_option(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.spec.model_options.insert(name.to_owned(), value.into());
        self
    }

    /// The system prompt.
    #[must_use]
    pub fn instructions(mut self, text: &str) -> Self {
        text.clone_into(&mut self.spec.instructions);
        self
    }

    /// A tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// A document of tools, as source text: every conversation begins with a copy of its own, and its tools are offered
    /// beside the others (`spec/documents.md`). Documents run in worker processes: a program that is not `gesta` calls
    /// [`gesta_sandbox::worker_main`] first in its `main`.
    #[must_use]
    pub fn document(mut self, source: &str) -> Self {
        self.document = Some(source.to_owned());
        self
    }

    /// How the document is run: its limits, whether tools can be added, the workers.
    #[must_use]
    pub fn document_settings(mut self, settings: DocumentSettings) -> Self {
        self.document_settings = settings;
        self
    }

    /// A function that is lent to the tools of the agent's document.
    #[must_use]
    pub fn grant(mut self, grant: Grant) -> Self {
        self.grants.push(grant);
        self
    }

    /// Asks again when the user asked for a change and no required tool succeeded.
    #[must_use]
    pub fn act_when_asked(mut self, option: ActWhenAsked) -> Self {
        self.spec.contract.act_when_asked = Some(option);
        self
    }

    /// A further intent of [`AgentBuilder::act_when_asked`]: a function of the input.
    #[must_use]
    pub fn intent(mut self, intent: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.functions.intents.push(Arc::new(move |input| guarded(|| intent(input))));
        self
    }

    /// Writes the hint of [`AgentBuilder::act_when_asked`]; a blank one means the default.
    #[must_use]
    pub fn act_hint(mut self, write: impl Fn(&ActHint<'_>) -> String + Send + Sync + 'static) -> Self {
        self.functions.act_hint = Some(Arc::new(move |given| guarded(|| write(given))));
        self
    }

    /// Gives refused calls one more try, with the reason quoted.
    #[must_use]
    pub fn on_tool_refusal(mut self, option: OnToolRefusal) -> Self {
        self.spec.contract.on_tool_refusal = Some(option);
        self
    }

    /// Writes one refusal's part of the prompt, from the tool's name and its reason.
    #[must_use]
    pub fn refusal_hint(mut self, write: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Self {
        self.functions.refusal_hint = Some(Arc::new(move |tool, reason| guarded(|| write(tool, reason))));
        self
    }

    /// Says whether a finished call is a refusal.
    #[must_use]
    pub fn is_refusal(mut self, test: impl Fn(&CallRecord) -> IsRefusal + Send + Sync + 'static) -> Self {
        self.functions.is_refusal = Some(Arc::new(move |call| guarded(|| test(call))));
        self
    }

    /// A backstop from two functions. `run` fires at most once in a run; see [`Backstop`] for one with its own type.
    #[must_use]
    pub fn backstop<Fut>(
        self,
        name: &str,
        phase: Phase,
        detect: impl Fn(&TurnSeen) -> bool + Send + Sync + 'static,
        run: impl Fn(TurnSeen) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<Ran, String>> + Send + 'static,
    {
        let time_limit_ms = gesta_run::tool::TIME_LIMIT_MS;
        let spec = BackstopSpec { name: name.to_owned(), phase, time_limit_ms };
        self.backstop_with(spec, Pair { detect, run })
    }

    /// A backstop.
    #[must_use]
    pub fn backstop_with(mut self, spec: BackstopSpec, backstop: impl Backstop + 'static) -> Self {
        self.spec.contract.backstops.push(spec);
        self.backstops.push(Arc::new(backstop));
        self
    }

    /// Decides on each call before it may run. Answer with a [`Decision`], with none to run the call as it is, or
    /// with an error, which stops the run.
    #[must_use]
    pub fn on_tool_call<Fut, D>(self, decide: impl Fn(CallAsked) -> Fut + Send + Sync + 'static) -> Self
    where
        Fut: Future<Output = D> + Send + 'static,
        D: IntoRuling,
    {
        self.hook(move |call: CallAsked| -> RulingFuture {
            let decided = decide(call);
            Box::pin(async move { decided.await.into_ruling() })
        })
    }

    /// The hook.
    #[must_use]
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Everything has a limit.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.spec.limits = limits;
        self
    }

    /// JSON schema of the final answer.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.spec.output_schema = Some(schema);
        self
    }

    /// What a failed hook does.
    #[must_use]
    pub fn on_hook_error(mut self, option: OnHookError) -> Self {
        self.spec.on_hook_error = option;
        self
    }

    /// What becomes of an approved call whose outcome a crash hid.
    #[must_use]
    pub fn on_undecided(mut self, option: OnUndecided) -> Self {
        self.spec.on_undecided = option;
        self
    }

    /// What a new message does to a parked run.
    #[must_use]
    pub fn on_message_while_parked(mut self, option: OnMessageWhileParked) -> Self {
        self.spec.on_message_while_parked = option;
        self
    }

    /// How long a hold waits.
    #[must_use]
    pub fn hold_ttl(mut self, ttl: Duration) -> Self {
        self.spec.hold_ttl_ms = Some(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// IANA time zone of the `NOW:` notice. UTC by default.
    #[must_use]
    pub fn timezone(mut self, name: &str) -> Self {
        name.clone_into(&mut self.spec.timezone);
        self
    }

    /// Where runs are kept. In memory without this: holds wait then only as long as the process lives.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// How much of a conversation the model is shown.
    #[must_use]
    pub fn history(mut self, limits: HistoryLimits) -> Self {
        self.history = limits;
        self
    }

    /// Where the time comes from.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Asks the model for whole answers instead of pieces.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.plain = true;
        self
    }

    /// Keeps the exact exchanges with the model beside each run. They hold what was said.
    #[must_use]
    pub fn capture_wire(mut self) -> Self {
        self.wire = true;
        self
    }

    /// Keys that sign runs which their caller keeps ([`Agent::save`]).
    #[must_use]
    pub fn secrets(mut self, secrets: gesta_store::Secrets) -> Self {
        self.secrets = Some(Arc::new(secrets));
        self
    }

    /// Begins with a plan that exists, for agents that are read from elsewhere. Its tools get bodies from
    /// [`AgentBuilder::bodies`]; `snapshot` is kept with it, so that the agent can be put together again from the store.
    #[must_use]
    pub(crate) fn plan(mut self, spec: PlanSpec, snapshot: Value) -> Self {
        self.spec = spec;
        self.snapshot = Some(snapshot);
        self
    }

    /// The model of a plan that names it already.
    #[must_use]
    pub(crate) fn planned_model(mut self, model: Arc<dyn Model>, name: &str) -> Self {
        self.model = Some(model);
        name.clone_into(&mut self.model_name);
        self
    }

    /// The bodies of a plan's tools and backstops.
    #[must_use]
    pub(crate) fn bodies(mut self, tools: Vec<Tool>, backstops: Vec<Arc<dyn Backstop>>) -> Self {
        self.spec.tools.clear();
        self.tools = tools;
        self.backstops = backstops;
        self
    }

    /// Checks everything and makes the agent.
    ///
    /// # Errors
    /// An author's mistake; nothing has run.
    pub fn build(mut self) -> Result<Agent, AgentError> {
        let model = self.model.take().ok_or_else(|| AgentError::Incomplete("it has no model".to_owned()))?;
        // Any other zone is looked up in the system's files, which takes a millisecond the first time.
        let utc = (self.spec.timezone == "UTC").then_some(jiff::tz::TimeZone::UTC);
        let zone = utc
            .map_or_else(|| jiff::tz::TimeZone::get(&self.spec.timezone), Ok)
            .map_err(|_| AgentError::Incomplete(format!("there is no time zone `{}`", self.spec.timezone)))?;
        self.take_tools()?;
        self.spec.grants = self.grants.iter().map(|grant| grant.spec.clone()).collect();
        self.spec.document = self.document.as_deref().map(crate::document::hash_of);
        self.spec.tools_change |= self.document.is_some();
        let plan = Plan::new(self.spec, self.functions)?;
        let stored = self.store.is_some();
        let documents = match &self.document {
            Some(base) => {
                let (settings, secrets) = (self.document_settings, self.secrets.clone());
                Some(Arc::new(Documents::new(base, settings, &plan, secrets, stored)?))
            }
            None => None,
        };
        let system = system::text(&plan, model.as_ref());
        let tools = self.tools.into_iter().filter_map(|tool| Some((tool.spec.name, tool.body?)));
        Ok(Agent(Arc::new(Parts {
            system_adding: system::with_guidance(&system, documents.is_some()),
            system,
            documents,
            model,
            model_name: self.model_name,
            tools: tools.collect::<BTreeMap<String, Arc<dyn ToolBody>>>(),
            grants: self.grants.into_iter().map(|it| (it.spec.full_name(), it.body)).collect(),
            hook: self.hook,
            backstops: self.backstops,
            store: self.store.unwrap_or_else(|| Arc::new(Memory::default())),
            stored,
            folder: self.snapshot,
            snapshot_stored: AtomicBool::new(false),
            history: self.history,
            clock: self.clock.unwrap_or_else(Clock::system),
            zone,
            stream: !self.plain,
            wire: self.wire,
            secrets: self.secrets,
            plan,
        })))
    }

    /// Tools enter the plan; those without a body are deferred to the caller.
    fn take_tools(&mut self) -> Result<(), AgentError> {
        for tool in &self.tools {
            self.spec.tools.push(tool.spec.clone());
        }
        let external: Vec<String> =
            self.tools.iter().filter(|tool| tool.body.is_none()).map(|tool| tool.spec.name.clone()).collect();
        let staged = |tool: &&Tool| tool.spec.effect == ToolEffect::Staged && tool.spec.accepts == Accepts::External;
        if let Some(tool) = self.tools.iter().find(staged) {
            let name = &tool.spec.name;
            return Err(AgentError::Incomplete(format!("tool `{name}` cannot be both staged and external")));
        }
        if !external.is_empty() {
            self.hook = Some(Arc::new(DeferExternal { external, inner: self.hook.take() }));
        }
        self.spec.hook = self.hook.is_some();
        Ok(())
    }
}

/// What a decision function may answer with.
pub trait IntoRuling {
    /// As the machine takes it.
    fn into_ruling(self) -> Ruling;
}

impl IntoRuling for Decision {
    fn into_ruling(self) -> Ruling {
        Ok(self)
    }
}

impl IntoRuling for Option<Decision> {
    fn into_ruling(self) -> Ruling {
        Ok(self.unwrap_or_else(Decision::run))
    }
}

impl<T: IntoRuling, E: std::fmt::Display> IntoRuling for Result<T, E> {
    fn into_ruling(self) -> Ruling {
        self.map_err(|why| HookError(why.to_string())).and_then(T::into_ruling)
    }
}

/// Defers the calls of tools that the caller runs, unless the author's hook denies them.
struct DeferExternal {
    external: Vec<String>,
    inner: Option<Arc<dyn Hook>>,
}

impl Hook for DeferExternal {
    fn decide(&self, call: CallAsked) -> RulingFuture {
        let external = self.external.contains(&call.name);
        let inner = self.inner.as_ref().map(|hook| hook.decide(call));
        Box::pin(async move {
            let ruling = match inner {
                Some(decided) => decided.await,
                None => Ok(Decision::run()),
            };
            match ruling {
                Ok(Decision::Run { reason, .. }) if external => Ok(Decision::Defer { reason }),
                other => other,
            }
        })
    }
}

/// A backstop from two functions.
struct Pair<D, R> {
    detect: D,
    run: R,
}

impl<D, R, Fut> Backstop for Pair<D, R>
where
    D: Fn(&TurnSeen) -> bool + Send + Sync,
    R: Fn(TurnSeen) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Ran, String>> + Send + 'static,
{
    fn detect(&self, turn: TurnSeen) -> DetectFuture {
        let detected = guarded(|| (self.detect)(&turn));
        Box::pin(std::future::ready(detected))
    }

    fn run(&self, turn: TurnSeen) -> RanFuture {
        Box::pin((self.run)(turn))
    }
}

/// Calls the author's code; a panic is an error like any other.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|_| "it panicked".to_owned())
}
