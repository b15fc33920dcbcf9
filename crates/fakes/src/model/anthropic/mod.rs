//! Messages: what the service refuses, and how it answers.

mod answer;
mod block;
mod history;
mod request;
mod signature;

pub(super) use answer::write;
pub(super) use request::check;
