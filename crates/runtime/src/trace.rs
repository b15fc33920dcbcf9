//! What of a run goes to logs and traces: spans with the names of the generative-AI conventions, names and numbers, and
//! what anybody said only where capture is on and a redactor has seen it (`spec/contract.md`, 5).

use std::sync::Arc;

use gesta_run::{BlockKind, CallId, Event, EventKind, InputLabel, InterventionKind, InterventionOutcome, Run, Skipped};
use tracing::Span;
use tracing::field::Empty;

/// Makes a text fit to be kept: takes out what must not be.
pub(crate) type Redactor = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The span of a run.
pub(crate) fn run_span(run: &Run) -> Span {
    tracing::info_span!(
        "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = run.plan().spec.agent,
        gesta.run.id = run.opening().map(|opening| opening.run.as_str()),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gesta.outcome = Empty,
    )
}

/// The span of a trip.
pub(crate) fn trip_span(run: &Run, model: &str) -> Span {
    tracing::info_span!(
        "chat",
        gen_ai.operation.name = "chat",
        gen_ai.request.model = model,
        gesta.trip = run.trip(),
        gesta.input_label = label(run.next_label()),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.response.finish_reasons = Empty,
    )
}

/// The span of a tool's body.
pub(crate) fn tool_span(tool: &str, call: &CallId) -> Span {
    tracing::info_span!(
        "execute_tool",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        gen_ai.tool.call.id = call.as_str(),
    )
}

/// Notes an event on the run's span and on that of the trip whose answer caused it: warnings for re-prompts, errors for
/// failed backstops and functions.
pub(crate) fn event(event: &Event, run: &Span, trip: &Span, content: Option<&Redactor>) {
    match &event.what {
        EventKind::Opened { opening, .. } => tracing::info!(run = %opening.run, "run opened"),
        EventKind::Replied { reply, .. } => {
            trip.record("gen_ai.usage.input_tokens", reply.usage.input);
            trip.record("gen_ai.usage.output_tokens", reply.usage.output);
            trip.record("gen_ai.response.finish_reasons", reply.finish_reason.as_str());
            trip.in_scope(|| tracing::debug!(tokens = reply.usage.total, finish = ?reply.finish, "model replied"));
        }
        EventKind::ModelFailed { trip: number, fault } => {
            trip.in_scope(|| tracing::warn!(trip = number, kind = ?fault.kind, "model failed"));
        }
        EventKind::Answered { call, end, duration_ms } => {
            tracing::debug!(%call, status = ?end.status, duration_ms, "call ended");
        }
        EventKind::Held { call, .. } => tracing::info!(%call, "call on hold"),
        EventKind::FunctionFailed { function, .. } => tracing::error!(function, "a function of the agent failed"),
        EventKind::Ended { outcome, .. } => {
            run.record("gesta.outcome", outcome.as_str());
            tracing::info!(outcome = outcome.as_str(), "run ended");
        }
        EventKind::Intervened(it) => trip.in_scope(|| {
            let (kind, name) = (kind(it.kind), it.name.as_deref());
            match (it.outcome, it.skipped) {
                (InterventionOutcome::Sent, _) => tracing::warn!(kind, name, trip = it.trip, "prompt sent"),
                (_, Some(Skipped::Error)) => tracing::error!(kind, name, trip = it.trip, "backstop failed"),
                (outcome, skipped) => tracing::info!(kind, name, trip = it.trip, ?outcome, ?skipped, "no prompt sent"),
            }
        }),
        _ => {}
    }
    if let Some(redact) = content {
        said(event, trip, redact);
    }
}

/// What was said, redacted, under a target of its own.
fn said(event: &Event, trip: &Span, redact: &Redactor) {
    let note = |what: &str, text: &str| {
        let text = redact(text);
        trip.in_scope(|| tracing::info!(target: "gesta::content", what, text));
    };
    match &event.what {
        EventKind::Opened { opening, .. } => note("input", &gesta_run::message::text_of(&opening.input)),
        EventKind::Replied { reply, .. } => {
            for block in &reply.blocks {
                match &block.kind {
                    BlockKind::Text(text) => note("reply", text),
                    BlockKind::Call(call) => note("arguments", &call.arguments),
                    BlockKind::Thinking(_) | BlockKind::Other => {}
                }
            }
        }
        EventKind::Answered { end, .. } => note("result", &end.result.to_string()),
        EventKind::Intervened(it) => it.prompt.iter().for_each(|prompt| note("prompt", prompt)),
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

fn label(label: InputLabel) -> &'static str {
    match label {
        InputLabel::Input => "input",
        InputLabel::ToolResults => "tool_results",
        InputLabel::Backstop => "backstop",
        InputLabel::ToolRefusal => "tool_refusal",
        InputLabel::ActWhenAsked => "act_when_asked",
        InputLabel::Resume => "resume",
    }
}
