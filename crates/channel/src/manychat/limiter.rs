//! When the next call may go: one limiter per API key, as arithmetic on the time it is told (`spec/channel.md`, 19).

use std::collections::{BTreeMap, VecDeque};

use gesta_run::Timestamp;

use super::request::Operation;
use crate::numbers::{FLOWS_KEPT_FOR_REPLIES, FLOWS_PER_HOUR_MAX, HOUR_MS, REQUESTS_BURST, REQUESTS_PER_SECOND};

/// The overall rate, and each operation's documented limit in every sliding second.
#[derive(Debug, Clone, Default)]
pub struct Limiter {
    /// When the bucket would be full again; tokens are that far from now.
    full_at: Timestamp,
    /// Requests of the last second, by operation.
    recent: BTreeMap<Operation, VecDeque<Timestamp>>,
}

/// Whether a call may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// It may, and was counted.
    Now,
    /// It may be asked for again at this moment; nothing was counted.
    At(Timestamp),
}

/// One token comes back in this time. Milliseconds.
const TOKEN_MS: u64 = 1000 / REQUESTS_PER_SECOND as u64;

impl Limiter {
    /// Takes a slot for an operation, or says when there is one.
    pub fn take(&mut self, operation: Operation, now: Timestamp) -> Slot {
        let room_at = self.full_at.max(now);
        let debt = room_at.since_ms(now);
        let allowed = TOKEN_MS * u64::from(REQUESTS_BURST - 1);
        if debt > allowed {
            return Slot::At(now.plus_ms(debt - allowed));
        }
        let recent = self.recent.entry(operation).or_default();
        while recent.front().is_some_and(|at| now.since_ms(*at) >= 1000) {
            recent.pop_front();
        }
        if recent.len() >= operation.per_second_max()
            && let Some(oldest) = recent.front()
        {
            return Slot::At(oldest.plus_ms(1000));
        }
        recent.push_back(now);
        self.full_at = room_at.plus_ms(TOKEN_MS);
        Slot::Now
    }
}

/// Who sends a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowKind {
    /// A tool, or whatever else is no reply: 20 sends of the hour are not for it.
    Tool,
    /// The reply flow.
    Reply,
}

/// Whether a contact's hour has room for one more `sendFlow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowRoom {
    /// It has.
    Yes,
    /// Not before this moment: a tool's flow is refused `flow_limit`, a reply is put off without using an attempt.
    At(Timestamp),
}

/// Counts the sends of the last 60 minutes, all kinds together, oldest first, of every process that uses the key.
pub fn flow_room(sends: &[Timestamp], now: Timestamp, kind: FlowKind) -> FlowRoom {
    let max = match kind {
        FlowKind::Tool => FLOWS_PER_HOUR_MAX - FLOWS_KEPT_FOR_REPLIES,
        FlowKind::Reply => FLOWS_PER_HOUR_MAX,
    };
    let within: Vec<Timestamp> = sends.iter().copied().filter(|at| now.since_ms(*at) < HOUR_MS).collect();
    match within.len().checked_sub(max) {
        None => FlowRoom::Yes,
        Some(over) => FlowRoom::At(within[over].plus_ms(HOUR_MS)),
    }
}
