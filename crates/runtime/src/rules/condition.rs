//! Conditions on the arguments of a call.

use std::collections::BTreeMap;

use gesta_run::json::Object;
use gesta_run::pattern::{Pattern, PatternError};
use serde_json::Value;

use crate::folder::agent_toml::{Operators, Test};

/// Conditions that must all hold, ready to be tested. None at all hold always.
#[derive(Debug, Clone, Default)]
pub struct Conditions(Vec<Condition>);

#[derive(Debug, Clone)]
struct Condition {
    /// The steps of the JSON pointer.
    path: Vec<String>,
    operators: Operators,
    matches: Option<Pattern>,
}

/// A condition that cannot be tested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ConditionError {
    /// The argument, as it was written.
    pub argument: String,
    /// Why not.
    pub reason: ConditionReason,
}

/// Why a condition cannot be tested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionReason {
    /// A blank name.
    #[error("the name of the argument is blank")]
    Blank,
    /// A table without operators would always hold.
    #[error("the table is empty and would always hold; name an operator, for instance `exists = true`")]
    NoOperator,
    /// Its pattern cannot be used.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

impl Conditions {
    /// Compiles conditions.
    ///
    /// # Errors
    /// The first that cannot be tested.
    pub fn compile(when: &BTreeMap<String, Test>) -> Result<Self, ConditionError> {
        let one = |(argument, test): (&String, &Test)| {
            Condition::compile(argument, test).map_err(|reason| ConditionError { argument: argument.clone(), reason })
        };
        when.iter().map(one).collect::<Result<_, _>>().map(Self)
    }

    /// Whether all of them hold for these arguments.
    pub fn hold(&self, arguments: &Object) -> bool {
        self.0.iter().all(|condition| condition.holds(arguments))
    }
}

/// The steps of a condition's key: a JSON pointer where it begins with a slash, else one name.
pub(crate) fn path_of(key: &str) -> Vec<String> {
    match key.strip_prefix('/') {
        Some(pointer) => pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect(),
        None => vec![key.to_owned()],
    }
}

impl Condition {
    fn compile(argument: &str, test: &Test) -> Result<Self, ConditionReason> {
        if argument.trim().is_empty() {
            return Err(ConditionReason::Blank);
        }
        let operators = match test {
            Test::Operators(operators) if **operators == Operators::default() => {
                return Err(ConditionReason::NoOperator);
            }
            Test::Operators(operators) => (**operators).clone(),
            Test::Text(text) => equal_to(Value::String(text.clone())),
            Test::Bool(it) => equal_to(Value::Bool(*it)),
            Test::Number(number) => equal_to(Value::Number(number.clone())),
        };
        let matches = operators.matches.as_ref().map(|pattern| pattern.compile()).transpose()?;
        Ok(Self { path: path_of(argument), operators, matches })
    }

    fn holds(&self, arguments: &Object) -> bool {
        let value = find(arguments, &self.path);
        let test = &self.operators;
        let is = |wanted: &Value| value.is_some_and(|value| same(value, wanted));
        let number = value.and_then(Value::as_f64);
        let beside = |limit: Option<f64>, holds: fn(f64, f64) -> bool| {
            limit.is_none_or(|limit| number.is_some_and(|number| holds(number, limit)))
        };
        test.equals.as_ref().is_none_or(is)
            && !test.not_equals.as_ref().is_some_and(is)
            && test.one_of.as_ref().is_none_or(|list| list.iter().any(is))
            && !test.not_in.as_ref().is_some_and(|list| list.iter().any(is))
            && beside(test.greater_than, |number, limit| number > limit)
            && beside(test.at_least, |number, limit| number >= limit)
            && beside(test.less_than, |number, limit| number < limit)
            && beside(test.at_most, |number, limit| number <= limit)
            && self.matches.as_ref().is_none_or(|it| value.and_then(Value::as_str).is_some_and(|text| it.is_in(text)))
            && test.contains.as_ref().is_none_or(|it| has(value, it))
            && test.exists.is_none_or(|wanted| value.is_some() == wanted)
    }
}

fn equal_to(value: Value) -> Operators {
    Operators { equals: Some(value), ..Operators::default() }
}

