//! Runs written as conversations, and models written as scripts: read, play, print. No I/O.

mod answer;
pub mod error;
mod patterns;
pub mod script;
mod text;

pub use answer::{ModelAnswer, ServerFaults};
pub use error::ReadError;
pub use script::{Script, ScriptError};
