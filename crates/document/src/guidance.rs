//! What a model is told about writing a tool, in the prompt whenever `add_tool` is offered (`spec/contract.md`, 2.4).

/// How to write a tool here. Models know little Stof, so it shows more than it says; each example in it is added and
/// called in this crate's tests.
pub const ADD_TOOL_GUIDANCE: &str = include_str!("guidance.md");

/// The sources of tools in the guidance, in order.
pub fn examples_of_guidance() -> impl Iterator<Item = &'static str> {
    ADD_TOOL_GUIDANCE.split("```stof\n").skip(1).filter_map(|rest| rest.split("\n```").next())
}
