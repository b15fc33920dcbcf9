//! The engine's errors as texts that a model can act on.

use stof::model::Graph;
use stof::runtime::proc::Process;
use stof::runtime::{Error, Val};

use super::values::{Bounds, to_text};
use crate::{CallError, Limits};

/// Bytes of an error's text.
const TEXT_MAX: usize = 4_000;

/// What was thrown, as an error of the call.
pub(crate) fn thrown(graph: &Graph, limits: &Limits, error: &Error) -> CallError {
    match error {
        Error::StackOverflow | Error::CallStackOverflow => CallError::TooDeep { levels_max: limits.call_depth_max },
        Error::ExecutionTimeout => CallError::TimedOut { limit_ms: limits.call_time_max_ms },
        _ => CallError::Thrown { message: message(graph, limits, error) },
    }
}

/// The same with the place where it was thrown.
pub(crate) fn located(graph: &Graph, limits: &Limits, process: &Process, error: &Error) -> CallError {
    let mut thrown = thrown(graph, limits, error);
    let of_author = matches!(error.inner(), Error::Thrown(_));
    if let CallError::Thrown { message } = &mut thrown
        && !of_author
    {
        let stack = plain(&process.error_stack(graph));
        let stack: Vec<&str> = stack.lines().take(6).collect();
        if !stack.is_empty() {
            message.push('\n');
            message.push_str(&stack.join("\n"));
        }
        *message = gesta_run::json::cut(message, TEXT_MAX).to_owned();
    }
    thrown
}

fn message(graph: &Graph, limits: &Limits, error: &Error) -> String {
    let bounds = Bounds::of(limits).with_bytes(TEXT_MAX);
    let text = match error {
        Error::Thrown(value) => match value {
            Val::Null | Val::Void => "the tool threw null".to_owned(),
            value => to_text(graph, value, bounds),
        },
        Error::Located(inner, _) | Error::AwaitError(inner) => message(graph, limits, inner),
        other => other.message(),
    };
    // A grant's hidden parameters are nobody's business.
    let text = plain(&text).replace(", …?", "").replace("(…?)", "()").replace("…?", "");
    gesta_run::json::cut(&text, TEXT_MAX).to_owned()
}

/// What a panic of the engine says.
pub(crate) fn of_panic(cause: &(dyn std::any::Any + Send)) -> String {
    let said = cause.downcast_ref::<String>().map(String::as_str).or_else(|| cause.downcast_ref::<&str>().copied());
    format!("the engine gave up: {}", gesta_run::json::cut(said.unwrap_or("for a reason that it did not say"), 400))
}

/// The text without the colours that the engine puts in.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(found) = chars.next() {
        if found == '\u{1b}' {
            for skipped in chars.by_ref() {
                if skipped.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            plain.push(found);
        }
    }
    plain
}
