//! What the pool has at a moment.

use std::collections::VecDeque;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Held, Leased, Opened};
use crate::StartError;
use crate::queue::Queue;
use crate::worker::Worker;

type Waiting = oneshot::Sender<Result<Leased, StartError>>;

#[derive(Debug, Default)]
pub(super) struct State {
    /// All workers: warm, kept, lent and being started.
    pub(super) live: usize,
    pub(super) starting: usize,
    /// Started, and without a document.
    pub(super) warm: Vec<Worker>,
    /// Idle since when, with a document open; the oldest first.
    pub(super) kept: VecDeque<(Instant, Held)>,
    pub(super) queue: Queue<Waiting>,
    /// Whether a task looks after those that are kept.
    pub(super) watched: bool,
}

impl State {
    /// The worker that this conversation has, if it has this document open. One with another state of it is ended: the
    /// turn that left it there did not become the conversation's.
    pub(super) fn take_kept(&mut self, document: &Opened) -> Option<Held> {
        let of_it = |held: &Held| held.opened.as_ref().is_some_and(|it| it.conversation == document.conversation);
        let at = self.kept.iter().position(|(_, held)| of_it(held))?;
        let (_, held) = self.kept.remove(at)?;
        if held.opened.as_ref().is_some_and(|opened| opened.is(document)) {
            return Some(held);
        }
        self.live -= 1;
        None
    }

    /// Ends the worker whose document has been idle for longest. Whether there was one.
    pub(super) fn end_oldest_kept(&mut self) -> bool {
        let oldest = self.kept.pop_front();
        self.live -= usize::from(oldest.is_some());
        oldest.is_some()
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue.iter().filter(|sender| !sender.is_closed()).count()
    }
}
