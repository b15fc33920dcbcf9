//! Decision rules in words.

use gesta_run::PatternSpec;
use gesta_runtime::folder::agent_toml::{ActionWord, DecisionToml, Operators, Test};
use maud::{Markup, html};
use serde_json::Value;

use super::parts::{badge, visible};

/// A rule as one sentence.
pub(super) fn sentence(rule: &DecisionToml) -> Markup {
    let tests: Vec<(String, String)> = rule.when.iter().flat_map(|(name, test)| tests(name, test)).collect();
    html! {
        span.rule {
            code { (visible(&rule.tool)) }
            @for (at, (name, test)) in tests.iter().enumerate() {
                @if at == 0 { " when " } @else { " and " }
                code { (visible(name)) } " " (visible(test))
            }
            " " (action(rule.action))
        }
    }
}

fn action(action: ActionWord) -> Markup {
    match action {
        ActionWord::Run => badge("runs", "good"),
        ActionWord::Deny => badge("denied", "bad"),
        ActionWord::Defer => badge("asks a person", "wait"),
    }
}

fn tests(name: &str, test: &Test) -> Vec<(String, String)> {
    let said = match test {
        Test::Text(text) => vec![format!("is \"{text}\"")],
        Test::Bool(value) => vec![format!("is {value}")],
        Test::Number(number) => vec![format!("is {number}")],
        Test::Operators(operators) => of_operators(operators),
    };
    said.into_iter().map(|said| (name.to_owned(), said)).collect()
}

fn of_operators(it: &Operators) -> Vec<String> {
    let list = |all: &[Value]| all.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
    let said = [
        it.equals.as_ref().map(|value| format!("is {value}")),
        it.not_equals.as_ref().map(|value| format!("is not {value}")),
        it.one_of.as_ref().map(|all| format!("is one of {}", list(all))),
        it.not_in.as_ref().map(|all| format!("is none of {}", list(all))),
        it.greater_than.map(|number| format!("is more than {number}")),
        it.at_least.map(|number| format!("is at least {number}")),
        it.less_than.map(|number| format!("is less than {number}")),
        it.at_most.map(|number| format!("is at most {number}")),
        it.matches.as_ref().map(|it| format!("matches {}", pattern(it))),
        it.contains.as_ref().map(|value| format!("has {value}")),
        it.exists.map(|there| if there { "is given".to_owned() } else { "is not given".to_owned() }),
    ];
    said.into_iter().flatten().collect()
}

/// A pattern as people write it.
pub(super) fn pattern(pattern: &PatternSpec) -> String {
    match pattern {
        PatternSpec::Substring(text) => format!("\"{text}\""),
        PatternSpec::Regex(regex) => format!("/{}/{}", regex.regex, if regex.ignore_case { "i" } else { "" }),
    }
}
