//! The events of a run's log, as those who follow it are told: a closed list of names, and where each stands.

use std::collections::BTreeMap;
use std::str::FromStr;

use gesta_run::{CallId, Event, EventKind, HoldReply, InterventionOutcome, Outcome, RunError, RunId};
use serde_json::{Value, json};

/// The place of a told event: which event of the log, and which of those that it is told as. A client that comes back
/// with it in `Last-Event-ID` is told everything after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    /// The event of the log, from 0.
    pub(crate) event: u64,
    /// Which of those it is told as.
    pub(crate) part: u32,
}

impl Mark {
    /// Stands behind all that an event is told as: how the run stands when nothing follows.
    pub(crate) const LAST: u32 = 1_000_000;
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.event, self.part)
    }
}

impl FromStr for Mark {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (event, part) = text.split_once('.').ok_or(())?;
        Ok(Self { event: event.parse().map_err(|_| ())?, part: part.parse().map_err(|_| ())? })
    }
}

/// One thing that is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    /// Its name.
    pub(crate) name: &'static str,
    /// What is known of it.
    pub(crate) data: Value,
}

impl Told {
    /// It is told as it happens, and has no place in the log.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.name, "trip.started" | "reply.delta")
    }
}

fn told(name: &'static str, data: Value) -> Told {
    Told { name, data }
}

/// Tells a log from its beginning.
pub(crate) struct Teller {
    run: RunId,
    tools: BTreeMap<CallId, String>,
    /// The text of the last answer.
    text: String,
    /// The trip that was told to have started.
    trip: Option<u32>,
    /// The last trip whose answer was told.
    replied: Option<u32>,
}

impl Teller {
    pub(crate) fn new(run: RunId) -> Self {
        Self { run, tools: BTreeMap::new(), text: String::new(), trip: None, replied: None }
    }

    /// Whether the answer of a trip was told: what was heard of it live comes too late then.
    pub(crate) fn is_past(&self, trip: u32) -> bool {
        self.replied.is_some_and(|replied| trip <= replied)
    }

    /// The model is being asked. Told once a trip, whether heard live or read from the log.
    pub(crate) fn trip(&mut self, trip: u32) -> Option<Told> {
        let new = self.trip != Some(trip);
        self.trip = Some(trip);
        new.then(|| told("trip.started", json!({ "run": self.run, "trip": trip })))
    }

