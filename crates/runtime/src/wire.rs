//! Capture of the exact exchanges with a model, for `gesta show --wire`. Off unless it is configured.

use std::sync::Arc;

use gesta_model::{Model, Wire};
use gesta_run::RunId;

use crate::agent::Parts;

/// The model with its exchanges kept beside the run. None where nothing goes over a wire.
pub(crate) fn captured(parts: &Arc<Parts>, run: &RunId, trip: u32) -> Option<Arc<dyn Model>> {
    let (store, clock, run) = (parts.store.clone(), parts.clock.clone(), run.clone());
    parts.model.captured(Wire::new(move |record| {
        let kept = gesta_store::WireRecord {
            trip,
            attempt: record.attempt,
            at: clock.now(),
            request: format!("POST {}\n\n{}", record.url, String::from_utf8_lossy(&record.request)),
            response: answered(record),
        };
        let (store, run) = (store.clone(), run.clone());
        tokio::spawn(async move {
            if let Err(why) = store.put_wire(&run, kept).await {
                tracing::warn!(%run, %why, "an exchange with the model could not be kept");
            }
        });
    }))
}

/// The answer as far as it came, its status in front.
fn answered(record: &gesta_model::WireRecord) -> String {
    let status = record.status.map(|status| format!("{status}\n\n")).unwrap_or_default();
    let failure = record.failure.as_ref().map(|why| format!("\n[{why}]")).unwrap_or_default();
    format!("{status}{}{failure}", String::from_utf8_lossy(&record.response))
}
