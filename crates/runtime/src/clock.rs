//! The time, as the runtime tells it to the machine and to the model.

use std::fmt;
use std::sync::Arc;

use gesta_run::Timestamp;

/// Where the time comes from: the system's clock, or one that a test tells.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::new(|| Timestamp(jiff::Timestamp::now().as_millisecond()))
    }

    /// A clock that says what `tell` says.
    pub fn new(tell: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The `NOW:` notice without its word: weekday, time with its offset, zone (`spec/contract.md`, 2.4).
pub(crate) fn notice(at: Timestamp, zone: &jiff::tz::TimeZone, zone_name: &str) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let local = moment.to_zoned_datetime(zone.clone());
    format!("{} ({zone_name})", local.strftime("%A, %Y-%m-%dT%H:%M:%S%:z"))
}
