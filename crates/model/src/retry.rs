//! When a model request is tried again, and after how long.

use gesta_run::reply::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often and how patiently a model request is tried again. Nothing is tried again once a piece of the answer was
/// handed out, and nothing but the request itself: tools that have run stay run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retries {
    /// Attempts in all, the first one counted. 1 never tries again.
    pub attempts_max: u32,
    /// The wait before the second attempt, in milliseconds; doubled before each further one.
    pub base_ms: u64,
    /// The longest wait, in milliseconds. A provider that asks for a longer one is not asked again.
    pub wait_ms_max: u64,
}

impl Default for Retries {
    fn default() -> Self {
        Self { attempts_max: 3, base_ms: 500, wait_ms_max: 30_000 }
    }
}

impl Retries {
    /// How long to wait before the next attempt, in milliseconds; none where there is to be none. `attempt` counts
    /// from 0, `dice` is a number from 0 to 1 that spreads clients which failed together.
    pub(crate) fn wait_ms(&self, attempt: u32, fault: &Fault, dice: f64) -> Option<u64> {
        if !fault.retryable || attempt.saturating_add(1) >= self.attempts_max {
            return None;
        }
        let doubled = self.base_ms.saturating_mul(1_u64.checked_shl(attempt).unwrap_or(u64::MAX));
        let most = doubled.min(self.wait_ms_max);
        let half = most / 2;
        let wait = half + ((most - half) as f64 * dice) as u64;
        match fault.retry_after_ms {
            Some(asked) if asked > self.wait_ms_max => None,
            Some(asked) => Some(wait.max(asked)),
            None => Some(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::fault;
    use gesta_run::reply::FaultKind;

    #[test]
    fn waits_double_and_honour_what_the_provider_asks() {
        let retries = Retries { attempts_max: 4, base_ms: 100, wait_ms_max: 300 };
        let plain = fault(FaultKind::Overloaded, "x");
        let asked = |ms| Fault { retry_after_ms: Some(ms), ..plain.clone() };
        let cases = [
            (0, plain.clone(), 1.0, Some(100)),
            (0, plain.clone(), 0.0, Some(50)),
            (1, plain.clone(), 1.0, Some(200)),
            (2, plain.clone(), 1.0, Some(300)),
            (3, plain.clone(), 1.0, None),
            (0, asked(250), 1.0, Some(250)),
            (0, asked(301), 1.0, None),
            (0, fault(FaultKind::BadRequest, "x"), 1.0, None),
        ];
        for (attempt, fault, dice, wait) in cases {
            assert_eq!(retries.wait_ms(attempt, &fault, dice), wait);
        }
        let patient = Retries { attempts_max: 200, ..retries };
        assert_eq!(patient.wait_ms(100, &plain, 1.0), Some(300));
    }
}
