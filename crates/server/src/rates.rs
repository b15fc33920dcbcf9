//! How often one client may ask, and how often somebody whom nobody knows.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use governor::clock::{Clock, MonotonicClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use http::StatusCode;

use crate::ask::Asker;
use crate::options::Limits;
use crate::problem::Problem;

/// By how much one second may exceed the average.
const BURST: NonZeroU32 = NonZeroU32::new(4).expect("4 is not 0");
/// How many keys and sessions are remembered to be good. One that is not counts as a stranger's once more.
const GOOD_MAX: usize = 4_096;

type Lately = RateLimiter<String, HashMapStateStore<String>, MonotonicClock>;

/// How often each client has asked lately.
pub(crate) struct Rates {
    clients: Lately,
    strangers: Lately,
    sign_ins: Lately,
    /// The hashes of keys and sessions that were good when they were last looked at.
    good: Mutex<HashSet<String>>,
}

impl Rates {
    pub(crate) fn new(limits: &Limits) -> Self {
        let each_second = |max: NonZeroU32| Quota::per_second(max).allow_burst(max.saturating_mul(BURST));
        let lately = |quota| RateLimiter::new(quota, HashMapStateStore::default(), MonotonicClock);
        Self {
            clients: lately(each_second(limits.rate_max)),
            strangers: lately(each_second(limits.strangers_max)),
            sign_ins: lately(Quota::per_minute(limits.sign_ins_max)),
            good: Mutex::default(),
        }
    }

    /// A key counts for itself, wherever it is used; without keys each address does.
    pub(crate) fn check(&self, asker: &Asker) -> Result<(), Problem> {
        let who = if asker.has_key() { &asker.id } else { &asker.from };
        check(&self.clients, who, "this client asks too often")
    }

    /// Somebody asks from this address, with what hashes to `shown`, and nobody has looked yet whether that is good.
    /// What was good lately passes: a stranger at the same address takes nothing from it.
    pub(crate) fn check_stranger(&self, from: &str, shown: Option<&String>) -> Result<(), Problem> {
        if shown.is_some_and(|shown| self.good().contains(shown)) {
            return Ok(());
        }
        check(&self.strangers, from, "too much is asked from this address without a good key")
    }

    /// Somebody tries to sign in from this address.
    pub(crate) fn check_sign_in(&self, from: &str) -> Result<(), Problem> {
        check(&self.sign_ins, from, "too many attempts to sign in come from this address")
    }

    /// What hashes to `shown` was looked at, and is good or is not.
    pub(crate) fn looked_at(&self, shown: String, is_good: bool) {
        let mut good = self.good();
        if !is_good {
            good.remove(&shown);
            return;
        }
        if good.len() >= GOOD_MAX && !good.contains(&shown) {
            good.clear();
        }
        good.insert(shown);
    }

    /// Clients that have not asked for a while are forgotten.
    pub(crate) fn forget(&self) {
        [&self.clients, &self.strangers, &self.sign_ins].into_iter().for_each(RateLimiter::retain_recent);
    }

    fn good(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.good.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(lately: &Lately, who: &str, detail: &str) -> Result<(), Problem> {
    lately.check_key(&who.to_owned()).map_err(|until| {
        let wait = until.wait_time_from(MonotonicClock.now()).as_secs() + 1;
        let wait = u32::try_from(wait).unwrap_or(u32::MAX);
        let help = format!("try again in {wait} s");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_exceeded", detail, help).retry_after(wait)
    })
}
