//! Documents of tools: data and functions in one value, which the agent itself can extend (`spec/documents.md`).
//!
//! This crate holds the engine behind one trait, [`Document`], and does no I/O of its own. The engine is not safe in
//! a process that must live: `gesta-sandbox` runs it in workers.
//!
//! ```
//! use gesta_document::{GrantName, Host, Record, Terms, open};
//! use gesta_run::json::Object;
//! use serde_json::{Value, json};
//!
//! /// A host that lends nothing.
//! struct Alone;
//!
//! impl Host for Alone {
//!     fn grant(&mut self, grant: &GrantName, _: Object) -> Result<Value, String> {
//!         Err(format!("{grant} is not lent"))
//!     }
//! }
//!
//! let base = "
//!     notes: []
//!     tools: {
//!         #[tool('Keeps a note')]
//!         fn remember(note: str) -> int { root.notes.push_back(note); root.notes.len() }
//!     }";
//! let mut record = Record { base: base.to_owned(), ..Record::default() };
//! let mut document = open(&record, &Terms::default())?;
//! assert_eq!(document.specs()?[0].name, "remember");
//!
//! let arguments = json!({"note": "likes tea"});
//! let called = document.call("remember", arguments.as_object().ok_or("no object")?, &mut Alone)?;
//! assert_eq!(called.result, json!(1));
//!
//! // What is kept is the record; another process goes on from it.
//! record.keep(&called);
//! let mut again = open(&record, &Terms::default())?;
//! let called = again.call("remember", arguments.as_object().ok_or("no object")?, &mut Alone)?;
//! assert_eq!(called.result, json!(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reading order: [`Record`] and [`Terms`] (what a document is, and on which terms it is opened), [`Document`] and
//! [`Host`] (what it does, and what it may ask), then `guard` (what is let in), `engine/step.rs` (how a call runs),
//! `engine/census.rs` (what it may not change) and `engine/data.rs` (what is kept).

mod base64_text;
mod grant;
mod host;
mod limits;
mod record;
mod refused;
mod terms;

mod check;
mod engine;
mod guard;
mod guidance;
mod image;
mod open;

#[cfg(test)]
mod properties;

pub use check::{Needs, Report, check};
pub use grant::{GrantName, GrantSpec};
pub use guidance::{ADD_TOOL_GUIDANCE, examples_of_guidance};
pub use host::{CallError, Called, Document, Form, Host};
pub use image::{IMAGE_BYTES_MAX, IMAGE_VERSION, Image, ImageError};
pub use limits::Limits;
pub use open::{OpenError, base_hash, open};
pub use record::{AddedTool, Author, Record, SWITCHED_OFF};
pub use refused::{Place, Refused};
pub use terms::{AddedTools, Terms};
