//! `on_tool_refusal`: one more try for refused calls, with the reason quoted (`spec/contract.md`, 3.3).

use super::words;
use crate::contract::OnToolRefusal;
use crate::intervention::{Intervention, InterventionKind, InterventionOutcome, Phase, Skipped};
use crate::plan::Plan;
use crate::state::{Gate, Refusal, State};
use crate::time::Timestamp;

/// What happens to an answer while refusals are outstanding.
pub(crate) fn intervene(
    plan: &Plan,
    state: &State,
    gate: &Gate,
    at: Timestamp,
    other_fired: bool,
    failures: &mut Vec<(String, String)>,
) -> Option<Intervention> {
    let option = plan.spec.contract.on_tool_refusal.as_ref()?;
    if state.outstanding.is_empty() {
        return None;
    }
    let skipped = if other_fired {
        Some(Skipped::OtherFired)
    } else if state.retries_used >= option.retries {
        Some(Skipped::BudgetUsed)
    } else if !state.trip_left() || !state.next_trip_has_tools(plan) {
        Some(Skipped::NoTripsLeft)
    } else {
        None
    };
    let prompt = skipped.is_none().then(|| prompt(plan, option, &state.outstanding, failures));
    let reasons: Vec<String> = state.outstanding.iter().map(|it| words::clean(&it.reason)).collect();
    Some(Intervention {
        kind: InterventionKind::ToolRefusal,
        phase: Phase::After,
        trip: gate.trip,
        name: None,
        tools: state.outstanding.iter().map(|it| it.tool.clone()).collect(),
        reason: Some(reasons.join("; ")),
        outcome: if prompt.is_some() { InterventionOutcome::Sent } else { InterventionOutcome::Skipped },
        prompt,
        skipped,
        attempt: state.retries_used.saturating_add(1),
        limit: option.retries,
        at,
        duration_ms: 0,
    })
}

fn prompt(
    plan: &Plan,
    option: &OnToolRefusal,
    outstanding: &[Refusal],
    failures: &mut Vec<(String, String)>,
) -> String {
    let custom = |refusal: &Refusal| {
        let reason = words::clean(&refusal.reason);
        if let Some(write) = &plan.functions.refusal_hint {
            return write(&refusal.tool, &reason);
        }
        let hint = option.hint.as_deref().unwrap_or_default();
        Ok(hint.replace("{tool}", &refusal.tool).replace("{reason}", &reason))
    };
    if plan.functions.refusal_hint.is_some() || option.hint.as_deref().is_some_and(|it| !it.trim().is_empty()) {
        match outstanding.iter().map(custom).collect::<Result<Vec<_>, _>>() {
            Ok(texts) if texts.iter().all(|text| !text.trim().is_empty()) => return texts.join("\n\n"),
            Ok(_) => failures.push(("on_tool_refusal.hint".to_owned(), "it returned a blank text".to_owned())),
            Err(why) => failures.push(("on_tool_refusal.hint".to_owned(), why)),
        }
    }
    words::refusal_prompt(outstanding)
}
