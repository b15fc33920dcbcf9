//! A signal that ends a turn from outside.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Ends a turn when it fires. Clones share one signal.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    fired: AtomicBool,
    told: Notify,
}

impl Cancel {
    /// A signal that has not fired.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires. Firing twice is firing once.
    pub fn cancel(&self) {
        self.0.fired.store(true, Ordering::Release);
        self.0.told.notify_waiters();
    }

    /// Whether it has fired.
    pub fn is_cancelled(&self) -> bool {
        self.0.fired.load(Ordering::Acquire)
    }

    /// Whether anybody else holds the signal; without, it stays as it is.
    pub(crate) fn may_fire(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Waits until it fires.
    pub async fn cancelled(&self) {
        let mut told = pin!(self.0.told.notified());
        // Who fires from here on tells this wait too.
        told.as_mut().enable();
        if !self.is_cancelled() {
            told.await;
        }
    }
}
