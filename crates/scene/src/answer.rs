//! One answer of a model in words: text, calls, thinking, finish, failure, tokens, and faults for a server to show.

use gesta_run::message::{Block, BlockKind, Raw};
use gesta_run::reply::{Fault, FaultKind, Finish, Reply, Usage};
use serde_json::Value;

use crate::error::ReadError;
use crate::text::{Cursor, write_text, write_word};

/// One answer of the model, as it is written in a scene or a script.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    /// The reply, or why there is none.
    pub outcome: Result<Reply, Fault>,
    /// What a server that plays this answer does besides. A scripted model in the process leaves them out.
    pub faults: ServerFaults,
}

/// What a fake model server does wrong on purpose while it gives an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFaults {
    /// Waits this many milliseconds before its first byte.
    pub delay_ms: u64,
    /// Closes the connection in the middle of the answer.
    pub cut: bool,
    /// Sends the answer in pieces of a few bytes, cut inside characters and events.
    pub split: bool,
    /// Sends something that is no answer of its protocol.
    pub malformed: bool,
    /// Sends half of the answer and then nothing, without closing.
    pub stall: bool,
    /// Answers with this HTTP status and an error instead.
    pub status: Option<u16>,
    /// Beside a status: how many seconds the client is asked to wait.
    pub retry_after_s: Option<u64>,
}

/// Words that begin a piece which is no text; a text that begins with one is written behind a backslash.
pub(crate) const PIECES: [&str; 11] = [
    "calls",
    "thinks:",
    "cut off",
    "finishes",
    "fails",
    "uses",
    "answered by",
    "raw form",
    "raw block",
    "served with",
    "says:",
];

const FAULTS: [(&str, FaultKind); 10] = [
    ("network", FaultKind::Network),
    ("timeout", FaultKind::Timeout),
    ("cut short", FaultKind::CutShort),
    ("malformed", FaultKind::Malformed),
    ("auth", FaultKind::Auth),
    ("rate limit", FaultKind::RateLimit),
    ("overloaded", FaultKind::Overloaded),
    ("context length", FaultKind::ContextLength),
    ("bad request", FaultKind::BadRequest),
    ("config", FaultKind::Config),
];

const FINISHES: [(&str, Finish); 6] = [
    ("stop", Finish::Stop),
    ("tool calls", Finish::ToolCalls),
    ("length", Finish::Length),
    ("content filter", Finish::ContentFilter),
    ("refusal", Finish::Refusal),
    ("other", Finish::Other),
];

const SERVER_FAULTS: [&str; 6] = ["delay", "cut", "split", "malformed", "stall", "status"];

/// A failure of this kind as providers usually report it.
fn usual_fault(kind: FaultKind) -> Fault {
    let (message, retryable, status) = match kind {
        FaultKind::Network => ("the connection broke", true, None),
        FaultKind::Timeout => ("no answer came in time", true, None),
        FaultKind::CutShort => ("the stream ended before the answer did", true, None),
        FaultKind::Malformed => ("the provider's reply cannot be read", true, None),
        FaultKind::Auth => ("the provider refused the key", false, Some(401)),
        FaultKind::RateLimit => ("too many requests", true, Some(429)),
        FaultKind::Overloaded => ("the provider is overloaded", true, Some(503)),
        FaultKind::ContextLength => ("the request does not fit the model's window", false, Some(400)),
        FaultKind::BadRequest => ("the provider refused the request", false, Some(400)),
        FaultKind::Config => ("the model cannot be used as it is configured", false, None),
    };
    Fault { kind, message: message.to_owned(), retryable, status, retry_after_ms: None, usage: Usage::default() }
}

/// Reads an answer from its pieces: what stands behind `model:` and behind each `and:` that follows.
pub(crate) fn read(pieces: Vec<Cursor<'_>>) -> Result<ModelAnswer, ReadError> {
    let mut reading = Reading::default();
    for piece in pieces {
        reading.piece(piece)?;
    }
    Ok(reading.finish())
}

