//! What every route works with: the agents, the store of one tenant, and who works on what.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use gesta_run::{Functions, Hold, Plan, PlanSpec, Run, RunId, Timestamp, ToolSpec};
use gesta_runtime::{Agent, FolderAgent, OpenError};
use gesta_store::{Deed, Front, RunHead, Secrets, Store, StoredRun, Tenants};
use gesta_telemetry::Traces;
use serde_json::{Value, json};
use tokio::sync::{Notify, OnceCell};

use crate::ask::Asker;
use crate::console::Known;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::options::{Limits, SecretsOf, Served};
use crate::problem::Problem;
use crate::repeat::Doing;
use crate::watched::Watched;
use crate::webhook::{Bell, Webhook};
use crate::wire::CallerTool;
use crate::work::Works;

/// How many earlier configurations are kept ready.
const PINNED_MAX: usize = 64;

/// How many tools a caller may bring along.
const CALLER_TOOLS_MAX: usize = 64;

/// An agent that is served.
pub(crate) struct Live {
    pub(crate) served: Arc<Served>,
    pub(crate) agent: FolderAgent,
}

/// What all tenants of a server share.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) served: Vec<Arc<Served>>,
    pub(crate) kept: Arc<dyn Tenants>,
    /// Where keys lie, of whatever tenant they are.
    pub(crate) ring: Arc<dyn Front>,
    pub(crate) webhook: Option<(Arc<Webhook>, Arc<Notify>)>,
    pub(crate) works: Arc<Works>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) traces: Option<Traces>,
    pub(crate) secrets: SecretsOf,
    pub(crate) sealing: Arc<OnceCell<Arc<Secrets>>>,
}

/// What every route works with: all of it belongs to one tenant.
pub(crate) struct App {
    pub(crate) agents: BTreeMap<String, Live>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) works: Arc<Works>,
    pub(crate) front: Arc<dyn Front>,
    /// Where keys lie, of whatever tenant they are.
    pub(crate) ring: Arc<dyn Front>,
    pub(crate) doing: Doing,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) bell: Option<Arc<Bell>>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) facts: Known,
    pub(crate) traces: Option<Traces>,
    secrets: SecretsOf,
    sealing: Arc<OnceCell<Arc<Secrets>>>,
    pinned: Mutex<HashMap<String, FolderAgent>>,
    plans: Mutex<HashMap<String, Arc<Plan>>>,
}

/// Why a server cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// There is nothing to serve.
    #[error("there is no agent to serve; name at least one folder")]
    NoAgent,
    /// Two folders have agents of one name.
    #[error("two agents are called `{name}`; give one another `name` in its agent.toml")]
    SameName {
        /// The name.
        name: String,
    },
    /// An agent cannot be used.
    #[error("agent `{name}`: {why}")]
    Agent {
        /// Its name.
        name: String,
        /// Why.
        why: OpenError,
    },
}

impl App {
    /// Opens all agents for one tenant.
    pub(crate) fn of(common: &Common, tenant: &str) -> Result<Self, SetupError> {
        let (hub, metrics) = (Arc::new(Hub::default()), common.metrics.clone());
        let front = common.kept.front_of(tenant);
        let bell = common.webhook.clone();
        let bell = bell.map(|(webhook, hurry)| Arc::new(Bell { front: front.clone(), webhook, hurry }));
        let store = common.kept.store_of(tenant);
        let store: Arc<dyn Store> = Arc::new(Watched::new(store, hub.clone(), metrics.clone(), bell.clone()));
        let mut agents = BTreeMap::new();
        for served in &common.served {
            let name = served.folder.plan.spec.agent.clone();
            let opened = FolderAgent::open(&served.folder, &served.env, Some(store.clone()), &*common.secrets);
            let agent = opened.map_err(|why| SetupError::Agent { name: name.clone(), why })?;
            if agents.insert(name.clone(), Live { served: served.clone(), agent }).is_some() {
                return Err(SetupError::SameName { name });
            }
        }
        if agents.is_empty() {
            return Err(SetupError::NoAgent);
        }
        Ok(Self {
            agents,
            store,
            hub,
            works: common.works.clone(),
            front,
            ring: common.ring.clone(),
            doing: Doing::default(),
            metrics,
            bell,
            limits: common.limits.clone(),
            facts: Known::default(),
            secrets: common.secrets.clone(),
            sealing: common.sealing.clone(),
            pinned: Mutex::default(),
            plans: Mutex::default(),
            traces: common.traces.clone(),
        })
    }

    /// The keys that sign documents and sessions. They are read from a file, once.
    pub(crate) async fn sealing(&self) -> Result<Arc<Secrets>, Problem> {
        let read = async || {
            let secrets = self.secrets.clone();
            let read = tokio::task::spawn_blocking(move || secrets()).await;
            let read = read.map_err(|why| why.to_string()).and_then(|read| read.map_err(|why| why.to_string()));
            read.map(Arc::new).map_err(|why| {
                tracing::error!(%why, "the keys that sign cannot be used");
                Problem::internal("the server's own keys cannot be used")
            })
        };
        self.sealing.get_or_try_init(read).await.cloned()
    }

    /// Now.
    pub(crate) fn now(&self) -> Timestamp {
        now()
    }

    /// Notes for the audit what somebody does, with an agent where it is about one.
    pub(crate) async fn note(
        &self,
        asker: &Asker,
        what: &str,
        subject: &str,
        agent: Option<&str>,
    ) -> Result<(), Problem> {
        Ok(self.front.note(vec![self.deed(asker, what, subject, agent)]).await?)
    }

