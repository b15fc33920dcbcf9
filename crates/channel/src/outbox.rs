//! Late replies: parts, attempts, waits and pace (`spec/channel.md`, 18). The worker's decisions, without its clock.

use gesta_run::Timestamp;

use crate::manychat::{CallError, Failure, Operation};
use crate::numbers::{OUTBOX_ATTEMPTS_MAX, OUTBOX_WAIT_SECONDS_MAX, REPLY_GAP_MS_MAX};

/// What becomes of a row after an attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Dead, with its staged actions, in one commit.
    Dead,
    /// Due again after this many milliseconds.
    Again(u64),
}

/// How long a row waits after its `n`-th attempt, from 1: 2, 4, 8, 16 s and so on, at most 300. Milliseconds.
pub fn wait_ms(attempt: u32) -> u64 {
    2u64.checked_pow(attempt).unwrap_or(u64::MAX).min(OUTBOX_WAIT_SECONDS_MAX) * 1000
}

/// What becomes of a row whose `attempt`-th attempt, from 1, failed like this.
pub fn after_failure(attempt: u32, error: &CallError) -> After {
    if is_final(error) || attempt >= OUTBOX_ATTEMPTS_MAX {
        return After::Dead;
    }
    // ManyChat's own word may be longer than ours, never shorter.
    After::Again(wait_ms(attempt).max(error.retry_after_ms.unwrap_or(0)))
}

fn is_final(error: &CallError) -> bool {
    match error.failure {
        Failure::Status(status) => (400..500).contains(&status) && status != 429,
        Failure::NotJson(_) => true,
        Failure::Refused(_) => error.operation == Operation::SendFlow,
        Failure::TimedOut | Failure::Aborted | Failure::Network | Failure::NoToken => false,
    }
}

/// What is to be sent next of a reply of several parts: none where all are.
pub fn next_part(parts: usize, delivered: usize) -> Option<usize> {
    (delivered < parts).then_some(delivered)
}

/// When a contact's next message may go out: the gap after the last one, also where that one failed; not before
/// `not_before`, and not before any queued reply of the contact.
pub fn due_at(
    last: Option<Timestamp>,
    gap_ms: u64,
    not_before: Option<Timestamp>,
    queued: Option<Timestamp>,
) -> Timestamp {
    let paced = last.map(|at| at.plus_ms(gap_ms.min(REPLY_GAP_MS_MAX)));
    [paced, not_before, queued].into_iter().flatten().max().unwrap_or_default()
}
