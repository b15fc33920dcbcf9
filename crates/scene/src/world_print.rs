//! Prints the lines of the world, so that reading gives them back.

use gesta_run::call::Answer;
use gesta_run::hold::HoldReply;
use gesta_run::input::Attempt;
use gesta_run::json::canonical;
use gesta_run::message::{Part, Source};
use gesta_run::tool::ToolSpec;
use serde_json::Value;

use crate::scene::TEXT_INDENT;
use crate::text::{write_text, write_word};
use crate::world::{Backstop, Clock, Item, Outside, PersonAnswer, Policy, UserLine, World};
use crate::world_read::{PARTS, SHOWN};
use crate::{grants, plan_print};

/// One item, without the line end behind it.
pub(crate) fn item(item: &Item) -> String {
    match item {
        Item::Blank => String::new(),
        Item::Comment(text) | Item::Plan(text) => text.clone(),
        Item::World(line) => world(line),
        Item::Document(line) => document(line),
    }
}

/// What a document said, or what answers it by itself: it stands where the run's doings stand.
pub(crate) fn document(line: &World) -> String {
    match line {
        World::Offer(tools) => crate::document::offered(tools),
        World::Tool { call, answer } => tool(&format!("document: {}", write_word(call)), answer),
        line => world(line),
    }
}

