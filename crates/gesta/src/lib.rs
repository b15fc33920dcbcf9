//! Agents that do what they say: the names a program needs, and the guides.
//!
#![doc = include_str!("../../../README.md")]

/// The guides. Their examples are compiled and run with the tests.
pub mod guide {
    #[doc = include_str!("../../../docs/guides/first-agent.md")]
    pub mod first_agent {}

    #[doc = include_str!("../../../docs/guides/decisions-and-holds.md")]
    pub mod decisions_and_holds {}

    #[doc = include_str!("../../../docs/guides/documents.md")]
    pub mod documents {}

    #[doc = include_str!("../../../docs/guides/server.md")]
    pub mod server {}

    #[doc = include_str!("../../../docs/guides/approvals.md")]
    pub mod approvals {}

    #[doc = include_str!("../../../docs/guides/production.md")]
    pub mod production {}

    #[doc = include_str!("../../../docs/guides/observability.md")]
    pub mod observability {}

    #[doc = include_str!("../../../docs/guides/coming-from-typescript.md")]
    pub mod coming_from_typescript {}
}

pub use gesta_runtime::{Agent, AgentBuilder, AgentError, Ask, Cancel, Progress, Resume, Resumed, Scope, Tool};

pub use gesta_run::{
    ActWhenAsked, CallRecord, CallStatus, Decision, HoldAnswer, HoldReply, IsRefusal, Limits, OnToolRefusal, Outcome,
    Phase, Ran, RefusalPreset, RegexSpec, Require, RunResult, Status, ToolEffect, ToolSpec,
};

pub use gesta_model::{Model, Providers, ScriptedModel, Transport, TransportSpec};

pub use gesta_store::{Sqlite, StoreOptions};

pub use gesta_scene::Script;

// The crates below, for what is needed less often.
pub use gesta_model as model;
pub use gesta_run as run;
pub use gesta_runtime as runtime;
pub use gesta_scene as scene;
pub use gesta_store as store;
pub use gesta_telemetry as telemetry;
