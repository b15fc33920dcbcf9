//! Finds the place of a request in the script: how many answers the model has given, and what the user said.
//!
//! The server keeps no memory: both follow from the request's messages by one rule.
//!
//! 1. A **turn** begins at the first text in the user's role that begins with `NOW: ` (the notice with which Gesta opens
//!    the current turn; earlier turns' notices are not sent). What the user said is the first text after
//!    it. What follows in the turn, such as hints and other prompts of the runtime, changes nothing.
//! 2. Where no such notice stands, the whole request counts as the turn, and what the user said is the text of the last
//!    message in the user's role that has any.
//! 3. The number of answers given is the number of messages in the assistant's role within the turn.

use serde_json::Value;

use super::refusal::Protocol;

const NOTICE: &str = "NOW: ";

/// A place in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Answers that were given.
    pub(crate) n: usize,
    /// What the user said.
    pub(crate) user_text: String,
}

/// The place of a request with these messages.
pub(crate) fn place(protocol: Protocol, messages: &[Value]) -> Place {
    let first_notice = messages.iter().enumerate().find_map(|(at, message)| {
        let texts = texts(message);
        let (piece, within) = texts.iter().enumerate().find_map(|(n, text)| Some((n, notice_in(text)?)))?;
        (role(message) == "user").then_some((at, piece, within, texts))
    });
    let Some((at, piece, within, texts)) = first_notice else {
        let said = messages.iter().rev().filter(|message| role(message) == "user");
        let user_text = said.map(text_of).find(|text| !text.is_empty()).unwrap_or_default();
        return Place { n: assistants(protocol, messages), user_text };
    };
    // A server that wants neighbours joined gets notice and user in one text, a blank line between them.
    let same_text = texts[piece][within..].split_once("\n\n").map(|(_, rest)| rest.to_owned());
    let same_message = || texts.get(piece + 1).map(|text| (*text).to_owned());
    let next = || {
        let rest = messages[at + 1..].iter().take_while(|message| role(message) != "assistant");
        rest.filter(|message| role(message) == "user").map(text_of).next()
    };
    let user_text = same_text.or_else(same_message).or_else(next).unwrap_or_default();
    Place { n: assistants(protocol, &messages[at + 1..]), user_text }
}

/// Where a notice begins in a text.
fn notice_in(text: &str) -> Option<usize> {
    if text.starts_with(NOTICE) {
        return Some(0);
    }
    text.find("\n\nNOW: ").map(|at| at + 2)
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or_default()
}

/// Anthropic's neighbours of one role are one message.
fn assistants(protocol: Protocol, messages: &[Value]) -> usize {
    let mut n = 0;
    let mut before = "";
    for message in messages {
        let joined = protocol == Protocol::Anthropic && before == "assistant";
        n += usize::from(role(message) == "assistant" && !joined);
        before = role(message);
    }
    n
}

fn texts(message: &Value) -> Vec<&str> {
    match &message["content"] {
        Value::String(text) => vec![text],
        Value::Array(parts) => {
            parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str()).collect()
        }
        _ => Vec::new(),
    }
}

fn text_of(message: &Value) -> String {
    texts(message).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_place_follows_from_the_messages_alone() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "1"});
        let cases = [
            (json!([{"role": "user", "content": "hi"}]), 0, "hi"),
            (
                json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                {"role": "user", "content": "c"}]),
                1,
                "c",
            ),
            // An earlier turn does not count, and a hint is no turn.
            (
                json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                {"role": "user", "content": "NOW: Monday"}, {"role": "user", "content": "c"},
                {"role": "assistant", "content": "d"}, {"role": "user", "content": "do it"}]),
                1,
                "c",
            ),
            // The notice that comes with the results of a resumed run opens no turn.
            (
                json!([{"role": "user", "content": "NOW: Monday"}, {"role": "user", "content": "c"},
                {"role": "assistant", "content": null}, {"role": "tool", "content": "1"},
                {"role": "user", "content": "NOW: Tuesday"}]),
                1,
                "c",
            ),
            (
                json!([{"role": "user", "content": [text("NOW: Monday"), text("c"), text("and mind the prompt")]},
                {"role": "assistant", "content": [text("d")]}, {"role": "user", "content": [result]}]),
                1,
                "c",
            ),
            (json!([{"role": "user", "content": "old\n\nNOW: Monday\n\nc"}]), 0, "c"),
            (json!([]), 0, ""),
        ];
        for (messages, n, user_text) in cases {
            let expected = Place { n, user_text: user_text.to_owned() };
            assert_eq!(place(Protocol::OpenAi, messages.as_array().unwrap()), expected, "{messages}");
        }
    }
}
