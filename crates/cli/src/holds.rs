//! Calls that wait for a person: shown, and asked about at the terminal.

use gesta_run::hold::HoldState;
use gesta_run::json::{Object, read_strict};
use gesta_run::{Accepts, Hold, HoldAnswer, HoldKind, HoldReply};
use serde_json::Value;

use crate::lines::{Lines, Typed};
use crate::live::short;
use crate::place::quoted;
use crate::terminal::{Look, Screen};

/// What a person is to know of a hold, in one or two lines.
pub(crate) fn lines_of(hold: &Hold) -> Vec<String> {
    let arguments = Value::Object(hold.arguments.clone());
    let what = match (hold.kind, hold.state) {
        (_, HoldState::Undecided) => "began, and nobody knows what came of it",
        (HoldKind::Action, _) => "is to be done once it is approved",
        (HoldKind::Call, _) if hold.accepts == Accepts::External => "waits for a result from outside",
        (HoldKind::Call, _) => "waits for a person",
    };
    let mut lines = vec![format!("{} {arguments} ({}) {what}", hold.name, hold.id)];
    lines.extend(hold.reason.iter().map(|reason| format!("  because: {reason}")));
    lines
}

/// The commands that answer a hold; `flag` goes with each, to name the data folder.
pub(crate) fn commands_of(hold: &Hold, flag: &str) -> Vec<String> {
    let (run, id) = (short(hold.binding.run_id.as_str()), &hold.id);
    let resume = |rest: String| format!("gesta resume {run} {rest}{flag}");
    let deny = resume(format!("--deny {id} --reason TEXT"));
    let result = resume(format!("--result {id} JSON"));
    match (hold.state, hold.accepts) {
        (HoldState::Undecided, _) => {
            vec![result, resume(format!("--error {id} TEXT")), resume(format!("--unknown {id}"))]
        }
        (_, Accepts::External) => vec![result, deny],
        _ => {
            let arguments = quoted(&Value::Object(hold.arguments.clone()).to_string());
            let edited = resume(format!("--approve {id} --arguments {arguments}"));
            vec![resume(format!("--approve {id}")), edited, deny]
        }
    }
}

/// Asks the person about each hold that waits. Those that are left as they are have no answer.
pub(crate) async fn ask(lines: &Lines, screen: &mut Screen, holds: &[Hold]) -> Vec<HoldAnswer> {
    let mut answers = Vec::new();
    for hold in holds {
        for line in lines_of(hold) {
            screen.line(Look::Warn, &format!("  {line}"));
        }
        match ask_one(lines, screen, hold).await {
            Some(answer) => answers.push(HoldAnswer { binding: hold.binding.clone(), answer }),
            None => screen.line(Look::Faint, "  left as it is"),
        }
    }
    answers
}

async fn ask_one(lines: &Lines, screen: &mut Screen, hold: &Hold) -> Option<HoldReply> {
    let choices = match (hold.state, hold.accepts) {
        (HoldState::Undecided, _) => "[r]esult, [f]ailed, [u]nknown, [p]ark? ",
        (_, Accepts::External) => "[r]esult, [d]eny, [f]ailed, [p]ark? ",
        _ => "[a]pprove, [e]dit, [d]eny, [p]ark? ",
    };
    loop {
        let Typed::Line(line) = lines.read(&format!("  {choices}"), false).await else { return None };
        let word = line.trim().to_lowercase();
        let known = choices.contains(&format!("[{}]", word.chars().next().unwrap_or('?')));
        let reply = match word.chars().next().filter(|_| known) {
            Some('p') => return None,
            Some('a') => Some(HoldReply::Approve { arguments: None }),
            Some('e') => edited(lines, screen, hold).await.map(|it| HoldReply::Approve { arguments: Some(it) }),
            Some('d') => text(lines, "  reason: ").await.map(|reason| HoldReply::Deny { reason }),
            Some('f') => text(lines, "  what went wrong: ").await.map(|text| HoldReply::Error { text }),
            Some('u') => Some(HoldReply::OutcomeUnknown),
            Some('r') => result(lines, screen).await.map(|value| HoldReply::Result { value }),
            _ => {
                screen.line(Look::Faint, "  type one of the letters in brackets");
                None
            }
        };
        if reply.is_some() {
            return reply;
        }
    }
}

async fn text(lines: &Lines, prompt: &str) -> Option<String> {
    match lines.read(prompt, false).await {
        Typed::Line(line) if !line.trim().is_empty() => Some(line.trim().to_owned()),
        _ => None,
    }
}

async fn edited(lines: &Lines, screen: &mut Screen, hold: &Hold) -> Option<Object> {
    screen.line(Look::Faint, &format!("  now: {}", Value::Object(hold.arguments.clone())));
    let typed = text(lines, "  arguments: ").await?;
    read_object(&typed).map_err(|why| screen.line(Look::Bad, &format!("  {why}"))).ok()
}

async fn result(lines: &Lines, screen: &mut Screen) -> Option<Value> {
    let typed = text(lines, "  result (JSON): ").await?;
    read_strict(&typed).map_err(|why| screen.line(Look::Bad, &format!("  no JSON: {why}"))).ok()
}

/// Reads arguments as a person writes them.
///
/// # Errors
/// They are no JSON object.
pub(crate) fn read_object(text: &str) -> Result<Object, String> {
    match read_strict(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("the arguments must be a JSON object such as {\"amount\":50}".to_owned()),
        Err(why) => Err(format!("the arguments are no JSON: {why}")),
    }
}
