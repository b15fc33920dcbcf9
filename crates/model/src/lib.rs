//! Speaks to models: one streaming trait, the provider adapters, their transport, the scripted model.

pub mod anthropic;
mod check;
mod dialect;
mod draft;
mod fault;
mod ids;
mod json;
mod loose;
pub mod openai;
mod request;
mod secret;
mod sse;
pub mod transport;
mod wire;

pub use check::check_history;
pub use dialect::{CacheTime, Dialect};
pub use ids::IdRule;
pub use request::{Answer, Model, Piece, Request, whole};
pub use secret::Secret;
pub use sse::EventReader;
pub use wire::{Wire, WireRecord};
