//! Agents as folders: `agent.toml` and the files it names, read, checked and turned into a plan and its rules.

pub mod agent_toml;
pub mod check;
pub mod duration;
mod environment;
mod files;
mod format;
pub mod init;
mod later;
mod nearest;
pub mod prices;
pub mod problem;
mod resolve;
mod resolve_contract;
mod resolve_document;
mod resolve_model;
mod resolve_tools;
pub mod secret;
pub mod settings;
mod shape;
mod source;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gesta_document::{GrantName, GrantSpec, Terms};
use gesta_model::{Providers, Transport};
use gesta_run::plan::{Functions, Plan};
use gesta_run::{Accepts, ToolEffect, ToolSpec};
use gesta_scene::Script;
use serde_json::Value;

pub use agent_toml::schema;
pub use check::{Report, check};
pub use problem::{FolderErrors, Place, Problem};
pub use secret::{Secret, Secrets};
pub use settings::{Body, DocumentPart, Endpoint, HistoryLimits, Settings};

use crate::rules::answers::Answers;
use crate::rules::backstops::BackstopRule;
use crate::rules::decisions::Decisions;
use environment::Environment;
pub(crate) use format::host_port;

/// The file that makes a folder an agent.
pub const AGENT_FILE: &str = "agent.toml";

/// An agent that was read from a folder, or from a snapshot of one.
#[derive(Debug)]
pub struct Folder {
    /// The folder; none for a snapshot.
    pub dir: Option<PathBuf>,
    /// Where runs and conversations are kept.
    pub storage: Storage,
    /// Everything the folder says, by value.
    pub settings: Settings,
    /// The plan, checked and compiled.
    pub plan: Arc<Plan>,
    /// The decision rules.
    pub decisions: Decisions,
    /// The backstops, in the order of the plan's.
    pub backstops: Vec<BackstopRule>,
    /// The variables that the settings refer to.
    pub secrets: Secrets,
}

/// Where runs and conversations are kept. Not part of the settings: a run is found where it was left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storage {
    /// The data folder, where the folder or the environment names one; else it is the program's own.
    pub data: Option<PathBuf>,
    /// `DATABASE_URL`, where it is set.
    pub database_url: Option<String>,
    /// How long a server keeps what has ended, in milliseconds; without end where nothing is said.
    pub keep_ms: Option<u64>,
    /// Keep the exact requests to the model.
    pub wire: bool,
}

