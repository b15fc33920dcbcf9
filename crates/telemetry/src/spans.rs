//! From the events of a run to the spans of one stretch of it: from its beginning, or from where it was taken up, to
//! where it was parked or ended.

use std::collections::HashMap;
use std::sync::Arc;

use gesta_run::message::text_of;
use gesta_run::{
    BlockKind, CallEnd, CallId, Decision, Event, EventKind, HoldReply, Intervention, InterventionKind,
    InterventionOutcome, Opening, Outcome, PlanSpec, Reply, Timestamp, TraceParent,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::{Event as SpanEvent, Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use serde_json::json;

use crate::fields::{number, opaque, span_id, text, texts, trace_of, word};
use crate::recorder::Traces;

/// The name of a tool that is none of the plan's: a model chose it, or wrote it.
const ADDED: &str = "added";
/// How much of a text that was said stands in a span, in bytes.
const CONTENT_BYTES_MAX: usize = 32 << 10;

/// What the spans are read from.
pub(crate) struct Stretch<'a> {
    pub(crate) traces: &'a Traces,
    pub(crate) plan: &'a PlanSpec,
    pub(crate) opening: &'a Opening,
    /// The whole log.
    pub(crate) events: &'a [Arc<Event>],
    /// Where the stretch begins in it.
    pub(crate) from: usize,
    /// The trace of whoever made the run go on.
    pub(crate) link: Option<TraceParent>,
    /// How it ended, where that is not in the log.
    pub(crate) failed: Option<Outcome>,
}

/// The spans of a stretch, its own first.
pub(crate) fn of(stretch: &Stretch<'_>) -> Vec<Span> {
    let mut reader = Reader::new(stretch);
    for (index, event) in stretch.events.iter().enumerate() {
        reader.read(event, index >= stretch.from);
    }
    reader.finish()
}

/// What is known of a call.
#[derive(Default)]
struct Known<'a> {
    name: &'a str,
    arguments: &'a str,
    decision: Option<&'static str>,
    held_at: Option<Timestamp>,
    waited_ms: Option<u64>,
    answer: Option<&'static str>,
}

struct Reader<'a> {
    stretch: &'a Stretch<'a>,
    trace: Vec<u8>,
    /// The stretch's own span, then the others.
    spans: Vec<Span>,
    /// The span of each trip of this stretch.
    trips: HashMap<u32, usize>,
    calls: HashMap<&'a CallId, Known<'a>>,
    /// What came before the first trip of all, for that.
    early: Vec<SpanEvent>,
    before: Timestamp,
    /// What causes the next trip.
    label: &'static str,
    tokens: (u64, u64),
    ended: Option<Outcome>,
}

impl<'a> Reader<'a> {
    fn new(stretch: &'a Stretch<'a>) -> Self {
        let run = stretch.opening.run.as_str();
        let trace = stretch.opening.trace.map_or_else(|| trace_of(run), |it| it.trace).to_vec();
        let begun = stretch.events.get(stretch.from).map_or(stretch.opening_at(), |event| event.at);
        let parent = match (stretch.from, stretch.opening.trace) {
            (0, None) => Vec::new(),
            (0, Some(parent)) => parent.span.to_vec(),
            (_, _) => span_id(&[run, "stretch", "0"]),
        };
        let own = Span {
            trace_id: trace.clone(),
            span_id: span_id(&[run, "stretch", &stretch.from.to_string()]),
            parent_span_id: parent,
            flags: 1,
            name: format!("invoke_agent {}", stretch.plan.agent),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(begun),
            links: stretch.link.iter().map(link).collect(),
            ..Span::default()
        };
        Self {
            trace,
            spans: vec![own],
            trips: HashMap::new(),
            calls: HashMap::new(),
            early: Vec::new(),
            before: begun,
            label: "input",
            tokens: (0, 0),
            ended: None,
            stretch,
        }
    }

