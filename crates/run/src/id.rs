//! The names of things: runs, calls and wants, each a type of its own so that none is taken for another.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it stands.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

name_type!(
    /// Names one run. Made by the host (a time-ordered UUID), unique for good.
    RunId
);
name_type!(
    /// Names one call within its run: the model's own id where it is usable and unique, else one of ours
    /// (`spec/contract.md`, 2.5). Everything about a call is keyed by it, never by the tool's name.
    CallId
);
name_type!(
    /// Names a conversation: all turns between one tenant and one contact or user. Chosen by the host, never by a model.
    ConversationId
);
name_type!(
    /// Names the person at the other end of a conversation. Chosen by the host, never taken from a tool's parameter.
    ContactId
);

/// What kind of thing a want asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum WantKind {
    Offer,
    Model,
    Decide,
    Run,
    DecideGrant,
    Grant,
    Detect,
    Backstop,
    Judge,
    Hold,
    Deliver,
    Perform,
}

impl WantKind {
    fn word(self) -> &'static str {
        match self {
            Self::Offer => "offer",
            Self::Model => "model",
            Self::Decide => "decide",
            Self::Run => "run",
            Self::DecideGrant => "decide-grant",
            Self::Grant => "grant",
            Self::Detect => "detect",
            Self::Backstop => "backstop",
            Self::Judge => "judge",
            Self::Hold => "hold",
            Self::Deliver => "deliver",
            Self::Perform => "perform",
        }
    }
}

/// Names one want within its run. It is the same after a replay, so that an answer names what it answers,
/// and, with the run's id in front, it is the idempotency key wherever the want leaves the process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WantId {
    /// What is wanted.
    pub kind: WantKind,
    /// The call or backstop it is about, where it is about one.
    pub subject: Option<Arc<str>>,
    /// The trip, where the want belongs to one.
    pub trip: u32,
    /// Which attempt, counted from 0: a model call tried again after a failure is another want. Of a grant: which of
    /// its call.
    pub attempt: u32,
}

impl WantId {
    pub(crate) fn of_trip(kind: WantKind, trip: u32, attempt: u32) -> Self {
        Self { kind, subject: None, trip, attempt }
    }

    pub(crate) fn of_call(kind: WantKind, call: &CallId) -> Self {
        Self { kind, subject: Some(call.0.clone()), trip: 0, attempt: 0 }
    }

    pub(crate) fn of_grant(kind: WantKind, call: &CallId, n: u32) -> Self {
        Self { kind, subject: Some(call.0.clone()), trip: 0, attempt: n }
    }

    pub(crate) fn of_backstop(kind: WantKind, name: &str, trip: u32) -> Self {
        Self { kind, subject: Some(name.into()), trip, attempt: 0 }
    }
}

impl fmt::Display for WantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.word())?;
        match &self.subject {
            Some(subject) if matches!(self.kind, WantKind::Grant | WantKind::DecideGrant) => {
                write!(f, "/{subject}/{}", self.attempt)
            }
            Some(subject) if self.kind != WantKind::Detect => write!(f, "/{subject}"),
            Some(subject) => write!(f, "/{subject}/{}", self.trip),
            None if self.attempt == 0 => write!(f, "/{}", self.trip),
            None => write!(f, "/{}.{}", self.trip, self.attempt),
        }
    }
}
