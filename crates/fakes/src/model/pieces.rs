//! Cuts texts into the pieces of a stream, and counts tokens where a script says nothing.

use gesta_run::message::BlockKind;
use gesta_run::reply::{Reply, Usage};

/// How long the pieces of a call's arguments are, in bytes, but for the ends of characters.
const ARGUMENT_BYTES: usize = 8;

/// A text word by word.
pub(super) fn text_pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// Arguments in pieces that end in the middle of words.
pub(super) fn arguments_pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let end = (ARGUMENT_BYTES..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        let (piece, rest) = text.split_at(end);
        text = rest;
        Some(piece)
    })
}

/// The tokens of an exchange: what the script says, else four bytes a token.
pub(super) fn usage(reply: &Reply, request_bytes: usize) -> Usage {
    if reply.usage != Usage::default() {
        return reply.usage;
    }
    let tokens = |bytes: usize| bytes.div_ceil(4).max(1) as u64;
    let (mut said, mut thought) = (0, 0);
    for block in &reply.blocks {
        match &block.kind {
            BlockKind::Text(text) => said += text.len(),
            BlockKind::Thinking(text) => thought += text.len(),
            BlockKind::Call(call) => said += call.name.len() + call.arguments.len(),
            BlockKind::Other => {}
        }
    }
    let (input, output) = (tokens(request_bytes), tokens(said + thought));
    let reasoning = if thought == 0 { 0 } else { tokens(thought).min(output) };
    Usage { input, output, total: input + output, reasoning, ..Usage::default() }
}
