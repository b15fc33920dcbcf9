//! The model that answers from a script, so that everything runs without a key.

use std::sync::Arc;

use futures_util::stream;
use gesta_run::message::{Block, BlockKind, Message, text_of};
use gesta_run::reply::{Delta, Reply};
use gesta_scene::Script;

use crate::request::{Answer, Model, Piece, Request};

/// In how many pieces a text is streamed, at most.
const PIECES_MAX: usize = 8;

/// Answers from a script. It keeps no state: which answer comes next follows from the request, so that a restart and
/// a replay are answered alike.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    script: Arc<Script>,
}

impl ScriptedModel {
    /// Answers from this script.
    pub fn new(script: Arc<Script>) -> Self {
        Self { script }
    }
}

/// How many answers this run has, and what its user said. A failure leaves no message; [`Request::failed_before`] counts
/// them.
pub fn place_in_script(messages: &[Message]) -> (usize, String) {
    let given = messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
    let said = messages.iter().find_map(|message| match message {
        Message::User { parts, prompted: false } => Some(text_of(parts)),
        _ => None,
    });
    (given, said.unwrap_or_default())
}

impl Model for ScriptedModel {
    fn ask(&self, request: &Request<'_>) -> Answer {
        let (given, said) = place_in_script(request.messages);
        let given = given + request.failed_before as usize;
        let pieces = match self.script.answer(given, &said) {
            Ok(reply) => pieces(reply, request.stream).into_iter().map(Ok).collect(),
            Err(fault) => vec![Err(fault)],
        };
        Box::pin(stream::iter(pieces))
    }

    fn protocol(&self) -> &str {
        "script"
    }
}

fn pieces(reply: Reply, stream: bool) -> Vec<Piece> {
    let mut out = Vec::new();
    if stream {
        for (number, block) in (0..).zip(&reply.blocks) {
            out.extend(deltas(number, block).into_iter().map(Piece::Delta));
        }
    }
    out.push(Piece::Finished(Box::new(reply)));
    out
}

fn deltas(block: u32, from: &Block) -> Vec<Delta> {
    let mut out: Vec<Delta> = match &from.kind {
        BlockKind::Text(text) => cut(text).map(|text| Delta::Text { block, text }).collect(),
        BlockKind::Thinking(text) => cut(text).map(|text| Delta::Thinking { block, text }).collect(),
        BlockKind::Call(call) => vec![
            Delta::Call { block, id: call.id.as_str().to_owned(), name: call.name.clone(), arguments: String::new() },
            Delta::Call { block, id: String::new(), name: String::new(), arguments: call.arguments.clone() },
        ],
        BlockKind::Other => Vec::new(),
    };
    out.extend(from.raw.clone().map(|raw| Delta::Raw { block, raw }));
    out
}

/// Cuts a text behind words, into pieces of about equal size.
fn cut(text: &str) -> impl Iterator<Item = String> {
    let least = text.len().div_ceil(PIECES_MAX).max(1);
    let mut pieces = vec![String::new()];
    for word in text.split_inclusive(' ') {
        match pieces.last_mut() {
            Some(last) if last.len() < least => last.push_str(word),
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces.into_iter()
}
