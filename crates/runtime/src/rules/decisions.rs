//! Decision rules as a pure function from a call to what becomes of it (`spec/contract.md`, 7).

use std::collections::BTreeSet;

use gesta_run::decision::Decision;
use gesta_run::json::Object;

use super::condition::{ConditionError, Conditions};
use super::glob;
use crate::folder::agent_toml::{ActionWord, DecisionToml};

/// The decision rules of a folder, ready to be asked.
#[derive(Debug, Clone, Default)]
pub struct Decisions {
    rules: Vec<Rule>,
    /// Tools that whoever called the agent runs: they have no body here.
    external: BTreeSet<String>,
}

#[derive(Debug, Clone)]
struct Rule {
    written: DecisionToml,
    when: Conditions,
}

/// What the rules say of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruled {
    /// What becomes of it.
    pub decision: Decision,
    /// Which rule said so, counted from 0; none where no rule fits.
    pub rule: Option<usize>,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {rule}: {reason}")]
pub struct RuleError {
    /// Which, counted from 0.
    pub rule: usize,
    /// The key concerned.
    pub key: &'static str,
    /// Why not.
    pub reason: RuleReason,
}

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleReason {
    /// A denial must say why.
    #[error("a denial needs a reason, which the model reads")]
    NoReason,
    /// Arguments where nothing runs.
    #[error("stands only beside `action = \"run\"`")]
    ArgumentsBesideOther,
    /// Two ways to give arguments.
    #[error("`arguments` replaces all of them and `set` some; use one of the two")]
    Both,
    /// A condition cannot be tested.
    #[error("{0}")]
    Condition(ConditionError),
}

impl Decisions {
    /// Compiles rules; calls of `external` tools are always deferred, unless a rule denies them.
    ///
    /// # Errors
    /// Each rule that cannot be used.
    pub fn compile(
        written: &[DecisionToml],
        external: impl IntoIterator<Item = String>,
    ) -> Result<Self, Vec<RuleError>> {
        let mut rules = Vec::new();
        let mut errors = Vec::new();
        for (at, rule) in written.iter().enumerate() {
            match compile(rule) {
                Ok(rule) => rules.push(rule),
                Err((key, reason)) => errors.push(RuleError { rule: at, key, reason }),
            }
        }
        if errors.is_empty() { Ok(Self { rules, external: external.into_iter().collect() }) } else { Err(errors) }
    }

    /// Whether there is anything to decide.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.external.is_empty()
    }

    /// What becomes of a call. The first rule that fits decides; where none does, it runs.
    pub fn decide(&self, tool: &str, arguments: &Object) -> Ruled {
        let fitting = self
            .rules
            .iter()
            .enumerate()
            .find(|(_, rule)| glob::fits(&rule.written.tool, tool) && rule.when.hold(arguments));
        let ruled = match fitting {
            Some((at, rule)) => Ruled { decision: rule.decision(arguments), rule: Some(at) },
            None => Ruled { decision: Decision::run(), rule: None },
        };
        match ruled.decision {
            Decision::Run { reason, .. } if self.external.contains(tool) => {
                Ruled { decision: Decision::Defer { reason }, rule: ruled.rule }
            }
            _ => ruled,
        }
    }
}

fn compile(written: &DecisionToml) -> Result<Rule, (&'static str, RuleReason)> {
    let blank = written.reason.as_ref().is_none_or(|reason| reason.trim().is_empty());
    if written.action == ActionWord::Deny && blank {
        return Err(("reason", RuleReason::NoReason));
    }
    if written.action != ActionWord::Run && written.arguments.is_some() {
        return Err(("arguments", RuleReason::ArgumentsBesideOther));
    }
    if written.action != ActionWord::Run && written.set.is_some() {
        return Err(("set", RuleReason::ArgumentsBesideOther));
    }
    if written.arguments.is_some() && written.set.is_some() {
        return Err(("set", RuleReason::Both));
    }
    let when = Conditions::compile(&written.when).map_err(|why| ("when", RuleReason::Condition(why)))?;
    Ok(Rule { written: written.clone(), when })
}

