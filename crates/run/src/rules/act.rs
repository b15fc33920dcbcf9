//! `act_when_asked`: the user asked for a change, and no required tool has succeeded (`spec/contract.md`, 3.2).

use super::words;
use crate::contract::{ActWhenAsked, Require};
use crate::intervention::{Intervention, InterventionKind, InterventionOutcome, Phase, Skipped};
use crate::message::text_of;
use crate::plan::{ActHint, Plan};
use crate::state::{Gate, State};
use crate::time::Timestamp;

/// The required tools still missing, where the turn asks for action and has not had enough of it.
pub(crate) fn missing<'a>(plan: &'a Plan, state: &State) -> Option<(&'a ActWhenAsked, Vec<String>)> {
    let act = plan.spec.contract.act_when_asked.as_ref()?;
    state.intent?;
    let missing: Vec<String> = act.required_tools.iter().filter(|tool| !state.acted.contains(*tool)).cloned().collect();
    let satisfied = match act.require {
        Require::Any => missing.len() < act.required_tools.len(),
        Require::All => missing.is_empty(),
    };
    (!satisfied).then_some((act, missing))
}

/// What happens to an answer that did not act. `before` is set where another prompt goes first.
pub(crate) fn intervene(
    plan: &Plan,
    state: &State,
    gate: &Gate,
    at: Timestamp,
    other_fired: bool,
    failures: &mut Vec<(String, String)>,
) -> Option<Intervention> {
    let (act, missing) = missing(plan, state)?;
    let skipped = if other_fired {
        Some(Skipped::OtherFired)
    } else if missing.iter().all(|tool| state.denied.contains(tool)) {
        Some(Skipped::Denied)
    } else if state.reprompts_used >= act.max_reprompts {
        Some(Skipped::BudgetUsed)
    } else if !state.trip_left() || !state.next_trip_has_tools(plan) {
        Some(Skipped::NoTripsLeft)
    } else {
        None
    };
    let prompt = skipped.is_none().then(|| hint(plan, act, state, gate, &missing, failures));
    Some(Intervention {
        kind: InterventionKind::ActWhenAsked,
        phase: Phase::After,
        trip: gate.trip,
        name: None,
        tools: missing,
        reason: state.intent.map(|index| index.to_string()),
        outcome: if prompt.is_some() { InterventionOutcome::Sent } else { InterventionOutcome::Skipped },
        prompt,
        skipped,
        attempt: state.reprompts_used.saturating_add(1),
        limit: act.max_reprompts,
        at,
        duration_ms: 0,
    })
}

fn hint(
    plan: &Plan,
    act: &ActWhenAsked,
    state: &State,
    gate: &Gate,
    missing: &[String],
    failures: &mut Vec<(String, String)>,
) -> String {
    if let Some(write) = &plan.functions.act_hint {
        let input = state.opening.as_ref().map(|it| text_of(&it.input)).unwrap_or_default();
        let given = ActHint { input: &input, reply: &gate.text, required_tools: missing, trip_index: gate.trip };
        match write(&given) {
            Ok(text) if !text.trim().is_empty() => return text,
            Ok(_) => failures.push(("act_when_asked.hint".to_owned(), "it returned a blank text".to_owned())),
            Err(why) => failures.push(("act_when_asked.hint".to_owned(), why)),
        }
    }
    match &act.hint {
        Some(text) if !text.trim().is_empty() => text.clone(),
        _ => words::act_hint(missing, act.require == Require::All),
    }
}
