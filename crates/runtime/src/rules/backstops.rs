//! Backstops as rules: patterns on what was said and what is replied (`spec/contract.md`, 3.4).

use gesta_run::intervention::Phase;
use gesta_run::pattern::{Pattern, PatternError, PatternSpec};

use crate::folder::agent_toml::{BackstopToml, OneOrMany};

/// One backstop, ready to look at turns.
#[derive(Debug, Clone)]
pub struct BackstopRule {
    /// As it is written: its name, phase, address, prompt and time limit.
    pub written: BackstopToml,
    input: Option<Vec<Pattern>>,
    reply: Option<Vec<Pattern>>,
}

/// Why a backstop cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BackstopError {
    /// The key concerned.
    pub key: &'static str,
    /// Why not.
    pub reason: BackstopReason,
}

/// Why a backstop cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackstopReason {
    /// It looks at nothing.
    #[error("it looks at nothing; give `when_input` or `when_reply`")]
    NoPattern,
    /// It looks at a reply that is not there yet.
    #[error("there is no reply before the model; use `phase = \"after\"`")]
    ReplyBefore,
    /// It does nothing.
    #[error("it does nothing; give `prompt`, `url`, or both")]
    NoDeed,
    /// Headers without an address.
    #[error("headers need a `url`")]
    HeadersAlone,
    /// A prompt of nothing.
    #[error("the prompt is blank")]
    BlankPrompt,
    /// A list without patterns never matches.
    #[error("the list is empty and would never match")]
    EmptyList,
    /// A pattern cannot be used.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

impl BackstopRule {
    /// Compiles a rule.
    ///
    /// # Errors
    /// It looks at nothing, does nothing, or has a pattern that cannot be used.
    pub fn compile(written: &BackstopToml) -> Result<Self, BackstopError> {
        let wrong = |key, reason| Err(BackstopError { key, reason });
        if written.when_input.is_none() && written.when_reply.is_none() {
            return wrong("when_input", BackstopReason::NoPattern);
        }
        if written.phase == Phase::Before && written.when_reply.is_some() {
            return wrong("when_reply", BackstopReason::ReplyBefore);
        }
        if written.prompt.is_none() && written.url.is_none() {
            return wrong("prompt", BackstopReason::NoDeed);
        }
        if written.url.is_none() && !written.headers.is_empty() {
            return wrong("headers", BackstopReason::HeadersAlone);
        }
        if written.prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
            return wrong("prompt", BackstopReason::BlankPrompt);
        }
        let input =
            compile(written.when_input.as_ref()).map_err(|reason| BackstopError { key: "when_input", reason })?;
        let reply =
            compile(written.when_reply.as_ref()).map_err(|reason| BackstopError { key: "when_reply", reason })?;
        Ok(Self { written: written.clone(), input, reply })
    }

    /// Whether the backstop is wanted on this turn. Of several conditions all must hold; without a reply, one on it
    /// does not.
    pub fn detects(&self, input: &str, reply: Option<&str>) -> bool {
        let found = |patterns: &Option<Vec<Pattern>>, text: Option<&str>| {
            patterns.as_ref().is_none_or(|list| text.is_some_and(|text| list.iter().any(|one| one.is_in(text))))
        };
        found(&self.input, Some(input)) && found(&self.reply, reply)
    }
}

fn compile(patterns: Option<&OneOrMany<PatternSpec>>) -> Result<Option<Vec<Pattern>>, BackstopReason> {
    let Some(patterns) = patterns else { return Ok(None) };
    if patterns.as_slice().is_empty() {
        return Err(BackstopReason::EmptyList);
    }
    let compiled = patterns.as_slice().iter().map(PatternSpec::compile).collect::<Result<_, _>>()?;
    Ok(Some(compiled))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(text: &str) -> Result<BackstopRule, BackstopError> {
        BackstopRule::compile(&toml::from_str(&format!("name = \"b\"\n{text}")).unwrap())
    }

    #[test]
    fn a_backstop_looks_at_what_it_names() {
        let table = [
            ("when_input = \"hurt\"\nprompt = \"x\"", "It HURTS", None, true),
            ("when_input = [\"hurt\", { regex = '\\bpain\\b' }]\nprompt = \"x\"", "some pain", None, true),
            ("when_input = [\"hurt\", { regex = '\\bpain\\b' }]\nprompt = \"x\"", "painting", None, false),
            ("when_reply = \"refund\"\nprompt = \"x\"", "refund", Some("no"), false),
            ("when_reply = \"refund\"\nprompt = \"x\"", "", Some("a refund"), true),
            ("when_reply = \"refund\"\nprompt = \"x\"", "refund", None, false),
            ("when_input = \"a\"\nwhen_reply = \"b\"\nprompt = \"x\"", "a", Some("b"), true),
            ("when_input = \"a\"\nwhen_reply = \"b\"\nprompt = \"x\"", "a", Some("c"), false),
        ];
        for (rule, input, reply, expected) in table {
            assert_eq!(compiled(rule).unwrap().detects(input, reply), expected, "{rule} {input} {reply:?}");
        }
    }

    #[test]
    fn a_backstop_that_cannot_be_meant_is_refused() {
        let table = [
            ("prompt = \"x\"", "when_input"),
            ("when_input = \"a\"", "prompt"),
            ("when_input = \"a\"\nprompt = \" \"", "prompt"),
            ("when_input = []\nprompt = \"x\"", "when_input"),
            ("when_input = \"\"\nprompt = \"x\"", "when_input"),
            ("phase = \"before\"\nwhen_reply = \"a\"\nprompt = \"x\"", "when_reply"),
            ("when_input = \"a\"\nprompt = \"x\"\nheaders = { A = \"b\" }", "headers"),
        ];
        for (rule, key) in table {
            assert_eq!(compiled(rule).unwrap_err().key, key, "{rule}");
        }
    }
}
