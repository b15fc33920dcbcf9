//! What happened in a run, as lines for people: the same words while it goes on and when it is shown later.

use std::collections::{BTreeMap, BTreeSet};

use gesta_run::event::{EventKind, Resolved};
use gesta_run::{
    Attempt, BlockKind, CallEnd, CallId, CallStatus, Decision, Event, Finish, HoldReply, Intervention,
    InterventionKind, InterventionOutcome, Outcome, Part, PatternSpec, PlanSpec, Reply, Skipped, ToolSpec,
};
use serde_json::Value;

use crate::begun::Begun;
use crate::holds::name_of;
use crate::terminal::Look;

/// Who or what a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// The person.
    User,
    /// The model's text.
    Model,
    /// What was done, or left.
    Deed,
}

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// Whose it is.
    pub(crate) voice: Voice,
    /// How it looks.
    pub(crate) look: Look,
    /// What it says.
    pub(crate) text: String,
    /// It is left out unless more is asked for.
    pub(crate) detail: bool,
}

fn deed(look: Look, text: impl Into<String>) -> Told {
    Told { voice: Voice::Deed, look, text: text.into(), detail: false }
}

fn detail(text: impl Into<String>) -> Told {
    Told { detail: true, ..deed(Look::Faint, text) }
}

/// Tells the events of one run, in order.
pub(crate) struct Teller {
    intents: Vec<PatternSpec>,
    backstops: Vec<String>,
    /// Calls that were seen, by id: their tools, and how a person names them.
    calls: BTreeMap<CallId, (String, String)>,
    /// Tools that were offered besides the plan's, once there were any: what comes later is new.
    offered: Option<BTreeSet<String>>,
    begun: Begun,
}

impl Teller {
    /// For runs under this plan.
    pub(crate) fn new(plan: &PlanSpec) -> Self {
        let act = plan.contract.act_when_asked.as_ref();
        Self {
            intents: act.map(|act| act.intents.clone()).unwrap_or_default(),
            backstops: plan.contract.backstops.iter().map(|backstop| backstop.name.clone()).collect(),
            calls: BTreeMap::new(),
            offered: None,
            begun: Begun::new(plan),
        }
    }

    /// Having seen these events, without telling them.
    pub(crate) fn after(mut self, events: &[Event]) -> Self {
        self.know(events);
        self
    }

    /// Takes these events in without telling them.
    pub(crate) fn know(&mut self, events: &[Event]) {
        events.iter().for_each(|event| drop(self.event(event)));
    }

    /// Tools besides the plan's: those of a document, and then each that was added to it, as it appears.
    fn offered(&mut self, tools: &[ToolSpec]) -> Vec<Told> {
        let names: BTreeSet<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        let before = self.offered.replace(names.clone());
        let is_new = |tool: &&ToolSpec| before.as_ref().is_some_and(|before| !before.contains(&tool.name));
        let new = tools.iter().filter(is_new);
        let mut told: Vec<Told> =
            new.map(|tool| deed(Look::Good, format!("new tool {}: {}", tool.name, tool.description))).collect();
        told.push(detail(format!("offers besides: {}", names.into_iter().collect::<Vec<_>>().join(", "))));
        told
    }