#[derive(Default)]
struct Reading {
    reply: Reply,
    finish: Option<Finish>,
    fault: Option<Fault>,
    faults: ServerFaults,
}

impl Reading {
    fn piece(&mut self, mut piece: Cursor<'_>) -> Result<(), ReadError> {
        if piece.is_done() {
            return Ok(());
        }
        if piece.eat("calls") {
            self.call(&mut piece)?;
        } else if piece.eat("thinks:") {
            self.push(BlockKind::Thinking(piece.text()));
        } else if piece.eat("cut off:") {
            self.finish = Some(Finish::Length);
            self.push(BlockKind::Text(piece.text()));
        } else if piece.eat("cut off") {
            self.finish = Some(Finish::Length);
        } else if piece.eat("says:") {
            self.push(BlockKind::Text(piece.text()));
        } else if piece.eat("finishes") {
            self.finish = Some(one_of(&mut piece, "reason to finish", &FINISHES)?);
            self.reply.finish_reason = piece.text();
        } else if piece.eat("fails") {
            self.fault = Some(read_fault(&mut piece)?);
        } else if piece.eat("uses") {
            self.reply.usage = read_usage(&mut piece)?;
        } else if piece.eat("answered by") {
            self.reply.model = piece.text();
        } else if piece.eat("raw form") {
            self.raw(&mut piece)?;
        } else if piece.eat("raw block") {
            self.push(BlockKind::Other);
            self.raw(&mut piece)?;
        } else if piece.eat("served with") {
            read_server_faults(&mut piece, &mut self.faults)?;
        } else {
            self.push(BlockKind::Text(piece.text()));
        }
        piece.done()
    }

    fn push(&mut self, kind: BlockKind) {
        self.reply.blocks.push(kind.into());
    }

    fn call(&mut self, piece: &mut Cursor<'_>) -> Result<(), ReadError> {
        let dash = piece.eat("- ");
        let id = if dash { String::new() } else { piece.word("the id of a call, or `-` for none")? };
        let name = piece.word("the name of a tool")?;
        self.reply.blocks.push(Block::call(&id, &name, piece.verbatim()));
        Ok(())
    }

    fn raw(&mut self, piece: &mut Cursor<'_>) -> Result<(), ReadError> {
        let origin = piece.word("the protocol that the block is of")?;
        let item = piece.json()?;
        match self.reply.blocks.last_mut() {
            Some(block) => block.raw = Some(Raw { origin, item }),
            None => return Err(piece.expected("a block that the raw form belongs to")),
        }
        Ok(())
    }

    fn finish(mut self) -> ModelAnswer {
        if let Some(mut fault) = self.fault {
            fault.usage = self.reply.usage;
            return ModelAnswer { outcome: Err(fault), faults: self.faults };
        }
        self.reply.finish = self.finish.unwrap_or_else(|| usual_finish(&self.reply));
        ModelAnswer { outcome: Ok(self.reply), faults: self.faults }
    }
}

fn usual_finish(reply: &Reply) -> Finish {
    if reply.calls().next().is_some() { Finish::ToolCalls } else { Finish::Stop }
}

/// Takes one of the words of a table.
pub(crate) fn one_of<T: Copy>(
    cursor: &mut Cursor<'_>,
    kind: &'static str,
    table: &[(&str, T)],
) -> Result<T, ReadError> {
    match table.iter().find(|(word, _)| cursor.eat(word)) {
        Some((_, value)) => Ok(*value),
        None => Err(ReadError::unknown(cursor.line, kind, cursor.rest, table.iter().map(|(word, _)| *word))),
    }
}

fn read_fault(piece: &mut Cursor<'_>) -> Result<Fault, ReadError> {
    let mut fault = usual_fault(one_of(piece, "kind of failure", &FAULTS)?);
    while piece.eat(",") {
        if piece.eat("status") {
            let status = piece.number("an HTTP status")?;
            fault.status = Some(u16::try_from(status).map_err(|_| piece.expected("an HTTP status"))?);
        } else if piece.eat("no status") {
            fault.status = None;
        } else if piece.eat("again after") {
            fault.retry_after_ms = Some(piece.number("milliseconds")?);
            piece.eat("ms");
        } else if piece.eat("for good") {
            fault.retryable = false;
        } else if piece.eat("for now") {
            fault.retryable = true;
        } else {
            let known = ["status", "no status", "again after", "for good", "for now"];
            return Err(ReadError::unknown(piece.line, "detail of a failure", piece.rest, known));
        }
    }
    if piece.eat(":") {
        fault.message = piece.text();
    }
    Ok(fault)
}

