//! Speaks to models: one streaming trait, the provider adapters, their transport, the scripted model.
//!
//! ```
//! use std::sync::Arc;
//! use gesta_model::{Model, Request, ScriptedModel, whole};
//! use gesta_run::json::Object;
//! use gesta_run::tool::ToolList;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = gesta_scene::Script::parse("model: Good morning.\n")?;
//! let model = ScriptedModel::new(Arc::new(script));
//! let answer = model.ask(&Request {
//!     model: "script",
//!     system: "",
//!     history: &[],
//!     messages: &[],
//!     tools: &ToolList::default(),
//!     output_schema: None,
//!     options: &Object::new(),
//!     stream: true,
//!     failed_before: 0,
//! });
//! assert_eq!(whole(answer).await?.joined_text(), "Good morning.");
//! # Ok(())
//! # }
//! ```

mod request;

mod provider;
mod providers;
mod secret;

mod check;
mod dialect;
mod ids;
mod json;

mod alike;
pub mod anthropic;
mod decoder;
mod draft;
mod fault;
mod halves;
mod loose;
pub mod openai;
mod sse;

mod http_model;
mod retry;
pub mod transport;
mod wire;

mod script;

pub use check::check_history;
pub use dialect::{CacheTime, Dialect};
pub use http_model::HttpModel;
pub use ids::IdRule;
pub use provider::{Auth, Protocol, Provider, ProviderError, ProviderSpec, Roles};
pub use providers::{Lookup, Providers, Resolved};
pub use request::{Answer, Model, Piece, Request, Retrying, whole};
pub use retry::Retries;
pub use script::{ScriptedModel, place_in_script};
pub use secret::Secret;
pub use sse::EventReader;
pub use transport::{Timeouts, Transport, TransportSpec};
pub use wire::{Wire, WireRecord};
