//! Runs agents: the builder, the driver that is the only loop, agents as folders, the trace. No HTTP server.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use gesta_model::ScriptedModel;
//! use gesta_runtime::{Agent, Scope, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Move { day: String }
//!
//! # async fn example(model: Arc<dyn gesta_model::Model>) -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::builder()
//!     .model(model, "any")
//!     .instructions("You keep the visits of a workshop.")
//!     .tool(Tool::new("move_visit", "Moves the visit to a day.", |it: Move, _: Scope| async move {
//!         Ok::<_, String>(format!("moved to {}", it.day))
//!     }))
//!     .build()?;
//! println!("{}", agent.run("Move my visit to Friday").await?.text);
//! # Ok(())
//! # }
//! ```

mod agent;
mod builder;
mod document;
mod driver;
mod turn;

mod model_call;
mod perform;
mod wire;

mod grant;
mod history;
mod journal;
mod resume;
mod saved;

mod hook;
mod tool;

pub mod folder;
mod folder_agent;
pub mod http;
pub mod rules;

mod progress;
mod stream;
mod system;
mod trace;

mod cancel;
mod clock;
mod error;

pub use agent::{Agent, Ask, Resume, Resumed};
pub use builder::{AgentBuilder, IntoRuling};
pub use cancel::Cancel;
pub use clock::Clock;
pub use document::{DocumentSettings, SceneDocuments};
pub use error::AgentError;
pub use folder_agent::{FolderAgent, OpenError, SecretsOf};
pub use grant::Grant;
pub use history::HistoryLimits;
pub use hook::{Backstop, CallAsked, DetectFuture, Hook, RanFuture, RulingFuture, TurnSeen};
pub use progress::{Listener, Progress};
pub use saved::StateError;
pub use stream::TurnStream;
pub use tool::{AnswerFuture, Scope, Tool, ToolBody};
