//! Where models are, and what they are told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Table;
use crate::folder::duration::Length;

/// Options of the model. Those left out are the provider's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelOptionsToml {
    /// How freely the model chooses its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// The part of the probability that is chosen from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub top_p: Option<f64>,
    /// Tokens of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// How much the model thinks, in the provider's own words, for instance `low`. For OpenAI's protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Further fields of the provider's request, sent as they are, for instance `seed`, `stop` or `thinking`.
    #[serde(skip_serializing_if = "Table::is_empty")]
    pub extra: Table,
}

/// How requests to the model are sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestsToml {
    /// Attempts in all, the first one counted; 1 never tries again. 3 where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub attempts_max: Option<u32>,
    /// How long resolving, connecting and the TLS handshake may take. 10 s where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_time_limit: Option<Length>,
    /// How long the first byte of an answer may take. 2 minutes where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_time_limit: Option<Length>,
    /// How long an answer may be silent. 1 minute where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_time_limit: Option<Length>,
    /// How long a whole answer may take. 10 minutes where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_time_limit: Option<Length>,
}