fn read_usage(piece: &mut Cursor<'_>) -> Result<Usage, ReadError> {
    let mut usage = Usage { input: piece.number("a number of tokens")?, ..Usage::default() };
    let mut total = None;
    piece.eat("tokens");
    piece.eat("in");
    while piece.eat(",") {
        let tokens = piece.number("a number of tokens")?;
        let slots = [("out", 0), ("cached", 1), ("reasoning", 2), ("written", 3), ("total", 4)];
        match one_of(piece, "kind of tokens", &slots)? {
            0 => usage.output = tokens,
            1 => usage.cached = tokens,
            2 => usage.reasoning = tokens,
            3 => usage.cache_write = tokens,
            _ => total = Some(tokens),
        }
    }
    usage.total = total.unwrap_or_else(|| usage.input.saturating_add(usage.output));
    Ok(usage)
}

fn read_server_faults(piece: &mut Cursor<'_>, faults: &mut ServerFaults) -> Result<(), ReadError> {
    loop {
        if piece.eat("delay") {
            faults.delay_ms = piece.number("milliseconds")?;
            piece.eat("ms");
        } else if piece.eat("cut") {
            faults.cut = true;
        } else if piece.eat("split") {
            faults.split = true;
        } else if piece.eat("malformed") {
            faults.malformed = true;
        } else if piece.eat("stall") {
            faults.stall = true;
        } else if piece.eat("status") {
            let status = piece.number("an HTTP status")?;
            faults.status = Some(u16::try_from(status).map_err(|_| piece.expected("an HTTP status"))?);
            if piece.eat("retry after") {
                faults.retry_after_s = Some(piece.number("seconds")?);
                piece.eat("s");
            }
        } else {
            return Err(ReadError::unknown(piece.line, "fault of a server", piece.rest, SERVER_FAULTS));
        }
        if !piece.eat(",") {
            return Ok(());
        }
    }
}

impl ModelAnswer {
    /// The answer without faults of a server.
    pub fn of(outcome: Result<Reply, Fault>) -> Self {
        Self { outcome, faults: ServerFaults::default() }
    }

    /// The lines that read as this answer: `model: …`, then one `and: …` for each further piece.
    pub fn print(&self) -> String {
        let mut pieces = match &self.outcome {
            Ok(reply) => reply_pieces(reply),
            Err(fault) => fault_pieces(fault),
        };
        pieces.extend(server_fault_piece(&self.faults));
        if pieces.is_empty() {
            return "model:".to_owned();
        }
        let lead = |n: usize| if n == 0 { "model: " } else { "and: " };
        pieces.iter().enumerate().map(|(n, piece)| format!("{}{piece}", lead(n))).collect::<Vec<_>>().join("\n")
    }
}

/// Whether a text would be read as another piece.
fn means_something(text: &str) -> bool {
    PIECES.iter().any(|word| text.starts_with(word))
}

fn plain(prefix: &str, text: &str) -> String {
    write_text(prefix, text, 8, |_| false)
}

