//! Reads the lines of the world.

use gesta_run::call::Answer;
use gesta_run::hold::HoldReply;
use gesta_run::input::Attempt;
use gesta_run::json::{Object, canonical};
use gesta_run::message::{Part, Source};
use serde_json::{Value, json};

use crate::answer::{self, one_of};
use crate::error::ReadError;
use crate::text::Cursor;
use crate::world::{Backstop, BindingPart, Clock, Outside, PersonAnswer, Policy, Show, UserLine, World};
use crate::{grants, plan_read};

type Read<T> = Result<T, ReadError>;

/// The words that begin a line at the margin.
pub(crate) const WORDS: [&str; 17] = [
    "plan:",
    "user:",
    "model:",
    "and:",
    "offer:",
    "policy:",
    "tool:",
    "document:",
    "grant:",
    "backstop:",
    "person:",
    "client:",
    "action:",
    "world:",
    "clock:",
    "show:",
    "#",
];

/// Words of which one line may be continued by `and:`.
pub(crate) fn may_continue(word: &str) -> bool {
    matches!(word, "user" | "model" | "offer" | "person" | "backstop" | "world")
}

/// Reads a line and those that continue it.
pub(crate) fn read(word: &str, pieces: Vec<Cursor<'_>>) -> Read<World> {
    let Some(first) = pieces.first() else { return Err(ReadError::expected(0, "a line", "")) };
    let mut one = first.clone();
    let line = match word {
        "model" => return answer::read(pieces).map(World::Model),
        "user" => return user(pieces).map(World::User),
        "person" => return person(pieces),
        "offer" => return offer(pieces),
        "backstop" => return backstop(pieces),
        "world" => return outside(pieces).map(World::Outside),
        "policy" => World::Policy { call: one.word("the id of a call")?, says: policy(&mut one)? },
        "tool" => World::Tool { call: one.word("the id of a call")?, answer: tool(&mut one)? },
        "document" => {
            let call = one.word("the id of a call")?;
            let (grant, arguments) = grants::asked(&mut one)?;
            World::Document { call, grant, arguments }
        }
        "grant" => World::Grant { id: one.word("the id of a grant call")?, answer: tool(&mut one)? },
        "client" => client(&mut one)?,
        "action" => World::Action { call: one.word("the id of a call")?, attempt: attempt(&mut one)? },
        "clock" => World::Clock(clock(&mut one)?),
        "show" => World::Show(one_of(&mut one, "thing to show", &SHOWN)?),
        _ => return Err(ReadError::unknown(first.line, "line of a scene", &format!("{word}:"), WORDS)),
    };
    one.done()?;
    Ok(line)
}

pub(crate) const SHOWN: [(&str, Show); 9] = [
    ("messages", Show::Messages),
    ("result", Show::Result),
    ("calls", Show::Calls),
    ("interventions", Show::Interventions),
    ("contract", Show::Contract),
    ("holds", Show::Holds),
    ("actions", Show::Actions),
    ("usage", Show::Usage),
    ("events", Show::Events),
];

fn user(pieces: Vec<Cursor<'_>>) -> Read<UserLine> {
    let mut user = UserLine::default();
    for (n, mut piece) in pieces.into_iter().enumerate() {
        if n == 0 {
            if !piece.is_done() {
                user.parts.push(Part::text(piece.text()));
            }
        } else if piece.eat("text:") {
            user.parts.push(Part::text(piece.text()));
        } else if piece.eat("image") {
            let media_type = piece.word("a media type")?;
            user.parts.push(Part::Image { media_type, source: source(&mut piece)? });
        } else if piece.eat("file") {
            let media_type = piece.word("a media type")?;
            let name = piece.eat("named").then(|| piece.word("the file's name")).transpose()?;
            user.parts.push(Part::File { media_type, name, source: source(&mut piece)? });
        } else if piece.eat("run:") {
            user.run = Some(piece.text());
        } else if piece.eat("now:") {
            user.now = Some(piece.text());
        } else if piece.eat("conversation:") {
            user.conversation = Some(piece.text());
        } else if piece.eat("contact:") {
            user.contact = Some(piece.text());
        } else {
            let known = ["text:", "image", "file", "run:", "now:", "conversation:", "contact:"];
            return Err(ReadError::unknown(piece.line, "part of a user's message", piece.rest, known));
        }
        piece.done()?;
    }
    Ok(user)
}

fn source(piece: &mut Cursor<'_>) -> Read<Source> {
    if piece.eat("at") {
        Ok(Source::Url(piece.text()))
    } else if piece.eat("base64") {
        Ok(Source::Base64(piece.text()))
    } else {
        Err(ReadError::unknown(piece.line, "place of bytes", piece.rest, ["at", "base64"]))
    }
}

