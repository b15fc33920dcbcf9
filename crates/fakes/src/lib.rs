//! Strict fakes of the world outside, as servers on loopback: for tests, the demo and the tests of users.
//!
//! - [`model`]: a model service that speaks Chat Completions and Messages from a script, and refuses what the real
//!   ones refuse;
//! - [`tool`]: tools over HTTP with canned answers, which records each call;
//! - [`manychat`]: ManyChat with its contacts, flows and faults, a phone to type into, and a ledger;
//! - [`raw`]: a bare socket that answers with scripted bytes, pauses and cuts.
//!
//! Each binds `127.0.0.1` at a free port unless told otherwise, and stops when its handle is dropped.

mod body;
mod journal;
pub mod manychat;
pub mod model;
pub mod raw;
mod server;
pub mod tool;

pub use journal::{Journal, Seen, Shown};
