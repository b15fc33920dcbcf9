//! The page: contacts with what stands at them, flows that play, and what each phone has shown.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;
use serde_json::Value;

use super::faults::Switch;
use super::ledger::Entry;
use super::setup::{FlowSetup, FlowStep, Setup};

/// ManyChat's window for free messages. Milliseconds.
pub(crate) const WINDOW_MS: i64 = 24 * 3_600_000;

/// Who a line on the phone is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenBy {
    /// The contact wrote it.
    Contact,
    /// It stood in the webhook's response.
    Inline,
    /// A flow showed it, from a static text.
    Flow(String),
    /// A flow showed it, from this field as it stood then.
    Field(String, String),
    /// It was to be shown and was not: outside the window, or by a fault.
    Lost(String),
    /// Nothing that a phone shows: a tag or a field changed, or a request of the block failed.
    Silent,
}

/// One line of a contact's timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// The fake's clock, in milliseconds since 1970.
    pub at_ms: i64,
    /// Who it is from.
    pub by: SeenBy,
    /// What it says.
    pub text: String,
}

/// A contact as it stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contact {
    pub(crate) first_name: String,
    pub(crate) tags: BTreeSet<String>,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) last_input: String,
    pub(crate) last_interaction_ms: Option<i64>,
    pub(crate) timeline: Vec<Seen>,
    /// The callback of the last response and when it expires.
    pub(crate) callback: Option<(Value, i64)>,
    /// Steps of flows that are still to run, in the order of their time.
    playing: VecDeque<(i64, String, FlowStep)>,
    pub(crate) flows_sent_at: VecDeque<i64>,
}

/// The whole page.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) key: String,
    pub(crate) fields: BTreeSet<String>,
    pub(crate) tags: BTreeSet<String>,
    pub(crate) flows: BTreeMap<String, FlowSetup>,
    pub(crate) contacts: BTreeMap<String, Contact>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) ledger: VecDeque<Entry>,
    pub(crate) count: u64,
    pub(crate) recent: BTreeMap<String, VecDeque<i64>>,
    pub(crate) ahead_ms: i64,
}

impl State {
    pub(crate) fn new(setup: &Setup) -> Self {
        let contacts = setup.contacts.iter().map(|it| {
            let contact = Contact {
                first_name: it.first_name.clone(),
                tags: it.tags.iter().cloned().collect(),
                fields: it.fields.clone(),
                ..Contact::default()
            };
            (it.id.clone(), contact)
        });
        Self {
            key: setup.key.clone(),
            fields: setup.fields.iter().cloned().collect(),
            tags: setup.tags.iter().cloned().collect(),
            flows: setup.flows.clone(),
            contacts: contacts.collect(),
            ..Self::default()
        }
    }

    /// Runs the steps of flows that are due: a field is read now and not when the flow was started.
    pub(crate) fn play(&mut self, now: i64) {
        for contact in self.contacts.values_mut() {
            while let Some((at, flow, step)) = contact.playing.pop_front() {
                if at > now {
                    contact.playing.push_front((at, flow, step));
                    break;
                }
                contact.step(at, flow, step);
            }
        }
    }

    /// Starts a flow; without a window, or where it is lost, its texts reach nobody.
    pub(crate) fn start(&mut self, id: &str, flow_ns: &str, now: i64, lost: bool) {
        let steps = self.flows.get(flow_ns).map(|it| it.steps.clone()).unwrap_or_default();
        let Some(contact) = self.contacts.get_mut(id) else { return };
        contact.flows_sent_at.push_back(now);
        let open = contact.last_interaction_ms.is_some_and(|at| now - at <= WINDOW_MS);
        if lost || !open {
            let why = if lost { "accepted and not delivered" } else { "outside the 24-hour window" };
            contact.say(now, SeenBy::Lost(flow_ns.to_owned()), why);
            return;
        }
        let mut at = now;
        for step in steps {
            if let FlowStep::DelayMs(ms) = step {
                at = at.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
            } else {
                // Behind what is due at the same time, ahead of what is due later.
                let place = contact.playing.partition_point(|(due, ..)| *due <= at);
                contact.playing.insert(place, (at, flow_ns.to_owned(), step));
            }
        }
        self.play(now);
    }

    pub(crate) fn fault_at(&mut self, path: &str) -> Option<super::faults::Fault> {
        let mut struck = None;
        for switch in &mut self.switches {
            if switch.strikes(path) && struck.is_none() {
                struck = Some(switch.fault);
            }
        }
        struck
    }
}

impl Contact {
    pub(crate) fn say(&mut self, at_ms: i64, by: SeenBy, text: &str) {
        self.timeline.push(Seen { at_ms, by, text: text.to_owned() });
    }

    fn step(&mut self, at: i64, flow: String, step: FlowStep) {
        match step {
            FlowStep::Field(field) => {
                let text = self.fields.get(&field).cloned().unwrap_or_default();
                self.say(at, SeenBy::Field(flow, field), &text);
            }
            FlowStep::Text(text) => self.say(at, SeenBy::Flow(flow), &text),
            FlowStep::Tag(tag) => {
                self.say(at, SeenBy::Silent, &format!("tag {tag} set by {flow}"));
                self.tags.insert(tag);
            }
            FlowStep::DelayMs(_) => {}
        }
    }
}
