//! Limits, network, storage, history and the form of the answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Table;
use crate::folder::duration::Length;

/// How much a run may use (`spec/contract.md`, 2.12).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsToml {
    /// Model calls. 10 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub trips_max: Option<u32>,
    /// Calls of one answer that run at the same time. 8 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub calls_parallel_max: Option<u32>,
    /// Calls of one answer; the rest is not run. 64 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub calls_max: Option<u32>,
    /// Staged actions. 8 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions_max: Option<u32>,
    /// Bytes of one tool result; a longer one is cut. 262144 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub result_bytes_max: Option<u32>,
    /// Bytes of what the user says. 1048576 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub input_bytes_max: Option<u32>,
    /// Bytes of an error that the model reads. 4096 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub error_bytes_max: Option<u32>,
    /// Tokens of all model calls together. Without limit where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tokens_max: Option<u64>,
    /// Cost of all model calls together, in US dollars. Without limit where unset; `GESTA_COST_USD_MAX` overrides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub cost_usd_max: Option<f64>,
    /// Seconds from the start, time spent parked left out. Without limit where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub seconds_max: Option<u64>,
}

/// The form of the final answer. Exactly one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OutputToml {
    /// A JSON schema that the answer must fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Table>,
    /// A JSON file with that schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_file: Option<String>,
}

/// Which hosts HTTP tools and backstops may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkToml {
    /// `host:port` of servers on a private network or without TLS. All others must be public and speak HTTPS.
    #[schemars(extend("items" = {"type": "string", "format": "host_port"}))]
    pub allow: Vec<String>,
}

/// Where runs and conversations are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StorageToml {
    /// The data folder, seen from the agent's folder. `gesta` in the user's data folder where unset; `GESTA_DATA`
    /// overrides it, and `--data` both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// How long a server keeps what has ended, counted from its last change: a conversation with all its runs, or a run
    /// without one. What goes on or waits for somebody is kept. Without end where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<Length>,
    /// Keep the exact requests to the model, for `gesta show --wire`. They hold everything that was said. False where
    /// unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<bool>,
}

/// How much of a conversation the model is sent. The oldest whole turns go first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryToml {
    /// Turns. 50 where unset; 0 sends none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<u32>,
    /// Tokens. 60 % of the model's window where unset and the window is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tokens_max: Option<u64>,
}
