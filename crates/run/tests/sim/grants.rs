//! What must be true of the grants of every log.

use std::collections::BTreeMap;
use std::sync::Arc;

use gesta_run::{CallId, CallStatus, Decision, Event, EventKind, Plan, ToolEffect};

/// One grant as its log tells of it.
#[derive(Default)]
struct Told {
    effects: bool,
    may_run: bool,
    decided: bool,
    started: bool,
    ended: bool,
}

/// Everything about the grants of this log that must not be.
pub fn check(plan: &Arc<Plan>, log: &[Event]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut open: BTreeMap<CallId, Vec<Told>> = BTreeMap::new();
    for event in log {
        match &event.what {
            EventKind::Started { call } => {
                open.insert(call.clone(), Vec::new());
            }
            EventKind::GrantAsked { call, n, grant, .. } => {
                let Some(told) = open.get_mut(call) else {
                    faults.push(format!("{call} asks for a grant and does not run"));
                    continue;
                };
                if told.len() != *n as usize || told.iter().any(|it| !it.ended) {
                    faults.push(format!("{call} asks for grant {n} out of order"));
                }
                let effects = plan.grant(grant).is_none_or(|it| it.effect != ToolEffect::ReadsOnly);
                told.push(Told { effects, may_run: !plan.spec.hook, ..Told::default() });
            }
            EventKind::GrantDecided { call, n, ruling } => {
                let Some(told) = open.get_mut(call).and_then(|it| it.get_mut(*n as usize)) else {
                    faults.push(format!("{call}/{n} is decided and was not asked for"));
                    continue;
                };
                if told.decided || told.started || told.ended || !plan.spec.hook {
                    faults.push(format!("{call}/{n} is decided twice, or too late"));
                }
                told.decided = true;
                told.may_run = matches!(ruling, Ok(Decision::Run { .. }));
            }
            EventKind::GrantStarted { call, n } => {
                let told = open.get_mut(call).and_then(|it| it.get_mut(*n as usize));
                let Some(told) = told.filter(|it| it.may_run && !it.started && !it.ended) else {
                    faults.push(format!("{call}/{n} is begun and may not be"));
                    continue;
                };
                told.started = true;
            }
            EventKind::GrantAnswered { call, n, end, .. } => {
                let told = open.get_mut(call).and_then(|it| it.get_mut(*n as usize));
                let Some(told) = told.filter(|it| !it.ended) else {
                    faults.push(format!("{call}/{n} is answered and nobody waits for it"));
                    continue;
                };
                if end.status == CallStatus::Completed && !told.started {
                    faults.push(format!("{call}/{n} has a result and never ran"));
                }
                told.ended = true;
            }
            EventKind::Answered { call, end, .. } => {
                let lost =
                    open.remove(call).is_some_and(|it| it.iter().any(|it| it.started && !it.ended && it.effects));
                if lost && end.status != CallStatus::OutcomeUnknown {
                    faults.push(format!("{call} ended in the middle of a grant and is said to be {:?}", end.status));
                }
            }
            EventKind::Recovered => open.retain(|_, told| {
                told.iter_mut().for_each(|it| it.ended = true);
                !told.iter().any(|it| it.started && it.effects)
            }),
            _ => {}
        }
    }
    faults
}