    /// What somebody does, about no call.
    pub(crate) fn deed(&self, asker: &Asker, what: &str, subject: &str, agent: Option<&str>) -> Deed {
        Deed {
            at: self.now(),
            who: asker.id.clone(),
            from: asker.from.clone(),
            what: what.to_owned(),
            subject: subject.to_owned(),
            agent: agent.map(str::to_owned),
            call: None,
            tool: None,
            fingerprint: None,
            config: None,
        }
    }

    /// An agent by its name.
    pub(crate) fn agent(&self, name: &str) -> Result<&Live, Problem> {
        self.agents.get(name).ok_or_else(|| {
            let known: Vec<&String> = self.agents.keys().collect();
            Problem::missing("no_such_agent", format!("there is no agent `{name}`"), "use one of those in `agents`")
                .with("agents", known)
        })
    }

    /// An agent with tools of its caller's own beside its own ones.
    pub(crate) fn agent_with(&self, live: &Live, tools: &[CallerTool]) -> Result<Agent, Problem> {
        if tools.is_empty() {
            return Ok(live.agent.agent().clone());
        }
        let refused = |why: String| {
            let help =
                "give each tool a name of its own, which the agent's tools have not, and a JSON schema of an object";
            let status = http::StatusCode::UNPROCESSABLE_ENTITY;
            Problem::new(status, "tools_invalid", format!("`tools` cannot be offered: {why}"), help)
        };
        if tools.len() > CALLER_TOOLS_MAX {
            return Err(refused(format!("there are {}, at most {CALLER_TOOLS_MAX} are taken", tools.len())));
        }
        let plan = live.agent.agent().plan();
        let key = json!([plan.hash(), tools]).to_string();
        let key = format!("tools {}", gesta_run::json::sha256_hex(key.as_bytes()));
        if let Some(known) = lock(&self.pinned).get(&key) {
            return Ok(known.agent().clone());
        }
        if let Some(taken) = tools.iter().find(|tool| plan.spec.tools.iter().any(|own| own.name == tool.name)) {
            return Err(refused(format!("the agent has a tool `{}` of its own", taken.name)));
        }
        let spec = |tool: &CallerTool| {
            let parameters = tool.parameters.clone().unwrap_or_else(gesta_run::tool::no_parameters);
            ToolSpec::new(&tool.name, &tool.description, parameters)
        };
        let served = &*live.served;
        let specs = tools.iter().map(spec).collect();
        let folder = served.folder.with_external(specs).map_err(|why| {
            let messages: Vec<&str> = why.0.iter().map(|it| it.message.as_str()).collect();
            refused(messages.join("; "))
        })?;
        let made = FolderAgent::open(&folder, &served.env, Some(self.store.clone()), &*self.secrets)?;
        let agent = made.agent().clone();
        insert(&self.pinned, key, made);
        Ok(agent)
    }

    /// The agent that a run goes on with: that of its own configuration, whatever the folder says now.
    pub(crate) async fn agent_of(&self, head: &RunHead) -> Result<Agent, Problem> {
        let served = self.agents.get(&head.agent);
        if let Some(live) = served.filter(|live| live.agent.agent().plan().hash() == head.config) {
            return Ok(live.agent.agent().clone());
        }
        if let Some(pinned) = lock(&self.pinned).get(&head.config) {
            return Ok(pinned.agent().clone());
        }
        let Some(env) = served.map(|live| &live.served.env) else {
            let detail = format!("this server does not serve the agent `{}`", head.agent);
            return Err(Problem::conflict("agent_not_served", detail, "ask the server that does"));
        };
        let pinned = FolderAgent::of_run(self.store.clone(), &head.run, env, &*self.secrets).await?;
        let agent = pinned.agent().clone();
        insert(&self.pinned, head.config.clone(), pinned);
        Ok(agent)
    }

    /// Reads a run and replays it under the plan it was begun with. Nothing of its agent is needed.
    pub(crate) async fn read(&self, id: &RunId) -> Result<(StoredRun, Run), Problem> {
        let stored = self.store.load(id).await?;
        let plan = self.plan(&stored.head.config).await?;
        let run = Run::replay(plan, &stored.events);
        Ok((stored, run))
    }

    /// The holds that a run had open after its first `events` events.
    pub(crate) async fn holds_after(&self, id: &RunId, events: usize) -> Result<Vec<Hold>, Problem> {
        let stored = self.store.load(id).await?;
        let plan = self.plan(&stored.head.config).await?;
        Ok(Run::replay(plan, stored.events.iter().take(events)).holds())
    }

    async fn plan(&self, config: &str) -> Result<Arc<Plan>, Problem> {
        if let Some(plan) = lock(&self.plans).get(config) {
            return Ok(plan.clone());
        }
        let gone = || {
            let detail = "the configuration of this run is not in the store, or of another version";
            Problem::conflict("config_gone", detail, "it can be listed, but not read")
        };
        let text = self.store.config(config).await?.ok_or_else(gone)?;
        let mut stored: Value = gesta_run::json::read_stored(text.as_bytes()).map_err(|_| gone())?;
        let spec = stored.get_mut("plan").map(Value::take).ok_or_else(gone)?;
        let spec: PlanSpec = serde_json::from_value(spec).map_err(|_| gone())?;
        let plan = Plan::new(spec, Functions::default()).map_err(|_| gone())?;
        insert(&self.plans, config.to_owned(), plan.clone());
        Ok(plan)
    }
}

/// Now, by the clock of the system.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what was made, and forgets one of the others where there are too many: it can be made again.
fn insert<T>(kept: &Mutex<HashMap<String, T>>, key: String, value: T) {
    let mut kept = lock(kept);
    if kept.len() >= PINNED_MAX
        && let Some(other) = kept.keys().next().cloned()
    {
        kept.remove(&other);
    }
    kept.insert(key, value);
}
