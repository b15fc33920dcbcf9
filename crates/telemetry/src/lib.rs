//! Spans of runs: read from their logs, after OpenTelemetry's conventions for generative AI, and sent on by OTLP over HTTP.
//!
//! A run's log says when it was asked what and how that ended, and it outlives the process. So nothing beside it is
//! measured: when a run is parked or has ended, [`Recorder`] reads the spans of this stretch of it from the events, and
//! [`Exporter`] sends them in the background. A run that is taken up on another machine goes on with the same trace
//! (`docs/decisions/0009-telemetry.md`).

mod exporter;
mod fields;
mod queue;
mod recorder;
mod redact;
mod settings;
mod spans;

pub use exporter::Exporter;
pub use recorder::{Recorder, Redactor, Traces};
pub use redact::redact;
pub use settings::{Sampler, Settings, SettingsError};