/// A text over several lines under a line.
pub(crate) fn under(head: &str, block: &str) -> String {
    let pad = " ".repeat(TEXT_INDENT);
    let lines = block.lines().map(|line| if line.is_empty() { String::new() } else { format!("{pad}{line}") });
    format!("{head} |\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// A text behind its words.
pub(crate) fn said(prefix: &str, text: &str) -> String {
    write_text(prefix, text, TEXT_INDENT, |_| false)
}

fn world(line: &World) -> String {
    match line {
        World::User(line) => user(line),
        World::Model(answer) => answer.print(),
        World::Offer(added) => offer(added),
        World::Policy { call, says } => policy(&format!("policy: {}", write_word(call)), says),
        World::Tool { call, answer } => tool(&format!("tool: {}", write_word(call)), answer),
        World::Document { call, grant, arguments } => grants::print_asked(call, grant, arguments),
        World::Grant { id, answer } => tool(&format!("grant: {}", write_word(id)), answer),
        World::Backstop { name, says } => backstop(&format!("backstop: {}", write_word(name)), says),
        World::Person { answers, now } => {
            let now = now.iter().map(|now| said("now:", now));
            continued("person: ", answers.iter().map(person).chain(now).collect())
        }
        World::Client { path } if path == "inline" => "client: delivered".to_owned(),
        World::Client { path } => said("client: delivered by", path),
        World::Action { call, attempt } => match attempt {
            Attempt::Performed => format!("action: {} performed", write_word(call)),
            Attempt::Failed { error } => said(&format!("action: {} fails", write_word(call)), error),
        },
        World::Outside(what) => outside(what),
        World::Clock(Clock::At { ms }) => format!("clock: at {ms}"),
        World::Clock(Clock::After { ms }) => format!("clock: {}", duration(*ms)),
        World::Show(what) => {
            let word = SHOWN.iter().find(|(_, show)| show == what).map_or("", |(word, _)| word);
            format!("show: {word}")
        }
    }
}

/// The first piece behind the keyword, each further one behind `and:`.
fn continued(keyword: &str, pieces: Vec<String>) -> String {
    let lines = pieces.into_iter().enumerate();
    lines.map(|(n, piece)| format!("{}{piece}", if n == 0 { keyword } else { "and: " })).collect::<Vec<_>>().join("\n")
}

fn user(line: &UserLine) -> String {
    let mut parts = line.parts.iter();
    let mut out = match line.parts.first() {
        Some(Part::Text { text }) => {
            parts.next();
            said("user:", text)
        }
        _ => "user:".to_owned(),
    };
    let mut more: Vec<String> = parts.map(part).collect();
    let extras = [("run:", &line.run), ("conversation:", &line.conversation), ("contact:", &line.contact)];
    more.extend(extras.iter().filter_map(|(word, text)| text.as_ref().map(|text| said(word, text))));
    more.extend(line.now.iter().map(|now| said("now:", now)));
    for piece in more {
        out.push_str("\nand: ");
        out.push_str(&piece);
    }
    out
}

fn part(part: &Part) -> String {
    match part {
        Part::Text { text } => said("text:", text),
        Part::Image { media_type, source } => bytes(&format!("image {}", write_word(media_type)), source),
        Part::File { media_type, name, source } => {
            let name = name.as_ref().map_or(String::new(), |name| format!(" named {}", write_word(name)));
            bytes(&format!("file {}{name}", write_word(media_type)), source)
        }
    }
}

fn bytes(head: &str, source: &Source) -> String {
    match source {
        Source::Url(url) => said(&format!("{head} at"), url),
        Source::Base64(data) => said(&format!("{head} base64"), data),
    }
}

fn offer(added: &[ToolSpec]) -> String {
    if added.is_empty() {
        return "offer: nothing".to_owned();
    }
    continued("offer: ", added.iter().map(plan_print::tool).collect())
}

fn policy(head: &str, says: &Policy) -> String {
    let wire = match says {
        Policy::Fails(why) => return said(&format!("{head} fails"), why),
        Policy::Wire(wire) => wire,
    };
    let keys: Vec<&str> = wire.as_object().map_or(Vec::new(), |object| object.keys().map(String::as_str).collect());
    let action = wire.get("action").and_then(Value::as_str);
    let reason = wire.get("reason").and_then(Value::as_str);
    match (action, keys.as_slice(), reason) {
        (None, [], _) if wire.is_null() => format!("{head} nothing"),
        (Some("run"), ["action"], _) => format!("{head} run"),
        (Some("run"), ["action", "arguments"] | ["arguments", "action"], _) => {
            format!("{head} run {}", canonical(&wire["arguments"]))
        }
        (Some("deny"), [_, _], Some(reason)) => said(&format!("{head} deny"), reason),
        (Some("defer"), ["action"], _) => format!("{head} defer"),
        (Some("defer"), [_, _], Some(reason)) => said(&format!("{head} defer"), reason),
        _ => format!("{head} answers {}", canonical(wire)),
    }
}

fn tool(head: &str, answer: &Answer) -> String {
    match answer {
        Answer::Ok(Value::Null) => format!("{head} ok"),
        Answer::Ok(value) => format!("{head} ok {}", canonical(value)),
        Answer::Error(text) => said(&format!("{head} error"), text),
        Answer::TimedOut => format!("{head} times out"),
        Answer::TimedOutWith(text) => said(&format!("{head} times out"), text),
        Answer::Unknown => format!("{head} unknown"),
    }
}

fn backstop(head: &str, says: &Backstop) -> String {
    match says {
        Backstop::Wanted => format!("{head} wanted"),
        Backstop::NotWanted => format!("{head} not wanted"),
        Backstop::DetectFails(why) => said(&format!("{head} cannot tell"), why),
        Backstop::RunFails(why) => said(&format!("{head} fails"), why),
        Backstop::Ran { prompt, state } => {
            let mut line = match prompt {
                Some(prompt) => said(&format!("{head} prompts"), prompt),
                None => format!("{head} done"),
            };
            if let Some(state) = state {
                line.push_str(&format!("\nand: state {}", canonical(state)));
            }
            line
        }
    }
}

fn person(answer: &PersonAnswer) -> String {
    let call = write_word(&answer.call);
    let wrong = answer.wrong.and_then(|wrong| PARTS.iter().find(|(_, part)| *part == wrong));
    let head = wrong.map_or(call.clone(), |(word, _)| format!("{call} of another {word}"));
    match &answer.says {
        HoldReply::Approve { arguments: None } => format!("{head} approve"),
        HoldReply::Approve { arguments: Some(arguments) } => {
            format!("{head} approve {}", canonical(&Value::Object(arguments.clone())))
        }
        HoldReply::Deny { reason } => said(&format!("{head} deny"), reason),
        HoldReply::Result { value } => format!("{head} result {}", canonical(value)),
        HoldReply::Error { text } => said(&format!("{head} error"), text),
        HoldReply::OutcomeUnknown => format!("{head} outcome unknown"),
    }
}

fn outside(what: &Outside) -> String {
    match what {
        Outside::Cancelled => "world: cancelled".to_owned(),
        Outside::Crashed => "world: crashed".to_owned(),
        Outside::Pass { ms } => format!("world: {} pass", duration(*ms)),
        Outside::Resumed { trips_max, now } => {
            let mut line = match trips_max {
                Some(trips) => format!("world: resumed with {trips} trips"),
                None => "world: resumed".to_owned(),
            };
            if let Some(now) = now {
                line.push_str(&format!("\nand: {}", said("now:", now)));
            }
            line
        }
        Outside::NewMessage => "world: new message".to_owned(),
        Outside::ToolGone(name) => format!("world: tool {} is gone", write_word(name)),
        Outside::ToolBack(name) => format!("world: tool {} is back", write_word(name)),
        Outside::NoAnswers => "person: nothing".to_owned(),
    }
}

/// A length of time in the largest unit that is exact.
pub(crate) fn duration(ms: u64) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)];
    let fits = units.iter().find(|(_, unit)| ms > 0 && ms.is_multiple_of(*unit));
    fits.map_or_else(|| format!("{ms} ms"), |(word, unit)| format!("{} {word}", ms / unit))
}
