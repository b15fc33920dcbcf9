//! What the tools of a turn write down, and what the reply makes of it (`spec/channel.md`, 9 and 10). Nothing here goes
//! out: a flow of an inbound turn is named by [`Flowing::Send`] and its outcome is told back.

use std::sync::Arc;

use gesta_run::json::Object;
use gesta_run::{CallRecord, IsRefusal, Stages, Staging, StagingFn};
use serde_json::{Value, json};

use crate::note;
use crate::numbers::{ACTIONS_MAX, READS_MAX};
use crate::outcome::Handoff;
use crate::record::{Entry, Status};
use crate::tenant::{Field, INTENT_VALUES, Snapshot};
use crate::text::chars;

/// What the service itself knows of a contact's intent: from its own performed writes (`spec/channel.md`, 13).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Intent {
    #[default]
    Unknown,
    NotProspect,
    Prospect,
}

/// One call of a staging tool, its parameters read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Asked {
    SendFlow { id: String, contact_asked: Option<bool> },
    AddTag { id: String },
    RemoveTag { id: String },
    SetField { id: String, value: String },
    WriteNote { id: String, text: String },
    ScheduleNudge { id: String },
}

/// Where an action goes, resolved when it is staged; the contact is the turn's own and stands nowhere here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Target {
    Flow { flow_ns: String, settle_seconds: u64 },
    AddTag { tag: String },
    RemoveTag { tag: String },
    Field { field: String, value: String },
    Note { field: String, text: String, on_escalation: bool },
    Nudge { minutes: u64 },
}

/// An action of the turn: its entry, what the model said of it, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// As the record keeps it.
    pub entry: Entry,
    /// What the model gave as `contact_asked`.
    pub contact_asked: Option<bool>,
    /// Where it goes.
    pub target: Target,
    /// It was named during the turn and is not staged: its outcome is in the entry.
    pub sent: bool,
}

/// What a call comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// The result that the model reads.
    Result(Value),
    /// The parameters name what the configuration has not: the call is invalid.
    Unknown(String),
}

/// What a `send_flow` of an inbound turn comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Flowing {
    /// Send it now, then tell what came of it with [`Turn::sent`].
    Send {
        /// The action's place in the turn.
        place: usize,
        /// What ManyChat calls the flow.
        flow_ns: String,
    },
    /// No request.
    Said(Said),
}

/// The actions of one turn.
#[derive(Debug, Clone)]
pub struct Turn {
    snapshot: Arc<Snapshot>,
    intent: Intent,
    actions: Vec<Action>,
    reads: u32,
}

impl Turn {
    /// A turn without actions. `intent` is what was known before it.
    pub fn new(snapshot: Arc<Snapshot>, intent: Intent) -> Self {
        Self { snapshot, intent, actions: Vec::new(), reads: 0 }
    }

