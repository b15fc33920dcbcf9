//! Calls that wait for a person: shown, and asked about at the terminal.

use gesta_run::hold::HoldState;
use gesta_run::json::{Object, read_strict};
use gesta_run::{Accepts, CallId, Hold, HoldAnswer, HoldKind, HoldReply, Run};
use serde_json::Value;

use crate::lines::{Lines, Typed};
use crate::live::short;
use crate::shell::quoted;
use crate::terminal::{Look, Screen};
use crate::visible::visible_json;

/// The longest id that anyone is asked to type.
const ID_CHARS_MAX: usize = 64;

/// How a person names a call: by its id where that is a word that can be typed anywhere, else by its place, such as
/// `@1.0` for the first call of the second answer. An id comes from the model, and may be any text.
pub(crate) fn name_of(id: &CallId, trip: u32, index: u32) -> String {
    let text = id.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if begins && text.len() <= ID_CHARS_MAX && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("@{trip}.{index}")
    }
}

/// How a person names a hold.
pub(crate) fn name(hold: &Hold) -> String {
    name_of(&hold.id, hold.trip, hold.index)
}

/// The call that a person names. A text that names none is taken as an id: the machine says what is wrong with it.
pub(crate) fn named(run: &Run, given: &str) -> CallId {
    let place = given.strip_prefix('@').and_then(|place| place.split_once('.'));
    let place: Option<(u32, u32)> = place.and_then(|(trip, index)| Some((trip.parse().ok()?, index.parse().ok()?)));
    let Some(place) = place else { return CallId::new(given) };
    let held = run.holds().into_iter().find(|hold| (hold.trip, hold.index) == place).map(|hold| hold.id);
    let ended =
        || run.result().tool_calls.into_iter().find(|call| (call.trip, call.index) == place).map(|call| call.id);
    held.or_else(ended).unwrap_or_else(|| CallId::new(given))
}

/// What a person is to know of a hold, in one or two lines.
pub(crate) fn lines_of(hold: &Hold) -> Vec<String> {
    let arguments = arguments_of(hold);
    let what = match (hold.kind, hold.state) {
        (_, HoldState::Undecided) => "began, and nobody knows what came of it",
        (HoldKind::Action, _) => "is to be done once it is approved",
        (HoldKind::Call, _) if hold.accepts == Accepts::External => "waits for a result from outside",
        (HoldKind::Call, _) => "waits for a person",
    };
    let mut lines = vec![format!("{} {arguments} ({}) {what}", hold.name, name(hold))];
    lines.extend(hold.reason.iter().map(|reason| format!("  because: {}", reason.replace('\n', " "))));
    lines
}

fn arguments_of(hold: &Hold) -> String {
    visible_json(&Value::Object(hold.arguments.clone()).to_string())
}

/// The commands that answer a hold; `flag` goes with each, to name the data folder.
pub(crate) fn commands_of(hold: &Hold, flag: &str) -> Vec<String> {
    let (run, id) = (quoted(short(hold.binding.run_id.as_str())), quoted(name(hold)));
    let resume = |rest: String| format!("gesta resume {run} {rest}{flag}");
    let deny = resume(format!("--deny {id} --reason TEXT"));
    let result = resume(format!("--result {id} JSON"));
    match (hold.state, hold.accepts) {
        (HoldState::Undecided, _) => {
            vec![result, resume(format!("--error {id} TEXT")), resume(format!("--unknown {id}"))]
        }
        (_, Accepts::External) => vec![result, deny],
        _ => {
            let edited = resume(format!("--approve {id} --arguments {}", quoted(arguments_of(hold))));
            vec![resume(format!("--approve {id}")), edited, deny]
        }
    }
}

/// What a person says to the holds that wait.
#[derive(Default)]
pub(crate) struct Asked {
    /// Those that are left as they are have no answer.
    pub(crate) answers: Vec<HoldAnswer>,
    /// The person leaves the talk; nothing is answered then.
    pub(crate) leaves: bool,
}

/// What was said to one hold.
enum Said {
    Reply(HoldReply),
    Park,
    Leave,
}

/// Asks the person about each hold that waits.
pub(crate) async fn ask(lines: &Lines, screen: &mut Screen, holds: &[Hold]) -> Asked {
    let mut answers = Vec::new();
    for hold in holds {
        for line in lines_of(hold) {
            screen.line(Look::Warn, &format!("  {line}"));
        }
        match ask_one(lines, screen, hold).await {
            Said::Reply(answer) => answers.push(HoldAnswer { binding: hold.binding.clone(), answer }),
            Said::Park => screen.line(Look::Faint, "  left as it is"),
            Said::Leave => return Asked { leaves: true, ..Asked::default() },
        }
    }
    Asked { answers, leaves: false }
}

