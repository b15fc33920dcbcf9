//! What backs a claim: which of the calls counts, in this turn or an earlier one (`spec/contract.md`, 4.5).

use gesta_run::call::{CallRecord, CallStatus};
use serde::{Deserialize, Serialize};

use super::Kind;

/// When a suitable call succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backed {
    /// Since the last message of the user.
    ThisTurn,
    /// Before it, in this conversation.
    Earlier,
    /// Never.
    No,
}

/// The calls of a turn, and of the turns before it, as far as they can back a claim.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    pub(super) this_turn: Vec<Deed>,
    pub(super) earlier: Vec<Deed>,
}

/// A call that succeeded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deed {
    /// It changed something, or may have.
    pub(super) change: bool,
    /// It gave the case to a person.
    pub(super) handoff: bool,
    /// It was only written down; nothing has happened yet.
    pub(super) staged: bool,
}

/// Words in the name of a tool that gives a case to a person. `transfer` alone is none: money is transferred too.
const HANDOFF_WORDS: [&str; 9] =
    ["human", "escal", "handoff", "hand_off", "handover", "hand_over", "live_agent", "to_agent", "asesor"];

pub(super) fn is_handoff(name: &str) -> bool {
    let name = name.to_lowercase();
    HANDOFF_WORDS.iter().any(|word| name.contains(word))
}

impl Calls {
    /// The calls of a run. With `tools`, only those count; without, any completed call does, also one that only reads,
    /// which is weak.
    pub fn of(calls: &[CallRecord], tools: Option<&[String]>) -> Self {
        let counts = |call: &&CallRecord| {
            call.status == CallStatus::Completed && tools.is_none_or(|names| names.contains(&call.name))
        };
        let deed = |call: &CallRecord| Deed { change: true, handoff: is_handoff(&call.name), staged: false };
        Self { this_turn: calls.iter().filter(counts).map(deed).collect(), earlier: Vec::new() }
    }

    /// The same, with the names of tools whose calls completed in earlier turns.
    #[must_use]
    pub fn with_earlier<'a>(mut self, names: impl Iterator<Item = &'a str>, tools: Option<&[String]>) -> Self {
        let counts = |name: &&str| tools.is_none_or(|tools| tools.iter().any(|it| it == name));
        let deed = |name: &str| Deed { change: true, handoff: is_handoff(name), staged: false };
        self.earlier.extend(names.filter(counts).map(deed));
        self
    }

    /// When a call that suits a claim of this kind succeeded. What is only staged backs an announcement and nothing
    /// that is reported as done (`spec/channel.md`, 7).
    pub fn back(&self, kind: Kind) -> Backed {
        let suits = |deed: &Deed| match kind {
            Kind::Change => deed.change && !deed.staged,
            Kind::Handoff => deed.handoff,
            Kind::Staged => deed.change || deed.handoff || deed.staged,
        };
        if self.this_turn.iter().any(suits) {
            Backed::ThisTurn
        } else if self.earlier.iter().any(suits) {
            Backed::Earlier
        } else {
            Backed::No
        }
    }
}
