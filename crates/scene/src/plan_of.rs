//! Compares the plan that a scene brings with that of the agent it is played for.

use gesta_run::plan::PlanSpec;

use crate::error::{ReadError, ReadReason};
use crate::plan_print;
use crate::scene::TEXT_INDENT;
use crate::text::margin_lines;

/// How much of a clause an error shows.
const CLAUSE_CHARS_MAX: usize = 120;

/// Whether both plans say the same of everything that a run depends on.
///
/// # Errors
/// The first clause that only one of them has.
pub(crate) fn same(source: &str, own: &PlanSpec, agent: &PlanSpec) -> Result<(), ReadError> {
    let (own, agent) = (essence(own), essence(agent));
    let differs = |at: usize, clause: String| Err(ReadError::new(at, ReadReason::OtherPlan { clause }));
    if let Some(clause) = own.iter().find(|clause| !agent.contains(clause)) {
        return differs(line_of(source, clause), format!("it does not say `{}`", short(clause)));
    }
    match agent.iter().find(|clause| !own.contains(clause)) {
        Some(clause) => differs(line_of(source, "plan: no other tools"), format!("it says `{}`", short(clause))),
        None => Ok(()),
    }
}

/// The clauses of a plan without what no run depends on: names, texts for the model, prices.
fn essence(spec: &PlanSpec) -> Vec<String> {
    let mut spec = spec.clone();
    for text in [&mut spec.agent, &mut spec.version, &mut spec.model, &mut spec.instructions, &mut spec.timezone] {
        text.clear();
    }
    spec.model_options.clear();
    spec.limits.prices = None;
    spec.tools.iter_mut().for_each(|tool| tool.description.clear());
    plan_print::plan(&spec)
}

/// The line that says it, or else the first of the plan. What no run depends on may stand behind it there.
fn line_of(source: &str, clause: &str) -> usize {
    let lines = margin_lines(source, TEXT_INDENT / 2 + 1);
    let mut clauses = lines.iter().filter(|line| line.head.starts_with("plan:"));
    let first = clauses.clone().next().map_or(1, |line| line.number);
    clauses.find(|line| line.head.starts_with(clause)).map_or(first, |line| line.number)
}

fn short(clause: &str) -> String {
    let mut text: String = clause.chars().take(CLAUSE_CHARS_MAX).collect();
    if text.len() < clause.len() {
        text.push('…');
    }
    text
}
