//! What the server counts and measures, in the form that Prometheus reads. No label holds what anybody said or chose.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gesta_run::{Event, EventKind};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Label = [(&'static str, String); 1];

/// All counters.
pub(crate) struct Metrics {
    registry: Registry,
    runs: Family<Label, Counter>,
    parked: Counter,
    trips: Counter,
    calls: Family<Label, Counter>,
    interventions: Family<[(&'static str, String); 2], Counter>,
    model: Histogram,
    store: Family<Label, Histogram>,
    requests: Family<[(&'static str, String); 3], Counter>,
    /// Runs that are worked on here.
    pub(crate) going: Gauge,
    /// Holds that wait.
    pub(crate) holds: Gauge,
    /// How long the oldest of them has waited, in seconds.
    pub(crate) oldest: Gauge,
    /// When the holds were counted last.
    counted: Mutex<Option<Instant>>,
}

/// From a millisecond to half a minute.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("gesta"),
            runs: Family::default(),
            parked: Counter::default(),
            trips: Counter::default(),
            calls: Family::default(),
            interventions: Family::default(),
            model: seconds(),
            store: Family::new_with_constructor(seconds),
            requests: Family::default(),
            going: Gauge::default(),
            holds: Gauge::default(),
            oldest: Gauge::default(),
            counted: Mutex::default(),
        };
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("runs", "Runs that ended here, by outcome", self.runs.clone());
        registry.register("runs_parked", "How often a call was put on hold", self.parked.clone());
        registry.register("trips", "Model calls that were answered", self.trips.clone());
        registry.register("calls", "Tool calls that ended, by status", self.calls.clone());
        let what = "Interventions of the contract, by kind and outcome";
        registry.register("interventions", what, self.interventions.clone());
        registry.register("model_seconds", "How long a model took to answer", self.model.clone());
        registry.register("store_seconds", "How long the store took, by operation", self.store.clone());
        registry.register("requests", "Requests, by method, path and status", self.requests.clone());
        registry.register("runs_going", "Runs that are worked on here", self.going.clone());
        registry.register("holds_open", "Holds that wait", self.holds.clone());
        let what = "How long the oldest hold has waited, in seconds";
        registry.register("holds_oldest_age_seconds", what, self.oldest.clone());
        self
    }

    /// These events are in the store now.
    pub(crate) fn stored(&self, events: &[Event]) {
        for event in events {
            match &event.what {
                EventKind::Replied { calls, .. } => {
                    self.trips.inc();
                    calls.iter().filter_map(|call| call.end.as_ref()).for_each(|end| self.call(end.status));
                }
                EventKind::Answered { end, .. } => self.call(end.status),
                EventKind::Held { .. } => drop(self.parked.inc()),
                EventKind::Intervened(it) => {
                    let labels = [("kind", word(&it.kind)), ("outcome", word(&it.outcome))];
                    self.interventions.get_or_create(&labels).inc();
                }
                EventKind::Ended { outcome, .. } => {
                    self.runs.get_or_create(&[("outcome", outcome.as_str().to_owned())]).inc();
                }
                _ => {}
            }
        }
    }

    fn call(&self, status: gesta_run::CallStatus) {
        self.calls.get_or_create(&[("status", word(&status))]).inc();
    }

    /// A model has answered, or failed.
    pub(crate) fn model(&self, took: Duration) {
        self.model.observe(took.as_secs_f64());
    }

    /// The store has done something.
    pub(crate) fn store(&self, operation: &str, since: Instant) {
        let labels = [("operation", operation.to_owned())];
        self.store.get_or_create(&labels).observe(since.elapsed().as_secs_f64());
    }

    /// A request was answered.
    pub(crate) fn request(&self, method: &str, path: &str, status: u16) {
        let labels = [("method", method.to_owned()), ("path", path.to_owned()), ("status", status.to_string())];
        self.requests.get_or_create(&labels).inc();
    }

    /// Whether the holds have not been counted for a while; whoever is told so counts them.
    pub(crate) fn is_to_count(&self, every: Duration) -> bool {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let due = counted.is_none_or(|at| at.elapsed() >= every);
        if due {
            *counted = Some(Instant::now());
        }
        due
    }

    /// As text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a text does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// The word on the wire.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "other".to_owned(),
    }
}
