//! Runs the real binary in a data folder of its own: one file for each command, and one for what must survive a kill.

#![allow(clippy::unwrap_used)]

mod support;

mod backup;
mod batches;
mod chat;
#[cfg(unix)]
mod chat_server;
mod crash;
mod document;
mod document_faults;
mod document_scenes;
mod eval;
mod fake_model;
mod folder;
mod grants;
mod guide;
mod kept;
#[cfg(unix)]
mod pairs;
mod paste;
mod resume;
mod run;
#[cfg(unix)]
mod serve;
mod shop;
mod show;
mod store;
mod talk;
mod together;
