//! Reads an answer, whole or as a stream: the first is the second in one piece.

use std::borrow::Cow;

use gesta_run::reply::{Delta, Fault, Finish, Reply, Usage};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::calls::{CallPiece, Calls, FunctionPiece};
use crate::alike::Alike;
use crate::draft::Draft;
use crate::fault::{cut_short, from_error, malformed};
use crate::halves;
use crate::loose::{Content, Count, Text, list};

const THINKING: u32 = 0;
const TEXT: u32 = 1;
const REFUSAL: u32 = 2;
/// Parts of the content that we do not know begin here.
const OTHER: u32 = 3;

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow, default, deserialize_with = "list")]
    choices: Vec<Choice<'a>>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(default)]
    x_groq: Option<Groq>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Groq {
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    delta: Option<Said<'a>>,
    #[serde(borrow, default)]
    message: Option<Said<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
    #[serde(default)]
    error: Option<Value>,
}

impl<'a> Chunk<'a> {
    /// Its text, where it holds nothing else that counts.
    fn text_alone(&self) -> Option<&'a str> {
        let nothing = self.usage.is_none() && self.x_groq.is_none() && self.error.is_none();
        let [choice] = &*self.choices else { return None };
        let bare = choice.index.get() == 0 && choice.message.is_none() && choice.error.is_none();
        let said = choice.delta.as_ref().filter(|_| nothing && bare && choice.finish_reason.as_str().is_empty())?;
        match &said.content {
            Content::Text(Cow::Borrowed(text)) if said.is_content_alone() => Some(text),
            _ => None,
        }
    }
}

/// A message, or more of one.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow, default)]
    reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    reasoning: Text<'a>,
    #[serde(default, deserialize_with = "list")]
    reasoning_details: Vec<Value>,
    #[serde(borrow, default, deserialize_with = "list")]
    tool_calls: Vec<CallPiece<'a>>,
    /// How calls looked before there could be several.
    #[serde(borrow, default)]
    function_call: Option<FunctionPiece<'a>>,
}

impl Said<'_> {
    fn is_content_alone(&self) -> bool {
        let texts = [&self.refusal, &self.reasoning_content, &self.reasoning];
        let lists = self.reasoning_details.is_empty() && self.tool_calls.is_empty();
        lists && self.function_call.is_none() && texts.iter().all(|text| text.as_str().is_empty())
    }
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
    #[serde(default)]
    completion_tokens_details: Option<Details>,
    /// DeepSeek's word for cached tokens.
    #[serde(default)]
    prompt_cache_hit_tokens: Count,
    /// Mistral's word for cached tokens.
    #[serde(default)]
    num_cached_tokens: Count,
}

#[derive(Deserialize, Default)]
struct Details {
    #[serde(default)]
    cached_tokens: Count,
    #[serde(default)]
    cache_write_tokens: Count,
    #[serde(default)]
    reasoning_tokens: Count,
}

/// In which form the model's thinking came, and must go back.
#[derive(Debug, Clone, Copy)]
enum Thinking {
    Field(&'static str),
    Part,
}

/// An answer that is being read.
#[derive(Debug)]
pub struct Stream {
    origin: String,
    draft: Draft,
    calls: Calls,
    thinking: Option<Thinking>,
    details: Vec<Value>,
    /// The last event that held text alone.
    alike: Alike,
    others: u32,
    refused: bool,
    finish: Option<(Finish, String)>,
    usage: Usage,
    model: String,
    done: bool,
    closed: bool,
}

/// Reads a whole answer. `origin` is the provider's name, `request` the body it answers, which a fault must not quote.
///
/// # Errors
/// It is no answer of this protocol, or an error object in place of one.
pub fn reply(body: &[u8], origin: &str, request: &[u8]) -> Result<Reply, Fault> {
    let mut stream = Stream { draft: Draft::quiet(), ..Stream::new(origin) };
    let found = stream.take(body, true, request)?;
    if !found {
        return Err(malformed("there is no choice in it"));
    }
    let usual = if stream.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
    stream.finish.get_or_insert((usual, String::new()));
    stream.finish()
}

impl Stream {
    /// Nothing read yet. `origin` is the provider's name.
    pub fn new(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            draft: Draft::default(),
            calls: Calls::default(),
            thinking: None,
            details: Vec::new(),
            alike: Alike::default(),
            others: 0,
            refused: false,
            finish: None,
            usage: Usage::default(),
            model: String::new(),
            done: false,
            closed: false,
        }
    }

