//! What every route works with: the agents, the store, and who works on what.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use gesta_run::{Functions, Hold, Plan, PlanSpec, Run, RunId};
use gesta_runtime::{Agent, FolderAgent, OpenError};
use gesta_store::{RunHead, Store, StoredRun};
use serde_json::Value;

use crate::hub::Hub;
use crate::options::{Limits, SecretsOf, Served, Setup};
use crate::problem::Problem;
use crate::watched::Watched;
use crate::work::Works;

/// How many earlier configurations are kept ready.
const PINNED_MAX: usize = 64;

/// An agent that is served.
pub(crate) struct Live {
    pub(crate) served: Served,
    pub(crate) agent: FolderAgent,
}

/// What every route works with.
pub(crate) struct App {
    pub(crate) agents: BTreeMap<String, Live>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) works: Works,
    pub(crate) limits: Limits,
    /// The keys that sign documents.
    pub(crate) secrets: SecretsOf,
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
    /// Opens all agents.
    pub(crate) fn new(setup: Setup) -> Result<Self, SetupError> {
        let hub = Arc::new(Hub::default());
        let store: Arc<dyn Store> = Arc::new(Watched::new(setup.store, hub.clone()));
        let mut agents = BTreeMap::new();
        for served in setup.agents {
            let name = served.folder.plan.spec.agent.clone();
            let opened = FolderAgent::open(&served.folder, &served.env, Some(store.clone()), &*setup.secrets);
            let agent = opened.map_err(|why| SetupError::Agent { name: name.clone(), why })?;
            if agents.insert(name.clone(), Live { served, agent }).is_some() {
                return Err(SetupError::SameName { name });
            }
        }
        if agents.is_empty() {
            return Err(SetupError::NoAgent);
        }
        let works = Works::new(setup.limits.runs_max);
        let (pinned, plans) = (Mutex::default(), Mutex::default());
        Ok(Self { agents, store, hub, works, limits: setup.limits, secrets: setup.secrets, pinned, plans })
    }

    /// An agent by its name.
    pub(crate) fn agent(&self, name: &str) -> Result<&Live, Problem> {
        self.agents.get(name).ok_or_else(|| {
            let known: Vec<&String> = self.agents.keys().collect();
            Problem::missing("no_such_agent", format!("there is no agent `{name}`"), "use one of those in `agents`")
                .with("agents", known)
        })
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
