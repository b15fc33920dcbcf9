//! What comes back from one model call, whole or piece by piece.

use serde::{Deserialize, Serialize};

use crate::message::{Block, BlockKind, CallBlock, Raw};

/// Why the model stopped, in words of no provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done.
    #[default]
    Stop,
    /// It wants its calls run.
    ToolCalls,
    /// The length limit cut it.
    Length,
    /// The provider's filter stopped it.
    ContentFilter,
    /// The model declined to answer.
    Refusal,
    /// Something this version does not know.
    Other,
}

/// Tokens of one or several model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens, cached ones included.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Input and output.
    pub total: u64,
    /// Of the input: read from the provider's cache.
    pub cached: u64,
    /// Of the output: spent on reasoning.
    pub reasoning: u64,
    /// Of the input: written to the provider's cache.
    pub cache_write: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.total = self.total.saturating_add(more.total);
        self.cached = self.cached.saturating_add(more.cached);
        self.reasoning = self.reasoning.saturating_add(more.reasoning);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
    }
}

/// A whole answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Its pieces, in the provider's order.
    pub blocks: Vec<Block>,
    /// Why it stopped.
    pub finish: Finish,
    /// The provider's own word for that.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finish_reason: String,
    /// What it cost in tokens.
    #[serde(default)]
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
}

impl Reply {
    /// An answer of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { blocks: vec![Block::text(text)], ..Self::default() }
    }

    /// Its text blocks, one after another.
    pub fn joined_text(&self) -> String {
        let mut out = String::new();
        for block in &self.blocks {
            if let BlockKind::Text(text) = &block.kind {
                out.push_str(text);
            }
        }
        out
    }

    /// Its calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &CallBlock> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            BlockKind::Call(call) => Some(call),
            BlockKind::Text(_) | BlockKind::Thinking(_) | BlockKind::Other => None,
        })
    }
}

/// A piece of an answer, as it arrives. Deltas are no inputs of the machine: a listener may show them.
/// `block` says which block a piece belongs to, so that pieces of several may interleave; numbers may have gaps,
/// and their order is the order of the blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// More text.
    Text {
        /// The block.
        block: u32,
        /// What to append.
        text: String,
    },
    /// More thinking.
    Thinking {
        /// The block.
        block: u32,
        /// What to append.
        text: String,
    },
    /// A call begins, or more of it is known. Blank fields say nothing new.
    Call {
        /// The block.
        block: u32,
        /// The model's id, once it is known.
        id: String,
        /// The tool's name, once it is known.
        name: String,
        /// What to append to the arguments.
        arguments: String,
    },
    /// The provider's own form of a block.
    Raw {
        /// The block.
        block: u32,
        /// Its form.
        raw: Raw,
    },
}

/// Puts an answer together from its pieces: a plain answer is the fold of a streamed one.
#[derive(Debug, Default)]
pub struct ReplyBuilder {
    blocks: Vec<(u32, Block)>,
}

impl ReplyBuilder {
    /// Takes the next piece.
    pub fn push(&mut self, delta: Delta) {
        match delta {
            Delta::Text { block, text } => match &mut self.block(block, || BlockKind::Text(String::new())).kind {
                BlockKind::Text(so_far) => so_far.push_str(&text),
                other @ (BlockKind::Thinking(_) | BlockKind::Call(_) | BlockKind::Other) => {
                    *other = BlockKind::Text(text);
                }
            },
            Delta::Thinking { block, text } => {
                match &mut self.block(block, || BlockKind::Thinking(String::new())).kind {
                    BlockKind::Thinking(so_far) => so_far.push_str(&text),
                    other @ (BlockKind::Text(_) | BlockKind::Call(_) | BlockKind::Other) => {
                        *other = BlockKind::Thinking(text);
                    }
                }
            }
            Delta::Call { block, id, name, arguments } => self.push_call(block, id, name, &arguments),
            Delta::Raw { block, raw } => self.block(block, || BlockKind::Other).raw = Some(raw),
        }
    }

    fn push_call(&mut self, block: u32, id: String, name: String, arguments: &str) {
        let empty = || {
            BlockKind::Call(CallBlock {
                id: "".into(),
                name: String::new(),
                arguments: String::new(),
                recovered: false,
            })
        };
        let slot = self.block(block, empty);
        if !matches!(slot.kind, BlockKind::Call(_)) {
            slot.kind = empty();
        }
        if let BlockKind::Call(call) = &mut slot.kind {
            if !id.is_empty() && call.id.as_str().is_empty() {
                call.id = id.as_str().into();
            }
            if call.name.is_empty() {
                call.name = name;
            }
            call.arguments.push_str(arguments);
        }
    }

    fn block(&mut self, number: u32, new: impl FnOnce() -> BlockKind) -> &mut Block {
        let at = match self.blocks.last() {
            Some((last, _)) if *last == number => self.blocks.len() - 1,
            _ => match self.blocks.binary_search_by_key(&number, |(n, _)| *n) {
                Ok(at) => at,
                Err(at) => {
                    self.blocks.insert(at, (number, new().into()));
                    at
                }
            },
        };
        &mut self.blocks[at].1
    }

    /// The text so far.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().map(|(_, block)| block)
    }

    /// The finished answer. The caller adds finish, usage and model.
    pub fn finish(self) -> Reply {
        Reply { blocks: self.blocks.into_iter().map(|(_, block)| block).collect(), ..Reply::default() }
    }
}

/// A model call that gave no answer, sorted so that a caller knows whether another try may help.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What kind of failure it was.
    pub kind: FaultKind,
    /// A sentence for people; holds no key and no content of the conversation.
    pub message: String,
    /// Another try may succeed.
    pub retryable: bool,
    /// The HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the provider asked to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Tokens spent before it failed, as far as they are known.
    #[serde(default)]
    pub usage: Usage,
}

/// What kind of failure a model call met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// No connection, or it broke.
    Network,
    /// A time limit passed: connect, first byte, idle or whole.
    Timeout,
    /// The stream ended before the answer did.
    CutShort,
    /// The provider's reply cannot be read.
    Malformed,
    /// Key missing or refused.
    Auth,
    /// Too many requests.
    RateLimit,
    /// The provider is overloaded or failed inside.
    Overloaded,
    /// The request does not fit the model's window.
    ContextLength,
    /// The provider refused the request for another reason.
    BadRequest,
    /// The script has no answer, or the configuration is wrong.
    Config,
}
