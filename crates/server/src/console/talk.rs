//! A run as a scene: who said and did what, in order, with the reason for each step.

use std::collections::BTreeMap;

use gesta_run::event::Resolved;
use gesta_run::{
    Attempt, BlockKind, CallEnd, CallId, CallStatus, Decision, Event, EventKind, Finish, Intervention,
    InterventionKind, InterventionOutcome, Part, PlanSpec, Reply, Skipped, Source, Timestamp,
};
use maud::{Markup, html};

use super::parts::{arguments, badge, length, visible, whole};
use super::{hold, parts, rules};

/// One line of the scene.
pub(super) struct Line {
    at: Timestamp,
    /// Who speaks or acts.
    who: &'static str,
    /// The class of its look.
    look: &'static str,
    body: Markup,
}

/// Tells a run's events.
pub(super) struct Talk<'a> {
    plan: &'a PlanSpec,
    tools: BTreeMap<CallId, String>,
    lines: Vec<Line>,
}

/// The lines of a run.
pub(super) fn lines(plan: &PlanSpec, events: &[Event]) -> Vec<Line> {
    let mut talk = Talk { plan, tools: BTreeMap::new(), lines: Vec::new() };
    for event in events {
        talk.event(event);
    }
    talk.lines
}

/// The lines as a list, with times from the run's beginning.
pub(super) fn list(lines: &[Line], begun: Timestamp) -> Markup {
    html! {
        ol.talk {
            @for line in lines {
                li class=(line.look) {
                    span.who { (line.who) }
                    div.what { (line.body) }
                    span.at title=(parts::exact(line.at)) { "+" (length((line.at.0 - begun.0).max(0))) }
                }
            }
        }
    }
}

