//! On which terms a document is opened: what it may call, use and add.

use serde::{Deserialize, Serialize};

use crate::{GrantSpec, Limits};

/// What the host allows a document; no part of the record, told anew on every load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Terms {
    /// Functions of the host that it may call.
    pub grants: Vec<GrantSpec>,
    /// What it may use.
    pub limits: Limits,
    /// Whether tools can be added to it.
    pub added_tools: AddedTools,
    /// Names of the host's own tools, which an added tool cannot take.
    pub names_taken: Vec<String>,
}

/// Whether tools can be added (`spec/documents.md`, 3.13).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddedTools {
    /// As the base says: on where it defines an `add_tool` of its own.
    #[default]
    AsBase,
    /// On; a base without an `add_tool` is given the built-in one.
    On,
    /// Off: `add_tool` is not offered, whoever wrote it.
    Off,
}
