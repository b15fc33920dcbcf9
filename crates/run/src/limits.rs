//! How much a run may use, and what it costs (`spec/contract.md`, 2.12).

use serde::{Deserialize, Serialize};

use crate::plan::PlanError;

const GRANTS_MAX: u32 = 50;

/// A limit that a plan of an older version did not have is left out, so that its hash stays what it was.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_default_grants_max(it: &u32) -> bool {
    *it == GRANTS_MAX
}

/// Limits of one run (`spec/contract.md`, 2.12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Model calls. 10 by default.
    pub trips_max: u32,
    /// Calls of one batch that run at the same time. 8 by default.
    pub calls_parallel_max: u32,
    /// Calls of one answer; the rest is not run. 64 by default.
    pub calls_max: u32,
    /// Staged actions. 8 by default.
    pub actions_max: u32,
    /// One tool result, in bytes; a longer one is cut. 256 kB by default.
    pub result_bytes_max: usize,
    /// Grant calls of one call. 50 by default.
    #[serde(skip_serializing_if = "is_default_grants_max")]
    pub grants_max: u32,
    /// The input of a run, in bytes. 1 MB by default.
    pub input_bytes_max: usize,
    /// An error's text as the model reads it, in bytes. 4 kB by default.
    pub error_bytes_max: usize,
    /// Tokens of all model calls together. Unset by default.
    pub tokens_max: Option<u64>,
    /// Cost of all model calls together, in US dollars. Unset by default.
    pub cost_usd_max: Option<f64>,
    /// Seconds from the start, time spent parked left out. Unset by default.
    pub seconds_max: Option<u64>,
    /// Price of a million input and of a million output tokens, in US dollars, where the model has one.
    pub prices: Option<Prices>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            trips_max: 10,
            calls_parallel_max: 8,
            calls_max: 64,
            actions_max: 8,
            result_bytes_max: 256 * 1024,
            grants_max: GRANTS_MAX,
            input_bytes_max: 1024 * 1024,
            error_bytes_max: 4 * 1024,
            tokens_max: None,
            cost_usd_max: None,
            seconds_max: None,
            prices: None,
        }
    }
}

/// What a million tokens cost, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Input tokens read from the provider's cache; the input price where unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
}

impl Prices {
    /// What budgets assume of a model without a price: dear (`spec/contract.md`, 2.12).
    pub const UNKNOWN: Self = Self { input: 15.0, output: 75.0, cached: None };

    /// The cost of these tokens, in US dollars.
    #[allow(clippy::cast_precision_loss)]
    pub fn cost_usd(&self, usage: &crate::reply::Usage) -> f64 {
        let cached = usage.cached.min(usage.input);
        let fresh = (usage.input - cached) as f64 * self.input;
        let read = cached as f64 * self.cached.unwrap_or(self.input);
        (fresh + read + usage.output as f64 * self.output) / 1_000_000.0
    }
}

impl Limits {
    /// Whether they can be kept to at all.
    ///
    /// # Errors
    /// The first that is zero, or no amount of money.
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        check_numbers(self)?;
        check_money(self)
    }
}

/// A budget that is no number, or a price that is less than nothing, would never be exceeded.
fn check_money(limits: &Limits) -> Result<(), PlanError> {
    if limits.cost_usd_max.is_some_and(|it| !it.is_finite() || it <= 0.0) {
        return Err(PlanError::Money("cost_usd_max", "more than 0"));
    }
    let Some(Prices { input, output, cached }) = limits.prices else { return Ok(()) };
    let prices = [("prices.input", input), ("prices.output", output), ("prices.cached", cached.unwrap_or_default())];
    match prices.iter().find(|(_, price)| !price.is_finite() || *price < 0.0) {
        Some((name, _)) => Err(PlanError::Money(name, "0 or more")),
        None => Ok(()),
    }
}

fn check_numbers(limits: &Limits) -> Result<(), PlanError> {
    let positive = [
        ("trips_max", limits.trips_max > 0),
        ("calls_parallel_max", limits.calls_parallel_max > 0),
        ("calls_max", limits.calls_max > 0),
        ("result_bytes_max", limits.result_bytes_max > 0),
        ("input_bytes_max", limits.input_bytes_max > 0),
        ("error_bytes_max", limits.error_bytes_max > 0),
        ("tokens_max", limits.tokens_max != Some(0)),
        ("seconds_max", limits.seconds_max != Some(0)),
    ];
    match positive.iter().find(|(_, fine)| !fine) {
        Some((name, _)) => Err(PlanError::Limit(name)),
        None => Ok(()),
    }
}