impl Rule {
    fn decision(&self, arguments: &Object) -> Decision {
        let reason = self.written.reason.clone();
        match self.written.action {
            ActionWord::Deny => Decision::Deny { reason: reason.unwrap_or_default() },
            ActionWord::Defer => Decision::Defer { reason },
            ActionWord::Run => {
                let laid_over = self.written.set.as_ref().map(|set| {
                    let mut all = arguments.clone();
                    all.extend(set.clone());
                    all
                });
                Decision::Run { arguments: self.written.arguments.clone().or(laid_over), reason }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const RULES: &str = r#"
        [[decisions]]
        tool = "refund"
        when = { amount = { greater_than = 100 }, "/order/vip" = true }
        action = "run"
        reason = "a good customer"

        [[decisions]]
        tool = "refund"
        when = { amount = { greater_than = 100 } }
        action = "defer"
        reason = "more than 100 dollars"

        [[decisions]]
        tool = "delete_*"
        action = "deny"
        reason = "nothing is deleted here"

        [[decisions]]
        tool = "mail"
        when = { to = { exists = false } }
        action = "run"
        arguments = { to = "desk" }

        [[decisions]]
        tool = "mail"
        action = "run"
        set = { copy = true }
    "#;

    #[derive(serde::Deserialize)]
    struct File {
        decisions: Vec<DecisionToml>,
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let file: File = toml::from_str(RULES).unwrap();
        let decisions = Decisions::compile(&file.decisions, ["ask_shop".to_owned()]).unwrap();
        let table = [
            (
                "refund",
                json!({"amount": 250, "order": {"vip": true}}),
                json!({"action": "run", "reason": "a good customer"}),
                Some(0),
            ),
            ("refund", json!({"amount": 250}), json!({"action": "defer", "reason": "more than 100 dollars"}), Some(1)),
            ("refund", json!({"amount": 100}), json!({"action": "run"}), None),
            ("delete_all", json!({}), json!({"action": "deny", "reason": "nothing is deleted here"}), Some(2)),
            ("mail", json!({"text": "x"}), json!({"action": "run", "arguments": {"to": "desk"}}), Some(3)),
            ("mail", json!({"to": "a"}), json!({"action": "run", "arguments": {"to": "a", "copy": true}}), Some(4)),
            ("ask_shop", json!({}), json!({"action": "defer"}), None),
            ("other", json!({}), json!({"action": "run"}), None),
        ];
        for (tool, arguments, expected, rule) in table {
            let ruled = decisions.decide(tool, arguments.as_object().unwrap());
            assert_eq!(serde_json::to_value(&ruled.decision).unwrap(), expected, "{tool} {arguments}");
            assert_eq!(ruled.rule, rule, "{tool} {arguments}");
        }
    }

    #[test]
    fn an_external_tool_never_runs_here() {
        let file: File = toml::from_str("[[decisions]]\ntool = \"*\"\naction = \"run\"").unwrap();
        let decisions = Decisions::compile(&file.decisions, ["ask_shop".to_owned()]).unwrap();
        assert_eq!(decisions.decide("ask_shop", &Object::new()).decision, Decision::defer());
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_refused() {
        let table = [
            ("action = \"deny\"", "rule 0: a denial needs a reason, which the model reads"),
            ("action = \"deny\"\nreason = \" \"", "rule 0: a denial needs a reason, which the model reads"),
            ("action = \"defer\"\narguments = {}", "rule 0: stands only beside `action = \"run\"`"),
            ("action = \"deny\"\nreason = \"x\"\nset = {}", "rule 0: stands only beside `action = \"run\"`"),
            (
                "action = \"run\"\nset = {}\narguments = {}",
                "rule 0: `arguments` replaces all of them and `set` some; use one of the two",
            ),
            (
                "action = \"run\"\nwhen = { a = {} }",
                "rule 0: the table is empty and would always hold; name an operator, for instance `exists = true`",
            ),
        ];
        for (text, expected) in table {
            let file: File = toml::from_str(&format!("[[decisions]]\ntool = \"x\"\n{text}")).unwrap();
            let errors = Decisions::compile(&file.decisions, []).unwrap_err();
            assert_eq!(errors[0].to_string(), expected);
        }
    }
}