    fn read(&mut self, event: &'a Event, is_new: bool) {
        match &event.what {
            EventKind::Replied { trip, reply, calls } => {
                for (block, call) in reply.calls().zip(calls) {
                    let known = Known { name: &block.name, arguments: &block.arguments, ..Known::default() };
                    self.calls.insert(&call.id, known);
                }
                if is_new {
                    self.replied(*trip, reply, event.at);
                    let ended = calls.iter().filter_map(|call| Some((&call.id, call.end.as_ref()?)));
                    ended.for_each(|(call, end)| self.call_ended(call, end, event.at, 0));
                }
            }
            EventKind::ModelFailed { trip, fault } if is_new => {
                let span = self.trip(*trip, event.at);
                failed(span, &word(&fault.kind));
            }
            EventKind::Decided { call, ruling } => self.known(call).decision = Some(decision_word(ruling)),
            EventKind::Held { call, .. } => {
                self.known(call).held_at = Some(event.at);
                self.note(is_new, "gesta.hold.opened", event.at, call);
            }
            EventKind::HoldAnswered { call, answer, .. } => {
                let known = self.known(call);
                known.answer = Some(answer_word(answer));
                known.waited_ms = known.held_at.map(|since| event.at.since_ms(since));
                self.note(is_new, "gesta.hold.answered", event.at, call);
            }
            EventKind::Answered { call, end, duration_ms } if is_new => {
                self.call_ended(call, end, event.at, *duration_ms);
            }
            EventKind::GrantAnswered { call, n, end, duration_ms } if is_new => {
                self.grant_ended((call, *n), end, event.at, *duration_ms);
            }
            EventKind::Intervened(it) if is_new => self.intervened(it),
            EventKind::Ended { outcome, .. } => self.ended = Some(*outcome),
            EventKind::Resumed { .. } => self.ended = None,
            _ => {}
        }
        if is_new {
            self.before = event.at;
        }
        self.label = match &event.what {
            EventKind::TripEnded { .. } => "tool_results",
            EventKind::HoldAnswered { .. } | EventKind::Resumed { .. } | EventKind::Recovered => "resume",
            EventKind::Intervened(it) if it.outcome == InterventionOutcome::Sent => kind_word(it.kind),
            _ => self.label,
        };
    }

    fn known(&mut self, call: &'a CallId) -> &mut Known<'a> {
        self.calls.entry(call).or_default()
    }

    /// A child of the stretch's span.
    fn span(&mut self, key: &[&str], name: String, kind: SpanKind, from: Timestamp, to: Timestamp) -> &mut Span {
        let mut parts = vec![self.stretch.opening.run.as_str()];
        parts.extend(key);
        let span = Span {
            trace_id: self.trace.clone(),
            span_id: span_id(&parts),
            parent_span_id: self.spans[0].span_id.clone(),
            flags: 1,
            name,
            kind: kind.into(),
            start_time_unix_nano: nanos(from.min(to)),
            end_time_unix_nano: nanos(to),
            ..Span::default()
        };
        self.spans.push(span);
        let last = self.spans.len() - 1;
        &mut self.spans[last]
    }

    /// The span of a model call, which began with what happened before its end.
    fn trip(&mut self, trip: u32, at: Timestamp) -> &mut Span {
        let (provider, model) = provider_and_model(&self.stretch.plan.model);
        let attributes = vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.provider.name", provider),
            text("gen_ai.request.model", model),
            number("gesta.trip", trip.into()),
            text("gesta.input_label", self.label),
        ];
        let (before, early) = (self.before, std::mem::take(&mut self.early));
        self.trips.insert(trip, self.spans.len());
        // A trip that failed and is made again after a resume is another span.
        let key = at.0.to_string();
        let name = format!("chat {model}");
        let span = self.span(&["trip", &trip.to_string(), &key], name, SpanKind::Client, before, at);
        span.attributes = attributes;
        span.events = early;
        span
    }

    fn replied(&mut self, trip: u32, reply: &Reply, at: Timestamp) {
        self.tokens = (self.tokens.0 + reply.usage.input, self.tokens.1 + reply.usage.output);
        let content = self.stretch.traces.content.is_some().then(|| self.said(reply));
        let span = self.trip(trip, at);
        span.attributes.extend([
            number("gen_ai.usage.input_tokens", reply.usage.input),
            number("gen_ai.usage.output_tokens", reply.usage.output),
            texts("gen_ai.response.finish_reasons", [word(&reply.finish)]),
        ]);
        if reply.usage.cached > 0 {
            span.attributes.push(number("gen_ai.usage.cache_read.input_tokens", reply.usage.cached));
        }
        if reply.usage.cache_write > 0 {
            span.attributes.push(number("gen_ai.usage.cache_creation.input_tokens", reply.usage.cache_write));
        }
        if !reply.model.is_empty() {
            span.attributes.push(text("gen_ai.response.model", opaque(&reply.model)));
        }
        span.attributes.extend(content);
    }

    /// What the model said, where that is to be shown.
    fn said(&self, reply: &Reply) -> KeyValue {
        let parts = reply.blocks.iter().filter_map(|block| match &block.kind {
            BlockKind::Text(said) => Some(json!({ "type": "text", "content": self.shown(said) })),
            BlockKind::Call(call) => Some(json!({
                "type": "tool_call", "id": call.id, "name": self.shown(&call.name),
                "arguments": self.shown(&call.arguments),
            })),
            BlockKind::Thinking(_) | BlockKind::Other => None,
        });
        let parts: Vec<_> = parts.collect();
        let said = json!([{ "role": "assistant", "parts": parts, "finish_reason": reply.finish }]);
        text("gen_ai.output.messages", said.to_string())
    }

