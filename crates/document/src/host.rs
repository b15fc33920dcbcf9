//! What a document can do, and what it may ask of its host.

use gesta_run::ToolSpec;
use gesta_run::json::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AddedTool, GrantName};

/// The host of a document while one of its tools runs.
pub trait Host {
    /// A grant was called, with its arguments by name. The document's clock stands still until this returns. An error
    /// is thrown inside the document.
    ///
    /// # Errors
    /// The text that the document's function may catch.
    fn grant(&mut self, grant: &GrantName, arguments: Object) -> Result<Value, String>;
}

/// A document that is open: one conversation's, in its worker.
pub trait Document {
    /// The tools, as the model is to see them.
    ///
    /// # Errors
    /// The document's own `tool_specs` failed, or gave no usable list.
    fn specs(&mut self) -> Result<Vec<ToolSpec>, CallError>;

    /// Runs a tool. After an error the document is as it was before.
    ///
    /// # Errors
    /// As [`CallError`] says.
    fn call(&mut self, tool: &str, arguments: &Object, host: &mut dyn Host) -> Result<Called, CallError>;

    /// The data, in the engine's own binary form, for [`crate::Record::data`].
    ///
    /// # Errors
    /// The data cannot be saved.
    fn save(&mut self) -> Result<Vec<u8>, CallError>;
}

/// What a call that succeeded left behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// Its result.
    pub result: Value,
    /// Tools that were added while it ran, in order; author and time are the host's to write.
    #[serde(default)]
    pub added: Vec<AddedTool>,
    /// The data, where the call changed it.
    #[serde(default)]
    pub data: Option<Vec<u8>>,
    /// What the document printed, cut at its limit.
    #[serde(default)]
    pub log: String,
    /// Running time inside the document, in microseconds, grants left out.
    #[serde(default)]
    pub running_us: u64,
}

/// Why a call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallError {
    /// The document has no such tool.
    #[error("the document has no tool `{name}`")]
    UnknownTool {
        /// What was called.
        name: String,
    },
    /// Its code threw.
    #[error("{message}")]
    Thrown {
        /// What it threw, as text.
        message: String,
    },
    /// A clock ended it.
    #[error("the tool ran longer than {limit_ms} ms")]
    TimedOut {
        /// The clock's limit.
        limit_ms: u64,
    },
    /// It met a limit.
    #[error("{message}")]
    Limit {
        /// Which limit, with its number.
        message: String,
    },
    /// The document would not have been its record any more; the call was undone.
    #[error("{message}; the call was undone")]
    OffRecord {
        /// What differs.
        message: String,
    },
}