    /// What is to be told of an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Told> {
        self.follow(&event.what);
        match &event.what {
            EventKind::Opened { opening, .. } => vec![said_by_user(&opening.input)],
            EventKind::Replied { trip, reply, calls } => self.replied(*trip, reply, calls),
            EventKind::ModelFailed { fault, .. } => vec![deed(Look::Bad, format!("the model failed: {fault}"))],
            EventKind::Offered { added, .. } => self.offered(added),
            EventKind::Decided { call, ruling } => self.decided(call, ruling),
            EventKind::Started { call } => vec![detail(format!("begins {} ({})", self.name(call), self.word(call)))],
            EventKind::Answered { call, end, duration_ms } => self.answered(call, end, *duration_ms),
            EventKind::GrantAsked { call, n, grant, arguments } => {
                let asks = self.name(call).to_owned();
                let word = format!("{}/{n}", self.word(call));
                self.calls.insert(grant_id(call, *n), (grant.clone(), word.clone()));
                vec![detail(format!("{asks} asks for {grant} {} ({word})", Value::Object(arguments.clone())))]
            }
            EventKind::GrantDecided { call, n, ruling: Ok(Decision::Defer { .. }) } => {
                vec![self.grant_deferred(&grant_id(call, *n))]
            }
            EventKind::GrantDecided { call, n, ruling } => self.decided(&grant_id(call, *n), ruling),
            EventKind::GrantStarted { .. } => Vec::new(),
            EventKind::GrantAnswered { call, n, end, duration_ms } => {
                self.answered(&grant_id(call, *n), end, *duration_ms)
            }
            EventKind::Held { call, .. } => {
                // The decision before it has said so.
                vec![detail(format!("{} ({}) is on hold", self.name(call), self.word(call)))]
            }
            EventKind::HoldAnswered { call, answer, .. } => {
                vec![deed(Look::Strong, format!("{} ({}) {}", self.name(call), self.word(call), hold_reply(answer)))]
            }
            EventKind::Staged { call, needs_approval } => {
                let when = if *needs_approval { "after the reply and an approval" } else { "after the reply" };
                vec![deed(
                    Look::Plain,
                    format!("{} ({}) is written down, to be done {when}", self.name(call), self.word(call)),
                )]
            }
            EventKind::Performed { call, attempt } => vec![match attempt {
                Attempt::Performed => deed(Look::Good, format!("{} ({}) was done", self.name(call), self.word(call))),
                Attempt::Failed { error } => {
                    deed(Look::Bad, format!("{} ({}) failed: {error}", self.name(call), self.word(call)))
                }
            }],
            EventKind::Discarded { call, reason } => {
                vec![deed(Look::Warn, format!("{} ({}) will not be done: {reason}", self.name(call), self.word(call)))]
            }
            EventKind::Intervened(it) => self.intervened(it),
            EventKind::FunctionFailed { function, error } => {
                vec![deed(Look::Bad, format!("the agent's own {function} failed: {error}"))]
            }
            EventKind::Ended { outcome, message, .. } => ended(*outcome, message),
            EventKind::Resumed { trips_max, .. } => {
                vec![deed(Look::Strong, format!("goes on, with at most {trips_max} trips"))]
            }
            EventKind::Recovered => self.recovered(),
            EventKind::Settled => vec![deed(Look::Warn, "can no longer go on: a new message came")],
            EventKind::Detected { backstop, wanted, .. } => {
                let word = if *wanted { "is wanted" } else { "is not wanted" };
                vec![detail(format!("backstop {} {word}", self.backstop(*backstop)))]
            }
            EventKind::BackstopRan { backstop, duration_ms, .. } => {
                vec![detail(format!("backstop {} ran ({duration_ms} ms)", self.backstop(*backstop)))]
            }
            EventKind::TripEnded { .. }
            | EventKind::Attempting { .. }
            | EventKind::Stopped { .. }
            | EventKind::Delivered { .. } => Vec::new(),
        }
    }

    fn follow(&mut self, what: &EventKind) {
        let calls = &self.calls;
        self.begun.see(what, |call| calls.get(call).map(|(tool, _)| tool.clone()));
    }

    /// Another process took the run up: what it says of the calls whose outcome nobody knows.
    fn recovered(&mut self) -> Vec<Told> {
        let mut told = vec![deed(Look::Warn, "taken up again: whoever worked on it was gone")];
        for (call, asks) in self.begun.lost() {
            let then = if asks { "somebody has to say it" } else { "it is not run again, and the model is told so" };
            let text = format!("what came of {} ({}) is unknown: {then}", self.name(&call), self.word(&call));
            told.push(deed(Look::Bad, text));
        }
        told
    }

    fn name<'a>(&'a self, call: &'a CallId) -> &'a str {
        self.calls.get(call).map_or("a call", |(tool, _)| tool.as_str())
    }

    /// How a person names it.
    fn word<'a>(&'a self, call: &'a CallId) -> &'a str {
        let own = if name_of(call, 0, 0) == call.as_str() { call.as_str() } else { "?" };
        self.calls.get(call).map_or(own, |(_, word)| word.as_str())
    }

    fn backstop(&self, at: usize) -> &str {
        self.backstops.get(at).map_or("?", String::as_str)
    }

    fn replied(&mut self, trip: u32, reply: &Reply, calls: &[Resolved]) -> Vec<Told> {
        let mut told = Vec::new();
        let mut resolved = (0..).zip(calls);
        for block in &reply.blocks {
            match &block.kind {
                BlockKind::Text(text) if text.trim().is_empty() => {}
                BlockKind::Text(text) => {
                    told.push(Told { voice: Voice::Model, look: Look::Plain, text: text.clone(), detail: false });
                }
                BlockKind::Thinking(text) => told.push(detail(format!("thinks: {text}"))),
                BlockKind::Call(call) => {
                    let Some((index, known)) = resolved.next() else {
                        told.push(deed(Look::Warn, format!("the call {} {} is not run", call.name, call.arguments)));
                        continue;
                    };
                    let word = name_of(&known.id, trip, index);
                    self.calls.insert(known.id.clone(), (call.name.clone(), word.clone()));
                    let from = if call.recovered { ", found in the text" } else { "" };
                    let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
                    let text = format!("calls {} {arguments} ({word}{from})", call.name);
                    told.push(deed(Look::Strong, text));
                    if let Some(end) = &known.end {
                        told.extend(self.answered(&known.id, end, 0));
                    }
                }
                BlockKind::Other => {}
            }
        }
        match reply.finish {
            Finish::Length => told.push(deed(Look::Warn, "the answer was cut off for its length")),
            Finish::ContentFilter => told.push(deed(Look::Warn, "the provider's filter stopped the answer")),
            Finish::Stop | Finish::ToolCalls | Finish::Refusal | Finish::Other => {}
        }
        if reply.usage.total > 0 {
            told.push(detail(format!("{} tokens in, {} out", reply.usage.input, reply.usage.output)));
        }
        told
    }

    /// There is nothing to resume in the middle of a function.
    fn grant_deferred(&self, grant: &CallId) -> Told {
        let (name, word) = (self.name(grant), self.word(grant));
        let then = "a grant cannot wait for a person, and is not run; deny it, or defer the tool that calls it";
        deed(Look::Warn, format!("decided: {name} ({word}) is deferred: {then}"))
    }

    fn decided(&self, call: &CallId, ruling: &Result<Decision, String>) -> Vec<Told> {
        let (name, call) = (self.name(call), self.word(call));
        let because = |reason: &Option<String>| reason.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
        vec![match ruling {
            Ok(Decision::Run { arguments: None, reason }) => {
                detail(format!("decided: {name} ({call}) runs{}", because(reason)))
            }
            Ok(Decision::Run { arguments: Some(arguments), reason }) => {
                let arguments = Value::Object(arguments.clone());
                deed(Look::Warn, format!("decided: {name} ({call}) runs with {arguments}{}", because(reason)))
            }
            Ok(Decision::Deny { reason }) => deed(Look::Warn, format!("decided: {name} ({call}) is denied: {reason}")),
            Ok(Decision::Defer { reason }) => {
                deed(Look::Warn, format!("decided: {name} ({call}) is left to a person{}", because(reason)))
            }
            Err(why) => deed(Look::Bad, format!("no decision about {name} ({call}): {why}")),
        }]
    }

    fn answered(&self, call: &CallId, end: &CallEnd, duration_ms: u64) -> Vec<Told> {
        let name = self.name(call);
        let result = plain(&end.result);
        let reason = end.refusal.as_deref().unwrap_or(&result);
        let (look, text) = match end.status {
            CallStatus::Completed => (Look::Good, format!("{name} returned {}", end.result)),
            CallStatus::Refused => (Look::Warn, format!("{name} refused: {reason}")),
            CallStatus::Failed => (Look::Bad, format!("{name} failed: {result}")),
            CallStatus::TimedOut => (Look::Bad, format!("{name} gave no answer in time")),
            CallStatus::InvalidArguments => (Look::Bad, format!("{name} was not run: {result}")),
            CallStatus::UnknownTool => (Look::Bad, format!("{name} is no tool: {result}")),
            CallStatus::Denied => return vec![detail(format!("{name} was denied: {result}"))],
            CallStatus::NotRun => (Look::Warn, format!("{name} was not run: {result}")),
            CallStatus::Cancelled => (Look::Warn, format!("{name} was cancelled before it began")),
            CallStatus::Superseded => (Look::Warn, format!("{name} was closed by a new message")),
            CallStatus::Expired => (Look::Warn, format!("{name} was not answered in time and is closed")),
            CallStatus::OutcomeUnknown => (Look::Bad, format!("what came of {name} is unknown: {result}")),
        };
        let took = if duration_ms > 0 { format!(" ({duration_ms} ms)") } else { String::new() };
        // Behind the first line: a caret below a source stays the last thing on its own.
        let text = match text.split_once('\n') {
            Some((first, rest)) => format!("{first}{took}\n{rest}"),
            None => format!("{text}{took}"),
        };
        vec![deed(look, text)]
    }

    fn intervened(&self, it: &Intervention) -> Vec<Told> {
        let kind = match it.kind {
            InterventionKind::Backstop => format!("backstop {}", it.name.as_deref().unwrap_or("?")),
            // One that would have been more than there may be has no number among them.
            InterventionKind::ToolRefusal if it.attempt > it.limit => "tool refusal".to_owned(),
            InterventionKind::ActWhenAsked if it.attempt > it.limit => "act when asked".to_owned(),
            InterventionKind::ToolRefusal => format!("tool refusal, {} of {}", it.attempt, it.limit),
            InterventionKind::ActWhenAsked => format!("act when asked, {} of {}", it.attempt, it.limit),
        };
        let mut told = match it.outcome {
            InterventionOutcome::Sent => {
                let prompt = it.prompt.as_deref().unwrap_or_default();
                let (point, rest) = prompt.split_once('\n').unwrap_or((prompt, ""));
                let mut told = vec![deed(Look::Warn, format!("prompts the model ({kind}): {point}"))];
                let rest = rest.split('\n').map(str::trim).filter(|line| !line.is_empty());
                told.extend(rest.map(|line| detail(format!("  {line}"))));
                told
            }
            InterventionOutcome::NoPrompt => vec![deed(Look::Plain, format!("{kind} ran, without a prompt"))],
            InterventionOutcome::Skipped => {
                let skipped = it.skipped.map_or("", skipped);
                vec![deed(Look::Warn, format!("does not prompt the model ({kind}): {skipped}"))]
            }
        };
        told.extend(self.why(it).map(|why| deed(Look::Faint, format!("  because {why}"))));
        told
    }

    /// What an intervention answered.
    fn why(&self, it: &Intervention) -> Option<String> {
        let tools = it.tools.join(", ");
        let reason = it.reason.as_deref().filter(|reason| !reason.is_empty());
        match it.kind {
            InterventionKind::ActWhenAsked => {
                let intent = reason.and_then(|at| at.parse().ok()).and_then(|at: usize| self.intents.get(at));
                let intent = intent.map_or_else(|| "an intent of the agent".to_owned(), pattern);
                Some(format!("the message matches {intent}, and {tools} did not succeed"))
            }
            InterventionKind::ToolRefusal => Some(format!("{tools} refused: {}", reason.unwrap_or("without a reason"))),
            InterventionKind::Backstop => reason.map(str::to_owned),
        }
    }
}