    /// Takes the data of the next event.
    ///
    /// # Errors
    /// It is no event of this protocol, or it reports an error.
    pub fn event(&mut self, data: &[u8], request: &[u8]) -> Result<(), Fault> {
        if self.done || data.trim_ascii().is_empty() {
            return Ok(());
        }
        if let Some(text) = self.alike.text(data) {
            self.draft.marks(false);
            self.draft.text(TEXT, text);
            return Ok(());
        }
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        self.take(data, false, request).map(|_| ()).map_err(|fault| Fault { usage: self.usage, ..fault })
    }

    /// Whether the end marker was read.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The deltas since the last call.
    pub fn take_deltas(&mut self) -> Vec<Delta> {
        self.draft.take_deltas()
    }

    /// Tokens as far as they are known.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The raw forms that are known only at the end, then the answer. Deltas are taken after [`Stream::close`].
    ///
    /// # Errors
    /// No reason to finish was given: the stream was cut.
    pub fn finish(mut self) -> Result<Reply, Fault> {
        self.close();
        let Some((finish, finish_reason)) = self.finish else { return Err(cut_short(self.usage)) };
        let finish = if self.refused { Finish::Refusal } else { finish };
        Ok(Reply { finish, finish_reason, usage: self.usage, model: self.model, ..self.draft.into_reply() })
    }

    /// Says that nothing more comes: the forms in which thinking and refusal go back are added to their blocks.
    pub fn close(&mut self) {
        if self.finish.is_none() || std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.draft.end_all();
        let details = std::mem::take(&mut self.details);
        let thought = self.draft.thought(THINKING).to_owned();
        if !details.is_empty() {
            self.draft.thinking(THINKING, "");
            self.draft.raw(THINKING, &self.origin, json!({"reasoning_details": details}));
        } else if let Some(form) = self.thinking.take() {
            let item = match form {
                Thinking::Field(name) => Value::Object(Map::from_iter([(name.to_owned(), Value::from(thought))])),
                Thinking::Part => json!({"type": "thinking", "thinking": [{"type": "text", "text": thought}]}),
            };
            self.draft.raw(THINKING, &self.origin, item);
        }
        if self.refused {
            let text = self.draft.said(REFUSAL).to_owned();
            self.draft.raw(REFUSAL, &self.origin, json!({"type": "refusal", "refusal": text}));
        }
    }

    /// Reads one object; whether it held a choice.
    fn take(&mut self, data: &[u8], plain: bool, request: &[u8]) -> Result<bool, Fault> {
        let why = match chunk(data) {
            Ok(chunk) => {
                self.draft.marks(false);
                return self.take_chunk(chunk, data, plain, request);
            }
            Err(why) => malformed(&place_of(&why)),
        };
        let mended = if plain { halves::replaced(data) } else { halves::marked(data) };
        let data = mended.ok_or_else(|| why.clone())?;
        let chunk = chunk(&data).map_err(|_| why)?;
        self.draft.marks(!plain);
        self.take_chunk(chunk, &data, plain, request)
    }

