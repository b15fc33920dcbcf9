//! What an agent's folder says in rules instead of code: pure functions over arguments and texts.

pub mod answers;
pub mod backstops;
pub mod condition;
pub mod decisions;
pub(crate) mod glob;
