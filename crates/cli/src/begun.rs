//! Calls that have begun and have no answer yet: where their process dies, nobody knows what came of them.

use std::collections::{BTreeMap, BTreeSet};

use gesta_run::event::EventKind;
use gesta_run::{CallId, HoldReply, OnUndecided, PlanSpec, ToolEffect, ToolSpec};

/// Follows a run's events and knows at each what has begun.
pub(crate) struct Begun {
    /// Tools that are simply run again.
    reads_only: BTreeSet<String>,
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
            asks: plan.on_undecided == OnUndecided::Ask,
            approved: BTreeSet::new(),
            calls: BTreeMap::new(),
        };
        begun.know(&plan.tools);
        begun
    }

    fn know(&mut self, tools: &[ToolSpec]) {
        let reading = tools.iter().filter(|tool| tool.effect == ToolEffect::ReadsOnly);
        self.reads_only.extend(reading.map(|tool| tool.name.clone()));
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
            EventKind::Answered { call, .. } => {
                self.calls.remove(call);
            }
            _ => {}
        }
    }

    /// The process died: the calls whose outcome that hides, and whether somebody is asked about it.
    pub(crate) fn lost(&mut self) -> Vec<(CallId, bool)> {
        let again = |tool: &Option<String>| tool.as_ref().is_some_and(|tool| self.reads_only.contains(tool));
        let lost = self.calls.iter().filter(|(_, tool)| !again(tool)).map(|(call, _)| call.clone());
        let lost: Vec<(CallId, bool)> =
            lost.map(|call| (call.clone(), self.asks && self.approved.contains(&call))).collect();
        lost.iter().for_each(|(call, _)| drop(self.calls.remove(call)));
        lost
    }
}
