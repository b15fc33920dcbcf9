//! Patterns that come from tenants: substrings and regular expressions, linear in time and limited in size.

use serde::{Deserialize, Serialize};

/// Largest compiled size of one regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// A pattern as it is written down: a string (a substring, looked for without case) or a table with `regex`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PatternSpec {
    /// A substring, looked for without regard to case.
    Substring(String),
    /// A regular expression, tested as written.
    Regex(RegexSpec),
}

/// A regular expression as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegexSpec {
    /// The expression, in the syntax of the `regex` crate.
    pub regex: String,
    /// Look without regard to case. Off by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,
}

/// A pattern ready to be used.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// A lower-case substring.
    Substring(String),
    /// A compiled expression.
    Regex(regex::Regex),
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// An empty string matches everything.
    #[error("an empty pattern would match everything")]
    Empty,
    /// The expression does not compile, or is too large.
    #[error("regular expression `{regex}`: {reason}")]
    Regex {
        /// The expression.
        regex: String,
        /// Why not.
        reason: String,
    },
}

impl From<&str> for PatternSpec {
    fn from(substring: &str) -> Self {
        Self::Substring(substring.to_owned())
    }
}

impl From<RegexSpec> for PatternSpec {
    fn from(spec: RegexSpec) -> Self {
        Self::Regex(spec)
    }
}

impl RegexSpec {
    /// An expression that is tested as written.
    pub fn new(regex: &str) -> Self {
        Self { regex: regex.to_owned(), ignore_case: false }
    }

    /// An expression that is looked for without regard to case.
    pub fn ignoring_case(regex: &str) -> Self {
        Self { regex: regex.to_owned(), ignore_case: true }
    }
}

impl PatternSpec {
    /// Compiles the pattern.
    ///
    /// # Errors
    /// It is empty, does not parse, or is too large.
    pub fn compile(&self) -> Result<Pattern, PatternError> {
        match self {
            Self::Substring(text) if text.is_empty() => Err(PatternError::Empty),
            Self::Substring(text) => Ok(Pattern::Substring(text.to_lowercase())),
            Self::Regex(spec) if spec.regex.is_empty() => Err(PatternError::Empty),
            Self::Regex(spec) => regex::RegexBuilder::new(&spec.regex)
                .case_insensitive(spec.ignore_case)
                .size_limit(REGEX_BYTES_MAX)
                .build()
                .map(Pattern::Regex)
                .map_err(|why| PatternError::Regex { regex: spec.regex.clone(), reason: why.to_string() }),
        }
    }
}

impl Pattern {
    /// Whether the pattern occurs in the text. Leaves no state behind.
    pub fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Substring(part) => text.to_lowercase().contains(part.as_str()),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}
