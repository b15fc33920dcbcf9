//! The server as its clients see it, on loopback.

#![allow(clippy::unwrap_used, reason = "a test that can't go on is to stop where it stands")]

mod access;
mod caller_tools;
mod console;
mod events;
mod holds;
mod keys;
mod measures;
mod repeats;
mod requests;
mod rights;
mod runs;
mod stops;
mod support;
mod telemetry;
mod webhooks;
