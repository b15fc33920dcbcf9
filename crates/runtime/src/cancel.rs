//! A signal that ends a turn from outside.

use std::sync::Arc;

use tokio::sync::watch;

/// Ends a turn when it fires. Clones share one signal.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Cancel {
    /// A signal that has not fired.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires. Firing twice is firing once.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether it has fired.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it fires.
    pub(crate) async fn cancelled(&self) {
        let mut seen = self.0.subscribe();
        // The sender lives as long as this signal, so the wait ends only when it fires.
        let _ = seen.wait_for(|fired| *fired).await;
    }
}
