//! From a folder, or from the configuration a run was begun under, to an agent that runs.

use std::sync::Arc;

use gesta_model::{Lookup, ProviderError, Transport, TransportSpec};
use gesta_run::{Answer, Ran, RunId};
use gesta_store::{SecretError, Secrets, Store, StoreError};
use serde_json::Value;

use crate::agent::{Agent, Resume, Resumed};
use crate::document::DocumentSettings;
use crate::error::AgentError;
use crate::folder::{Body, Folder, FolderErrors};
use crate::grant::Grant;
use crate::hook::{Backstop, CallAsked, DetectFuture, RanFuture, RulingFuture, TurnSeen};
use crate::http::{HttpCaller, Policy, PolicyError};
use crate::rules::answers::Answers;
use crate::rules::backstops::BackstopRule;
use crate::rules::decisions::Decisions;
use crate::tool::{AnswerFuture, Scope, Tool, ToolBody};

/// An agent that was read from a folder, or from the configuration that a run was begun under.
#[derive(Debug, Clone)]
pub struct FolderAgent {
    agent: Agent,
}

/// Why a folder gives no agent that runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder, or the stored configuration, has mistakes.
    #[error(transparent)]
    Folder(#[from] FolderErrors),
    /// The model cannot be used.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// `[network] allow` has mistakes.
    #[error("[network] allow: {0}")]
    Network(#[from] PolicyError),
    /// The proxy that tools are to go through cannot be used.
    #[error("GESTA_EGRESS_PROXY holds no address of a proxy; write http://HOST:PORT, or unset it")]
    EgressProxy,
    /// The agent is not put together well.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keys cannot be used that sign what is kept of a document.
    #[error(transparent)]
    Secrets(#[from] SecretError),
    /// The configuration a run was begun under is not there, or was none of a folder.
    #[error("run `{run}` was not begun from a folder; resume it in the program that began it")]
    NotAFolder {
        /// The run.
        run: RunId,
    },
}

/// Where the keys come from that sign what is kept of an agent's document; not asked where it has none.
pub type SecretsOf<'a> = dyn Fn() -> Result<Secrets, SecretError> + Sync + 'a;

impl FolderAgent {
    /// Makes the agent of a folder. `env` is asked for keys and proxies, after the folder's own secrets.
    ///
    /// # Errors
    /// Its model, its network or its rules cannot be used.
    pub fn open(
        folder: &Folder,
        env: &Lookup,
        store: Option<Arc<dyn Store>>,
        secrets: &SecretsOf<'_>,
    ) -> Result<Self, OpenError> {
        let spec = TransportSpec { lookup: Some(&**env), ..TransportSpec::default() };
        let resolved = folder.providers(Transport::new(spec)).resolve(&folder.settings.plan.model)?;
        let caller = caller(folder, env)?;
        let tools = tools(folder, &caller);
        let backstops = folder.backstops.iter().map(|rule| backstop(rule, folder, &caller)).collect();
        let mut builder = Agent::builder()
            .plan(folder.settings.plan.clone(), folder.snapshot())
            .planned_model(resolved.model, &resolved.name)
            .bodies(tools, backstops)
            .history(crate::HistoryLimits {
                turns_max: folder.settings.history.turns_max,
                tokens_max: folder.settings.history.tokens_max.unwrap_or(u64::MAX),
            });
        if let Some(document) = &folder.settings.document {
            let settings = DocumentSettings {
                name: folder.document_path(),
                limits: document.limits.clone(),
                added_tools: document.added_tools,
                pool: document.pool(),
            };
            builder = builder.document(&document.base).document_settings(settings);
            builder = grants(folder, &caller).into_iter().fold(builder, crate::AgentBuilder::grant);
            if store.is_some() {
                builder = builder.secrets(secrets()?);
            }
        }
        if !folder.decisions.is_empty() {
            let rules = folder.decisions.clone();
            builder = builder.hook(move |call: CallAsked| -> RulingFuture { decide(&rules, &call) });
        }
        if !folder.settings.stream {
            builder = builder.plain();
        }
        if folder.storage.wire {
            builder = builder.capture_wire();
        }
        if let Some(store) = store {
            builder = builder.store(store);
        }
        Ok(Self { agent: builder.build()? })
    }

    /// Makes the agent that a run was begun with, from the configuration kept in the store: neither the folder nor its
    /// present state matter (`spec/contract.md`, 7.5). Secrets come from `env` alone.
    ///
    /// # Errors
    /// There is no such run, or its configuration cannot be used here.
    pub async fn of_run(
        store: Arc<dyn Store>,
        run: &RunId,
        env: &Lookup,
        secrets: &SecretsOf<'_>,
    ) -> Result<Self, OpenError> {
        let head = store.head(run).await?;
        let not_a_folder = || OpenError::NotAFolder { run: run.clone() };
        let text = store.config(&head.config).await?.ok_or_else(not_a_folder)?;
        let mut stored: Value = gesta_run::json::read_stored(text.as_bytes()).map_err(|_| not_a_folder())?;
        let snapshot = stored.get_mut("folder").map(Value::take).filter(|it| !it.is_null()).ok_or_else(not_a_folder)?;
        let mut folder = Folder::from_snapshot(snapshot, &|name| env(name))?;
        // Capture is no part of the configuration: a run whose exchanges were kept so far has the rest kept too.
        folder.storage.wire = !store.wire(run).await?.is_empty();
        Self::open(&folder, env, Some(store), secrets)
    }

    /// Goes on with a run under the configuration it was begun with.
    ///
    /// # Errors
    /// As [`Agent::resume`], and as [`FolderAgent::of_run`].
    pub async fn resume(
        store: Arc<dyn Store>,
        run: &RunId,
        env: &Lookup,
        secrets: &SecretsOf<'_>,
        resume: Resume,
    ) -> Result<Resumed, OpenError> {
        let pinned = Self::of_run(store, run, env, secrets).await?;
        Ok(pinned.agent.resume(run, resume).await?)
    }

    /// The agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }
}

fn caller(folder: &Folder, lookup: &Lookup) -> Result<Arc<HttpCaller>, OpenError> {
    let policy = Policy::new(&folder.settings.network_allow)?;
    let caller = HttpCaller::new(policy, lookup);
    if caller.has_wrong_proxy() {
        return Err(OpenError::EgressProxy);
    }
    Ok(Arc::new(caller))
}

fn tools(folder: &Folder, caller: &Arc<HttpCaller>) -> Vec<Tool> {
    let specs = folder.settings.plan.tools.iter();
    specs
        .map(|spec| match folder.settings.bodies.get(&spec.name) {
            Some(Body::Http(endpoint)) => {
                Tool::with_body(spec.clone(), caller.tool(endpoint, &folder.secrets, spec.time_limit_ms))
            }
            Some(Body::Answers(_)) => match folder.answers(&spec.name) {
                Some(answers) => Tool::with_body(spec.clone(), Canned(answers)),
                None => Tool::external(spec.clone()),
            },
            Some(Body::External) | None => Tool::external(spec.clone()),
        })
        .collect()
}

fn grants(folder: &Folder, caller: &Arc<HttpCaller>) -> Vec<Grant> {
    let grant = |spec: &gesta_run::GrantSpec| match folder.settings.grants.get(&spec.full_name())? {
        Body::Http(endpoint) => {
            Some(Grant::with_body(spec.clone(), caller.tool(endpoint, &folder.secrets, spec.time_limit_ms)))
        }
        Body::Answers(written) => Some(Grant::with_body(spec.clone(), Canned(Answers::compile(written).ok()?))),
        Body::External => None,
    };
    folder.settings.plan.grants.iter().filter_map(grant).collect()
}

/// A tool or grant whose answers stand in the folder.
struct Canned(Answers);

impl ToolBody for Canned {
    fn call(&self, arguments: gesta_run::json::Object, _: Scope) -> AnswerFuture {
        let answer: Answer = self.0.answer(&arguments);
        Box::pin(std::future::ready(answer))
    }
}

fn decide(rules: &Decisions, call: &CallAsked) -> RulingFuture {
    let ruled = rules.decide(&call.name, &call.arguments);
    tracing::debug!(rule = ruled.rule, "decided by the folder's rules");
    Box::pin(std::future::ready(Ok(ruled.decision)))
}

fn backstop(rule: &BackstopRule, folder: &Folder, caller: &Arc<HttpCaller>) -> Arc<dyn Backstop> {
    let deed = caller.backstop(&rule.written, &folder.secrets);
    Arc::new(RuleBackstop { rule: rule.clone(), deed })
}

/// A backstop of rules: patterns, then an HTTP call, a prompt, or both.
struct RuleBackstop {
    rule: BackstopRule,
    deed: Option<Arc<dyn Fn(TurnSeen) -> RanFuture + Send + Sync>>,
}

impl Backstop for RuleBackstop {
    fn detect(&self, turn: TurnSeen) -> DetectFuture {
        let detected = self.rule.detects(&turn.input, turn.reply.as_deref());
        Box::pin(std::future::ready(Ok(detected)))
    }

    fn run(&self, turn: TurnSeen) -> RanFuture {
        let prompt = self.rule.written.prompt.clone();
        let deed = self.deed.as_ref().map(|deed| deed(turn));
        Box::pin(async move {
            let answered = match (deed, &prompt) {
                (Some(deed), Some(_)) => deed.await.unwrap_or_else(|_| {
                    // What the model is told does not depend on whether the server could be told too.
                    tracing::error!("a backstop's server could not be told");
                    Ran::default()
                }),
                (Some(deed), None) => deed.await?,
                (None, _) => Ran::default(),
            };
            Ok(Ran { prompt: answered.prompt.or(prompt), state: answered.state })
        })
    }
}