impl Folder {
    /// Reads a folder. Blocks on files; `env` is asked for variables (the process's, or a test's), which win over the
    /// folder's `.env`.
    ///
    /// # Errors
    /// Everything that is wrong, each with file, line, column and a way out.
    pub fn load(dir: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, FolderErrors> {
        let mut problems = Vec::new();
        let environment = Environment::of_folder(dir, env, &mut problems);
        let resolved = resolve::resolve(dir, &environment, &mut problems);
        let Some((settings, storage)) = resolved else { return Err(FolderErrors(problems)) };
        let secrets = secrets(&settings, &environment, &mut problems);
        FolderErrors::check(problems)?;
        let mut folder = Self::assemble(settings, secrets)?;
        folder.dir = Some(dir.to_owned());
        folder.storage = storage;
        Ok(folder)
    }

    /// The whole configuration by value, without secrets. To be stored under [`Plan::hash`].
    pub fn snapshot(&self) -> Value {
        serde_json::to_value(&self.settings).expect("settings are made of texts, numbers and lists")
    }

    /// Goes back to a stored configuration. Secrets come from `env` alone, by the names under which they were known.
    ///
    /// # Errors
    /// The snapshot is of another version or damaged, or a secret is missing.
    pub fn from_snapshot(snapshot: Value, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, FolderErrors> {
        let wrong = |why: String| FolderErrors(vec![Problem::new("snapshot", why)]);
        match snapshot.get("snapshot").and_then(Value::as_u64) {
            Some(version) if version == u64::from(settings::SNAPSHOT_VERSION) => {}
            Some(version) => return Err(wrong(format!("is of version {version}, which this program does not read"))),
            None => return Err(wrong("is none of an agent's folder".to_owned())),
        }
        let settings: Settings = serde_json::from_value(snapshot).map_err(|why| wrong(format!("is damaged: {why}")))?;
        let mut problems = Vec::new();
        let secrets = secrets(&settings, &Environment::process(env), &mut problems);
        FolderErrors::check(problems)?;
        Self::assemble(settings, secrets)
    }

    /// The same agent with further tools that its caller runs: their calls wait for whoever began the run.
    ///
    /// # Errors
    /// A name is taken or cannot be offered, or a schema is none.
    pub fn with_external(&self, tools: Vec<ToolSpec>) -> Result<Self, FolderErrors> {
        let mut settings = self.settings.clone();
        for tool in tools {
            settings.bodies.insert(tool.name.clone(), Body::External);
            let (accepts, effect) = (Accepts::External, ToolEffect::Once);
            settings.plan.tools.push(ToolSpec { accepts, effect, ..tool });
        }
        settings.plan.hook = settings.plan.hook || settings.external().next().is_some();
        let with = Self::assemble(settings, self.secrets.clone())?;
        Ok(Self { dir: self.dir.clone(), storage: self.storage.clone(), ..with })
    }

    fn assemble(settings: Settings, secrets: Secrets) -> Result<Self, FolderErrors> {
        let wrong = |why: String| FolderErrors(vec![Problem::new(AGENT_FILE, why)]);
        let plan = Plan::new(settings.plan.clone(), Functions::default()).map_err(|why| wrong(why.to_string()))?;
        let decisions = Decisions::compile(&settings.decisions, settings.external())
            .map_err(|errors| wrong(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
        let backstops = settings.backstops.iter().map(BackstopRule::compile).collect::<Result<_, _>>();
        let backstops = backstops.map_err(|why| wrong(why.to_string()))?;
        Ok(Self { dir: None, storage: Storage::default(), settings, plan, decisions, backstops, secrets })
    }

    /// The providers of the folder, and its scripted model where it has one, over a transport.
    pub fn providers(&self, transport: Transport) -> Providers {
        let mut providers = resolve_model::providers(&self.settings.providers, self.secrets.clone(), transport);
        providers.timeouts = self.settings.timeouts;
        providers.retries = self.settings.retries;
        let script = self.settings.script.as_deref().map(Script::parse);
        providers.script = script.and_then(Result::ok).map(Arc::new);
        providers
    }

    /// The fixed answers of a tool that has such.
    pub fn answers(&self, tool: &str) -> Option<Answers> {
        match self.settings.bodies.get(tool)? {
            Body::Answers(written) => Answers::compile(written).ok(),
            Body::Http(_) | Body::External => None,
        }
    }

    /// Where the document's file is, for messages; empty without one.
    pub(crate) fn document_path(&self) -> String {
        let Some(document) = &self.settings.document else { return String::new() };
        let path = self.dir.as_ref().map(|dir| dir.join(&document.file));
        path.map_or_else(|| document.file.clone(), |path| path.display().to_string())
    }

    /// On which terms the folder's document is opened.
    pub fn document_terms(&self) -> Option<Terms> {
        let document = self.settings.document.as_ref()?;
        let plan = &self.settings.plan;
        let grant = |spec: &gesta_run::GrantSpec| GrantSpec {
            name: GrantName { library: spec.library.clone(), name: spec.name.clone() },
            params: spec.params.clone(),
        };
        Some(Terms {
            grants: plan.grants.iter().map(grant).collect(),
            limits: document.limits.clone(),
            added_tools: document.added_tools,
            names_taken: plan.tools.iter().map(|tool| tool.name.clone()).collect(),
        })
    }
}

impl Settings {
    /// The tools that whoever called the agent runs.
    pub(crate) fn external(&self) -> impl Iterator<Item = String> {
        self.bodies.iter().filter(|(_, body)| matches!(body, Body::External)).map(|(name, _)| name.clone())
    }
}

/// Looks up every secret that the settings refer to; a missing one is a problem.
fn secrets(settings: &Settings, environment: &Environment<'_>, problems: &mut Vec<Problem>) -> Secrets {
    let mut found = resolve_model::variables(&settings.providers, environment);
    for (name, whose) in settings.secret_names() {
        match environment.get(&name) {
            Some(value) => found.insert(name, Secret::new(value)),
            None => problems.push(
                Problem::new(AGENT_FILE, format!("{whose} needs the variable `{name}`, which is not set"))
                    .fixed_by("set it in the environment, or in `.env` beside agent.toml"),
            ),
        }
    }
    found
}
