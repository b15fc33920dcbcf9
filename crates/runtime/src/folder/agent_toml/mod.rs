//! `agent.toml` as it is written: one struct a table, each key with its meaning. The JSON schema and the reference in
//! `docs/agent-toml.md` come from here.

mod contract;
mod decision;
mod document;
mod provider;
mod settings;
mod tool;

use std::collections::BTreeMap;

use gesta_model::ProviderSpec;
use gesta_run::json::Object;
use gesta_run::plan::{OnHookError, OnMessageWhileParked, OnUndecided};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use contract::{ActWhenAskedToml, BackstopToml, OneOrMany, PatternToml, RefusalTable, RefusalToml, RefusalWord};
pub use decision::{ActionWord, DecisionToml, Operators, Test};
pub use document::{AddedToolsWord, DocumentToml, GrantToml, Grants, SandboxWord};
pub use provider::{ModelOptionsToml, RequestsToml};
pub use settings::{HistoryToml, LimitsToml, NetworkToml, OutputToml, StorageToml};
pub use tool::{AnswerToml, ToolToml};

use super::duration::Length;

/// An agent as a folder: what it is, what it may do, what it must do, and where its limits are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "agent.toml")]
pub struct AgentToml {
    /// The agent's name. The folder's name where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version, for reports. A digest of the folder's settings is added to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// `provider:model`, for instance `openai:gpt-5-mini`, or `script` for the scripted model. `script` where unset and
    /// the folder has a script. `GESTA_MODEL` overrides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the model is told beside the messages.
    pub model_options: ModelOptionsToml,
    /// Providers by name: servers that speak a known protocol at another address, or other options for a known one.
    pub providers: BTreeMap<String, ProviderSpec>,
    /// Time limits and attempts of requests to the model.
    pub requests: RequestsToml,
    /// The scripted model, read when the model is `script`. `model.script` where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_script: Option<String>,
    /// The file with the persona, read verbatim. `prompt.md` where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// IANA name of the zone in which the model is told the time. `UTC` where unset; `GESTA_TIMEZONE` overrides it.
    #[schemars(extend("format" = "timezone"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Whether answers are streamed from the model. True where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// How much a run may use.
    pub limits: LimitsToml,
    /// Ask again when the user asked for a change and the model did not make it. Off where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act_when_asked: Option<ActWhenAskedToml>,
    /// Ask again when a tool refused and the model gave up: `"off"`, `"retry_once_with_hint"`, `"errors"`, or a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_tool_refusal: Option<RefusalToml>,
    /// Rules that look at a turn before or after the model.
    pub backstops: Vec<BackstopToml>,
    /// What the model can call.
    pub tools: Vec<ToolToml>,
    /// The document of tools, which the model can extend. `tools.stof` makes one without this table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<DocumentToml>,
    /// What the host lends to the document's tools, by library and name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: Grants,
    /// Which calls run, are denied, or wait for a person. The first rule that fits decides; without one a call runs.
    pub decisions: Vec<DecisionToml>,
    /// What a decision that fails does: `stop` ends the run, `deny` denies that call. `stop` where unset.
    #[schemars(with = "Option<String>", extend("enum" = ["stop", "deny", null]))]
    pub on_hook_error: Option<OnHookError>,
    /// What becomes of an approved call whose outcome a crash hid: `ask` waits for someone who knows, `tell_model`
    /// tells the model. `ask` where unset.
    #[schemars(with = "Option<String>", extend("enum" = ["ask", "tell_model", null]))]
    pub on_undecided: Option<OnUndecided>,
    /// What a new message does to a parked run: `supersede` closes it, `refuse` refuses the message. `supersede` where
    /// unset.
    #[schemars(with = "Option<String>", extend("enum" = ["supersede", "refuse", null]))]
    pub on_message_while_parked: Option<OnMessageWhileParked>,
    /// How long a held call waits for an answer before it expires. Without end where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_ttl: Option<Length>,
    /// The form of the final answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputToml>,
    /// Which hosts may be reached beyond the public ones over HTTPS.
    pub network: NetworkToml,
    /// Where runs and conversations are kept.
    pub storage: StorageToml,
    /// How much of a conversation the model is sent.
    pub history: HistoryToml,
    /// A price file of your own, read over the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<String>,
}

/// A table whose keys are the author's, kept as it is written.
pub type Table = Object;

/// The JSON schema of `agent.toml`, for editors that complete it.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(AgentToml).to_value()
}
