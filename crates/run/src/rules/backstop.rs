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
    let spec = plan.spec.contract.backstops.get(watch.current()?)?;
    let prompt = prompt.as_ref().filter(|text| !text.trim().is_empty());
    let room = phase == Phase::Before || state.trip_left();
    let (outcome, skipped) = match (error, prompt) {
        (Some(_), _) => (InterventionOutcome::Skipped, Some(Skipped::Error)),
        (None, None) => (InterventionOutcome::NoPrompt, None),
        (None, Some(_)) if room => (InterventionOutcome::Sent, None),
        (None, Some(_)) => (InterventionOutcome::Skipped, Some(Skipped::NoTripsLeft)),
    };
    Some(Intervention {
        kind: InterventionKind::Backstop,
        phase,
        trip,
        name: Some(spec.name.clone()),
        tools: Vec::new(),
        reason: error.clone(),
        prompt: prompt.filter(|_| outcome == InterventionOutcome::Sent).cloned(),
        outcome,
        skipped,
        attempt: 1,
        limit: 1,
        at,
        duration_ms: *duration_ms,
    })
}
