//! The options of the tool-use contract, as they are written down. All are off by default (`spec/contract.md`, 3).

use serde::{Deserialize, Serialize};

use crate::intervention::Phase;
use crate::pattern::PatternSpec;

/// What an agent must do beyond answering.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContractSpec {
    /// Ask again when the user asked for a change and no required tool succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act_when_asked: Option<ActWhenAsked>,
    /// Ask again, quoting the reason, when a tool refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_tool_refusal: Option<OnToolRefusal>,
    /// Code that looks at a turn before or after the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backstops: Vec<BackstopSpec>,
}

/// When the user asks for a change, one of these tools (or all of them) must succeed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActWhenAsked {
    /// Any match makes the turn an action request. Beware of substrings inside longer words, of negated requests
    /// and of questions about the past. Intents that are functions stand in [`crate::Functions`] and come after these.
    #[serde(default)]
    pub intents: Vec<PatternSpec>,
    /// Tools that count as acting.
    pub required_tools: Vec<String>,
    /// Any of them, or all.
    #[serde(default)]
    pub require: Require,
    /// What is sent instead of the default hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Re-prompts per run, 1 by default; 0 detects and traces only.
    #[serde(default = "one")]
    pub max_reprompts: u32,
}

impl ActWhenAsked {
    /// With every other option at its default: any of the tools, one re-prompt, the built-in hint.
    pub fn new<P: Into<PatternSpec>>(
        intents: impl IntoIterator<Item = P>,
        required_tools: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        Self {
            intents: intents.into_iter().map(Into::into).collect(),
            required_tools: required_tools.into_iter().map(str::to_owned).collect(),
            require: Require::default(),
            hint: None,
            max_reprompts: one(),
        }
    }
}

/// How many of the required tools must succeed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Require {
    /// One is enough.
    #[default]
    Any,
    /// Each of them.
    All,
}

/// One more try for refused calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnToolRefusal {
    /// Refusal prompts per run, 1 by default; 0 detects and traces only.
    #[serde(default = "one")]
    pub retries: u32,
    /// What is sent instead of the default prompt; `{tool}` and `{reason}` are filled in, one text per refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What counts as a refusal beyond the default test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<RefusalPreset>,
    /// For the preset `patterns`: a text result or error that matches one of these is a refusal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<PatternSpec>,
}

impl Default for OnToolRefusal {
    fn default() -> Self {
        Self { retries: 1, hint: None, preset: None, patterns: Vec::new() }
    }
}

/// Additions to the default test of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalPreset {
    /// A failed call counts; its error text is the reason.
    Errors,
    /// A text result or error that matches a pattern counts; the text is the reason.
    Patterns,
}

/// A backstop as the machine knows it: name, place and time limit. What it detects and does is the driver's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackstopSpec {
    /// Its name, unique.
    pub name: String,
    /// Before or after the model.
    #[serde(default)]
    pub phase: Phase,
    /// How long `detect` and `run` may take, each, in milliseconds. 30 s by default.
    #[serde(default = "time_limit_ms")]
    pub time_limit_ms: u64,
}

fn one() -> u32 {
    1
}

fn time_limit_ms() -> u64 {
    crate::tool::TIME_LIMIT_MS
}
