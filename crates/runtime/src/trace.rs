//! What of a run goes to the log: names, numbers and words of ours. Nothing that anybody said stands there at any level
//! (`spec/contract.md`, 5); what was said is shown by spans alone, where that is switched on ([`gesta_telemetry`]).

use gesta_run::{Event, EventKind, InterventionKind, InterventionOutcome, Run, RunResult, Skipped, Status};
use tracing::Span;

/// Around everything that is logged while a run goes on: which run it is.
pub(crate) fn span(run: &Run) -> Span {
    let id = run.opening().map(|opening| opening.run.as_str());
    tracing::info_span!("run", run = id, agent = run.plan().spec.agent)
}

/// One line for what is worth one: warnings for prompts that were sent, errors for functions that failed.
pub(crate) fn event(event: &Event) {
    match &event.what {
        EventKind::Opened { .. } => tracing::info!("run opened"),
        EventKind::Replied { trip, reply, .. } => {
            tracing::debug!(trip, tokens = reply.usage.total, finish = ?reply.finish, "model replied");
        }
        EventKind::ModelFailed { trip, fault } => tracing::warn!(trip, kind = ?fault.kind, "model failed"),
        EventKind::Answered { end, duration_ms, .. } => {
            tracing::debug!(status = ?end.status, duration_ms, "call ended");
        }
        EventKind::Held { expires_at, .. } => {
            tracing::info!(expires_at = expires_at.map(|at| at.0), "call on hold");
        }
        EventKind::HoldAnswered { .. } => tracing::info!("hold answered"),
        EventKind::Recovered => tracing::info!("run taken up"),
        EventKind::FunctionFailed { function, .. } => tracing::error!(function, "a function of the agent failed"),
        EventKind::Intervened(it) => {
            let (kind, name, trip) = (kind(it.kind), it.name.as_deref(), it.trip);
            match (it.outcome, it.skipped) {
                (InterventionOutcome::Sent, _) => tracing::warn!(kind, name, trip, "prompt sent"),
                (_, Some(Skipped::Error)) => tracing::error!(kind, name, trip, "backstop failed"),
                (outcome, skipped) => tracing::info!(kind, name, trip, ?outcome, ?skipped, "no prompt sent"),
            }
        }
        _ => {}
    }
}

/// The one line of a run that nobody works on any more: parked, or ended.
pub(crate) fn left(result: &RunResult) {
    let (run, agent) = (&result.report.run_id, &result.report.agent);
    let (trips, calls, holds) = (result.trips, result.tool_calls.len(), result.deferred.len());
    let ms = result.report.duration_ms;
    match (result.status, result.outcome) {
        (Status::Ended, Some(outcome)) => {
            tracing::info!(%run, agent, outcome = outcome.as_str(), trips, calls, ms, "run ended");
        }
        _ => tracing::info!(%run, agent, trips, calls, holds, ms, "run parked"),
    }
}

fn kind(kind: InterventionKind) -> &'static str {
    match kind {
        InterventionKind::Backstop => "backstop",
        InterventionKind::ToolRefusal => "tool_refusal",
        InterventionKind::ActWhenAsked => "act_when_asked",
    }
}
