//! Checks a history as the service does: roles, contents, and one result for each call, in the next message.

use std::collections::HashSet;

use serde_json::Value;

use super::block;
use crate::model::refusal::{Checked, Refusal};

/// Neighbours of one role, which the service reads as one message.
struct Joined<'a> {
    role: &'a str,
    /// The first of them.
    first: usize,
    pieces: Vec<Piece<'a>>,
}

/// A block, or a content that is a plain text.
struct Piece<'a> {
    message: usize,
    block: usize,
    value: Option<&'a Value>,
}

impl Piece<'_> {
    fn text(&self, key: &str) -> &str {
        self.value.and_then(|value| value.get(key)).and_then(Value::as_str).unwrap_or_default()
    }

    fn kind(&self) -> &str {
        if self.value.is_none() { "text" } else { self.text("type") }
    }

    fn at(&self) -> String {
        format!("messages.{}.content.{}", self.message, self.block)
    }
}

/// Checks the messages. `thinking` says whether the model must think.
pub(super) fn check(messages: &[Value], thinking: bool) -> Checked {
    if messages.is_empty() {
        return Err(Refusal::bad("messages: at least one message is required"));
    }
    let joined = join(messages)?;
    if joined.first().is_some_and(|first| first.role != "user") {
        return Err(Refusal::bad("messages: first message must use the \"user\" role (messages.0)"));
    }
    let mut ids = HashSet::new();
    for (n, one) in joined.iter().enumerate() {
        if one.role == "assistant" {
            calls(one, joined.get(n + 1), &mut ids)?;
        } else {
            results(one, n.checked_sub(1).and_then(|before| joined.get(before)))?;
        }
    }
    if thinking {
        begins_with_thinking(&joined)?;
    }
    last_text(messages)
}

fn join(messages: &[Value]) -> Checked<Vec<Joined<'_>>> {
    let mut joined: Vec<Joined<'_>> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let at = format!("messages.{n}");
        let Value::Object(fields) = message else {
            return Err(Refusal::bad(format!("{at}: Input should be a valid dictionary")));
        };
        let role = match fields.get("role").map(|role| role.as_str().unwrap_or_default()) {
            Some(role @ ("user" | "assistant")) => role,
            Some("system") => {
                return Err(Refusal::bad(format!(
                    "messages: Unexpected role \"system\" ({at}). The Messages API accepts a top-level `system` parameter, \
                     not \"system\" as an input message role."
                )));
            }
            Some(_) => return Err(Refusal::bad(format!("{at}.role: Input should be 'user' or 'assistant'"))),
            None => return Err(Refusal::bad(format!("{at}.role: Field required"))),
        };
        if let Some(key) = fields.keys().find(|key| !matches!(key.as_str(), "role" | "content")) {
            return Err(Refusal::bad(format!("{at}.{key}: Extra inputs are not permitted")));
        }
        let pieces = pieces(fields.get("content"), n, role, n + 1 == messages.len())?;
        match joined.last_mut().filter(|last| last.role == role) {
            Some(last) => last.pieces.extend(pieces),
            None => joined.push(Joined { role, first: n, pieces }),
        }
    }
    Ok(joined)
}

fn pieces<'a>(content: Option<&'a Value>, message: usize, role: &str, is_last: bool) -> Checked<Vec<Piece<'a>>> {
    let at = format!("messages.{message}");
    let blank = || {
        if role == "assistant" && is_last {
            return Ok(Vec::new());
        }
        let why = "all messages must have non-empty content except for the optional final assistant message";
        Err(Refusal::bad(format!("{at}: {why}")))
    };
    match content {
        None => Err(Refusal::bad(format!("{at}.content: Field required"))),
        Some(Value::String(text)) if text.is_empty() => blank(),
        Some(Value::Array(list)) if list.is_empty() => blank(),
        Some(Value::String(text)) => {
            block::said(text, &format!("{at}.content"), "messages")?;
            Ok(vec![Piece { message, block: 0, value: None }])
        }
        Some(Value::Array(list)) => {
            let mut pieces = Vec::with_capacity(list.len());
            for (n, value) in list.iter().enumerate() {
                block::check(value, &format!("{at}.content.{n}"), role)?;
                pieces.push(Piece { message, block: n, value: Some(value) });
            }
            Ok(pieces)
        }
        Some(_) => Err(Refusal::bad(format!("{at}.content: Input should be a valid string or list"))),
    }
}

