//! Budgets of tokens, money and time (`spec/contract.md`, 2.12).

use crate::plan::{Plan, Prices};
use crate::state::State;
use crate::time::Timestamp;

/// What is spent beyond its limit, as a sentence.
pub(crate) fn exceeded(plan: &Plan, state: &State, at: Timestamp) -> Option<String> {
    let limits = &plan.spec.limits;
    if let Some(max) = limits.tokens_max.filter(|max| state.usage.total > *max) {
        return Some(format!("{} tokens spent, the limit is {max}", state.usage.total));
    }
    if let Some(max) = limits.cost_usd_max {
        let cost = limits.prices.unwrap_or(Prices::UNKNOWN).cost_usd(&state.usage);
        if cost > max {
            return Some(format!("{cost:.4} USD spent, the limit is {max}"));
        }
    }
    let max = limits.seconds_max?;
    let elapsed_ms = state.elapsed_ms(at);
    (elapsed_ms > max.saturating_mul(1000)).then(|| format!("{} s passed, the limit is {max}", elapsed_ms / 1000))
}
