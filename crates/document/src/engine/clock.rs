//! The one place in this crate that reads a clock: running time, and the date.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Running time against a deadline. It stands still while the host answers.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    stood_still: Duration,
    limit: Duration,
}

impl Clock {
    /// Starts it.
    pub(crate) fn start(limit_ms: u64) -> Self {
        Self { started: Instant::now(), stood_still: Duration::ZERO, limit: Duration::from_millis(limit_ms) }
    }

    /// Time that passed inside the document.
    pub(crate) fn running(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.stood_still)
    }

    /// Whether the limit is met.
    pub(crate) fn is_over(&self) -> bool {
        self.running() >= self.limit
    }

    /// Time until the limit.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.running())
    }

    /// Does something during which the clock stands still.
    pub(crate) fn pause<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        let done = work();
        self.stood_still += from.elapsed();
        done
    }
}

/// Waits, but no longer than the clock has left. The process sleeps: the engine's own loop would poll.
pub(crate) fn wait(clock: &Clock, wanted: Duration) {
    std::thread::sleep(wanted.min(clock.left()));
}

/// The beginning of today in UTC, in milliseconds since 1970.
pub(crate) fn midnight_ms() -> i64 {
    const DAY_MS: i64 = 86_400_000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(0);
    now - now % DAY_MS
}

/// The same as text, for instance `2026-11-30T00:00:00+00:00`.
pub(crate) fn midnight_text() -> String {
    let days = midnight_ms() / 86_400_000;
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T00:00:00+00:00")
}

/// The date of a day since 1970, after Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}
