//! How a trip enters the transcript: the assistant's message with the model's own arguments, and one result a call.

use crate::message::{Block, BlockKind, CallBlock, Message, ToolResult};
use crate::reply::Reply;
use crate::state::CallState;

/// The answer's blocks with the run's ids. A call whose arguments are no JSON object carries `{}`, so that every
/// provider accepts the history again; its error result quotes what was written.
pub(crate) fn assistant_blocks(reply: &Reply, calls: &[CallState]) -> Vec<Block> {
    let mut calls = calls.iter();
    let own = |block: &CallBlock, call: &CallState, raw: &Block| {
        let arguments = if call.sound { block.arguments.clone() } else { "{}".to_owned() };
        let kept = call.sound && block.id == call.id;
        Block {
            kind: BlockKind::Call(CallBlock {
                id: call.id.clone(),
                name: block.name.clone(),
                arguments,
                recovered: block.recovered,
            }),
            raw: raw.raw.clone().filter(|_| kept),
        }
    };
    reply
        .blocks
        .iter()
        .map(|block| match &block.kind {
            BlockKind::Call(written) => match calls.next() {
                Some(call) => own(written, call, block),
                None => block.clone(),
            },
            BlockKind::Text(_) | BlockKind::Thinking(_) | BlockKind::Other => block.clone(),
        })
        .collect()
}

/// One tool message for the whole batch, in the model's order.
pub(crate) fn tool_message(calls: &[CallState]) -> Message {
    let results = calls
        .iter()
        .filter_map(|call| {
            let end = call.end()?;
            let content = if end.is_error {
                serde_json::json!({"error": end.result}).to_string()
            } else {
                end.result.to_string()
            };
            Some(ToolResult { call_id: call.id.clone(), name: call.name.clone(), content, is_error: end.is_error })
        })
        .collect();
    Message::Tools { results }
}
