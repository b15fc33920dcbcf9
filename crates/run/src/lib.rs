//! The pure machine of Gesta: told what happens, a [`Run`] says what it wants done. No I/O, no async, no clock, no
//! randomness, no environment.
//!
//! The whole of it is this loop; a driver performs the wants, stores the events and feeds what came of it back:
//!
//! ```
//! use gesta_run::{Effect, Functions, Input, InputKind, Met, Opening, Part, Plan, PlanSpec, Reply, Run, Timestamp};
//!
//! let plan = Plan::new(PlanSpec::default(), Functions::default())?;
//! let mut run = Run::new(plan);
//! let opening = Opening {
//!     run: "r1".into(), conversation: None, contact: None, input: vec![Part::text("Hello")], now: String::new(),
//!     trace: None,
//! };
//! run.feed(Input { at: Timestamp(0), kind: InputKind::Opened(opening) })?;
//! while let Some(want) = run.wants().into_iter().next() {
//!     let met = match want.effect {
//!         Effect::CallModel => Met::Replied(Reply::text("Hello, you.")),
//!         Effect::Deliver => Met::Delivered { path: "inline".to_owned() },
//!         other => panic!("a plan without tools does not want {other:?}"),
//!     };
//!     run.feed(Input { at: Timestamp(1), kind: InputKind::Met { want: want.id, met } })?;
//! }
//! assert_eq!(run.result().text, "Hello, you.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reading order: [`plan`] and [`contract`] (what an agent may and must do), [`input`], [`event`], [`want`] (the closed
//! vocabulary), [`run`] (the door), then the three functions inside `feed`: `admit`, `fold`, `follow`; the `rules` are
//! one file each.

// A new event, want or status makes the compiler ask everywhere what becomes of it.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod message;
pub mod reply;

pub mod pattern;
pub mod tool;

pub mod contract;
mod limits;
pub mod plan;

pub mod decision;
pub mod hold;

pub mod event;
pub mod input;
pub mod want;

mod admit;
mod answers;
mod arguments;
mod fold;
mod fold_batch;
mod follow;
pub mod grant;
mod rules;
pub mod run;
mod schema;
pub mod state;
mod transcript;

pub mod call;
pub mod intervention;
pub mod outcome;
pub mod result;

pub mod id;
pub mod json;
pub mod time;
pub mod traceparent;

pub use admit::FeedError;
pub use arguments::Arguments;
pub use call::{Answer, ArgumentsBy, CallEnd, CallRecord, CallStatus, GrantRecord};
pub use contract::{ActWhenAsked, BackstopSpec, ContractSpec, OnToolRefusal, RefusalPreset, Require};
pub use decision::{Decision, HookError, Ruling};
pub use event::{Event, EventKind, LOG_VERSION};
pub use grant::{Grant, GrantCall, GrantError, GrantSpec, GrantStage};
pub use hold::{AnswerError, Binding, Hold, HoldAnswer, HoldKind, HoldReply, HoldState};
pub use id::{CallId, ContactId, ConversationId, RunId, WantId, WantKind};
pub use input::{Attempt, Input, InputKind, Met, Opening, Ran};
pub use intervention::{Intervention, InterventionKind, InterventionOutcome, Phase, Skipped};
pub use message::{Block, BlockKind, CallBlock, Message, Part, Raw, Source, ToolResult};
pub use outcome::{Outcome, RunError, Status};
pub use pattern::{Pattern, PatternError, PatternSpec, RegexSpec};
pub use plan::{
    ActHint, Functions, IsRefusal, Limits, OnHookError, OnMessageWhileParked, OnUndecided, Plan, PlanError, PlanSpec,
    Prices, Stages, Staging, StagingFn,
};
pub use reply::{Delta, Fault, FaultKind, Finish, Reply, ReplyBuilder, Usage};
pub use result::{ActionRecord, ActionStatus, ContractReport, Count, Counts, RunReport, RunResult};
pub use rules::leaked::may_become_a_call;
pub use run::Run;
pub use state::{ActionStage, CallState, InputLabel, Refusal, Stage};
pub use time::Timestamp;
pub use tool::{Accepts, Effect as ToolEffect, Tool, ToolError, ToolList, ToolSpec};
pub use traceparent::{NoTraceParent, TraceParent};
pub use want::{Effect, Want};
