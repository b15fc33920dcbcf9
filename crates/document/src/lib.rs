//! Documents of tools: data and functions in one value, which the agent itself can extend (`spec/documents.md`).
//!
//! This crate holds the engine behind one trait, [`Document`], and does no I/O of its own. The engine is not safe in
//! a process that must live: `gesta-sandbox` runs it in workers.

mod grant;
mod host;
mod limits;
mod record;

pub use grant::{GrantName, GrantSpec};
pub use host::{CallError, Called, Document, Host};
pub use limits::Limits;
pub use record::{AddedTool, Author, Record};
