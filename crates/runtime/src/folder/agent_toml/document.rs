//! The document of tools beside `agent.toml`, and what the host lends to it.

use std::collections::BTreeMap;

use gesta_run::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AnswerToml, Table};
use crate::folder::duration::Length;

/// Grants by library and name: `[grants.App.refund]` is called as `App.refund`.
pub type Grants = BTreeMap<String, BTreeMap<String, GrantToml>>;

/// A document of tools: every conversation begins with a copy of its own. There is one wherever the folder has
/// `tools.stof`; this table says more about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DocumentToml {
    /// Its file. `tools.stof` where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the model can add tools. `on` gives a document without an `add_tool` of its own the built-in one, `off`
    /// forbids both. Where unset it is `on` for a document with its own `add_tool`, and `off` for any other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_tools: Option<AddedToolsWord>,
    /// Whether every wall of the sandbox is `required`, or those are enough that the kernel has. `available` where
    /// unset; `gesta check` tells which stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxWord>,
    /// Milliseconds that one call may run inside the document, grants left out. 2000 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub call_time_max_ms: Option<u32>,
    /// Grant calls of one call. 50 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants_max: Option<u32>,
    /// Bytes of the arguments of one grant call. 65536 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub grant_arguments_bytes_max: Option<u32>,
    /// Bytes of the result of one grant call. 262144 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub grant_result_bytes_max: Option<u32>,
    /// Tools that may be added. 32 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_tools_max: Option<u32>,
    /// Bytes of the source of one added tool. 8192 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub source_bytes_max: Option<u32>,
    /// Bytes of a value that enters or leaves the document, as JSON. 262144 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub value_bytes_max: Option<u32>,
    /// Bytes that a call may print. 16384 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes_max: Option<u32>,
    /// Bytes of its saved data. 1048576 where unset, and 2097152 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_097_152))]
    pub data_bytes_max: Option<u32>,
    /// Worker processes at any time, for all conversations together. Four for each core where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub workers_max: Option<u32>,
    /// How long a call waits for a worker before it fails. 5 s where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_wait_time_limit: Option<Length>,
}

/// Whether tools can be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AddedToolsWord {
    /// They can.
    On,
    /// They cannot, not even where the document has an `add_tool`.
    Off,
}

/// Which walls there must be around a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxWord {
    /// All of them, or no document runs.
    Required,
    /// Those that the kernel has.
    Available,
}

/// A function that is lent to the document's tools. It has exactly one body: `url` or `answers`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantToml {
    /// The endpoint that runs it: it is sent a POST with `{"arguments": …}` and answers with JSON. An error of it is
    /// thrown inside the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "http_url"))]
    pub url: Option<String>,
    /// The names of its parameters, in the order in which documents give them. Arguments beyond them are dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<String>,
    /// JSON schema of its arguments. Without one any are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Table>,
    /// What calling it does: `once` (it has effects and is never repeated by itself) or `reads_only` (it may be called
    /// again after a crash). `once` where unset; `staged` is refused until there is a channel that performs it.
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["once", "reads_only", "staged"]))]
    pub effect: Effect,
    /// How long it may take. 10 s where unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Length>,
    /// Headers of that request. A value may be `env:NAME`, or end with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Fixed answers in place of a server, as tools have them. The first that fits is given; a call that none fits
    /// fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerToml>,
}
