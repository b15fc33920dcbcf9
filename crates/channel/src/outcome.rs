//! How a turn ended, by which path it was delivered, and what that does to its actions (`spec/channel.md`, 5).

use gesta_run::Outcome as RunOutcome;
use serde::{Deserialize, Serialize};

/// How a turn ended. Its delivery is a second fact (L59).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Outcome {
    AnsweredInline,
    AnsweredLate,
    EscalatedModel,
    FailedValidation,
    Error,
    EscalatedPrecheck,
    AnsweredScripted,
    MediaFallback,
    WithPerson,
    Parked,
    Superseded,
    NudgeSent,
    NudgeSkipped,
}

/// By which path a reply reached ManyChat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// In the webhook's response.
    Inline,
    /// By reply field and reply flow.
    Outbox,
    /// Not at all.
    None,
}

/// Why the model, or a guard, gave the contact to a person (`spec/channel.md`, 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Reason {
    PriceNegotiation,
    Complaint,
    OutOfScope,
    ExplicitRequest,
    LowConfidence,
    PaymentReported,
}

impl Reason {
    /// All of them, as the reply's schema lists them.
    pub const ALL: [&'static str; 6] =
        ["price_negotiation", "complaint", "out_of_scope", "explicit_request", "low_confidence", "payment_reported"];
}

/// A turn whose whole reply is the tenant's escalation text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handoff {
    /// The model said so.
    Model(Reason),
    /// Its confidence is below the threshold.
    Confidence,
    /// A fence marker or a heading of the prompt stood in a text.
    Leak,
    /// The reply breaks the schema, or nothing was left of it, or there was none.
    Schema,
    /// The model call failed, or the run ended in some other way.
    Failed,
    /// It took longer than `MODEL_ABORT_MS`.
    Aborted,
    /// A keyword asked for a person.
    Keyword,
    /// The conversation has had its turns.
    TurnCap,
    /// The contact has had its turns of this hour.
    Rate,
    /// The tenant has spent its day.
    Budget,
}

impl Handoff {
    /// The turn's outcome, on both paths.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Model(_) | Self::Confidence | Self::Leak => Outcome::EscalatedModel,
            Self::Schema => Outcome::FailedValidation,
            Self::Failed | Self::Aborted => Outcome::Error,
            Self::Keyword | Self::TurnCap | Self::Rate | Self::Budget => Outcome::EscalatedPrecheck,
        }
    }

    /// The reason that is recorded, where there is one.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Model(reason) => Some(reason),
            Self::Confidence | Self::Schema => Some(Reason::LowConfidence),
            Self::Keyword | Self::TurnCap | Self::Rate => Some(Reason::ExplicitRequest),
            Self::Budget => Some(Reason::OutOfScope),
            Self::Leak | Self::Failed | Self::Aborted => None,
        }
    }

    /// Whether notes marked `on_escalation` are performed all the same (`spec/channel.md`, 10 and 16).
    pub fn keeps_notes(self) -> bool {
        matches!(self, Self::Model(_) | Self::Confidence)
    }

    /// Whether the conversation is a person's from now on: not where a cap only repeats the text (5).
    pub fn marks_escalated(self) -> bool {
        !matches!(self, Self::TurnCap | Self::Rate | Self::Budget)
    }

    /// Whether the model was asked: where not, no tools were offered and there is nothing to stage (6).
    pub fn asked_model(self) -> bool {
        !matches!(self, Self::Keyword | Self::TurnCap | Self::Rate | Self::Budget)
    }

    /// What a run that ended other than `Completed` means (`spec/channel.md`, 5): a handoff, or nothing where a new
    /// message closed a parked one. None where the reply goes to the guardrails.
    pub fn of_run(outcome: RunOutcome) -> Option<Self> {
        match outcome {
            RunOutcome::Completed => None,
            RunOutcome::LengthLimit | RunOutcome::OutputInvalid | RunOutcome::MaxTrips => Some(Self::Schema),
            RunOutcome::Cancelled
            | RunOutcome::Superseded
            | RunOutcome::Expired
            | RunOutcome::StoppedByHook
            | RunOutcome::HookFailed
            | RunOutcome::BudgetExceeded
            | RunOutcome::Blocked
            | RunOutcome::ModelFailed
            | RunOutcome::StoreFailed
            | RunOutcome::DeferUnsupported => Some(Self::Failed),
        }
    }
}

/// The outcome of a turn that went to the model. `lost` says that the race was: a reply that only waits for a flow is
/// `answered_inline` all the same (`spec/channel.md`, 15).
pub fn of_turn(handoff: Option<Handoff>, lost: bool) -> Outcome {
    match handoff {
        Some(handoff) => handoff.outcome(),
        None if lost => Outcome::AnsweredLate,
        None => Outcome::AnsweredInline,
    }
}