impl Talk<'_> {
    fn say(&mut self, at: Timestamp, who: &'static str, look: &'static str, body: Markup) {
        self.lines.push(Line { at, who, look, body });
    }

    fn tool(&self, call: &CallId) -> Markup {
        let name = self.tools.get(call).map_or("a call", String::as_str);
        html! { code { (visible(name)) } " " span.faint { (visible(call.as_str())) } }
    }

    fn event(&mut self, event: &Event) {
        let at = event.at;
        match &event.what {
            EventKind::Opened { opening, intent } => {
                let said = said(&opening.input);
                self.say(at, "user", "user", html! { (said) @if intent.is_some() { p.note { "Asks for a change." } } });
            }
            EventKind::Replied { reply, calls, .. } => self.replied(at, reply, calls),
            EventKind::ModelFailed { fault, .. } => {
                self.say(at, "model", "bad", html! { p { "Failed: " (visible(&fault.to_string())) } });
            }
            EventKind::Decided { call, ruling } => self.decided(at, call, ruling),
            EventKind::Answered { call, end, duration_ms } => self.answered(at, call, end, *duration_ms),
            EventKind::GrantAsked { call, n, grant, arguments: given, .. } => {
                let asks = self.tool(call);
                self.tools.insert(CallId::new(format!("{call}/{n}")), grant.clone());
                let body = html! { p { (asks) " asks for " code { (visible(grant)) } } (arguments(given)) };
                self.say(at, "tool", "deed", body);
            }
            EventKind::GrantDecided { call, n, ruling } => {
                self.decided(at, &CallId::new(format!("{call}/{n}")), ruling)
            }
            EventKind::GrantAnswered { call, n, end, duration_ms } => {
                self.answered(at, &CallId::new(format!("{call}/{n}")), end, *duration_ms);
            }
            EventKind::HoldAnswered { call, answer, .. } => {
                let (word, tone) = hold::said(Some(answer));
                let body = html! { p { (self.tool(call)) " " (badge(word, tone)) } (hold::answer(Some(answer))) };
                self.say(at, "person", "person", body);
            }
            EventKind::Held { call, .. } => {
                let body = html! { p { (self.tool(call)) " is on hold, and the run waits." } };
                self.say(at, "gesta", "quiet", body);
            }
            EventKind::Intervened(it) => self.intervened(it),
            other => self.rest(at, other),
        }
    }

    /// What is said in one sentence.
    fn rest(&mut self, at: Timestamp, what: &EventKind) {
        let (look, body) = match what {
            EventKind::Staged { call, needs_approval } => {
                let when = if *needs_approval { "after the reply and an approval" } else { "after the reply" };
                ("deed", html! { p { (self.tool(call)) " is written down, to be done " (when) "." } })
            }
            EventKind::Performed { call, attempt } => match attempt {
                Attempt::Performed => ("deed", html! { p { (self.tool(call)) " " (badge("performed", "good")) } }),
                Attempt::Failed { error } => {
                    ("bad", html! { p { (self.tool(call)) " " (badge("failed", "bad")) } p.words { (visible(error)) } })
                }
            },
            EventKind::Discarded { call, reason } => {
                ("bad", html! { p { (self.tool(call)) " " (badge("discarded", "off")) " " (visible(reason)) } })
            }
            EventKind::FunctionFailed { function, error } => {
                ("bad", html! { p { "The agent's own " code { (visible(function)) } " failed: " (visible(error)) } })
            }
            EventKind::Resumed { trips_max, .. } => {
                ("quiet", html! { p { "Goes on, with at most " (trips_max) " trips." } })
            }
            EventKind::Recovered => ("quiet", html! { p { "Taken up again: whoever worked on it was gone." } }),
            EventKind::Settled => ("quiet", html! { p { "Can no longer go on: a new message came." } }),
            EventKind::BackstopRan { backstop, duration_ms, error, .. } => {
                let name = self.plan.contract.backstops.get(*backstop).map_or("?", |it| it.name.as_str());
                let took = length(i64::try_from(*duration_ms).unwrap_or(i64::MAX));
                (
                    "quiet",
                    html! {
                        p { "Backstop " code { (visible(name)) } " ran, " (took) @if let Some(why) = error { ": " (visible(why)) } }
                    },
                )
            }
            EventKind::Ended { outcome, message, .. } => (
                "end",
                html! {
                    p { "Ended " (badge(parts::word(*outcome), parts::tone(*outcome))) @if !message.is_empty() { " " (visible(message)) } }
                },
            ),
            _ => return,
        };
        self.say(at, "gesta", look, body);
    }

    fn replied(&mut self, at: Timestamp, reply: &Reply, calls: &[Resolved]) {
        let mut resolved = calls.iter();
        for block in &reply.blocks {
            match &block.kind {
                BlockKind::Text(text) if text.trim().is_empty() => {}
                BlockKind::Text(text) => self.say(at, "model", "model", html! { p.words { (visible(text)) } }),
                BlockKind::Thinking(text) => {
                    let body = html! { details { summary { "Thinking" } p.words { (visible(text)) } } };
                    self.say(at, "model", "quiet", body);
                }
                BlockKind::Call(call) => {
                    let known = resolved.next();
                    if let Some(known) = known {
                        self.tools.insert(known.id.clone(), call.name.clone());
                    }
                    let given = gesta_run::json::read_strict(&call.arguments);
                    let id = known.map_or_else(|| call.id.clone(), |it| it.id.clone());
                    let body = html! {
                        p { "calls " code { (visible(&call.name)) } " " span.faint { (visible(id.as_str())) }
                            @if call.recovered { " " (badge("found in the text", "wait")) }
                            @if known.is_none() { " " (badge("not run", "off")) } }
                        @match &given {
                            Ok(value) => (whole(value)),
                            Err(_) => pre tabindex="0" { (visible(&call.arguments)) },
                        }
                    };
                    self.say(at, "model", "call", body);
                    if let Some((known, end)) = known.and_then(|it| Some((it, it.end.as_ref()?))) {
                        self.answered(at, &known.id, end, 0);
                    }
                }
                BlockKind::Other => {}
            }
        }
        let cut = match reply.finish {
            Finish::Length => "The answer was cut off for its length.",
            Finish::ContentFilter => "The provider's filter stopped the answer.",
            Finish::Stop | Finish::ToolCalls | Finish::Refusal | Finish::Other => return,
        };
        self.say(at, "gesta", "bad", html! { p { (cut) } });
    }

    fn decided(&mut self, at: Timestamp, call: &CallId, ruling: &Result<Decision, String>) {
        let tool = self.tool(call);
        let because = |reason: &Option<String>| html! { @if let Some(why) = reason { p.why { (visible(why)) } } };
        let (look, body) = match ruling {
            Ok(Decision::Run { arguments: None, reason }) => {
                ("quiet", html! { p { (tool) " " (badge("may run", "good")) } (because(reason)) })
            }
            Ok(Decision::Run { arguments: Some(other), reason }) => (
                "deed",
                html! { p { (tool) " " (badge("runs with these instead", "wait")) } (because(reason)) (arguments(other)) },
            ),
            Ok(Decision::Deny { reason }) => {
                ("deed", html! { p { (tool) " " (badge("denied", "bad")) } p.why { (visible(reason)) } })
            }
            Ok(Decision::Defer { reason }) => {
                ("deed", html! { p { (tool) " " (badge("asks a person", "wait")) } (because(reason)) })
            }
            Err(why) => ("bad", html! { p { (tool) " " (badge("no decision", "bad")) } p.why { (visible(why)) } }),
        };
        self.say(at, "policy", look, body);
    }

    fn answered(&mut self, at: Timestamp, call: &CallId, end: &CallEnd, duration_ms: u64) {
        let (word, tone) = status(end.status);
        let body = html! {
            p { (self.tool(call)) " " (badge(word, tone))
                @if duration_ms > 0 { " " span.faint { (length(i64::try_from(duration_ms).unwrap_or(i64::MAX))) } } }
            @if let Some(why) = &end.refusal { p.why { (visible(why)) } }
            (whole(&end.result))
        };
        self.say(at, "tool", "tool", body);
    }

    fn intervened(&mut self, it: &Intervention) {
        let kind = kind(it);
        let (look, lead) = match it.outcome {
            InterventionOutcome::Sent => ("stepped", html! { p { "prompts the model " (badge(&kind, "info")) } }),
            InterventionOutcome::NoPrompt => ("quiet", html! { p { (badge(&kind, "off")) " ran, without a prompt." } }),
            InterventionOutcome::Skipped => {
                let why = it.skipped.map_or("", skipped);
                ("quiet", html! { p { "does not prompt the model " (badge(&kind, "off")) ": " (why) "." } })
            }
        };
        let because = self.because(it);
        let body = html! {
            (lead)
            @if let Some(prompt) = &it.prompt { p.words { (visible(prompt)) } }
            @if let Some(why) = because { p.why { "Because " (visible(&why)) } }
        };
        self.say(it.at, "gesta", look, body);
    }

    fn because(&self, it: &Intervention) -> Option<String> {
        let tools = it.tools.join(", ");
        let reason = it.reason.as_deref().filter(|reason| !reason.is_empty());
        match it.kind {
            InterventionKind::ActWhenAsked => {
                let intents = self.plan.contract.act_when_asked.as_ref().map(|act| &act.intents);
                let intent = reason.and_then(|at| at.parse().ok()).and_then(|at: usize| intents?.get(at));
                let intent = intent.map_or_else(|| "an intent of the agent".to_owned(), rules::pattern);
                Some(format!("the message matches {intent}, and {tools} did not succeed."))
            }
            InterventionKind::ToolRefusal => {
                Some(format!("{tools} refused: {}", reason.unwrap_or("without a reason.")))
            }
            InterventionKind::Backstop => reason.map(str::to_owned),
        }
    }
}

