//! Turns a stored log into a scene that plays to the same log: a bug report, a failing seed, `gesta show --scene`.

use std::sync::Arc;

use gesta_run::Run;
use gesta_run::call::{Answer, CallEnd, CallStatus};
use gesta_run::decision::Decision;
use gesta_run::event::{Event, EventKind};
use gesta_run::id::CallId;
use gesta_run::json::canonical;
use gesta_run::message::{Block, BlockKind, CallBlock};
use gesta_run::plan::{Functions, Plan, PlanSpec};
use gesta_run::reply::Reply;
use gesta_run::time::Timestamp;
use serde_json::{Value, json};

use crate::answer::ModelAnswer;
use crate::play::{LINE_MS, START};
use crate::scene::Scene;
use crate::stage::{Stage, now_text};
use crate::world::{Backstop, Clock, Item, Outside, PersonAnswer, Policy, UserLine, World};
use crate::{grants, inputs, plan_print, world_print};

/// Whether every event of this log can be brought about by lines of a scene. Not so where a tool's refusal stood behind
/// what was cut off its answer: the log knows that it refused, and no longer in which words.
pub fn can_be_told(spec: &PlanSpec, events: &[Event]) -> bool {
    events.iter().all(|event| match &event.what {
        EventKind::Answered { end, .. } if end.refusal.is_some() => {
            let text = end.result.as_str().unwrap_or_default();
            if end.is_error { text.len() < spec.limits.error_bytes_max } else { !text.contains("\n[cut: ") }
        }
        _ => true,
    })
}

/// Writes the scene of one run's log. Played, it gives the same events, also the same times. What an author's functions
/// did is not told: a log says only what they answered. An event that no line can bring about is left as a comment.
pub fn from_log(spec: &PlanSpec, events: &[Event]) -> String {
    let mut text = plan_print::plan(spec).join("\n");
    text.push('\n');
    if let Ok(plan) = Plan::new(spec.clone(), Functions::default()) {
        for item in Teller::new(plan, events).items() {
            text.push_str(&world_print::item(&item));
            text.push('\n');
        }
    }
    match Scene::read(&text) {
        Ok(scene) => scene.play().text,
        Err(why) => format!("# this log cannot be told as a scene: {why}\n{text}"),
    }
}

/// Goes through a log and finds for each event the line that brings it about.
struct Teller<'a> {
    plan: Arc<Plan>,
    events: &'a [Event],
    at: usize,
    now: Timestamp,
}

impl<'a> Teller<'a> {
    fn new(plan: Arc<Plan>, events: &'a [Event]) -> Self {
        let now = Timestamp(START.0 - i64::try_from(LINE_MS).unwrap_or(0));
        Self { plan, events, at: 0, now }
    }

    fn items(mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while let Some(event) = self.events.get(self.at) {
            let found = self.candidates(event).into_iter().find_map(|line| self.taken(&line).map(|n| (line, n)));
            match found {
                Some((line, taken)) => {
                    items.extend(self.clock(event.at, &line));
                    items.push(Item::World(line));
                    self.at += taken;
                }
                None => {
                    let told = serde_json::to_string(&event.what).unwrap_or_default();
                    items.push(Item::Comment(format!("# no line brings this about: {told}")));
                    self.at += 1;
                }
            }
            self.now = event.at;
        }
        items
    }

    /// The line that sets the clock, where the next one does not simply follow.
    fn clock(&self, at: Timestamp, line: &World) -> Option<Item> {
        let follows = at == self.now.plus_ms(LINE_MS) || matches!(line, World::Outside(Outside::Pass { .. }));
        if follows {
            return None;
        }
        let clock = if self.at > 0 && at >= self.now {
            Clock::After { ms: at.since_ms(self.now) }
        } else {
            Clock::At { ms: at.0 }
        };
        Some(Item::World(World::Clock(clock)))
    }

    /// How many events the line brings about, if they are the next ones of the log.
    fn taken(&self, line: &World) -> Option<usize> {
        let rest = &self.events[self.at..];
        let at = rest.first()?.at;
        let run = (self.at > 0).then(|| Run::replay(self.plan.clone(), &self.events[..self.at]));
        let brought = Stage::try_line(self.plan.clone(), run, at, line)?;
        let is_next = !brought.is_empty() && rest.starts_with(&brought);
        is_next.then_some(brought.len())
    }

    fn candidates(&self, event: &Event) -> Vec<World> {
        let mut lines = self.special(event);
        let ms = event.at.since_ms(self.now);
        lines.push(World::Outside(Outside::Cancelled));
        lines.push(World::Outside(Outside::NewMessage));
        lines.push(World::Outside(Outside::Crashed));
        lines.push(World::Outside(Outside::Pass { ms }));
        lines
    }