fn reply_pieces(reply: &Reply) -> Vec<String> {
    let mut pieces = Vec::new();
    for block in &reply.blocks {
        match &block.kind {
            BlockKind::Text(text) => pieces.push(write_text("", text, 8, means_something)),
            BlockKind::Thinking(text) => pieces.push(plain("thinks:", text)),
            BlockKind::Call(call) => pieces.push(call_piece(call.id.as_str(), &call.name, &call.arguments)),
            BlockKind::Other => {
                if let Some(raw) = &block.raw {
                    pieces.push(format!("raw block {} {}", write_word(&raw.origin), raw.item));
                }
                continue;
            }
        }
        if let Some(raw) = &block.raw {
            pieces.push(format!("raw form {} {}", write_word(&raw.origin), raw.item));
        }
    }
    if reply.finish == Finish::Length && reply.finish_reason.is_empty() {
        match reply.blocks.last() {
            Some(Block { kind: BlockKind::Text(text), raw: None }) => {
                pieces.pop();
                pieces.push(plain("cut off:", text));
            }
            _ => pieces.push("cut off".to_owned()),
        }
    } else if reply.finish != usual_finish(reply) || !reply.finish_reason.is_empty() {
        let word = FINISHES.iter().find(|(_, finish)| *finish == reply.finish).map_or("other", |(word, _)| word);
        let line = format!("finishes {word}");
        pieces.push(if reply.finish_reason.is_empty() { line } else { plain(&line, &reply.finish_reason) });
    }
    pieces.extend(usage_piece(&reply.usage));
    if !reply.model.is_empty() {
        pieces.push(plain("answered by", &reply.model));
    }
    pieces
}

/// A call as it is written in an answer. Arguments that a line cannot hold stand as a JSON string behind a backslash.
fn call_piece(id: &str, name: &str, arguments: &str) -> String {
    let id = if id.is_empty() { "-".to_owned() } else { write_word(id) };
    let head = format!("calls {id} {}", write_word(name));
    let odd = |c: char| c.is_control();
    if arguments.is_empty() {
        return head;
    }
    let under = plain(&head, arguments);
    if under.contains("|\n") {
        return under;
    }
    let edge = arguments.trim() != arguments || arguments.starts_with('\\') || arguments.ends_with('|');
    if edge || arguments.contains(odd) {
        return format!("{head} \\{}", Value::from(arguments));
    }
    format!("{head} {arguments}")
}

fn usage_piece(usage: &Usage) -> Option<String> {
    if *usage == Usage::default() {
        return None;
    }
    let mut line = format!("uses {} tokens in, {} out", usage.input, usage.output);
    let more = [("cached", usage.cached), ("reasoning", usage.reasoning), ("written", usage.cache_write)];
    for (word, tokens) in more {
        if tokens > 0 {
            line.push_str(&format!(", {tokens} {word}"));
        }
    }
    if usage.total != usage.input.saturating_add(usage.output) {
        line.push_str(&format!(", {} total", usage.total));
    }
    Some(line)
}

fn fault_pieces(fault: &Fault) -> Vec<String> {
    let word = FAULTS.iter().find(|(_, kind)| *kind == fault.kind).map_or("config", |(word, _)| word);
    let usual = usual_fault(fault.kind);
    let mut line = format!("fails {word}");
    if fault.status != usual.status {
        line.push_str(&fault.status.map_or(", no status".to_owned(), |status| format!(", status {status}")));
    }
    if let Some(ms) = fault.retry_after_ms {
        line.push_str(&format!(", again after {ms} ms"));
    }
    if fault.retryable != usual.retryable {
        line.push_str(if fault.retryable { ", for now" } else { ", for good" });
    }
    if fault.message != usual.message {
        line = plain(&format!("{line}:"), &fault.message);
    }
    let mut pieces = vec![line];
    pieces.extend(usage_piece(&fault.usage));
    pieces
}

fn server_fault_piece(faults: &ServerFaults) -> Option<String> {
    let mut words = Vec::new();
    if faults.delay_ms > 0 {
        words.push(format!("delay {} ms", faults.delay_ms));
    }
    let flags =
        [("cut", faults.cut), ("split", faults.split), ("malformed", faults.malformed), ("stall", faults.stall)];
    words.extend(flags.iter().filter(|(_, on)| *on).map(|(word, _)| (*word).to_owned()));
    if let Some(status) = faults.status {
        let after = faults.retry_after_s.map_or(String::new(), |s| format!(" retry after {s} s"));
        words.push(format!("status {status}{after}"));
    }
    (!words.is_empty()).then(|| format!("served with {}", words.join(", ")))
}
