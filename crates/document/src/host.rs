//! What a document can do, and what it may ask of its host.

use gesta_run::ToolSpec;
use gesta_run::json::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AddedTool, GrantName, Refused};

/// The host of a document while one of its tools runs.
pub trait Host {
    /// A grant was called, with its arguments by name. The document's clock stands still until this returns. An error
    /// is thrown inside the document.
    ///
    /// # Errors
    /// The text that the document's function may catch.
    fn grant(&mut self, grant: &GrantName, arguments: Object) -> Result<Value, String>;

    /// Takes what the document has just printed, whole lines of it, so that it is there also where the call does not
    /// come to its end. What is not taken stands in [`Called::log`].
    fn print(&mut self, _text: &str) -> bool {
        false
    }
}

/// A document that is open: one conversation's, in its worker.
pub trait Document: Send {
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

    /// Adds a tool on behalf of a person or of the host, under the same rules as one that the agent adds.
    ///
    /// # Errors
    /// What is wrong with the source, and where.
    fn add_tool(&mut self, source: &str) -> Result<AddedTool, Refused>;

    /// Runs the functions tagged `#[main]`, in order; what they print is the log.
    ///
    /// # Errors
    /// As [`CallError`] says; also where there is none.
    fn main(&mut self, host: &mut dyn Host) -> Result<Called, CallError>;

    /// What was added, oldest first, with what was set aside on opening and why ([`AddedTool::set_aside`]).
    fn added(&self) -> &[AddedTool];

    /// Tools that stood in the data it was opened with and were not taken: functions come from the base and the recorded
    /// sources alone.
    fn left_out(&self) -> &[String] {
        &[]
    }

    /// The whole of it for other programs: base, added tools and data.
    ///
    /// # Errors
    /// It cannot be written in that form.
    fn export(&mut self, form: Form) -> Result<Vec<u8>, CallError>;

    /// The data, in the engine's own binary form, for [`crate::Record::data`].
    ///
    /// # Errors
    /// The data cannot be saved.
    fn save(&mut self) -> Result<Vec<u8>, CallError>;
}

/// A form in which a document leaves the host (`spec/documents.md`, 3.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Source text that a person can read, in UTF-8.
    Stof,
    /// The engine's own binary form, which any Stof reads.
    Bstf,
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
    #[serde(default, with = "crate::base64_text")]
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
    /// Its functions called each other too deeply.
    #[error("the tool calls itself too deeply (more than {levels_max} levels)")]
    TooDeep {
        /// How many may be open at once.
        levels_max: usize,
    },
    /// It did more than a call may, whatever the clock says.
    #[error("the tool {message}")]
    TooMuch {
        /// What it did, with its limit.
        message: String,
    },
    /// Its arguments, its result or its data met a limit.
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
