//! A tenant's four files as one checked set with a version, which a turn keeps from its beginning to its end
//! (`spec/channel.md`, 8 and 22).

mod catalog;
mod entry;
mod fault;
mod rules;
mod tools;

use std::sync::Arc;

use gesta_run::json;

pub use catalog::{Answer, Catalog, Offering, PaymentOption, Price};
pub use fault::Fault;
pub use rules::{OpeningTrigger, Rules};
pub use tools::{Delay, Field, Flow, INTENT_VALUES, Note, Tag, Tools};

/// The texts of the four files, as they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// `prompt.md`, the persona.
    pub prompt: String,
    /// `catalog.json`.
    pub catalog: String,
    /// `rules.json`.
    pub rules: String,
    /// `tools.json`; without it there are no tools.
    pub tools: Option<String>,
}

/// Names of the environment that no tool may touch (`spec/channel.md`, 8 and 22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// `MANYCHAT_REPLY_FLOW_NS`.
    pub reply_flow: String,
    /// `MANYCHAT_REPLY_FIELD`.
    pub reply_field: String,
    /// `MANYCHAT_TOKEN_FIELD`.
    pub token_field: String,
}

/// The configuration of a turn: immutable, cheap to share, replaced as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// SHA-256 of the four files: the turn's `config version`.
    pub version: String,
    /// The persona, verbatim.
    pub prompt: String,
    /// What the tenant sells.
    pub catalog: Catalog,
    /// Copy and limits.
    pub rules: Rules,
    /// What the agent may do.
    pub tools: Tools,
}

impl Snapshot {
    /// Checks the four files together.
    ///
    /// # Errors
    /// Every fault of every file at once, those between files last: at boot they stop it, on a reload the previous
    /// snapshot stays.
    pub fn read(files: &Files, reserved: &Reserved) -> Result<Arc<Self>, Vec<Fault>> {
        let mut faults = Vec::new();
        if files.prompt.trim().is_empty() {
            faults.push(Fault::new("prompt.md", "", "is blank", "write the persona into it"));
        }
        let catalog = catalog::read(&files.catalog, &mut faults);
        let rules = rules::read(&files.rules, &mut faults);
        let tools = match &files.tools {
            Some(text) => tools::read(text, reserved, &mut faults),
            None => Tools::default(),
        };
        if let Some(tag) = &rules.human_active_tag
            && tools.tags.iter().any(|it| it.tag == *tag)
        {
            let what = "is also a tag that the agent may set and remove, so that it could silence itself";
            faults.push(Fault::new("rules.json", "/handoff/human_active_tag", what, "name a tag that only staff use"));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let all = serde_json::json!([files.prompt, files.catalog, files.rules, files.tools]);
        let version = json::sha256_hex(json::canonical(&all).as_bytes());
        Ok(Arc::new(Self { version, prompt: files.prompt.clone(), catalog, rules, tools }))
    }
}