    /// A text past the redactor, and no longer than fits.
    fn shown(&self, said: &str) -> String {
        let Some(redact) = &self.stretch.traces.content else { return String::new() };
        let mut said = redact(said);
        said.truncate(said.floor_char_boundary(CONTENT_BYTES_MAX));
        said
    }

    fn has_content(&self) -> bool {
        self.stretch.traces.content.is_some()
    }

    /// The name of a tool where it is the plan's.
    fn tool_name(&self, name: &str) -> String {
        let known = self.stretch.plan.tools.iter().any(|tool| tool.name == name);
        match (known, self.has_content()) {
            (true, _) => name.to_owned(),
            (false, true) => self.shown(name),
            (false, false) => ADDED.to_owned(),
        }
    }

    fn call_ended(&mut self, call: &'a CallId, end: &CallEnd, at: Timestamp, took_ms: u64) {
        let known = self.calls.remove(call).unwrap_or_default();
        let name = self.tool_name(known.name);
        let mut attributes = vec![
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", &name),
            text("gen_ai.tool.call.id", opaque(call.as_str())),
            text("gen_ai.tool.type", "function"),
            text("gesta.call.status", word(&end.status)),
        ];
        attributes.extend(known.decision.map(|it| text("gesta.decision", it)));
        attributes.extend(known.answer.map(|it| text("gesta.hold.answer", it)));
        attributes.extend(known.waited_ms.map(|it| number("gesta.hold.waited_ms", it)));
        if self.has_content() {
            attributes.push(text("gen_ai.tool.call.arguments", self.shown(known.arguments)));
            attributes.push(text("gen_ai.tool.call.result", self.shown(&end.result.to_string())));
        }
        let from = before(at, took_ms);
        let span = self.span(&["call", call.as_str()], format!("execute_tool {name}"), SpanKind::Internal, from, at);
        span.attributes = attributes;
        if end.is_error {
            failed(span, &word(&end.status));
        }
    }

    fn grant_ended(&mut self, (call, n): (&CallId, u32), end: &CallEnd, at: Timestamp, took_ms: u64) {
        let asked = self.stretch.events.iter().find_map(|event| match &event.what {
            EventKind::GrantAsked { call: of, n: number, grant, .. } if of == call && *number == n => Some(grant),
            _ => None,
        });
        let known = asked.filter(|name| self.stretch.plan.grants.iter().any(|it| it.full_name() == **name));
        let name = known.map_or(ADDED, String::as_str);
        let tool = span_id(&[self.stretch.opening.run.as_str(), "call", call.as_str()]);
        let key = ["grant", call.as_str(), &n.to_string()];
        let from = before(at, took_ms);
        let span = self.span(&key, format!("execute_tool {name}"), SpanKind::Internal, from, at);
        // It is asked for while a tool of the document runs.
        span.parent_span_id = tool;
        span.attributes = vec![
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", name),
            text("gen_ai.tool.type", "extension"),
            text("gesta.call.status", word(&end.status)),
        ];
        if end.is_error {
            failed(span, &word(&end.status));
        }
    }

    /// Something happened with a call, on the span of the stretch.
    fn note(&mut self, is_new: bool, name: &str, at: Timestamp, call: &'a CallId) {
        if !is_new {
            return;
        }
        let known = self.calls.get(call);
        let mut attributes = vec![
            text("gen_ai.tool.name", self.tool_name(known.map_or("", |it| it.name))),
            text("gen_ai.tool.call.id", opaque(call.as_str())),
        ];
        attributes.extend(known.and_then(|it| it.answer).map(|it| text("gesta.hold.answer", it)));
        self.spans[0].events.push(span_event(name, at, attributes));
    }

    /// On the trip whose answer caused it; where that was in an earlier stretch, on this one's span.
    fn intervened(&mut self, it: &Intervention) {
        let mut attributes = vec![
            text("gesta.intervention.kind", kind_word(it.kind)),
            text("gesta.intervention.phase", word(&it.phase)),
            text("gesta.intervention.outcome", word(&it.outcome)),
            number("gesta.intervention.attempt", it.attempt.into()),
            number("gesta.intervention.limit", it.limit.into()),
            number("gesta.trip", it.trip.into()),
        ];
        attributes.extend(it.name.iter().map(|name| text("gesta.intervention.name", name)));
        attributes.extend(it.skipped.iter().map(|why| text("gesta.intervention.skipped", word(why))));
        if !it.tools.is_empty() {
            let names: Vec<String> = it.tools.iter().map(|name| self.tool_name(name)).collect();
            attributes.push(texts("gesta.intervention.tools", names));
        }
        if self.has_content() {
            attributes.extend(it.prompt.iter().map(|said| text("gesta.intervention.prompt", self.shown(said))));
            attributes.extend(it.reason.iter().map(|said| text("gesta.intervention.reason", self.shown(said))));
        }
        let event = span_event("gesta.intervention", it.at, attributes);
        match self.trips.get(&it.trip) {
            Some(index) => self.spans[*index].events.push(event),
            None if self.stretch.from == 0 && self.trips.is_empty() => self.early.push(event),
            None => self.spans[0].events.push(event),
        }
    }

