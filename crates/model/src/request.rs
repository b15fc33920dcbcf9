//! The door of the crate: a request goes in, pieces of an answer come out.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use gesta_run::json::Object;
use gesta_run::message::{Block, BlockKind, Message, Part, Source};
use gesta_run::reply::{Delta, Fault, FaultKind, Reply, Usage};
use gesta_run::tool::ToolList;
use serde_json::Value;

use crate::wire::Wire;

/// What one model call is made of. Nothing of it outlives the call of [`Model::ask`].
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model as its provider names it, without the provider's prefix.
    pub model: &'a str,
    /// The system text. Blank sends none.
    pub system: &'a str,
    /// Messages of earlier runs, without notices.
    pub history: &'a [Message],
    /// This run's transcript, which follows the history.
    pub messages: &'a [Message],
    /// The tools offered.
    pub tools: &'a ToolList,
    /// The schema of the final answer, where there is one.
    pub output_schema: Option<&'a Value>,
    /// Further settings (`temperature`, `max_tokens`, …), handed to the provider as they stand.
    pub options: &'a Object,
    /// Whether pieces are wanted as they arrive.
    pub stream: bool,
    /// How many calls of this run failed before. No provider is told; a script goes on behind them.
    pub failed_before: u32,
}

impl<'a> Request<'a> {
    /// All messages, in the order in which they are sent.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &'a Message> + Clone + use<'a> {
        self.history.iter().chain(self.messages)
    }

    /// About how many bytes its body will have, rather more than fewer: a body that grows is copied and keeps room that
    /// it does not need, for as long as its answer takes.
    pub(crate) fn bytes_about(&self) -> usize {
        let tools = self
            .tools
            .iter()
            .map(|tool| 96 + tool.spec.name.len() + tool.spec.description.len() + tool.parameters_json().len());
        let messages = self.all().map(|message| match message {
            Message::User { parts, .. } => 64 + parts.iter().map(part_bytes).sum::<usize>(),
            Message::Notice { text } => 64 + text.len(),
            Message::Assistant { blocks } => 64 + blocks.iter().map(block_bytes).sum::<usize>(),
            Message::Tools { results } => results.iter().map(|it| 128 + quoted(&it.content)).sum(),
        });
        let text = self.system.len() + self.system.len() / 32;
        512 + text + tools.sum::<usize>() + messages.sum::<usize>()
    }
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text { text } => 64 + text.len(),
        Part::Image { source, .. } | Part::File { source, .. } => match source {
            Source::Base64(data) | Source::Url(data) => 192 + data.len(),
        },
    }
}

fn block_bytes(block: &Block) -> usize {
    match &block.kind {
        BlockKind::Text(text) | BlockKind::Thinking(text) => 64 + text.len() + text.len() / 16,
        BlockKind::Call(call) => 160 + call.name.len() + quoted(&call.arguments),
        BlockKind::Other => 256,
    }
}

/// A JSON text within a JSON text: its quotation marks take two bytes each.
fn quoted(json: &str) -> usize {
    json.len() + json.len() / 3
}

/// What an answer is handed over in: any number of deltas, then one end.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// More of the answer, to be shown as it comes. A plain (not streamed) answer has none.
    Delta(Delta),
    /// The whole answer. The last piece.
    Finished(Box<Reply>),
}

/// An answer as it arrives. It ends with [`Piece::Finished`] or with a fault; dropping it closes the connection.
pub type Answer = Pin<Box<dyn Stream<Item = Result<Piece, Fault>> + Send>>;

/// Something that answers: a provider over HTTP, a script, anything a host brings along.
pub trait Model: Send + Sync {
    /// Asks. The request is read before this returns, nothing is sent before the answer is polled; whatever goes wrong
    /// is in the answer.
    fn ask(&self, request: &Request<'_>) -> Answer;

    /// Which protocol it speaks: `openai`, `anthropic`, `script`, or a word of the host's own.
    fn protocol(&self) -> &str;

    /// Whether it keeps to an output schema by itself. Where it does not, the caller says so in the system text
    /// (`spec/contract.md`, 2.4).
    fn supports_output_schema(&self) -> bool {
        false
    }

    /// The same model, with its exchanges shown to `wire`. None where nothing goes over a wire.
    fn captured(&self, wire: Wire) -> Option<Arc<dyn Model>> {
        let _ = wire;
        None
    }
}

/// Waits for the end of an answer: not streaming is a fold over streaming.
///
/// # Errors
/// The fault that the answer ended with.
pub async fn whole(mut answer: Answer) -> Result<Reply, Fault> {
    while let Some(piece) = answer.next().await {
        if let Piece::Finished(reply) = piece? {
            return Ok(*reply);
        }
    }
    Err(Fault {
        kind: FaultKind::CutShort,
        message: "the answer stopped before its end".to_owned(),
        retryable: true,
        status: None,
        retry_after_ms: None,
        usage: Usage::default(),
    })
}
