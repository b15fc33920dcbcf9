//! Documents of tools: data and functions in one value, which the agent itself can extend (`spec/documents.md`).
//!
//! This crate holds the engine behind one trait, [`Document`], and does no I/O of its own. The engine is not safe in
//! a process that must live: `gesta-sandbox` runs it in workers.

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
pub use record::{AddedTool, Author, Record};
pub use refused::{Place, Refused};
pub use terms::{AddedTools, Terms};