fn policy(line: &mut Cursor<'_>) -> Read<Policy> {
    if line.eat("run") {
        if line.is_done() {
            return Ok(Policy::Wire(json!({"action": "run"})));
        }
        return Ok(Policy::Wire(json!({"action": "run", "arguments": line.json()?})));
    }
    if line.eat("deny") {
        let reason = line.text();
        return Ok(Policy::Wire(json!({"action": "deny", "reason": reason})));
    }
    if line.eat("defer") {
        let mut wire = json!({"action": "defer"});
        if !line.is_done() {
            wire["reason"] = Value::from(line.text());
        }
        return Ok(Policy::Wire(wire));
    }
    if line.eat("nothing") {
        return Ok(Policy::Wire(Value::Null));
    }
    if line.eat("answers") {
        return line.json().map(Policy::Wire);
    }
    if line.eat("fails") {
        return Ok(Policy::Fails(or_default(line.text(), "the hook failed")));
    }
    let known = ["run", "deny", "defer", "nothing", "answers", "fails"];
    Err(ReadError::unknown(line.line, "decision", line.rest, known))
}

fn or_default(text: String, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text }
}

fn tool(line: &mut Cursor<'_>) -> Read<Answer> {
    if line.eat("ok") {
        if line.is_done() {
            return Ok(Answer::Ok(Value::Null));
        }
        // Printed in the order of its keys, and so played in it: where a long result is cut depends on it.
        return line.json().map(|value| Answer::Ok(sorted(&value)));
    }
    if line.eat("error") {
        return Ok(Answer::Error(line.text()));
    }
    if line.eat("times out") {
        let text = line.text();
        return Ok(if text.is_empty() { Answer::TimedOut } else { Answer::TimedOutWith(text) });
    }
    if line.eat("unknown") {
        return Ok(Answer::Unknown);
    }
    Err(ReadError::unknown(line.line, "answer of a tool", line.rest, ["ok", "error", "times out", "unknown"]))
}

/// The same value with the keys of its objects in order.
fn sorted(value: &Value) -> Value {
    serde_json::from_str(&canonical(value)).unwrap_or_else(|_| value.clone())
}

fn offer(pieces: Vec<Cursor<'_>>) -> Read<World> {
    let mut added = Vec::new();
    for (n, mut piece) in pieces.into_iter().enumerate() {
        if !(n == 0 && piece.eat("nothing")) {
            added.push(plan_read::tool(&mut piece)?);
        }
        piece.done()?;
    }
    Ok(World::Offer(added))
}

fn backstop(pieces: Vec<Cursor<'_>>) -> Read<World> {
    let mut pieces = pieces.into_iter();
    let Some(mut line) = pieces.next() else { return Err(ReadError::expected(0, "a line", "")) };
    let name = line.word("the name of a backstop")?;
    let mut says = if line.eat("wanted") {
        Backstop::Wanted
    } else if line.eat("not wanted") {
        Backstop::NotWanted
    } else if line.eat("cannot tell") {
        Backstop::DetectFails(or_default(line.text(), "it failed"))
    } else if line.eat("done") {
        Backstop::Ran { prompt: None, state: None }
    } else if line.eat("prompts") {
        Backstop::Ran { prompt: Some(line.text()), state: None }
    } else if line.eat("fails") {
        Backstop::RunFails(or_default(line.text(), "it failed"))
    } else {
        let known = ["wanted", "not wanted", "cannot tell", "done", "prompts", "fails"];
        return Err(ReadError::unknown(line.line, "word of a backstop", line.rest, known));
    };
    line.done()?;
    for mut piece in pieces {
        match &mut says {
            Backstop::Ran { state, .. } if piece.eat("state") => *state = Some(piece.json()?),
            _ => return Err(ReadError::unknown(piece.line, "addition to a backstop's word", piece.rest, ["state"])),
        }
        piece.done()?;
    }
    Ok(World::Backstop { name, says })
}

fn person(pieces: Vec<Cursor<'_>>) -> Read<World> {
    if let [only] = pieces.as_slice()
        && only.clone().eat("nothing")
    {
        return Ok(World::Outside(Outside::NoAnswers));
    }
    let mut answers = Vec::new();
    let mut now = None;
    for mut piece in pieces {
        if piece.eat("now:") {
            now = Some(piece.text());
            piece.done()?;
        } else {
            answers.push(person_answer(piece)?);
        }
    }
    Ok(World::Person { answers, now })
}

pub(crate) const PARTS: [(&str, BindingPart); 4] = [
    ("run", BindingPart::Run),
    ("tool", BindingPart::Tool),
    ("fingerprint", BindingPart::Fingerprint),
    ("config version", BindingPart::ConfigVersion),
];