    fn take_chunk(&mut self, chunk: Chunk<'_>, data: &[u8], plain: bool, request: &[u8]) -> Result<bool, Fault> {
        if let Some(text) = chunk.text_alone().filter(|_| !plain) {
            self.alike.learn(data, text);
        }
        if let Some(usage) = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            self.usage = usage.read();
        }
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(from_error(&json!({"error": error}), request));
        }
        if plain && chunk.choices.is_empty() {
            let value: Value = serde_json::from_slice(data).unwrap_or_default();
            if ["message", "detail"].iter().any(|key| value.get(key).is_some()) {
                return Err(from_error(&value, request));
            }
        }
        if self.model.is_empty() {
            self.model.push_str(chunk.model.as_str());
        }
        let first = chunk.choices.into_iter().find(|choice| choice.index.get() == 0);
        match first {
            Some(choice) => self.choose(choice, plain, request).map(|()| true),
            None => Ok(false),
        }
    }

    fn choose(&mut self, choice: Choice<'_>, plain: bool, request: &[u8]) -> Result<(), Fault> {
        if let Some(error) = choice.error.filter(|error| !error.is_null()) {
            return Err(from_error(&json!({"error": error}), request));
        }
        let said = if plain { choice.message.or(choice.delta) } else { choice.delta.or(choice.message) };
        if let Some(said) = said {
            self.hear(said, plain);
        }
        let reason = choice.finish_reason.as_str();
        if reason == "error" {
            return Err(from_error(&Value::Null, request));
        }
        if !reason.is_empty() {
            self.finish = Some((finish_of(reason), reason.to_owned()));
        }
        Ok(())
    }

    fn hear(&mut self, said: Said<'_>, plain: bool) {
        let forms = [("reasoning_content", &said.reasoning_content), ("reasoning", &said.reasoning)];
        // Some servers say the same under both names.
        if let Some((name, text)) = forms.iter().find(|(_, text)| !text.as_str().is_empty()) {
            self.thinking.get_or_insert(Thinking::Field(name));
            self.draft.thinking(THINKING, text.as_str());
        }
        for detail in said.reasoning_details {
            join_detail(&mut self.details, detail);
        }
        match said.content {
            Content::Text(text) if !text.is_empty() => self.draft.text(TEXT, &text),
            Content::Text(_) | Content::Nothing => {}
            Content::Parts(parts) => parts.into_iter().for_each(|part| self.part(part)),
        }
        if !said.refusal.as_str().is_empty() {
            self.refused = true;
            self.draft.text(REFUSAL, said.refusal.as_str());
        }
        for (n, mut piece) in said.tool_calls.into_iter().enumerate() {
            if plain {
                // In a whole answer each entry is a call of its own, whatever number it bears.
                piece.index = Count(u64::try_from(n).ok());
            }
            self.calls.push(&piece, &mut self.draft, &self.origin);
        }
        if let Some(function) = said.function_call {
            let piece = CallPiece { index: Count(Some(0)), function: Some(function), ..CallPiece::default() };
            self.calls.push(&piece, &mut self.draft, &self.origin);
        }
    }

    fn part(&mut self, part: Value) {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        match text("type") {
            Some("text") => self.draft.text(TEXT, text("text").unwrap_or_default()),
            Some("refusal") => {
                self.refused = true;
                self.draft.text(REFUSAL, text("refusal").unwrap_or_default());
            }
            Some("thinking") => {
                self.thinking.get_or_insert(Thinking::Part);
                let pieces = part.get("thinking").and_then(Value::as_array).into_iter().flatten();
                for piece in pieces {
                    self.draft.thinking(THINKING, piece.get("text").and_then(Value::as_str).unwrap_or_default());
                }
            }
            _ => {
                self.draft.raw(OTHER + self.others.min(1000), &self.origin, part);
                self.others += 1;
            }
        }
    }
}

impl Tokens {
    fn read(&self) -> Usage {
        let nothing = Details::default();
        let input = self.prompt_tokens_details.as_ref().unwrap_or(&nothing);
        let output = self.completion_tokens_details.as_ref().unwrap_or(&nothing);
        let sum = self.prompt_tokens.get().saturating_add(self.completion_tokens.get());
        let elsewhere = self.prompt_cache_hit_tokens.get().max(self.num_cached_tokens.get());
        Usage {
            input: self.prompt_tokens.get(),
            output: self.completion_tokens.get(),
            total: self.total_tokens.0.unwrap_or(sum),
            cached: input.cached_tokens.0.unwrap_or(elsewhere),
            reasoning: output.reasoning_tokens.get(),
            cache_write: input.cache_write_tokens.get(),
        }
    }
}

fn finish_of(reason: &str) -> Finish {
    match reason {
        "stop" | "eos" | "end_turn" => Finish::Stop,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "length" | "max_tokens" | "model_length" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        "refusal" => Finish::Refusal,
        _ => Finish::Other,
    }
}

/// Adds a piece of structured reasoning: pieces with one number and kind are one item, whose texts are appended.
fn join_detail(details: &mut Vec<Value>, mut new: Value) {
    let same = |a: &Value, b: &Value, key: &str| a.get(key) == b.get(key);
    let joins = |last: &&mut Value| new.get("index").is_some() && same(last, &new, "index") && same(last, &new, "type");
    let Some(last) = details.last_mut().filter(joins).and_then(Value::as_object_mut) else {
        details.push(new);
        return;
    };
    for (key, value) in new.as_object_mut().map(std::mem::take).into_iter().flatten() {
        match (last.get_mut(&key), value) {
            (Some(Value::String(so_far)), Value::String(more)) if matches!(&*key, "text" | "summary" | "data") => {
                so_far.push_str(&more);
            }
            (_, Value::Null) => {}
            (_, value) => {
                last.insert(key, value);
            }
        }
    }
}

fn chunk(data: &[u8]) -> serde_json::Result<Chunk<'_>> {
    // Text that is checked as a whole need not be checked string by string.
    match std::str::from_utf8(data) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(data),
    }
}

/// What is wrong with a JSON text, without quoting it.
fn place_of(why: &serde_json::Error) -> String {
    let kind = match why.classify() {
        serde_json::error::Category::Eof => "it is cut",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "it is no JSON",
        serde_json::error::Category::Data => "a field of it has an unknown form",
    };
    format!("{kind} (at {}:{})", why.line(), why.column())
}
