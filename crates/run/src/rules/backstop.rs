//! Backstops: what becomes of one that ran, or whose `detect` failed (`spec/contract.md`, 3.4).

use crate::intervention::{Intervention, InterventionKind, InterventionOutcome, Phase, Skipped};
use crate::plan::Plan;
use crate::state::{State, Watch, WatchStage};
use crate::time::Timestamp;

/// The intervention that follows from a backstop that is done; nothing while one is being looked at.
pub(crate) fn intervene(
    plan: &Plan,
    state: &State,
    watch: &Watch,
    phase: Phase,
    trip: u32,
    at: Timestamp,
) -> Option<Intervention> {
    let WatchStage::Done { prompt, error, duration_ms } = &watch.stage else { return None };
    let prompt = prompt.as_ref().filter(|text| !text.trim().is_empty());
    let room = phase == Phase::Before || state.trip_left();
    let (outcome, skipped) = match (error, prompt) {
        (Some(_), _) => (InterventionOutcome::Skipped, Some(Skipped::Error)),
        (None, None) => (InterventionOutcome::NoPrompt, None),
        (None, Some(_)) if room => (InterventionOutcome::Sent, None),
        (None, Some(_)) => (InterventionOutcome::Skipped, Some(Skipped::NoTripsLeft)),
    };
    let name = name_of(plan, watch)?;
    Some(Intervention {
        reason: error.clone(),
        prompt: prompt.filter(|_| outcome == InterventionOutcome::Sent).cloned(),
        skipped,
        duration_ms: *duration_ms,
        ..record(name, phase, trip, at, outcome)
    })
}

/// What is recorded of a backstop that ran, or was running, when the run was stopped: its prompt is not sent
/// (`spec/contract.md`, 5). Of one that was only looked at, nothing.
pub(crate) fn stopped(
    plan: &Plan,
    state: &State,
    watch: &Watch,
    phase: Phase,
    trip: u32,
    at: Timestamp,
    why: Skipped,
) -> Option<Intervention> {
    let mut due = match &watch.stage {
        WatchStage::Detecting => return None,
        WatchStage::Running => Intervention {
            skipped: Some(why),
            duration_ms: at.since_ms(watch.since),
            ..record(name_of(plan, watch)?, phase, trip, at, InterventionOutcome::Skipped)
        },
        WatchStage::Done { .. } => intervene(plan, state, watch, phase, trip, at)?,
    };
    if due.outcome == InterventionOutcome::Sent {
        (due.outcome, due.skipped, due.prompt) = (InterventionOutcome::Skipped, Some(why), None);
    }
    Some(due)
}

fn name_of(plan: &Plan, watch: &Watch) -> Option<String> {
    plan.spec.contract.backstops.get(watch.current()?).map(|spec| spec.name.clone())
}

fn record(name: String, phase: Phase, trip: u32, at: Timestamp, outcome: InterventionOutcome) -> Intervention {
    Intervention {
        kind: InterventionKind::Backstop,
        phase,
        trip,
        name: Some(name),
        tools: Vec::new(),
        reason: None,
        prompt: None,
        outcome,
        skipped: None,
        attempt: 1,
        limit: 1,
        at,
        duration_ms: 0,
    }
}
