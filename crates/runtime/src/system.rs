//! What the model is told ahead of the conversation.

use gesta_model::Model;
use gesta_run::Plan;

/// What the model is told beside the author's instructions (`spec/contract.md`, 2.4).
pub(crate) fn text(plan: &Plan, model: &dyn Model) -> String {
    let mut text = plan.spec.instructions.clone();
    if let Some(schema) = plan.spec.output_schema.as_ref().filter(|_| !model.supports_output_schema()) {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str("Your final answer must be one JSON value and nothing else, fitting this JSON schema:\n");
        text.push_str(&schema.to_string());
    }
    text
}

/// The system text for trips on which the model may write tools (`spec/documents.md`, 3.13).
pub(crate) fn with_guidance(system: &str, documents: bool) -> String {
    match (documents, system.is_empty()) {
        (false, _) => String::new(),
        (true, true) => gesta_document::ADD_TOOL_GUIDANCE.to_owned(),
        (true, false) => format!("{system}\n\n{}", gesta_document::ADD_TOOL_GUIDANCE),
    }
}
