//! The host's record of a document: the base, the sources of added tools, the data. Nothing else is the document.

use gesta_run::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Called;

/// What a conversation's document is (`spec/documents.md`, 3.6).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The source that the operator wrote.
    pub base: String,
    /// What was added since, oldest first.
    #[serde(default)]
    pub added: Vec<AddedTool>,
    /// The data, in the engine's own binary form; none where nothing has run yet.
    #[serde(default, with = "crate::base64_text")]
    pub data: Option<Vec<u8>>,
    /// The hash of the base under which the data was saved ([`crate::base_hash`]), where the base may have changed
    /// since; none says that it has not.
    #[serde(default)]
    pub data_base: Option<String>,
}

impl Record {
    /// Takes over what a call left behind; author and time of its tools are the host's word.
    pub fn keep(&mut self, called: &Called) {
        self.keep_tools(&called.added);
        if let Some(data) = &called.data {
            self.data = Some(data.clone());
            self.data_base = None;
        }
    }

    /// Takes over tools. One replaces what was added under its name before, offered or set aside: a name stands once.
    pub fn keep_tools(&mut self, added: &[AddedTool]) {
        for tool in added {
            self.added.retain(|known| known.name != tool.name);
            self.added.push(tool.clone());
        }
    }
}

/// Why a tool is not offered that a person switched off ([`AddedTool::set_aside`]). Its name is taken until they
/// switch it on again: an agent does not write it anew.
pub const SWITCHED_OFF: &str = "switched off by a person";

/// A tool that was added while running.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AddedTool {
    /// Its name.
    pub name: String,
    /// Its source: one function.
    pub source: String,
    /// Who wrote it; the host's word, never the document's.
    #[serde(default)]
    pub author: Option<Author>,
    /// When.
    #[serde(default)]
    pub at: Option<Timestamp>,
    /// Why it is not offered: switched off by a person, or set aside after a change of the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
}

/// Who wrote a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Author {
    /// The agent, in this run.
    Agent {
        /// The run's id.
        run: String,
    },
    /// A person, by name.
    Person {
        /// Who.
        name: String,
    },
}