/// What somebody said: its texts, and what came with them by name.
fn said(parts: &[Part]) -> Markup {
    let from = |source: &Source| match source {
        Source::Base64(text) => format!("{} kB", text.len() * 3 / 4 / 1000 + 1),
        Source::Url(url) => url.clone(),
    };
    html! {
        @for part in parts {
            @match part {
                Part::Text { text } => p.words { (visible(text)) },
                Part::Image { media_type, source } => p.note { "Picture, " (visible(media_type)) ", " (visible(&from(source))) },
                Part::File { media_type, name, source } => p.note {
                    "File " (visible(name.as_deref().unwrap_or("without a name"))) ", " (visible(media_type)) ", " (visible(&from(source)))
                },
            }
        }
    }
}

/// An intervention's option, and which of how many it was.
pub(super) fn kind(it: &Intervention) -> String {
    let name = match it.kind {
        InterventionKind::Backstop => return format!("backstop {}", it.name.as_deref().unwrap_or("?")),
        InterventionKind::ToolRefusal => "tool refusal",
        InterventionKind::ActWhenAsked => "act when asked",
    };
    if it.attempt > it.limit { name.to_owned() } else { format!("{name}, {} of {}", it.attempt, it.limit) }
}

fn skipped(why: Skipped) -> &'static str {
    match why {
        Skipped::NoTripsLeft => "no trip is left",
        Skipped::BudgetUsed => "its prompts are used",
        Skipped::Denied => "each missing tool was denied, and a denial is not to be worked around",
        Skipped::Cancelled => "the run was cancelled",
        Skipped::OtherFired => "another prompt went first",
        Skipped::Error => "its function failed",
    }
}

/// How a call ended, as a word and a tone.
fn status(status: CallStatus) -> (&'static str, &'static str) {
    match status {
        CallStatus::Completed => ("ok", "good"),
        CallStatus::Refused => ("refused", "wait"),
        CallStatus::Failed => ("failed", "bad"),
        CallStatus::TimedOut => ("timed out", "bad"),
        CallStatus::InvalidArguments => ("invalid arguments", "bad"),
        CallStatus::UnknownTool => ("unknown tool", "bad"),
        CallStatus::Denied => ("denied", "bad"),
        CallStatus::NotRun => ("not run", "off"),
        CallStatus::Cancelled => ("cancelled", "off"),
        CallStatus::Superseded => ("superseded", "off"),
        CallStatus::Expired => ("expired", "off"),
        CallStatus::OutcomeUnknown => ("outcome unknown", "bad"),
    }
}
