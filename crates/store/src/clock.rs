//! The clock that leases go by: the store's own, told by tests.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gesta_run::time::Timestamp;

/// Tells the time for leases. Events carry the time of their callers.
#[derive(Clone, Default)]
pub struct Clock(Option<Told>);

type Told = Arc<dyn Fn() -> Timestamp + Send + Sync>;

impl Clock {
    /// A clock that asks this function.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    /// The store's own: that of the system, and that of the server where the store is one, so that a host whose clock is
    /// wrong takes nobody's lease.
    pub fn system() -> Self {
        Self(None)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.told().unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
        })
    }

    /// What a clock says that is not the store's own.
    pub(crate) fn told(&self) -> Option<Timestamp> {
        self.0.as_ref().map(|told| told())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