    /// What an event is told as. A hold's own form is put in by who can read it.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Told> {
        let at = event.at;
        match &event.what {
            EventKind::Opened { opening, .. } => vec![told(
                "run.started",
                json!({ "run": opening.run, "conversation": opening.conversation, "contact": opening.contact, "at": at }),
            )],
            EventKind::Replied { trip, reply, calls } => {
                self.text = reply.joined_text();
                let started = self.trip(*trip);
                self.replied = Some(*trip);
                let mut all: Vec<Told> = started.into_iter().collect();
                for (index, (block, call)) in reply.calls().zip(calls).enumerate() {
                    self.tools.insert(call.id.clone(), block.name.clone());
                    all.push(told(
                        "call.requested",
                        json!({
                            "run": self.run, "call": call.id, "name": block.name, "trip": trip, "index": index,
                            "arguments": arguments(&block.arguments), "recovered": block.recovered, "at": at,
                        }),
                    ));
                    if let Some(end) = &call.end {
                        all.push(self.answered(&call.id, end, 0, event));
                    }
                }
                all
            }
            EventKind::Decided { call, ruling } => {
                let mut data = match ruling {
                    Ok(decision) => json!(decision),
                    Err(why) => json!({ "action": "failed", "reason": why }),
                };
                self.name(&mut data, call, event);
                vec![told("call.decided", data)]
            }
            EventKind::Answered { call, end, duration_ms } => vec![self.answered(call, end, *duration_ms, event)],
            EventKind::Held { call, .. } | EventKind::Staged { call, needs_approval: true } => {
                let mut data = json!({});
                self.name(&mut data, call, event);
                vec![told("hold.opened", data)]
            }
            EventKind::HoldAnswered { call, answer, .. } => {
                let mut data = json!({ "answer": answer_of(answer) });
                self.name(&mut data, call, event);
                vec![told("hold.answered", data)]
            }
            EventKind::Intervened(it) if it.outcome == InterventionOutcome::Sent => {
                let mut data = json!(it);
                data["run"] = json!(self.run);
                vec![told("intervention.sent", data)]
            }
            EventKind::Ended { outcome, message, .. } => self.ended(*outcome, message, event),
            _ => Vec::new(),
        }
    }

    fn ended(&self, outcome: Outcome, message: &str, event: &Event) -> Vec<Told> {
        let finished = matches!(outcome, Outcome::Completed | Outcome::LengthLimit);
        let reply =
            finished.then(|| told("reply.finished", json!({ "run": self.run, "text": self.text, "at": event.at })));
        let error = (outcome != Outcome::Completed).then(|| error(&self.run, &RunError::of(outcome, message)));
        reply.into_iter().chain(error).collect()
    }

    fn answered(&self, call: &CallId, end: &gesta_run::CallEnd, duration_ms: u64, event: &Event) -> Told {
        let mut data = json!({
            "status": end.status, "result": end.result, "is_error": end.is_error, "duration_ms": duration_ms,
        });
        self.name(&mut data, call, event);
        told("call.answered", data)
    }

    fn name(&self, data: &mut Value, call: &CallId, event: &Event) {
        data["run"] = json!(self.run);
        data["call"] = json!(call);
        data["name"] = json!(self.tools.get(call));
        data["at"] = json!(event.at);
    }
}

/// An error that ended a run, or kept it from going on.
pub(crate) fn error(run: &RunId, error: &RunError) -> Told {
    let mut data = json!(error);
    data["run"] = json!(run);
    told("error", data)
}

/// How a run stands when nothing follows by itself.
pub(crate) fn standing(result: &gesta_run::RunResult) -> Told {
    let name = if result.status == gesta_run::Status::Parked { "run.parked" } else { "run.ended" };
    told(name, json!({ "run": result.report.run_id, "outcome": result.outcome, "result": result }))
}

/// The arguments as JSON where they are some, else as the model wrote them.
fn arguments(text: &str) -> Value {
    gesta_run::json::read_strict(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// An answer in the form in which it is given.
pub(crate) fn answer_of(answer: &HoldReply) -> Value {
    match answer {
        HoldReply::Approve { arguments: None } => json!({ "approve": true }),
        HoldReply::Approve { arguments: Some(arguments) } => json!({ "approve": true, "arguments": arguments }),
        HoldReply::Deny { reason } => json!({ "deny": reason }),
        HoldReply::Result { value } => json!({ "result": value }),
        HoldReply::Error { text } => json!({ "error": text }),
        HoldReply::OutcomeUnknown => json!({ "outcome_unknown": true }),
    }
}

#[cfg(test)]
mod tests {
    use gesta_run::{Reply, Timestamp};

    use super::*;

    /// The log may be read when an answer is there already, and what was heard of it live while it came is behind that.
    #[test]
    fn what_is_heard_live_of_an_answer_that_was_told_comes_too_late() {
        let mut teller = Teller::new(RunId::new("r1"));
        let names = |told: Vec<Told>| told.into_iter().map(|it| it.name).collect::<Vec<_>>();
        let replied = |trip| {
            let what = EventKind::Replied { trip, reply: Reply::text("Good day"), calls: Vec::new() };
            Event { at: Timestamp(1), what }
        };
        assert_eq!((teller.is_past(0), teller.trip(0).map(|it| it.name)), (false, Some("trip.started")));
        assert_eq!(names(teller.event(&replied(0))), Vec::<&str>::new());
        assert_eq!(names(teller.event(&replied(1))), ["trip.started"]);
        assert_eq!([0, 1, 2].map(|trip| teller.is_past(trip)), [true, true, false]);
    }
}
