//! Fixed answers of a tool that has no server: for drafts, examples and tests.

use gesta_run::call::Answer;
use gesta_run::json::Object;
use serde_json::Value;

use super::condition::{ConditionError, Conditions};
use crate::folder::agent_toml::AnswerToml;

/// The fixed answers of one tool, ready to be given.
#[derive(Debug, Clone)]
pub struct Answers(Vec<(Conditions, Fixed)>);

#[derive(Debug, Clone)]
enum Fixed {
    Result(Value),
    Error(String),
}

/// An answer that cannot be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct AnswerError {
    /// Which, counted from 0.
    pub answer: usize,
    /// Why not.
    pub reason: AnswerReason,
}

/// Why an answer cannot be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerReason {
    /// It says nothing, or two things.
    #[error("must have exactly one of `result` and `error`")]
    NotOne,
    /// A condition cannot be tested.
    #[error(transparent)]
    Condition(#[from] ConditionError),
}

impl Answers {
    /// Compiles answers.
    ///
    /// # Errors
    /// The first that cannot be given.
    pub fn compile(written: &[AnswerToml]) -> Result<Self, AnswerError> {
        let one = |(answer, written): (usize, &AnswerToml)| {
            let wrong = |reason| AnswerError { answer, reason };
            let when = Conditions::compile(&written.when).map_err(|why| wrong(why.into()))?;
            let fixed = match (&written.result, &written.error) {
                (Some(result), None) => Fixed::Result(result.clone()),
                (None, Some(error)) => Fixed::Error(error.clone()),
                _ => return Err(wrong(AnswerReason::NotOne)),
            };
            Ok((when, fixed))
        };
        written.iter().enumerate().map(one).collect::<Result<_, _>>().map(Self)
    }

    /// The first answer that fits; a call that none fits fails.
    pub fn answer(&self, arguments: &Object) -> Answer {
        match self.0.iter().find(|(when, _)| when.hold(arguments)) {
            Some((_, Fixed::Result(value))) => Answer::Ok(fill(value, arguments)),
            Some((_, Fixed::Error(text))) => Answer::Error(text_of(&fill_text(text, arguments))),
            None => Answer::Error("this tool has no answer to these arguments".to_owned()),
        }
    }
}

fn fill(value: &Value, arguments: &Object) -> Value {
    match value {
        Value::String(text) => fill_text(text, arguments),
        Value::Array(list) => list.iter().map(|item| fill(item, arguments)).collect(),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(key, value)| (key.clone(), fill(value, arguments))).collect())
        }
        plain => plain.clone(),
    }
}

/// A text that is one placeholder becomes the argument itself, of whatever type; what stands in an argument is never
/// filled in again.
fn fill_text(text: &str, arguments: &Object) -> Value {
    let whole = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    if let Some(value) = whole.and_then(|name| arguments.get(name)) {
        return value.clone();
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let name = from.find('}').map(|close| &from[1..close]);
        match name.and_then(|name| Some((name, arguments.get(name)?))) {
            Some((name, value)) => {
                out.push_str(&text_of(value));
                rest = &from[name.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    Value::String(out)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_answer_that_fits_is_given_and_filled_in() {
        let written: Vec<AnswerToml> = serde_json::from_value(json!([
            {"when": {"to": "lunges"}, "result": {"ok": true, "swapped": "{from} for {to}", "sets": "{sets}"}},
            {"when": {"to": {"in": ["run", "bike"]}}, "error": "{to} is closed, {nobody}"},
            {"when": {"to": {"matches": "{"}}, "result": ["{", "{to}{to}", "{from"]},
        ]))
        .unwrap();
        let answers = Answers::compile(&written).unwrap();
        let table = [
            (
                json!({"from": "squats", "to": "lunges", "sets": 3}),
                json!({"ok": {"ok": true, "swapped": "squats for lunges", "sets": 3}}),
            ),
            (json!({"to": "run"}), json!({"error": "run is closed, {nobody}"})),
            (json!({"to": "{from}", "from": "x"}), json!({"ok": ["{", "{from}{from}", "{from"]})),
            (json!({"to": "rest"}), json!({"error": "this tool has no answer to these arguments"})),
        ];
        for (arguments, expected) in table {
            let answer = answers.answer(arguments.as_object().unwrap());
            assert_eq!(serde_json::to_value(answer).unwrap(), expected, "{arguments}");
        }
    }

    #[test]
    fn an_answer_says_one_thing() {
        for bad in [json!([{}]), json!([{"result": 1, "error": "x"}]), json!([{"when": {"a": {}}, "result": 1}])] {
            let written: Vec<AnswerToml> = serde_json::from_value(bad).unwrap();
            assert!(Answers::compile(&written).is_err());
        }
    }
}
