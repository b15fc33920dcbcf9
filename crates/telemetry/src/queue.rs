//! Spans that wait to be sent: so many and no more, so that a collector that is away costs memory without end nowhere.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::sync::Notify;

/// The spans that wait.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    max: usize,
    /// There is a batch, or the end.
    pub(crate) due: Notify,
    batch: usize,
}

#[derive(Default)]
struct Waiting {
    spans: VecDeque<Span>,
    dropped: u64,
}

impl Queue {
    pub(crate) fn new(max: usize, batch: usize) -> Self {
        Self { waiting: Mutex::default(), max, due: Notify::new(), batch }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what there is room for, and counts the rest. Never waits.
    pub(crate) fn put(&self, spans: Vec<Span>) {
        let mut waiting = self.waiting();
        let room = self.max.saturating_sub(waiting.spans.len());
        waiting.dropped += spans.len().saturating_sub(room) as u64;
        waiting.spans.extend(spans.into_iter().take(room));
        let due = waiting.spans.len() >= self.batch;
        drop(waiting);
        if due {
            self.due.notify_one();
        }
    }

    /// The oldest of them, one batch at most, and how many were dropped since the last time.
    pub(crate) fn take(&self) -> (Vec<Span>, u64) {
        let mut waiting = self.waiting();
        let count = waiting.spans.len().min(self.batch);
        (waiting.spans.drain(..count).collect(), std::mem::take(&mut waiting.dropped))
    }

    /// Whether a whole batch waits.
    pub(crate) fn is_due(&self) -> bool {
        self.waiting().spans.len() >= self.batch
    }
}