async fn ask_one(lines: &Lines, screen: &mut Screen, hold: &Hold) -> Said {
    let choices = match (hold.state, hold.accepts) {
        (HoldState::Undecided, _) => "[r]esult, [f]ailed, [u]nknown, [p]ark? ",
        (_, Accepts::External) => "[r]esult, [d]eny, [f]ailed, [p]ark? ",
        _ => "[a]pprove, [e]dit, [d]eny, [p]ark? ",
    };
    loop {
        let line = match lines.read(&format!("  {choices}"), false).await {
            Typed::Line(line) => line,
            Typed::Unusable(_) => continue,
            Typed::End => return Said::Leave,
            Typed::Interrupted | Typed::Failed(_) => return Said::Park,
        };
        if matches!(line.trim(), "/quit" | "/exit") {
            return Said::Leave;
        }
        let reply = match letter(choices, &line) {
            Some('p') => return Said::Park,
            Some('a') => Some(HoldReply::Approve { arguments: None }),
            Some('e') => edited(lines, screen, hold).await.map(|it| HoldReply::Approve { arguments: Some(it) }),
            Some('d') => text(lines, "  reason: ").await.map(|reason| HoldReply::Deny { reason }),
            Some('f') => text(lines, "  what went wrong: ").await.map(|text| HoldReply::Error { text }),
            Some('u') => Some(HoldReply::OutcomeUnknown),
            Some('r') => result(lines, screen).await.map(|value| HoldReply::Result { value }),
            _ => {
                explain(screen, choices);
                None
            }
        };
        if let Some(reply) = reply {
            return Said::Reply(reply);
        }
    }
}

/// The letter that was typed, or the first of the whole word. Any other text is no choice, least of all an approval.
fn letter(choices: &str, typed: &str) -> Option<char> {
    let typed = typed.trim().to_lowercase();
    let words = choices.trim_end_matches("? ").split(", ").map(|choice| choice.replace(['[', ']'], ""));
    words.into_iter().find(|word| *word == typed || word.get(..1) == Some(&typed))?.chars().next()
}

/// What each of the letters in brackets does.
fn explain(screen: &mut Screen, choices: &str) {
    let meanings = [
        ("[a]", "it runs with these arguments"),
        ("[e]", "it runs with the arguments that you type"),
        ("[d]", "it does not run; the model reads your reason"),
        ("[r]", "it was done elsewhere; you type what came of it, as JSON"),
        ("[f]", "it was tried elsewhere and failed; you type what went wrong"),
        ("[u]", "nobody knows what came of it; the model is told so"),
        ("[p]", "it goes on waiting; /approve and /deny answer it later, as does `gesta resume`"),
    ];
    screen.line(Look::Faint, "  type one of the letters in brackets, or /quit:");
    for (letter, meaning) in meanings.iter().filter(|(letter, _)| choices.contains(letter)) {
        screen.line(Look::Faint, &format!("    {letter} {meaning}"));
    }
}

async fn text(lines: &Lines, prompt: &str) -> Option<String> {
    match lines.read(prompt, false).await {
        Typed::Line(line) if !line.trim().is_empty() => Some(line.trim().to_owned()),
        _ => None,
    }
}

async fn edited(lines: &Lines, screen: &mut Screen, hold: &Hold) -> Option<Object> {
    screen.line(Look::Faint, &format!("  now: {}", arguments_of(hold)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_no_plain_word_is_named_by_its_place() {
        for id in ["c1", "call_0_1", "toolu_01A.b:c-d", &"x".repeat(64)] {
            assert_eq!(name_of(&CallId::new(id), 1, 0), id);
        }
        for id in ["", "-x", "@1.0", "a b", "$(id)", "a\nb", "\u{202e}a", "\u{e4}", "--deny", &"x".repeat(65)] {
            assert_eq!(name_of(&CallId::new(id), 1, 0), "@1.0", "{id:?}");
        }
    }

    #[test]
    fn only_a_letter_or_its_word_is_a_choice() {
        let choices = "[a]pprove, [e]dit, [d]eny, [p]ark? ";
        let typed = ["a", " Approve ", "p", "and now?", "no", "", "[", "approv"].map(|typed| letter(choices, typed));
        assert_eq!(typed, [Some('a'), Some('a'), Some('p'), None, None, None, None, None]);
    }
}
