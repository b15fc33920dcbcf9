//! Reads an answer, whole or as a stream.

use std::collections::BTreeMap;

use gesta_run::reply::{Delta, Fault, Finish, Reply, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::block::Open;
use crate::draft::Draft;
use crate::fault::{cut_short, from_error, malformed};
use crate::halves;
use crate::loose::{Count, Text};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    message: Option<Head<'a>>,
    #[serde(default)]
    content_block: Option<Value>,
    #[serde(borrow, default)]
    delta: Option<Piece<'a>>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    partial_json: Text<'a>,
    #[serde(default)]
    citation: Option<Value>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(default)]
    error: Option<Value>,
}

/// The input of a call as the model wrote it.
#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Tokens {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    cache_read_input_tokens: Count,
    #[serde(default)]
    cache_creation_input_tokens: Count,
    #[serde(default)]
    output_tokens_details: Option<OutputTokens>,
}

#[derive(Deserialize, Default)]
struct OutputTokens {
    #[serde(default)]
    thinking_tokens: Count,
}

/// An answer that is being read.
#[derive(Debug)]
pub struct Stream {
    origin: String,
    draft: Draft,
    open: Vec<Open>,
    /// Tokens of the input that were neither read from the cache nor written to it.
    fresh: u64,
    usage: Usage,
    model: String,
    stop_reason: String,
    done: bool,
}

/// Reads a whole answer. `origin` is the provider's name, `request` the body it answers, which a fault must not quote.
///
/// # Errors
/// It is no answer of this protocol, or an error object in place of one.
pub fn reply(body: &[u8], origin: &str, request: &[u8]) -> Result<Reply, Fault> {
    let mended = halves::replaced(body);
    let body = mended.as_deref().unwrap_or(body);
    let whole: Whole<'_> = serde_json::from_slice(body).map_err(|_| malformed("it is no message in JSON"))?;
    if let Some(error) = whole.error.filter(|error| !error.is_null()) {
        return Err(from_error(&json!({"error": error}), request));
    }
    let Some(content) = whole.content else { return Err(malformed("there is no content in it")) };
    let mut stream = Stream { draft: Draft::quiet(), ..Stream::new(origin) };
    for (number, raw) in (0..).zip(content) {
        let block = block_of(raw.get());
        let input: Input<'_> = serde_json::from_str(raw.get()).unwrap_or(Input { input: None });
        let arguments = input.input.map(RawValue::get);
        // A text in place of the object is passed on as it stands, for the machine to refuse.
        let quoted: Option<String> = arguments.and_then(|text| serde_json::from_str(text).ok());
        let open = Open::begin(number, block, &mut stream.draft);
        open.end(&mut stream.draft, &stream.origin, quoted.as_deref().or(arguments));
    }
    if let Some(usage) = whole.usage {
        stream.count(&usage);
    }
    stream.model.push_str(whole.model.as_str());
    stream.stop_reason.push_str(whole.stop_reason.as_str());
    stream.done = true;
    stream.finish()
}

/// A block as a value. What of it is nested too deep is left out: the input of a call is passed on as a text.
fn block_of(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or_else(|_| {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw).unwrap_or_default();
        let value = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
        fields.into_iter().map(|(key, raw)| (key, value(raw))).collect()
    })
}

