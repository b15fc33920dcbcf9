//! What of a run goes to the log: names and numbers, never what anybody said (`spec/contract.md`, 5).

use gesta_run::{Event, EventKind, InterventionKind, InterventionOutcome, Skipped};

/// Logs an event: warnings for re-prompts, errors for failed backstops and functions.
pub(crate) fn event(event: &Event) {
    match &event.what {
        EventKind::Opened { opening, .. } => tracing::info!(run = %opening.run, "run opened"),
        EventKind::Replied { trip, reply, .. } => {
            tracing::debug!(trip, tokens = reply.usage.total, finish = ?reply.finish, "model replied");
        }
        EventKind::ModelFailed { trip, fault } => tracing::warn!(trip, kind = ?fault.kind, "model failed"),
        EventKind::Answered { call, end, duration_ms } => {
            tracing::debug!(%call, status = ?end.status, duration_ms, "call ended");
        }
        EventKind::Held { call, .. } => tracing::info!(%call, "call on hold"),
        EventKind::FunctionFailed { function, .. } => tracing::error!(function, "a function of the agent failed"),
        EventKind::Ended { outcome, .. } => tracing::info!(outcome = outcome.as_str(), "run ended"),
        EventKind::Intervened(it) => {
            let (kind, name) = (kind(it.kind), it.name.as_deref());
            match (it.outcome, it.skipped) {
                (InterventionOutcome::Sent, _) => tracing::warn!(kind, name, trip = it.trip, "prompt sent"),
                (_, Some(Skipped::Error)) => tracing::error!(kind, name, trip = it.trip, "backstop failed"),
                (outcome, skipped) => tracing::info!(kind, name, trip = it.trip, ?outcome, ?skipped, "no prompt sent"),
            }
        }
        _ => {}
    }
}

fn kind(kind: InterventionKind) -> &'static str {
    match kind {
        InterventionKind::Backstop => "backstop",
        InterventionKind::ToolRefusal => "tool_refusal",
        InterventionKind::ActWhenAsked => "act_when_asked",
    }
}