fn person_answer(mut line: Cursor<'_>) -> Read<PersonAnswer> {
    let call = line.word("the id of a call")?;
    let wrong = if line.eat("of another") { Some(one_of(&mut line, "part of a binding", &PARTS)?) } else { None };
    let says = if line.eat("approve") {
        let arguments = if line.is_done() { None } else { Some(object(&mut line)?) };
        HoldReply::Approve { arguments }
    } else if line.eat("deny") {
        HoldReply::Deny { reason: line.text() }
    } else if line.eat("result") {
        HoldReply::Result { value: line.json()? }
    } else if line.eat("error") {
        HoldReply::Error { text: line.text() }
    } else if line.eat("outcome unknown") {
        HoldReply::OutcomeUnknown
    } else {
        let known = ["approve", "deny", "result", "error", "outcome unknown"];
        return Err(ReadError::unknown(line.line, "answer to a hold", line.rest, known));
    };
    line.done()?;
    Ok(PersonAnswer { call, wrong, says })
}

fn object(line: &mut Cursor<'_>) -> Read<Object> {
    let before = line.rest;
    match line.json()? {
        Value::Object(object) => Ok(object),
        _ => Err(ReadError::expected(line.line, "a JSON object", before)),
    }
}

fn client(line: &mut Cursor<'_>) -> Read<World> {
    if !line.eat("delivered") {
        return Err(ReadError::unknown(line.line, "word of a client", line.rest, ["delivered"]));
    }
    let path = if line.eat("by") { line.text() } else { "inline".to_owned() };
    Ok(World::Client { path })
}

fn attempt(line: &mut Cursor<'_>) -> Read<Attempt> {
    if line.eat("performed") {
        Ok(Attempt::Performed)
    } else if line.eat("fails") {
        Ok(Attempt::Failed { error: line.text() })
    } else {
        Err(ReadError::unknown(line.line, "outcome of an action", line.rest, ["performed", "fails"]))
    }
}

fn outside(pieces: Vec<Cursor<'_>>) -> Read<Outside> {
    let mut pieces = pieces.into_iter();
    let Some(mut line) = pieces.next() else { return Err(ReadError::expected(0, "a line", "")) };
    let mut what = if line.eat("cancelled") {
        Outside::Cancelled
    } else if line.eat("crashed") {
        Outside::Crashed
    } else if line.eat("resumed") {
        let trips_max = if line.eat("with") { Some(count(&mut line)?) } else { None };
        line.eat("trips");
        Outside::Resumed { trips_max, now: None }
    } else if line.eat("new message") {
        Outside::NewMessage
    } else if line.eat("tool") {
        let name = line.word("the name of a tool")?;
        if line.eat("is gone") {
            Outside::ToolGone(name)
        } else if line.eat("is back") {
            Outside::ToolBack(name)
        } else {
            return Err(ReadError::unknown(line.line, "fate of a tool", line.rest, ["is gone", "is back"]));
        }
    } else if line.rest.starts_with(|c: char| c.is_ascii_digit()) {
        let ms = duration_ms(&mut line)?;
        line.eat("pass");
        Outside::Pass { ms }
    } else {
        let known = ["cancelled", "crashed", "10 s pass", "resumed", "new message", "tool"];
        return Err(ReadError::unknown(line.line, "event of the world", line.rest, known));
    };
    line.done()?;
    for mut piece in pieces {
        match &mut what {
            Outside::Resumed { now, .. } if piece.eat("now:") => *now = Some(piece.text()),
            _ => return Err(ReadError::unknown(piece.line, "addition to an event of the world", piece.rest, ["now:"])),
        }
    }
    Ok(what)
}

/// Takes a number of 32 bits.
pub(crate) fn count(line: &mut Cursor<'_>) -> Read<u32> {
    let before = line.rest;
    u32::try_from(line.number("a number")?).map_err(|_| ReadError::expected(line.line, "a smaller number", before))
}

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Takes a length of time: `500 ms`, `30 s`, `5 min`, `2 h`, `3 d`.
pub(crate) fn duration_ms(line: &mut Cursor<'_>) -> Read<u64> {
    let number = line.number("a length of time")?;
    Ok(number.saturating_mul(one_of(line, "unit of time", &UNITS)?))
}

fn clock(line: &mut Cursor<'_>) -> Read<Clock> {
    if line.eat("at") {
        let ms = i64::try_from(line.number("milliseconds since 1970")?).map_err(|_| line.expected("a moment"))?;
        return Ok(Clock::At { ms });
    }
    Ok(Clock::After { ms: duration_ms(line)? })
}