    fn special(&self, event: &Event) -> Vec<World> {
        let usual = now_text(event.at, &self.plan.spec.timezone);
        let unusual = |now: &String| (*now != usual).then(|| now.clone());
        match &event.what {
            EventKind::Opened { opening, .. } => vec![World::User(UserLine {
                parts: opening.input.clone(),
                run: (opening.run.as_str() != "run-1").then(|| opening.run.to_string()),
                now: unusual(&opening.now),
                conversation: opening.conversation.as_ref().map(ToString::to_string),
                contact: opening.contact.as_ref().map(ToString::to_string),
            })],
            EventKind::Offered { added, .. } => vec![World::Offer(added.clone())],
            EventKind::Replied { reply, .. } => vec![World::Model(ModelAnswer::of(Ok(written(reply))))],
            EventKind::ModelFailed { fault, .. } => vec![World::Model(ModelAnswer::of(Err(fault.clone())))],
            EventKind::Decided { call, ruling } => vec![World::Policy { call: call.to_string(), says: policy(ruling) }],
            EventKind::Answered { call, end, .. } => tool(call, end),
            EventKind::GrantAsked { call, grant, arguments, .. } => {
                vec![World::Document { call: call.to_string(), grant: grant.clone(), arguments: arguments.clone() }]
            }
            EventKind::GrantDecided { call, n, ruling } => {
                vec![World::Policy { call: grants::id(call, *n), says: policy(ruling) }]
            }
            EventKind::GrantAnswered { call, n, end, .. } => {
                let answers = grants::answers_of(end).into_iter();
                answers.map(|answer| World::Grant { id: grants::id(call, *n), answer }).collect()
            }
            EventKind::HoldAnswered { now, .. } => self.person(&unusual(now)),
            EventKind::Detected { backstop, wanted, error, .. } => {
                let says = match (error, wanted) {
                    (Some(why), _) => Backstop::DetectFails(why.clone()),
                    (None, true) => Backstop::Wanted,
                    (None, false) => Backstop::NotWanted,
                };
                vec![self.backstop(*backstop, says)]
            }
            EventKind::BackstopRan { backstop, prompt, state, error, .. } => {
                let says = match error {
                    Some(why) => Backstop::RunFails(why.clone()),
                    None => Backstop::Ran { prompt: prompt.clone(), state: state.clone() },
                };
                vec![self.backstop(*backstop, says)]
            }
            EventKind::Performed { call, attempt } => {
                vec![World::Action { call: call.to_string(), attempt: attempt.clone() }]
            }
            EventKind::Delivered { path } => vec![World::Client { path: path.clone() }],
            EventKind::Resumed { trips_max, now } => [Some(*trips_max), None]
                .map(|trips_max| World::Outside(Outside::Resumed { trips_max, now: unusual(now) }))
                .into_iter()
                .rev()
                .collect(),
            _ => Vec::new(),
        }
    }

    fn backstop(&self, at: usize, says: Backstop) -> World {
        let name = self.plan.spec.contract.backstops.get(at).map(|it| it.name.clone()).unwrap_or_default();
        World::Backstop { name, says }
    }

    /// One request that answers the first hold alone, the first two, and so on.
    fn person(&self, now: &Option<String>) -> Vec<World> {
        let mut answers = Vec::new();
        let mut lines = Vec::new();
        for event in &self.events[self.at..] {
            let EventKind::HoldAnswered { call, answer, .. } = &event.what else { break };
            answers.push(PersonAnswer { call: call.to_string(), wrong: None, says: answer.clone() });
            lines.push(World::Person { answers: answers.clone(), now: now.clone() });
        }
        lines
    }
}

/// The answer as the model wrote it: a recovered call was text.
fn written(reply: &Reply) -> Reply {
    let as_text = |call: &CallBlock| {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        Block::text(canonical(&json!({"name": call.name, "arguments": arguments})))
    };
    let blocks = reply.blocks.iter().map(|block| match &block.kind {
        BlockKind::Call(call) if call.recovered => as_text(call),
        _ => block.clone(),
    });
    Reply { blocks: blocks.collect(), ..reply.clone() }
}

fn policy(ruling: &Result<Decision, String>) -> Policy {
    match ruling {
        Ok(decision) => Policy::Wire(serde_json::to_value(decision).unwrap_or_default()),
        Err(why) => Policy::Fails(why.clone()),
    }
}

/// What a tool may have said for its call to end like this.
fn tool(call: &CallId, end: &CallEnd) -> Vec<World> {
    let text = || match &end.result {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let answers = match end.status {
        CallStatus::TimedOut => vec![Answer::TimedOut, Answer::TimedOutWith(text())],
        CallStatus::OutcomeUnknown => vec![Answer::Unknown],
        _ if end.is_error => vec![Answer::Error(text())],
        _ => vec![Answer::Ok(uncut(&end.result).unwrap_or_else(|| end.result.clone()))],
    };
    answers.into_iter().map(|answer| World::Tool { call: call.to_string(), answer }).collect()
}

/// Of a result that was cut only the beginning is known: one as long as the whole is cut to the same.
fn uncut(result: &Value) -> Option<Value> {
    let (kept, note) = result.as_str()?.rsplit_once("\n[cut: the result had ")?;
    let (bytes, max) = note.strip_suffix(']')?.split_once(" bytes, the limit is ")?;
    let (bytes, max): (usize, usize) = (bytes.parse().ok()?, max.parse().ok()?);
    let over_the_edge = if kept.len() < max { "\u{1f642}" } else { "" };
    let rest = bytes.checked_sub(kept.len() + over_the_edge.len()).filter(|rest| *rest < 1 << 20)?;
    Some(Value::from(format!("{kept}{over_the_edge}{}", "x".repeat(rest))))
}

/// Plays one line against a run of its own.
impl Stage {
    fn try_line(plan: Arc<Plan>, run: Option<Run>, at: Timestamp, line: &World) -> Option<Vec<Event>> {
        let mut stage = Self::of(plan, run, at);
        let step = if let World::User(line) = line {
            stage.open(line)
        } else {
            let (track, kind) = inputs::of(&stage, line).ok()?;
            stage.feed(track, kind, false)
        };
        step.refused.is_none().then_some(step.events)
    }
}
