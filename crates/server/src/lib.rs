//! Agents over HTTP: runs, the holds in which calls wait for people and programs, conversations. The only crate that
//! knows routes.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use gesta_runtime::folder::Folder;
//! # use gesta_store::{Secrets, Sqlite, StoreOptions};
//! use gesta_server::{Hosts, Limits, Served, Server, Setup};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let env: gesta_model::Lookup = Arc::new(|name| std::env::var(name).ok());
//! let folder = Folder::load("desk".as_ref(), &*env)?;
//! let store = Sqlite::open("data", StoreOptions::default()).await?;
//! let server = Server::new(Setup {
//!     agents: vec![Served { folder, env }],
//!     store: Arc::new(store),
//!     secrets: Arc::new(|| Secrets::load(None, "data".as_ref())),
//!     needs_keys: false,
//!     hosts: Hosts { local: true, ..Hosts::default() },
//!     webhook: None,
//!     traces: None,
//!     limits: Limits::default(),
//! })?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:7450").await?;
//! server.serve(listener, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A turn runs in a task of its own: it goes on when the client that began it is gone. What clients are told of a run is
//! what its store has taken: `watched.rs` tells `hub.rs` after each append, and `follow.rs` reads the log first and then
//! listens, so that a client that comes back misses nothing. Only the pieces of an answer that is still being written
//! are told ahead of the log.

mod options;
mod server;

mod ask;
mod hosts;
mod keys;
mod metrics;
mod rates;
mod repeat;
mod requests;

mod app;
mod apps;
mod hub;
mod sweep;
mod watched;
mod webhook;
mod work;

mod follow;
mod told;

mod console;
mod described;
mod documents;
mod extract;
mod problem;
mod routes;
mod wire;

pub use app::SetupError;
pub use hosts::Hosts;
pub use keys::{NewKey, Scope, new_key, new_link};
pub use options::{Limits, SecretsOf, Served, Setup};
pub use server::{Server, document};
pub use webhook::{Webhook, WebhookError};
