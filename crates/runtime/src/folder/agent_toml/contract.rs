//! The tables of the tool-use contract (`spec/contract.md`, 3).

use std::collections::BTreeMap;

use gesta_run::contract::{RefusalPreset, Require};
use gesta_run::intervention::Phase;
use gesta_run::pattern::PatternSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::folder::duration::Length;

/// A pattern: a text is a substring, looked for without regard to case; a table is a regular expression.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PatternToml {
    /// A substring, looked for without regard to case.
    Substring(String),
    /// A regular expression, tested as written.
    Regex(RegexToml),
}

/// A regular expression, in the syntax of the `regex` crate: linear in time, without look-around.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegexToml {
    /// The expression. Single quotes spare the backslashes: `'\bswap\b'`.
    pub regex: String,
    /// Look without regard to case. False where unset.
    #[serde(default)]
    pub ignore_case: bool,
}

/// One, or a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// Several.
    Many(Vec<T>),
    /// One.
    One(T),
}

impl<T> OneOrMany<T> {
    /// All of them.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(it) => std::slice::from_ref(it),
            Self::Many(list) => list,
        }
    }
}

/// When the user asks for a change, one of these tools (or all of them) must succeed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActWhenAskedToml {
    /// A match of any makes the turn an action request. Beware of substrings inside longer words, of negated requests
    /// and of questions about the past.
    #[schemars(with = "Vec<PatternToml>")]
    pub intents: Vec<PatternSpec>,
    /// Tools that count as acting. A call that failed or was refused does not.
    pub required_tools: Vec<String>,
    /// `any` of them is enough, or `all` are needed. `any` where unset.
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["any", "all"]))]
    pub require: Require,
    /// What is sent instead of the built-in hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Re-prompts in one run. 1 where unset; 0 detects and records only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_reprompts: Option<u32>,
}

/// A word for the usual cases, or a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RefusalToml {
    /// A usual case.
    Word(RefusalWord),
    /// In detail.
    Table(RefusalTable),
}

/// The usual cases of `on_tool_refusal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalWord {
    /// The model reads the refusal, and that is all.
    Off,
    /// One prompt that quotes the reason.
    RetryOnceWithHint,
    /// The same, and calls that failed count as refused.
    Errors,
}

/// `on_tool_refusal` in detail.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusalTable {
    /// Prompts in one run, for all tools together. 1 where unset; 0 detects and records only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// What is sent instead of the built-in prompt, once for each refusal; `{tool}` and `{reason}` are filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What counts as a refusal beyond the built-in test: `errors` (failed calls) or `patterns` (texts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("enum" = ["errors", "patterns", null]))]
    pub preset: Option<RefusalPreset>,
    /// For the preset `patterns`: a text result or error in which one is found is a refusal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<PatternToml>")]
    pub patterns: Vec<PatternSpec>,
}

/// A rule that looks at a turn, then calls a server, prompts the model, or both. It acts at most once in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackstopToml {
    /// Its name, unique.
    pub name: String,
    /// `before` the first model call, or `after` each answer that would end the turn. `after` where unset.
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["before", "after"]))]
    pub phase: Phase,
    /// One pattern or a list: one of them must be found in what the user said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OneOrMany<PatternToml>>")]
    pub when_input: Option<OneOrMany<PatternSpec>>,
    /// One pattern or a list: one of them must be found in the reply. For `after` only. With `when_input` both must
    /// hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OneOrMany<PatternToml>>")]
    pub when_reply: Option<OneOrMany<PatternSpec>>,
    /// A server that is told of the turn. A `prompt` in its JSON answer is sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "http_url"))]
    pub url: Option<String>,
    /// Headers of that request. A value may be `env:NAME`, or end with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What the model is told; the server's own prompt comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// How long it may take. 30 s where unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Length>,
}