    /// The actions so far, in the model's order.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The record so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.actions.iter().map(|it| it.entry.clone()).collect()
    }

    /// Whether a read may be made; counts it.
    pub fn may_read(&mut self) -> bool {
        self.reads = self.reads.saturating_add(1);
        self.reads <= READS_MAX
    }

    /// Writes an action down, or refuses it. A flow is staged here on a nudge's turn alone.
    pub fn stage(&mut self, asked: Asked) -> Said {
        let (entry, contact_asked, target) = match self.resolve(asked) {
            Ok(resolved) => resolved,
            Err(said) => return said,
        };
        if let Some(reason) = self.refusal(&entry, &target) {
            return refused("staged", reason);
        }
        if self.is_repetition(&entry, &target) {
            return Said::Result(json!({"staged": true}));
        }
        let full = self.slots() >= ACTIONS_MAX;
        self.push(entry, contact_asked, target, full, false);
        if full { refused("staged", "over_cap") } else { Said::Result(json!({"staged": true})) }
    }

    /// A flow that the model sends during an inbound turn. `room` says whether the contact's hour has room for it.
    pub fn send_flow(&mut self, id: &str, contact_asked: Option<bool>, room: bool) -> Flowing {
        let (entry, contact_asked, target) = match self.resolve(Asked::SendFlow { id: id.to_owned(), contact_asked }) {
            Ok(resolved) => resolved,
            Err(said) => return Flowing::Said(said),
        };
        if let Some(reason) = self.refusal(&entry, &target) {
            return Flowing::Said(refused("sent", reason));
        }
        let counts = |it: &&Action| it.entry.tool == entry.tool && it.entry.id == entry.id && it.sent;
        if let Some(first) = self.actions.iter().find(counts) {
            return Flowing::Said(said_of_flow(first));
        }
        if !room {
            return Flowing::Said(refused("sent", "flow_limit"));
        }
        let full = self.slots() >= ACTIONS_MAX;
        let Target::Flow { flow_ns, .. } = &target else { return Flowing::Said(refused("sent", "send_failed")) };
        let flow_ns = flow_ns.clone();
        let place = self.push(entry, contact_asked, target, full, !full);
        if full { Flowing::Said(refused("sent", "over_cap")) } else { Flowing::Send { place, flow_ns } }
    }

    /// What came of a flow that was to be sent: what the model reads.
    pub fn sent(&mut self, place: usize, outcome: Result<(), String>) -> Said {
        let Some(action) = self.actions.get_mut(place).filter(|it| it.sent) else {
            return refused("sent", "send_failed");
        };
        match outcome {
            Ok(()) => action.entry.status = Status::Performed,
            Err(error) => (action.entry.status, action.entry.error) = (Status::Failed, Some(error)),
        }
        said_of_flow(action)
    }

    /// What the reply makes of the staged actions: without a handoff all go ahead; with one all are discarded but the
    /// notes that survive it. Gives the number discarded.
    pub fn settle(&mut self, handoff: Option<Handoff>) -> usize {
        let Some(handoff) = handoff else { return 0 };
        let mut discarded = 0;
        for action in self.actions.iter_mut().filter(|it| it.entry.status == Status::Staged && !it.sent) {
            let survives = matches!(action.target, Target::Note { on_escalation: true, .. }) && handoff.keeps_notes();
            if !survives {
                action.entry.status = Status::Discarded;
                discarded += 1;
            }
        }
        discarded
    }

    fn push(&mut self, mut entry: Entry, contact_asked: Option<bool>, target: Target, full: bool, sent: bool) -> usize {
        if full {
            entry.status = Status::DroppedOverCap;
        }
        self.actions.push(Action { entry, contact_asked, target, sent });
        self.actions.len() - 1
    }

    /// What counts toward the cap: everything but what was dropped over it.
    fn slots(&self) -> usize {
        self.actions.iter().filter(|it| it.entry.status != Status::DroppedOverCap).count()
    }

    /// Why an action may not be, whatever room there is.
    fn refusal(&self, entry: &Entry, target: &Target) -> Option<&'static str> {
        if let Target::Note { text, .. } = target {
            return text.is_empty().then_some("empty_note");
        }
        let field = self.intent_field()?;
        let intent = self.intent_now(field);
        if entry.tool == "set_field" && entry.id == field.id {
            let leaves = intent == Intent::Prospect && entry.value.as_deref() != Some(INTENT_VALUES[1]);
            return leaves.then_some("prospect_is_final");
        }
        (intent != Intent::Prospect).then_some("not_prospect")
    }

    fn intent_field(&self) -> Option<&Field> {
        self.snapshot.tools.fields.iter().find(|it| it.intent)
    }

    /// The contact's intent with what this turn has staged.
    fn intent_now(&self, field: &Field) -> Intent {
        let staged =
            self.actions.iter().rev().find(|it| {
                it.entry.tool == "set_field" && it.entry.id == field.id && it.entry.status == Status::Staged
            });
        match staged.and_then(|it| it.entry.value.as_deref()) {
            Some(value) if value == INTENT_VALUES[1] => Intent::Prospect,
            Some(_) => Intent::NotProspect,
            None => self.intent,
        }
    }

    /// The same tool, id and value is staged, with no later action on the same tag, field or note in between.
    fn is_repetition(&self, entry: &Entry, target: &Target) -> bool {
        let on_same = |it: &&Action| lane(&it.target) == lane(target) && it.entry.status == Status::Staged;
        let last = self.actions.iter().rev().find(on_same);
        last.is_some_and(|it| it.entry.tool == entry.tool && it.entry.id == entry.id && it.target == *target)
    }

    fn resolve(&self, asked: Asked) -> Result<(Entry, Option<bool>, Target), Said> {
        let tools = &self.snapshot.tools;
        let unknown = |what: &str, id: &str| Said::Unknown(format!("there is no {what} `{id}`"));
        Ok(match asked {
            Asked::SendFlow { id, contact_asked } => {
                let flow = tools.flows.iter().find(|it| it.id == id).ok_or_else(|| unknown("flow", &id))?;
                let target = Target::Flow { flow_ns: flow.flow_ns.clone(), settle_seconds: flow.settle_seconds };
                (entry("send_flow", id, None, None), contact_asked, target)
            }
            Asked::AddTag { id } => {
                let tag = tools.tags.iter().find(|it| it.id == id).ok_or_else(|| unknown("tag", &id))?;
                (entry("add_tag", id, None, None), None, Target::AddTag { tag: tag.tag.clone() })
            }
            Asked::RemoveTag { id } => {
                let tag = tools.tags.iter().find(|it| it.id == id).ok_or_else(|| unknown("tag", &id))?;
                (entry("remove_tag", id, None, None), None, Target::RemoveTag { tag: tag.tag.clone() })
            }
            Asked::SetField { id, value } => {
                let field = tools.fields.iter().find(|it| it.id == id).ok_or_else(|| unknown("field", &id))?;
                if !field.values.contains(&value) {
                    let own = field.values.join(", ");
                    return Err(Said::Unknown(format!("`{value}` is no value of field `{id}`; its values: {own}")));
                }
                let target = Target::Field { field: field.field.clone(), value: value.clone() };
                (entry("set_field", id, Some(value), None), None, target)
            }
            Asked::WriteNote { id, text } => {
                let note = tools.notes.iter().find(|it| it.id == id).ok_or_else(|| unknown("note", &id))?;
                let text = note::clean(&text, note.max_length);
                let length = chars(&text) as u64;
                let target = Target::Note { field: note.field.clone(), text, on_escalation: note.on_escalation };
                (entry("write_note", id, None, Some(length)), None, target)
            }
            Asked::ScheduleNudge { id } => {
                let delay = tools.delays.iter().find(|it| it.id == id).ok_or_else(|| unknown("delay", &id))?;
                (entry("schedule_nudge", id, None, None), None, Target::Nudge { minutes: delay.minutes })
            }
        })
    }
}