fn has(list: Option<&Value>, wanted: &Value) -> bool {
    list.and_then(Value::as_array).is_some_and(|list| list.iter().any(|item| same(item, wanted)))
}

fn find<'a>(arguments: &'a Object, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(arguments.get(first)?, |value, step| match value {
        Value::Object(object) => object.get(step),
        Value::Array(list) => list.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Equality in which 1 and 1.0 are one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() != b.is_f64() && a.as_f64() == b.as_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(when: &str, arguments: &str, expected: bool) {
        let when: BTreeMap<String, Test> = serde_json::from_str(when).unwrap();
        let arguments: Object = serde_json::from_str(arguments).unwrap();
        let conditions = Conditions::compile(&when).unwrap();
        assert_eq!(conditions.hold(&arguments), expected, "{when:?} {arguments:?}");
    }

    #[test]
    fn conditions_hold_as_the_table_says() {
        let table = [
            ("{}", "{}", true),
            (r#"{"a":"x"}"#, r#"{"a":"x"}"#, true),
            (r#"{"a":"x"}"#, r#"{"a":"X"}"#, false),
            (r#"{"a":1}"#, r#"{"a":1.0}"#, true),
            (r#"{"a":true}"#, r#"{"a":1}"#, false),
            (r#"{"/o/t":5}"#, r#"{"o":{"t":5}}"#, true),
            (r#"{"/l/1":5}"#, r#"{"l":[1,5]}"#, true),
            (r#"{"/a~1b":5}"#, r#"{"a/b":5}"#, true),
            (r#"{"a.b":5}"#, r#"{"a.b":5}"#, true),
            (r#"{"a":{"equals":{"b":[1]}}}"#, r#"{"a":{"b":[1.0]}}"#, true),
            (r#"{"a":{"greater_than":100}}"#, r#"{"a":100}"#, false),
            (r#"{"a":{"greater_than":100}}"#, r#"{"a":100.01}"#, true),
            (r#"{"a":{"greater_than":100}}"#, r#"{"a":"250"}"#, false),
            (r#"{"a":{"greater_than":100}}"#, "{}", false),
            (r#"{"a":{"at_least":1,"at_most":3}}"#, r#"{"a":3}"#, true),
            (r#"{"a":{"at_least":1,"less_than":3}}"#, r#"{"a":3}"#, false),
            (r#"{"a":{"in":["x","y"]}}"#, r#"{"a":"y"}"#, true),
            (r#"{"a":{"in":[]}}"#, r#"{"a":"y"}"#, false),
            (r#"{"a":{"not_in":["x"]}}"#, r#"{"a":"y"}"#, true),
            (r#"{"a":{"not_in":["x"]}}"#, "{}", true),
            (r#"{"a":{"not_equals":"x"}}"#, "{}", true),
            (r#"{"a":{"not_equals":"x"}}"#, r#"{"a":"x"}"#, false),
            (r#"{"a":{"matches":"LEG"}}"#, r#"{"a":"my leg"}"#, true),
            (r#"{"a":{"matches":{"regex":"^x$"}}}"#, r#"{"a":"xx"}"#, false),
            (r#"{"a":{"matches":"1"}}"#, r#"{"a":1}"#, false),
            (r#"{"a":{"contains":2}}"#, r#"{"a":[1,2]}"#, true),
            (r#"{"a":{"contains":2}}"#, r#"{"a":2}"#, false),
            (r#"{"a":{"exists":true}}"#, r#"{"a":null}"#, true),
            (r#"{"a":{"exists":false}}"#, "{}", true),
            (r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3}"#, false),
        ];
        for (when, arguments, expected) in table {
            check(when, arguments, expected);
        }
    }

    #[test]
    fn a_condition_that_says_nothing_is_refused() {
        for bad in [r#"{"a":{}}"#, r#"{" ":1}"#, r#"{"a":{"matches":""}}"#, r#"{"a":{"matches":{"regex":"("}}}"#] {
            let when: BTreeMap<String, Test> = serde_json::from_str(bad).unwrap();
            assert!(Conditions::compile(&when).is_err(), "{bad}");
        }
    }
}
