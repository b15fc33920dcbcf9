//! The author's functions of a plan, written down as clauses of a scene.

use std::sync::Arc;

use gesta_run::pattern::{PatternError, PatternSpec};
use gesta_run::plan::{Functions, IsRefusal, Stages};

/// One function.
#[derive(Debug, Clone)]
pub(crate) enum FunctionSpec {
    /// Matches what the pattern matches, or fails.
    Intent(Result<PatternSpec, String>),
    /// Says the text, in which `{input}`, `{reply}`, `{tools}` and `{trip}` are filled in, or fails.
    ActHint(Result<String, String>),
    /// Says the text, in which `{tool}` and `{reason}` are filled in, or fails.
    RefusalHint(Result<String, String>),
    /// What it says of one tool's calls.
    IsRefusal { tool: String, says: Result<Verdict, String> },
    /// What it says of one tool's staged calls.
    Staging { tool: String, says: Result<Stages, String> },
}

/// What `is_refusal` says.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    Default,
    Yes,
    Because(String),
    No,
}

impl Verdict {
    /// The same word about a staged call.
    pub(crate) fn stages(self) -> Stages {
        match self {
            Self::Yes => Stages::New,
            Self::Default => Stages::Again,
            Self::Because(reason) => Stages::No(reason),
            Self::No => Stages::No(String::new()),
        }
    }
}

/// Makes functions of what is written down.
pub(crate) fn compile(specs: &[FunctionSpec]) -> Result<Functions, PatternError> {
    let mut functions = Functions::default();
    let (mut verdicts, mut stagings) = (Vec::new(), Vec::new());
    for spec in specs {
        match spec.clone() {
            FunctionSpec::Intent(Ok(pattern)) => {
                let pattern = pattern.compile()?;
                functions.intents.push(Arc::new(move |text: &str| Ok(pattern.is_in(text))));
            }
            FunctionSpec::Intent(Err(why)) => {
                functions.intents.push(Arc::new(move |_: &str| Err(why.clone())));
            }
            FunctionSpec::ActHint(says) => {
                functions.act_hint = Some(Arc::new(move |hint| {
                    let text = says.clone()?;
                    let text = text.replace("{input}", hint.input).replace("{reply}", hint.reply);
                    let text = text.replace("{tools}", &hint.required_tools.join(", "));
                    Ok(text.replace("{trip}", &hint.trip_index.to_string()))
                }));
            }
            FunctionSpec::RefusalHint(says) => {
                functions.refusal_hint = Some(Arc::new(move |tool: &str, reason: &str| {
                    Ok(says.clone()?.replace("{tool}", tool).replace("{reason}", reason))
                }));
            }
            FunctionSpec::IsRefusal { tool, says } => verdicts.push((tool, says)),
            FunctionSpec::Staging { tool, says } => stagings.push((tool, says)),
        }
    }
    if !verdicts.is_empty() {
        functions.is_refusal = Some(Arc::new(move |call| {
            let found = verdicts.iter().find(|(tool, _)| *tool == call.name);
            match found.map(|(_, says)| says.clone()).transpose()? {
                None | Some(Verdict::Default) => Ok(IsRefusal::Default),
                Some(Verdict::Yes) => Ok(IsRefusal::Yes),
                Some(Verdict::Because(reason)) => Ok(IsRefusal::Because(reason)),
                Some(Verdict::No) => Ok(IsRefusal::No),
            }
        }));
    }
    if !stagings.is_empty() {
        functions.staging = Some(Arc::new(move |call| {
            let found = stagings.iter().find(|(tool, _)| *tool == call.tool);
            found.map_or(Ok(Stages::New), |(_, says)| says.clone())
        }));
    }
    Ok(functions)
}