/// What two actions have in common that act on the same thing.
fn lane(target: &Target) -> (u8, &str) {
    match target {
        Target::Flow { flow_ns, .. } => (0, flow_ns),
        Target::AddTag { tag } | Target::RemoveTag { tag } => (1, tag),
        Target::Field { field, .. } | Target::Note { field, .. } => (2, field),
        Target::Nudge { .. } => (3, ""),
    }
}

fn entry(tool: &str, id: String, value: Option<String>, length: Option<u64>) -> Entry {
    let status = Status::Staged;
    Entry { tool: tool.to_owned(), id, value, length, status, error: None, origin: None, contact_asked: None }
}

fn refused(what: &str, reason: &str) -> Said {
    Said::Result(json!({what: false, "reason": reason}))
}

fn said_of_flow(action: &Action) -> Said {
    match action.entry.status {
        Status::Failed => refused("sent", "send_failed"),
        Status::Staged | Status::Performed | Status::Discarded | Status::DroppedOverCap | Status::DeadLettered => {
            Said::Result(json!({"sent": true}))
        }
    }
}

impl Asked {
    /// Reads a call of a staging tool; none where it is no such tool or its parameters do not fit.
    pub fn read(tool: &str, arguments: &Object) -> Option<Self> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).map(str::to_owned);
        let id = text("id")?;
        Some(match tool {
            "send_flow" => {
                Self::SendFlow { id, contact_asked: arguments.get("contact_asked").and_then(Value::as_bool) }
            }
            "add_tag" => Self::AddTag { id },
            "remove_tag" => Self::RemoveTag { id },
            "set_field" => Self::SetField { id, value: text("value")? },
            "write_note" => Self::WriteNote { id, text: text("text")? },
            "schedule_nudge" => Self::ScheduleNudge { id },
            _ => return None,
        })
    }
}

/// What the machine asks of a staged call in this profile: whether it is new, there already, or refused. The cap is the
/// machine's own.
pub fn function(snapshot: Arc<Snapshot>, intent: Intent) -> StagingFn {
    Arc::new(move |call: &Staging<'_>| {
        let Some(asked) = Asked::read(call.tool, call.arguments) else { return Ok(equal(call)) };
        let mut turn = Turn::new(Arc::clone(&snapshot), intent);
        for asked in call.earlier.iter().filter_map(|(tool, arguments)| Asked::read(tool, arguments)) {
            turn.stage(asked);
        }
        let before = turn.actions.len();
        Ok(match turn.stage(asked) {
            _ if turn.actions.len() > before => Stages::New,
            Said::Result(result) => refusal_of(&result).map_or(Stages::Again, |reason| Stages::No(reason.to_owned())),
            Said::Unknown(why) => Stages::No(why),
        })
    })
}

/// A staged tool of the agent's own beside the profile's: equal is equal, as without a profile.
fn equal(call: &Staging<'_>) -> Stages {
    let same = |(tool, arguments): &(&str, &Object)| *tool == call.tool && *arguments == call.arguments;
    if call.earlier.iter().any(same) { Stages::Again } else { Stages::New }
}

/// What the profile says of a finished call: beside the default test, `staged: false` and `sent: false` with a reason.
pub fn is_refusal(call: &CallRecord) -> IsRefusal {
    refusal_of(&call.result).map_or(IsRefusal::Default, |reason| IsRefusal::Because(reason.to_owned()))
}

/// Whether a result is a refusal in this profile, and why: `staged: false` or `sent: false` with a reason
/// (`spec/channel.md`, 7).
pub fn refusal_of(result: &Value) -> Option<&str> {
    let raised = result.get("staged") == Some(&Value::Bool(false)) || result.get("sent") == Some(&Value::Bool(false));
    result.get("reason").filter(|_| raised)?.as_str().filter(|reason| !reason.trim().is_empty())
}
