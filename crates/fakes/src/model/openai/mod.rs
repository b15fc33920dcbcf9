//! Chat Completions: what the service refuses, and how it answers.

mod answer;
mod messages;
mod request;
mod tools;

pub(super) use answer::write;
pub(super) use request::check;
pub(super) use tools::wrong_schema;
