//! What lists show of a run beyond its head: read once from its log, and kept.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use gesta_run::{EventKind, InterventionOutcome, RunId};
use gesta_store::RunHead;

use crate::app::App;

/// How many runs are known at once.
const KNOWN_MAX: usize = 20_000;
/// How many logs one page reads at most; the next page goes on where it stopped.
const READ_MAX: usize = 200;

/// What is known of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// How many events its log had.
    events: u64,
    /// Prompts that the runtime sent of its own accord.
    pub(super) interventions: u32,
    /// Calls that the model asked for.
    pub(super) calls: u32,
}

/// The runs that are known.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<RunId, Facts>>);

impl Known {
    /// The facts of these runs, as far as they are known or can be read now.
    pub(super) async fn of(&self, app: &App, heads: &[RunHead]) -> Vec<Option<Facts>> {
        let mut read = 0;
        let mut all = Vec::with_capacity(heads.len());
        for head in heads {
            let known = self.known(head);
            if known.is_some() || read >= READ_MAX {
                all.push(known);
                continue;
            }
            read += 1;
            let facts = match app.store.load(&head.run).await {
                Ok(stored) => Some(facts(&stored.events)),
                Err(_) => None,
            };
            if let Some(facts) = facts {
                self.keep(head.run.clone(), facts);
            }
            all.push(facts);
        }
        all
    }

    fn known(&self, head: &RunHead) -> Option<Facts> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&head.run).filter(|facts| facts.events == head.events).copied()
    }

    fn keep(&self, run: RunId, facts: Facts) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(run, facts);
    }
}

fn facts(events: &[gesta_run::Event]) -> Facts {
    let mut facts = Facts { events: events.len() as u64, ..Facts::default() };
    for event in events {
        match &event.what {
            EventKind::Intervened(it) if it.outcome == InterventionOutcome::Sent => facts.interventions += 1,
            EventKind::Replied { calls, .. } => facts.calls += u32::try_from(calls.len()).unwrap_or(u32::MAX),
            _ => {}
        }
    }
    facts
}