impl Stream {
    /// Nothing read yet. `origin` is the provider's name.
    pub fn new(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            draft: Draft::default(),
            open: Vec::new(),
            fresh: 0,
            usage: Usage::default(),
            model: String::new(),
            stop_reason: String::new(),
            done: false,
        }
    }

    /// Takes the data of the next event. Events of a kind that this version does not know are skipped.
    ///
    /// # Errors
    /// It is no event of this protocol, or it reports an error.
    pub fn event(&mut self, data: &[u8], request: &[u8]) -> Result<(), Fault> {
        if self.done || data.trim_ascii().is_empty() || data.trim_ascii() == b"[DONE]" {
            return Ok(());
        }
        if let Ok(event) = serde_json::from_slice(data) {
            self.draft.marks(false);
            return self.take(event, request);
        }
        let mended = halves::marked(data).unwrap_or_default();
        match serde_json::from_slice(&mended) {
            Ok(event) => {
                self.draft.marks(true);
                self.take(event, request)
            }
            Err(_) => Err(Fault { usage: self.usage, ..malformed("an event of the stream is no JSON of its kind") }),
        }
    }

    fn take(&mut self, event: Event<'_>, request: &[u8]) -> Result<(), Fault> {
        if let Some(error) = event.error.filter(|error| !error.is_null()) {
            return Err(Fault { usage: self.usage, ..from_error(&json!({"error": error}), request) });
        }
        let number = u32::try_from(event.index.get()).unwrap_or(u32::MAX);
        match event.kind.as_str() {
            "message_start" => {
                if let Some(head) = event.message {
                    self.model.push_str(head.model.as_str());
                    self.count(&head.usage.unwrap_or_default());
                }
            }
            "content_block_start" => {
                self.end(number);
                let open = Open::begin(number, event.content_block.unwrap_or_default(), &mut self.draft);
                self.open.push(open);
            }
            "content_block_delta" => {
                if let Some(piece) = event.delta {
                    self.grow(number, piece);
                }
            }
            "content_block_stop" => self.end(number),
            "message_delta" => {
                if let Some(piece) = event.delta {
                    self.stop_reason.push_str(piece.stop_reason.as_str());
                }
                self.count(&event.usage.unwrap_or_default());
            }
            "message_stop" => {
                while let Some(open) = self.open.pop() {
                    open.end(&mut self.draft, &self.origin, None);
                }
                self.draft.end_all();
                self.done = true;
            }
            _ => {}
        }
        Ok(())
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

    /// The answer.
    ///
    /// # Errors
    /// The end marker did not come: the stream was cut.
    pub fn finish(self) -> Result<Reply, Fault> {
        if !self.done {
            return Err(cut_short(self.usage));
        }
        let mut reply = self.draft.into_reply();
        let has_calls = reply.calls().next().is_some();
        reply.finish = match self.stop_reason.as_str() {
            "end_turn" | "stop_sequence" => Finish::Stop,
            "tool_use" => Finish::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "refusal" => Finish::Refusal,
            "" if has_calls => Finish::ToolCalls,
            "" => Finish::Stop,
            _ => Finish::Other,
        };
        reply.finish_reason = self.stop_reason;
        reply.usage = self.usage;
        reply.model = self.model;
        Ok(reply)
    }

    fn grow(&mut self, number: u32, piece: Piece<'_>) {
        let kind = piece.kind.as_str();
        let at = match self.open.iter().position(|open| open.number == number) {
            Some(at) => at,
            None => {
                // A block whose start got lost on the way: its first delta says what it is.
                let start = match kind {
                    "text_delta" => json!({"type": "text"}),
                    "thinking_delta" => json!({"type": "thinking"}),
                    "input_json_delta" => json!({"type": "tool_use"}),
                    _ => return,
                };
                self.open.push(Open::begin(number, start, &mut self.draft));
                self.open.len() - 1
            }
        };
        let open = &mut self.open[at];
        match kind {
            "text_delta" => open.text(piece.text.as_str(), &mut self.draft),
            "thinking_delta" => open.thinking(piece.thinking.as_str(), &mut self.draft),
            "signature_delta" => open.signature(piece.signature.as_str()),
            "input_json_delta" => open.json(piece.partial_json.as_str(), &mut self.draft),
            "citations_delta" => {
                if let Some(citation) = piece.citation {
                    open.citation(citation);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, number: u32) {
        if let Some(at) = self.open.iter().position(|open| open.number == number) {
            self.open.remove(at).end(&mut self.draft, &self.origin, None);
        }
    }

    /// Takes the numbers that are there; later ones replace earlier ones.
    fn count(&mut self, tokens: &Tokens) {
        let set = |slot: &mut u64, count: Count| *slot = count.0.unwrap_or(*slot);
        set(&mut self.fresh, tokens.input_tokens);
        set(&mut self.usage.output, tokens.output_tokens);
        set(&mut self.usage.cached, tokens.cache_read_input_tokens);
        set(&mut self.usage.cache_write, tokens.cache_creation_input_tokens);
        if let Some(details) = &tokens.output_tokens_details {
            set(&mut self.usage.reasoning, details.thinking_tokens);
        }
        let cache = self.usage.cached.saturating_add(self.usage.cache_write);
        self.usage.input = self.fresh.saturating_add(cache);
        self.usage.total = self.usage.input.saturating_add(self.usage.output);
    }
}
