//! The guardrails: what becomes of a model's reply, in order (`spec/channel.md`, 7). Pure: the same reply under the same
//! snapshot gives the same verdict.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::numbers::{REPLY_CHARS_MAX, REPLY_MESSAGES_MAX};
use crate::outcome::Handoff;
use crate::reply::AgentReply;
use crate::text::{chars, collapse, cut_at_word, ends_in_question, fold, has_words, plain};

/// What the guardrails did to a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Intervention {
    SchemaInvalid,
    FieldEchoStripped,
    PromptLeakDetected,
    DuplicateReplaced,
    DuplicateDetected,
    CountClamped,
    LengthClamped,
}

/// What the guardrails are told beside the reply.
#[derive(Debug)]
pub struct Terms<'a> {
    /// The tenant's escalation text.
    pub escalation: &'a str,
    /// The tenant's closer, where it has one.
    pub closer: Option<&'a str>,
    /// `confidence_threshold`.
    pub confidence_threshold: f64,
    /// The headings of the prompt in use.
    pub headings: &'a [String],
    /// The fence of this turn.
    pub fence: &'a Fence,
    /// What the agent said before in this conversation, message by message.
    pub earlier: &'a [String],
}

/// The reply as the contact is to read it, and what staff may want to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What goes out.
    pub messages: Vec<String>,
    /// Set where the tenant's text is the whole reply.
    pub handoff: Option<Handoff>,
    /// What the model wrote, where that is not what goes out.
    pub draft: Option<String>,
    /// The model's confidence, where the reply could be read.
    pub confidence: Option<f64>,
    /// What was done, in order.
    pub interventions: Vec<Intervention>,
}

/// Puts a reply to the guardrails; none is a schema failure.
pub fn judge(terms: &Terms<'_>, reply: Option<&str>) -> Verdict {
    let mut done = Vec::new();
    let read = reply.and_then(|text| AgentReply::read(text).ok());
    let confidence = read.as_ref().map(|reply| reply.confidence);
    let judged = match read {
        Some(reply) => pass(terms, reply, &mut done),
        None => {
            done.push(Intervention::SchemaInvalid);
            Err(Handoff::Schema)
        }
    };
    match judged {
        Ok(messages) => Verdict { messages, handoff: None, draft: None, confidence, interventions: done },
        Err(handoff) => Verdict {
            messages: vec![terms.escalation.to_owned()],
            handoff: Some(handoff),
            draft: reply.map(str::to_owned),
            confidence,
            interventions: done,
        },
    }
}

/// The headings of a prompt: its lines that begin with `#`, whatever the language (L18).
pub fn headings(prompt: &str) -> Vec<String> {
    let marked = prompt.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
    let texts = marked.map(|rest| collapse(rest.trim_start_matches('#').trim_end_matches('#')));
    texts.filter(|it| !it.is_empty()).collect()
}

fn pass(terms: &Terms<'_>, mut reply: AgentReply, done: &mut Vec<Intervention>) -> Result<Vec<String>, Handoff> {
    if strip(&mut reply) {
        done.push(Intervention::FieldEchoStripped);
    }
    if reply.messages.is_empty() {
        return Err(Handoff::Schema);
    }
    if reply.messages.iter().chain(&reply.closing_question).any(|text| leaks(terms, text)) {
        done.push(Intervention::PromptLeakDetected);
        return Err(Handoff::Leak);
    }
    if let Some(reason) = reply.escalation {
        return Err(Handoff::Model(reason));
    }
    if reply.confidence < terms.confidence_threshold {
        return Err(Handoff::Confidence);
    }
    if repeats(terms, &reply.messages) {
        match terms.closer {
            Some(closer) => {
                done.push(Intervention::DuplicateReplaced);
                (reply.messages, reply.closing_question) = (vec![closer.to_owned()], None);
            }
            None => done.push(Intervention::DuplicateDetected),
        }
    }
    clamp(&mut reply, done);
    let asks = reply.messages.last().is_some_and(|last| ends_in_question(last));
    let mut messages = reply.messages;
    messages.extend(reply.closing_question.filter(|_| !asks));
    Ok(messages)
}

static ECHO: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = crate::reply::FIELDS.join("|");
    let plain = format!(r#"^[\s\-*#>{{\[(,"'`_]*(?:{names})[\s"'`*_]*[:=]"#);
    Regex::new(&format!(r"(?i){plain}|^\s*</?(?:{names})\b[^>]*>")).ok()
});

/// Takes out lines that echo a field or copy the actions note.
fn strip(reply: &mut AgentReply) -> bool {
    let mut stripped = false;
    let mut clean = |text: &str| {
        let echoes = |line: &&str| {
            ECHO.as_ref().is_some_and(|echo| echo.is_match(line)) || fold(line).contains("[actions performed")
        };
        if !text.lines().any(|line| echoes(&line)) {
            return text.to_owned();
        }
        stripped = true;
        let kept: Vec<&str> = text.lines().filter(|line| !echoes(line)).collect();
        kept.join("\n").trim().to_owned()
    };
    reply.messages = reply.messages.iter().map(|text| clean(text)).filter(|text| !text.trim().is_empty()).collect();
    reply.closing_question = reply.closing_question.take().map(|it| clean(&it)).filter(|it| !it.trim().is_empty());
    stripped
}

fn leaks(terms: &Terms<'_>, text: &str) -> bool {
    terms.fence.is_in(text) || terms.headings.iter().any(|heading| shows(text, heading))
}

/// Whether a text shows a heading: with its `#`, as a line of its own or ahead of a colon, or, where it has two words
/// and more, anywhere as it is written. One word within a sentence is language.
fn shows(text: &str, heading: &str) -> bool {
    let folded = fold(heading);
    let line_shows = |line: &str| {
        let bare = line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '*' | '_' | '=' | '-' | '>'));
        let bare = fold(&collapse(bare));
        let rest = bare.strip_prefix(folded.as_str()).map(str::trim_start);
        rest.is_some_and(|rest| rest.trim_start_matches(['*', '_']).is_empty() || rest.starts_with(':'))
            || (line.contains('#') && fold(&collapse(line)).split('#').skip(1).any(|it| begins_with(it, &folded)))
    };
    text.lines().any(line_shows) || (heading.contains(' ') && has_words(&collapse(text), heading))
}

fn begins_with(text: &str, folded: &str) -> bool {
    let rest = text.trim_start().strip_prefix(folded);
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Whether each message was said before.
fn repeats(terms: &Terms<'_>, messages: &[String]) -> bool {
    let said = |text: &str| {
        let text = plain(text);
        !text.is_empty() && terms.earlier.iter().any(|it| plain(it) == text)
    };
    !messages.is_empty() && messages.iter().all(|text| said(text))
}

fn clamp(reply: &mut AgentReply, done: &mut Vec<Intervention>) {
    if reply.messages.len() > REPLY_MESSAGES_MAX {
        reply.messages.truncate(REPLY_MESSAGES_MAX);
        done.push(Intervention::CountClamped);
    }
    let long = |text: &String| chars(text) > REPLY_CHARS_MAX;
    if reply.messages.iter().chain(&reply.closing_question).any(long) {
        done.push(Intervention::LengthClamped);
        for text in reply.messages.iter_mut().chain(&mut reply.closing_question) {
            *text = cut_at_word(text, REPLY_CHARS_MAX).to_owned();
        }
    }
}
