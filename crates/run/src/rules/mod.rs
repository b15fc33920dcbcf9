//! The rules, one file each: pure functions of plan and state.

pub(crate) mod act;
pub(crate) mod actions;
pub(crate) mod backstop;
pub(crate) mod budget;
pub(crate) mod classify;
pub(crate) mod grants;
pub(crate) mod leaked;
pub(crate) mod output;
pub(crate) mod refusal;
pub(crate) mod resolve;
pub(crate) mod words;
