//! Decision rules: which calls run, are denied, or wait for a person (`spec/contract.md`, 7).

use std::collections::BTreeMap;

use gesta_run::pattern::PatternSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PatternToml, Table};

/// One rule. The first whose tool and conditions fit decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionToml {
    /// A tool's name, or a glob: `*` stands for any characters, `?` for one.
    pub tool: String,
    /// Conditions on the arguments, all of which must hold: the name of an argument, or a JSON pointer such as
    /// `/order/total`, and what it is tested against.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Test>,
    /// `run`, `deny` or `defer` (the run parks until a person answers).
    pub action: ActionWord,
    /// Why. The model reads it in a denial, which must have one; the person who answers a hold sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For `run`: the arguments that the tool gets in place of all of the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Table>,
    /// For `run`: arguments laid over the model's; those not named stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<Table>,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionWord {
    /// The call runs.
    Run,
    /// It does not, and the model reads why.
    Deny,
    /// It waits for a person.
    Defer,
}

/// What an argument is tested against: a value that it equals, or a table of operators that must all hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Test {
    /// Operators.
    Operators(Box<Operators>),
    /// It equals this text.
    Text(String),
    /// It equals this truth value.
    Bool(bool),
    /// It equals this number.
    Number(serde_json::Number),
}

/// Tests on one argument. Where the argument is missing, only `exists = false`, `not_equals` and `not_in` hold. Numbers
/// are compared as numbers; a text is never taken for one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Operators {
    /// It equals this value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    /// It does not equal this value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_equals: Option<Value>,
    /// It equals one of these values.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<Value>>,
    /// It equals none of these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_in: Option<Vec<Value>>,
    /// It is a number greater than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greater_than: Option<f64>,
    /// It is a number of this or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// It is a number less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub less_than: Option<f64>,
    /// It is a number of this or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The pattern is found in it, if it is a text.
    #[schemars(with = "Option<PatternToml>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<PatternSpec>,
    /// It is a list that has this value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<Value>,
    /// It is there, or it is not. `null` counts as there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
}
