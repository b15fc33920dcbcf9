//! What the model can call.

use std::collections::BTreeMap;

use gesta_run::pattern::PatternSpec;
use gesta_run::tool::{Accepts, Effect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PatternToml, Table, Test};
use crate::folder::duration::Length;

/// One tool. It has exactly one body: `url`, `answers`, or `external = true`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolToml {
    /// What the model calls it: 1 to 64 letters, digits, `_` or `-`.
    pub name: String,
    /// What the model is told about it.
    #[serde(default)]
    pub description: String,
    /// JSON schema of its arguments. A tool without one takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Table>,
    /// A JSON file with that schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters_file: Option<String>,
    /// What running it does: `once` (it has effects and is never repeated by itself), `reads_only` (it may be run
    /// again after a crash) or `staged` (it is written down and done after the reply was delivered). `once` where unset.
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["once", "reads_only", "staged"]))]
    pub effect: Effect,
    /// How long it may take. 30 s where unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Length>,
    /// For tools that refuse in plain text: a match in the text result or error is a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PatternToml>")]
    pub refusal: Option<PatternSpec>,
    /// Which answers a held call takes: `any`, `approval_only` or `external` (nobody may approve, only hand in a
    /// result). `any` where unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("enum" = ["any", "approval_only", "external", null]))]
    pub accepts: Option<Accepts>,
    /// An answer that calls silent tools alone ends the turn with the text beside the calls. False where unset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// For `staged`: each action waits for a person. False where unset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// The endpoint that runs it: it is sent a POST with `{"arguments": …}` and answers with JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "http_url"))]
    pub url: Option<String>,
    /// Headers of that request. A value may be `env:NAME`, or end with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whoever called the agent runs it: its calls are always deferred and answered with a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub external: bool,
    /// Fixed answers in place of a server, for drafts, examples and tests. The first that fits is given; a call that
    /// none fits fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerToml>,
}

/// A fixed answer. `{name}` in its texts is replaced by that argument. Exactly one of `result` and `error`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerToml {
    /// Conditions on the arguments, as in decisions. Without one it always fits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Test>,
    /// What the tool returns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// What it fails with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
