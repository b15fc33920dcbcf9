//! Looks at a history before it is sent: one result for each call, in order, with nothing between.

use gesta_run::message::{Block, BlockKind, CallBlock, Message};
use gesta_run::reply::{Fault, FaultKind};

use crate::fault::fault;

/// The calls of an answer, in order.
pub(crate) fn calls(blocks: &[Block]) -> impl Iterator<Item = (&CallBlock, &Block)> {
    blocks.iter().filter_map(|block| match &block.kind {
        BlockKind::Call(call) => Some((call, block)),
        BlockKind::Text(_) | BlockKind::Thinking(_) | BlockKind::Other => None,
    })
}

/// Refuses what every provider would refuse (`spec/contract.md`, 2.4).
///
/// # Errors
/// A fault of kind `BadRequest` that names the call. Trying again cannot help.
pub fn check_history<'a>(messages: impl Iterator<Item = &'a Message>) -> Result<(), Fault> {
    let mut open: &[Block] = &[];
    for message in messages {
        match message {
            Message::Tools { results } => {
                let mut expected = calls(open);
                for result in results {
                    match expected.next() {
                        Some((call, _)) if call.id == result.call_id => {}
                        Some((call, _)) => {
                            let found = &result.call_id;
                            return Err(refused(format!(
                                "the result of call `{}` is due, `{found}` stands there",
                                call.id
                            )));
                        }
                        None => return Err(refused(format!("the result `{}` belongs to no call", result.call_id))),
                    }
                }
                if let Some((call, _)) = expected.next() {
                    return Err(unanswered(call));
                }
                open = &[];
            }
            Message::User { .. } | Message::Notice { .. } | Message::Assistant { .. } => {
                if let Some((call, _)) = calls(open).next() {
                    return Err(unanswered(call));
                }
                if let Message::Assistant { blocks } = message {
                    open = blocks;
                }
            }
        }
    }
    match calls(open).next() {
        Some((call, _)) => Err(unanswered(call)),
        None => Ok(()),
    }
}

fn unanswered(call: &CallBlock) -> Fault {
    refused(format!("call `{}` of `{}` has no result", call.id, call.name))
}

fn refused(why: String) -> Fault {
    fault(FaultKind::BadRequest, format!("the history cannot be sent: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gesta_run::message::ToolResult;

    fn asked(ids: &[&str]) -> Message {
        Message::Assistant { blocks: ids.iter().map(|id| Block::call(id, "t", "{}")).collect() }
    }

    fn answered(ids: &[&str]) -> Message {
        let result =
            |id: &&str| ToolResult { call_id: (*id).into(), name: "t".into(), content: "1".into(), is_error: false };
        Message::Tools { results: ids.iter().map(result).collect() }
    }

    #[test]
    fn each_violation_names_its_call() {
        let user = || Message::User { parts: vec![], prompted: false };
        let cases: [(Vec<Message>, Option<&str>); 8] = [
            (vec![user(), asked(&["a", "b"]), answered(&["a", "b"]), user()], None),
            (vec![user(), asked(&[]), user()], None),
            (vec![asked(&["a"])], Some("call `a` of `t` has no result")),
            (vec![asked(&["a"]), user(), answered(&["a"])], Some("call `a` of `t` has no result")),
            (vec![asked(&["a", "b"]), answered(&["a"])], Some("call `b` of `t` has no result")),
            (vec![asked(&["a", "b"]), answered(&["b", "a"])], Some("the result of call `a` is due, `b` stands there")),
            (vec![asked(&["a"]), answered(&["a", "a"])], Some("the result `a` belongs to no call")),
            (vec![user(), answered(&["a"])], Some("the result `a` belongs to no call")),
        ];
        for (messages, why) in cases {
            let found = check_history(messages.iter()).err().map(|fault| fault.message);
            assert_eq!(found, why.map(|why| format!("the history cannot be sent: {why}")));
        }
    }
}
