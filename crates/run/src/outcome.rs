//! How runs end (`spec/contract.md`, 2.9).

use serde::{Deserialize, Serialize};

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It wants something that needs nobody's decision.
    Open,
    /// A held call is unanswered and no model call is due.
    Parked,
    /// Its outcome is fixed.
    Ended,
}

/// How a run ended, or, for a parked run, why its result is handed back now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A natural end was accepted.
    Completed,
    /// The provider cut the answer for its length. Not a success.
    LengthLimit,
    /// The run is parked: shown in the result, not yet an end.
    StoppedByHook,
    /// The last permitted trip still made calls.
    MaxTrips,
    /// A decision was invalid, failed or came too late.
    HookFailed,
    /// Tokens, cost or time are spent.
    BudgetExceeded,
    /// A guardrail ended the run.
    Blocked,
    /// The structured output is invalid.
    OutputInvalid,
    /// The provider failed or took too long.
    ModelFailed,
    /// A checkpoint could not be written.
    StoreFailed,
    /// The cancellation signal fired.
    Cancelled,
    /// A parked run was closed by a new message.
    Superseded,
    /// The holds of a parked run ran out.
    Expired,
    /// Live sessions only: the hook deferred.
    DeferUnsupported,
}

impl Outcome {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::LengthLimit => "length_limit",
            Self::StoppedByHook => "stopped_by_hook",
            Self::MaxTrips => "max_trips",
            Self::HookFailed => "hook_failed",
            Self::BudgetExceeded => "budget_exceeded",
            Self::Blocked => "blocked",
            Self::OutputInvalid => "output_invalid",
            Self::ModelFailed => "model_failed",
            Self::StoreFailed => "store_failed",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
            Self::Expired => "expired",
            Self::DeferUnsupported => "defer_unsupported",
        }
    }

    /// Whether a resuming input can open the run again.
    pub fn can_go_on(self) -> bool {
        matches!(self, Self::MaxTrips | Self::ModelFailed | Self::StoreFailed)
    }

    /// The family an error of this outcome belongs to.
    pub fn category(self) -> &'static str {
        match self {
            Self::ModelFailed => "model",
            Self::StoreFailed => "store",
            Self::HookFailed | Self::DeferUnsupported => "decision",
            Self::MaxTrips | Self::BudgetExceeded | Self::LengthLimit => "limit",
            Self::OutputInvalid | Self::Blocked => "output",
            Self::Completed | Self::StoppedByHook | Self::Cancelled | Self::Superseded | Self::Expired => "control",
        }
    }
}

/// What went wrong, for the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// A stable word; `docs/errors.md` lists them.
    pub code: String,
    /// Its family: `model`, `store`, `decision`, `limit`, `output`, `control`.
    pub category: String,
    /// A sentence for people.
    pub message: String,
}

impl RunError {
    /// The error that goes with an outcome.
    pub fn of(outcome: Outcome, message: impl Into<String>) -> Self {
        Self { code: outcome.as_str().to_owned(), category: outcome.category().to_owned(), message: message.into() }
    }
}