/// The id of a grant call: its tool's call and which of that call.
fn grant_id(call: &CallId, n: u32) -> CallId {
    CallId::new(format!("{call}/{n}"))
}

fn said_by_user(parts: &[Part]) -> Told {
    let pieces: Vec<String> = parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.clone(),
            Part::Image { media_type, .. } => format!("[image: {media_type}]"),
            Part::File { media_type, name, .. } => format!("[file: {}]", name.as_deref().unwrap_or(media_type)),
        })
        .collect();
    Told { voice: Voice::User, look: Look::Strong, text: pieces.join("\n"), detail: false }
}

fn ended(outcome: Outcome, message: &str) -> Vec<Told> {
    let because = if message.is_empty() { String::new() } else { format!(": {message}") };
    match outcome {
        Outcome::Completed => Vec::new(),
        Outcome::Cancelled => vec![deed(Look::Warn, "ends: cancelled")],
        other => vec![deed(Look::Bad, format!("ends: {}{because}", other.as_str()))],
    }
}

fn skipped(why: Skipped) -> &'static str {
    match why {
        Skipped::NoTripsLeft => "no trip is left",
        Skipped::BudgetUsed => "it has used its prompts",
        Skipped::Denied => "what is missing was denied",
        Skipped::Cancelled => "the run was cancelled",
        Skipped::OtherFired => "another prompt went first",
        Skipped::Error => "it failed",
    }
}

fn pattern(pattern: &PatternSpec) -> String {
    match pattern {
        PatternSpec::Substring(text) => format!("\"{text}\""),
        PatternSpec::Regex(spec) => format!("/{}/{}", spec.regex, if spec.ignore_case { "i" } else { "" }),
    }
}

/// A text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a person said to a hold, to follow its name.
pub(crate) fn hold_reply(reply: &HoldReply) -> String {
    match reply {
        HoldReply::Approve { arguments: None } => "was approved".to_owned(),
        HoldReply::Approve { arguments: Some(arguments) } => {
            format!("was approved with {}", Value::Object(arguments.clone()))
        }
        HoldReply::Deny { reason } => format!("was denied: {reason}"),
        HoldReply::Result { value } => format!("was done elsewhere: {value}"),
        HoldReply::Error { text } => format!("failed elsewhere: {text}"),
        HoldReply::OutcomeUnknown => "is given up: nobody knows what came of it".to_owned(),
    }
}
