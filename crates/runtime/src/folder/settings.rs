//! A folder's whole configuration by value, without secrets: what is stored under its hash, so that a parked run goes
//! on with the version it parked under (`spec/contract.md`, 7.5).

use std::collections::BTreeMap;

use gesta_document::{AddedTools, Limits};
use gesta_model::{ProviderSpec, Retries, Timeouts};
use gesta_run::json;
use gesta_run::plan::PlanSpec;
use gesta_sandbox::Demand;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent_toml::{AnswerToml, BackstopToml, DecisionToml};
use super::secret::Template;

/// The form of snapshots that this version writes.
pub const SNAPSHOT_VERSION: u32 = 1;

/// Everything a folder says, files read and defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The form of this snapshot.
    pub snapshot: u32,
    /// What the machine knows. Its version holds a digest of all settings, so that its hash stands for them.
    pub plan: PlanSpec,
    /// The text of the scripted model, where the model is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The folder's own providers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, ProviderSpec>,
    /// Time limits of requests to the model.
    pub timeouts: Timeouts,
    /// How often they are tried again.
    pub retries: Retries,
    /// Whether answers are streamed from the model.
    pub stream: bool,
    /// What runs each tool, by its name.
    pub bodies: BTreeMap<String, Body>,
    /// The document of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<DocumentPart>,
    /// What runs each grant, by its full name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: BTreeMap<String, Body>,
    /// The decision rules, in order.
    pub decisions: Vec<DecisionToml>,
    /// The backstops, in the order of the plan's.
    pub backstops: Vec<BackstopToml>,
    /// `host:port` of the servers that may be private or without TLS.
    pub network_allow: Vec<String>,
    /// How much of a conversation the model is sent.
    pub history: HistoryLimits,
}

/// What runs a tool or a grant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// An endpoint.
    Http(Endpoint),
    /// Fixed answers.
    Answers(Vec<AnswerToml>),
    /// Whoever called the agent.
    External,
}

/// A document of tools as the folder has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentPart {
    /// Its file.
    pub file: String,
    /// Its text.
    pub base: String,
    /// Whether tools can be added.
    pub added_tools: AddedTools,
    /// What to do where the kernel lacks a wall.
    pub sandbox: Demand,
    /// What it may use.
    pub limits: Limits,
    /// Worker processes at any time, where that is said.
    pub workers_max: Option<u32>,
    /// How long a call waits for a worker, in milliseconds, where that is said.
    pub worker_wait_max_ms: Option<u64>,
}

/// An address and the headers that are sent to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The address.
    pub url: String,
    /// The headers, secrets by reference.
    pub headers: BTreeMap<String, Template>,
}

/// How much of a conversation the model is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLimits {
    /// Turns.
    pub turns_max: u32,
    /// Tokens; without limit where the model's window is unknown and none was set.
    pub tokens_max: Option<u64>,
}

impl HistoryLimits {
    /// Turns where nothing is set.
    pub const TURNS_MAX: u32 = 50;
    /// The part of a model's window that the history may fill, in percent.
    pub const WINDOW_PERCENT: u64 = 60;
}

impl Settings {
    /// A digest of everything but the plan's version, twelve hexadecimal digits long.
    pub(crate) fn digest(&self) -> String {
        let mut bare = self.clone();
        bare.plan.version.clear();
        let value = serde_json::to_value(&bare).unwrap_or(Value::Null);
        json::sha256_hex(json::canonical(&value).as_bytes())[..12].to_owned()
    }

    /// The variables whose secrets tools and backstops need, each with what needs it.
    pub(crate) fn secret_names(&self) -> Vec<(String, String)> {
        let mut names = Vec::new();
        let mut gather = |headers: &BTreeMap<String, Template>, whose: String| {
            names.extend(headers.values().filter_map(|it| it.env.clone()).map(|name| (name, whose.clone())));
        };
        for (tool, body) in &self.bodies {
            if let Body::Http(endpoint) = body {
                gather(&endpoint.headers, format!("tool `{tool}`"));
            }
        }
        for (grant, body) in &self.grants {
            if let Body::Http(endpoint) = body {
                gather(&endpoint.headers, format!("grant `{grant}`"));
            }
        }
        for backstop in &self.backstops {
            let templates = backstop.headers.iter().filter_map(|(k, v)| Some((k.clone(), Template::parse(v).ok()?)));
            gather(&templates.collect(), format!("backstop `{}`", backstop.name));
        }
        names
    }
}
