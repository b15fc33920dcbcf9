//! The pure machine of Gesta.

pub mod call;
pub mod contract;
pub mod decision;
pub mod event;
pub mod hold;
pub mod id;
pub mod input;
pub mod intervention;
pub mod json;
pub mod message;
pub mod outcome;
pub mod pattern;
pub mod plan;
pub mod reply;
pub mod time;
pub mod tool;
pub mod want;
