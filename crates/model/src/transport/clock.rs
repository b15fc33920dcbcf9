//! The time limits of one exchange, kept with one timer that is seldom touched.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, Sleep, sleep_until};

use super::error::Limit;

/// Time limits of one exchange, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// For resolving the name, connecting and the TLS handshake.
    pub connect_ms: u64,
    /// From the sent request to the first byte of the body.
    pub first_byte_ms: u64,
    /// Between two pieces of the body.
    pub idle_ms: u64,
    /// For the whole exchange.
    pub whole_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect_ms: 10_000, first_byte_ms: 120_000, idle_ms: 60_000, whole_ms: 600_000 }
    }
}

/// Watches one exchange.
#[derive(Debug)]
pub(crate) struct Clock {
    limits: Timeouts,
    whole_at: Instant,
    phase: Limit,
    phase_at: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Clock {
    pub(crate) fn start(limits: Timeouts) -> Self {
        let now = Instant::now();
        Self {
            limits,
            whole_at: now + Duration::from_millis(limits.whole_ms),
            phase: Limit::Connect,
            phase_at: now + Duration::from_millis(limits.connect_ms),
            timer: None,
        }
    }

    /// Begins the next phase, or the same one anew.
    pub(crate) fn enter(&mut self, phase: Limit) {
        let ms = match phase {
            Limit::Connect => self.limits.connect_ms,
            Limit::FirstByte => self.limits.first_byte_ms,
            Limit::Idle => self.limits.idle_ms,
            Limit::Whole => self.limits.whole_ms,
        };
        self.phase = phase;
        self.phase_at = Instant::now() + Duration::from_millis(ms);
    }

    /// Ready when a limit has passed. Asked only when there is nothing else to do.
    pub(crate) fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<Limit> {
        let (due, limit) =
            if self.whole_at < self.phase_at { (self.whole_at, Limit::Whole) } else { (self.phase_at, self.phase) };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        // A timer that is too early is left alone: it wakes us once for nothing, which costs less than each reset.
        if due < timer.deadline() {
            timer.as_mut().reset(due);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= due {
                return Poll::Ready(limit);
            }
            timer.as_mut().reset(due);
        }
        Poll::Pending
    }

    /// Waits for `work` at most until a limit passes.
    pub(crate) async fn bound<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Limit> {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => self.poll_passed(cx).map(Err),
        })
        .await
    }
}
