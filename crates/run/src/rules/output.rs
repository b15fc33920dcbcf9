//! Structured output: the last answer as validated JSON (`spec/contract.md`, 2.7).

use serde_json::Value;

use crate::json;
use crate::plan::Plan;

/// Reads the final answer, where the plan has an output schema.
pub(crate) fn read(plan: &Plan, text: &str) -> Result<Option<Value>, String> {
    let Some(schema) = &plan.output else { return Ok(None) };
    let value = json::read_strict(without_fence(text)).map_err(|why| format!("the answer is not JSON: {why}"))?;
    schema.check(&value).map_err(|issues| format!("the answer does not fit the schema: {issues}"))?;
    Ok(Some(value))
}

/// The text without one outer code fence.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```").and_then(|it| it.strip_suffix("```")) else { return text };
    inner.split_once('\n').map_or(inner, |(_, body)| body).trim()
}