    fn finish(mut self) -> Vec<Span> {
        let (plan, opening) = (self.stretch.plan, self.stretch.opening);
        let (provider, model) = provider_and_model(&plan.model);
        let mut attributes = vec![
            text("gen_ai.operation.name", "invoke_agent"),
            text("gen_ai.provider.name", provider),
            text("gen_ai.agent.name", &plan.agent),
            text("gen_ai.request.model", model),
            number("gen_ai.usage.input_tokens", self.tokens.0),
            number("gen_ai.usage.output_tokens", self.tokens.1),
            text("gesta.run.id", opaque(opening.run.as_str())),
        ];
        if !plan.version.is_empty() {
            attributes.push(text("gen_ai.agent.version", &plan.version));
        }
        if let (Some(alias), Some(conversation)) = (&self.stretch.traces.alias, &opening.conversation) {
            attributes.push(text("gen_ai.conversation.id", alias(conversation.as_str())));
        }
        if self.has_content() && self.stretch.from == 0 {
            let parts = [json!({ "type": "text", "content": self.shown(&text_of(&opening.input)) })];
            let said = json!([{ "role": "user", "parts": parts }]);
            attributes.push(text("gen_ai.input.messages", said.to_string()));
        }
        let outcome = self.stretch.failed.or(self.ended);
        let status = if outcome.is_some() { "ended" } else { "parked" };
        attributes.push(text("gesta.status", status));
        attributes.extend(outcome.map(|it| text("gesta.outcome", it.as_str())));
        let end = nanos(self.before);
        let early = std::mem::take(&mut self.early);
        let own = &mut self.spans[0];
        own.events.extend(early);
        own.attributes = attributes;
        own.end_time_unix_nano = end.max(own.start_time_unix_nano);
        if let Some(outcome) = outcome.filter(|it| it.category() != "control") {
            failed(own, outcome.as_str());
        }
        self.spans
    }
}

impl Stretch<'_> {
    fn opening_at(&self) -> Timestamp {
        self.events.first().map_or(Timestamp(0), |event| event.at)
    }
}

/// An error, without a word of its text.
fn failed(span: &mut Span, kind: &str) {
    span.attributes.push(text("error.type", kind));
    span.status = Some(Status { code: StatusCode::Error.into(), message: String::new() });
}

fn span_event(name: &str, at: Timestamp, attributes: Vec<KeyValue>) -> SpanEvent {
    SpanEvent { time_unix_nano: nanos(at), name: name.to_owned(), attributes, dropped_attributes_count: 0 }
}

fn link(to: &TraceParent) -> Link {
    Link { trace_id: to.trace.to_vec(), span_id: to.span.to_vec(), flags: to.sampled.into(), ..Link::default() }
}

fn provider_and_model(model: &str) -> (&str, &str) {
    model.split_once(':').unwrap_or((model, model))
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0).saturating_mul(1_000_000)
}

fn before(at: Timestamp, ms: u64) -> Timestamp {
    Timestamp(at.0.saturating_sub(i64::try_from(ms).unwrap_or(0)).max(0))
}

fn decision_word(ruling: &Result<Decision, String>) -> &'static str {
    match ruling {
        Ok(Decision::Run { .. }) => "run",
        Ok(Decision::Deny { .. }) => "deny",
        Ok(Decision::Defer { .. }) => "defer",
        Err(_) => "failed",
    }
}

fn answer_word(answer: &HoldReply) -> &'static str {
    match answer {
        HoldReply::Approve { arguments: None } => "approve",
        HoldReply::Approve { arguments: Some(_) } => "approve_edited",
        HoldReply::Deny { .. } => "deny",
        HoldReply::Result { .. } => "result",
        HoldReply::Error { .. } => "error",
        HoldReply::OutcomeUnknown => "outcome_unknown",
    }
}

fn kind_word(kind: InterventionKind) -> &'static str {
    match kind {
        InterventionKind::Backstop => "backstop",
        InterventionKind::ToolRefusal => "tool_refusal",
        InterventionKind::ActWhenAsked => "act_when_asked",
    }
}
