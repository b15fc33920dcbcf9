//! Capture of the exact exchanges with a model, for `gesta show --wire`. Off unless it is configured.

use std::sync::Arc;

use gesta_model::{Model, Wire};
use gesta_run::RunId;
use gesta_store::{Store, StoreError, WireRecord};

use crate::agent::Parts;

/// The model with its exchanges kept beside the run; `again` where the trip was asked for before. None where nothing goes over a wire.
pub(crate) fn captured(parts: &Arc<Parts>, run: &RunId, trip: u32, again: bool) -> Option<Arc<dyn Model>> {
    let (store, clock, run) = (parts.store.clone(), parts.clock.clone(), run.clone());
    parts.model.captured(Wire::new(move |record| {
        let kept = WireRecord {
            trip,
            attempt: record.attempt,
            at: clock.now(),
            request: format!("POST {}\n\n{}", record.url, String::from_utf8_lossy(&record.request)),
            response: answered(record),
        };
        let (store, run) = (store.clone(), run.clone());
        tokio::spawn(async move {
            if let Err(why) = keep(&*store, &run, kept, again).await {
                tracing::warn!(%run, code = why.code(), "an exchange with the model could not be kept");
            }
        });
    }))
}

/// A trip that is asked for again, because its model call had failed, goes on counting its attempts.
async fn keep(store: &dyn Store, run: &RunId, mut kept: WireRecord, again: bool) -> Result<(), StoreError> {
    if again {
        let before = store.wire(run).await?;
        kept.attempt = before.iter().filter(|it| it.trip == kept.trip).map(|it| it.attempt + 1).max().unwrap_or(0);
    }
    store.put_wire(run, kept).await
}

/// The answer as far as it came, its status in front.
fn answered(record: &gesta_model::WireRecord) -> String {
    let status = record.status.map(|status| format!("{status}\n\n")).unwrap_or_default();
    let failure = record.failure.as_ref().map(|why| format!("\n[{why}]")).unwrap_or_default();
    format!("{status}{}{failure}", String::from_utf8_lossy(&record.response))
}
