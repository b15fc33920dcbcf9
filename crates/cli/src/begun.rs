//! Calls that have begun and have no answer yet: where their process dies, nobody knows what came of them.

use std::collections::{BTreeMap, BTreeSet};

use gesta_run::event::EventKind;
use gesta_run::{CallId, HoldReply, OnUndecided, PlanSpec, ToolEffect, ToolSpec};

/// Follows a run's events and knows at each what has begun.
pub(crate) struct Begun {
    /// Tools that are simply run again.
    reads_only: BTreeSet<String>,
    /// Tools of a document: what has touched nothing is run again from its beginning.
    documents: BTreeSet<String>,
    /// Grants that do more than read, by their full names.
    effects: BTreeSet<String>,
    /// Grants that calls asked for, by call and number.
    grants: BTreeMap<(CallId, u32), String>,
    /// Calls of which a grant with effects has begun.
    touched: BTreeSet<CallId>,
    /// Somebody is asked about calls that were approved.
    asks: bool,
    approved: BTreeSet<CallId>,
    calls: BTreeMap<CallId, Option<String>>,
}

impl Begun {
    /// For runs under this plan.
    pub(crate) fn new(plan: &PlanSpec) -> Self {
        let mut begun = Self {
            reads_only: BTreeSet::new(),
            documents: BTreeSet::new(),
            effects: BTreeSet::new(),
            grants: BTreeMap::new(),
            touched: BTreeSet::new(),
            asks: plan.on_undecided == OnUndecided::Ask,
            approved: BTreeSet::new(),
            calls: BTreeMap::new(),
        };
        begun.know(&plan.tools);
        let effects = plan.grants.iter().filter(|grant| grant.effect != ToolEffect::ReadsOnly);
        begun.effects.extend(effects.map(|grant| format!("{}.{}", grant.library, grant.name)));
        begun
    }

    fn know(&mut self, tools: &[ToolSpec]) {
        let reading = tools.iter().filter(|tool| tool.effect == ToolEffect::ReadsOnly);
        self.reads_only.extend(reading.map(|tool| tool.name.clone()));
        let in_document = tools.iter().filter(|tool| tool.document);
        self.documents.extend(in_document.map(|tool| tool.name.clone()));
    }

    /// Takes in an event; `tool` is that of its call.
    pub(crate) fn see(&mut self, what: &EventKind, tool: impl Fn(&CallId) -> Option<String>) {
        match what {
            EventKind::Offered { added, .. } => self.know(added),
            EventKind::HoldAnswered { call, answer: HoldReply::Approve { .. }, .. } => {
                self.approved.insert(call.clone());
            }
            EventKind::Started { call } => {
                self.calls.insert(call.clone(), tool(call));
            }
            EventKind::GrantAsked { call, n, grant, .. } => {
                self.grants.insert((call.clone(), *n), grant.clone());
            }
            EventKind::GrantStarted { call, n } if self.has_effect(call, *n) => {
                self.touched.insert(call.clone());
            }
            EventKind::Answered { call, .. } => {
                self.calls.remove(call);
            }
            _ => {}
        }
    }

    fn has_effect(&self, call: &CallId, n: u32) -> bool {
        self.grants.get(&(call.clone(), n)).is_none_or(|grant| self.effects.contains(grant))
    }

    /// The process died: the calls whose outcome that hides, and whether somebody is asked about it.
    pub(crate) fn lost(&mut self) -> Vec<(CallId, bool)> {
        let again = |call: &CallId, tool: &str| {
            self.reads_only.contains(tool) || self.documents.contains(tool) && !self.touched.contains(call)
        };
        let is_lost = |(call, tool): &(&CallId, &Option<String>)| tool.as_ref().is_none_or(|tool| !again(call, tool));
        let lost = self.calls.iter().filter(is_lost).map(|(call, _)| call.clone());
        let lost: Vec<(CallId, bool)> =
            lost.map(|call| (call.clone(), self.asks && self.approved.contains(&call))).collect();
        lost.iter().for_each(|(call, _)| drop(self.calls.remove(call)));
        lost
    }
}
