//! How often one client may ask.

use std::num::NonZeroU32;

use governor::clock::{Clock, MonotonicClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use http::StatusCode;

use crate::keys::Asker;
use crate::problem::Problem;

/// By how much one second may exceed the average.
const BURST: NonZeroU32 = NonZeroU32::new(4).expect("4 is not 0");

/// How often each client has asked lately.
pub(crate) struct Rates {
    lately: RateLimiter<String, HashMapStateStore<String>, MonotonicClock>,
}

impl Rates {
    pub(crate) fn new(rate_max: NonZeroU32) -> Self {
        let quota = Quota::per_second(rate_max).allow_burst(rate_max.saturating_mul(BURST));
        Self { lately: RateLimiter::new(quota, HashMapStateStore::default(), MonotonicClock) }
    }

    /// A key counts for itself, wherever it is used; without keys each address does.
    pub(crate) fn check(&self, asker: &Asker) -> Result<(), Problem> {
        let who = if asker.has_key() { &asker.id } else { &asker.from };
        self.lately.check_key(who).map_err(|until| {
            let wait = until.wait_time_from(MonotonicClock.now()).as_secs() + 1;
            let wait = u32::try_from(wait).unwrap_or(u32::MAX);
            let (status, detail) = (StatusCode::TOO_MANY_REQUESTS, "this client asks too often");
            Problem::new(status, "rate_exceeded", detail, format!("try again in {wait} s")).retry_after(wait)
        })
    }

    /// Clients that have not asked for a while are forgotten.
    pub(crate) fn forget(&self) {
        self.lately.retain_recent();
    }
}