/// Each call has an id of its own and its result in what follows.
fn calls<'a>(one: &'a Joined<'a>, next: Option<&'a Joined<'a>>, ids: &mut HashSet<&'a str>) -> Checked {
    let mut open = Vec::new();
    for piece in one.pieces.iter().filter(|piece| piece.kind() == "tool_use") {
        let id = piece.text("id");
        if !ids.insert(id) {
            return Err(Refusal::bad(format!("{}: `tool_use` ids must be unique: {id}", piece.at())));
        }
        open.push(id);
    }
    let answered: HashSet<&str> =
        next.into_iter().flat_map(results_of).map(|piece| piece.text("tool_use_id")).collect();
    open.retain(|id| !answered.contains(id));
    if open.is_empty() {
        return Ok(());
    }
    let at = next.map_or_else(|| one.pieces.last().map_or(one.first, |piece| piece.message), |next| next.first);
    Err(Refusal::bad(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block \
         must have a corresponding `tool_result` block in the next message.",
        open.join(", ")
    )))
}

fn results_of<'a>(joined: &'a Joined<'a>) -> impl Iterator<Item = &'a Piece<'a>> {
    joined.pieces.iter().filter(|piece| piece.kind() == "tool_result")
}

/// Each result belongs to a call of the message before, once, and stands ahead of everything else.
fn results(one: &Joined<'_>, before: Option<&Joined<'_>>) -> Checked {
    let asked: HashSet<&str> = before
        .into_iter()
        .flat_map(|before| &before.pieces)
        .filter(|piece| piece.kind() == "tool_use")
        .map(|piece| piece.text("id"))
        .collect();
    let mut seen = HashSet::new();
    let mut ahead: Option<&str> = None;
    for piece in &one.pieces {
        if piece.kind() != "tool_result" {
            ahead.get_or_insert(piece.kind());
            continue;
        }
        let (at, id) = (piece.at(), piece.text("tool_use_id"));
        if !asked.contains(id) {
            return Err(Refusal::bad(format!(
                "{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a \
                 corresponding `tool_use` block in the previous message."
            )));
        }
        if !seen.insert(id) {
            return Err(Refusal::bad(format!(
                "{at}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            )));
        }
        if let Some(kind) = ahead {
            return Err(Refusal::bad(format!(
                "{at}: `tool_result` blocks must stand ahead of all others in the message that follows `tool_use`; a `{kind}` \
                 block stands ahead of {id}"
            )));
        }
    }
    Ok(())
}

/// While tools are used the model's thinking must come back with its calls.
fn begins_with_thinking(joined: &[Joined<'_>]) -> Checked {
    let [.., answer, last] = joined else { return Ok(()) };
    if answer.role != "assistant" || results_of(last).next().is_none() {
        return Ok(());
    }
    match answer.pieces.first() {
        Some(piece) if !matches!(piece.kind(), "thinking" | "redacted_thinking") => Err(Refusal::bad(format!(
            "{}.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is enabled, a final \
             `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and \
             `tool_result` blocks).",
            piece.at(),
            piece.kind()
        ))),
        _ => Ok(()),
    }
}

/// What the model is to go on with must not end in blanks.
fn last_text(messages: &[Value]) -> Checked {
    let Some(last) = messages.last().filter(|last| last["role"] == "assistant") else { return Ok(()) };
    let text = match &last["content"] {
        Value::String(text) => text.as_str(),
        Value::Array(list) => list.last().and_then(|block| block["text"].as_str()).unwrap_or_default(),
        _ => "",
    };
    if text.ends_with(char::is_whitespace) {
        let n = messages.len() - 1;
        let why = format!("messages: final assistant content cannot end with trailing whitespace (messages.{n})");
        return Err(Refusal::bad(why));
    }
    Ok(())
}
