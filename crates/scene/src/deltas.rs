//! Answers cut into the pieces in which a stream would bring them.

use gesta_run::message::BlockKind;
use gesta_run::reply::{Delta, Reply, ReplyBuilder};

/// Cuts an answer into deltas at places that the dice choose: between any two characters, the pieces of different
/// blocks interleaved. Folding them with [`ReplyBuilder`] gives the blocks back.
pub fn cut(reply: &Reply, dice: &mut fastrand::Rng) -> Vec<Delta> {
    let mut queues: Vec<std::collections::VecDeque<Delta>> = Vec::new();
    let mut number = 0;
    for block in &reply.blocks {
        let mut pieces = match &block.kind {
            BlockKind::Text(text) => {
                let pieces = pieces(text, dice).into_iter();
                pieces.map(|text| Delta::Text { block: number, text }).collect()
            }
            BlockKind::Thinking(text) => {
                let pieces = pieces(text, dice).into_iter();
                pieces.map(|text| Delta::Thinking { block: number, text }).collect()
            }
            BlockKind::Call(call) => {
                let head = |arguments: String| Delta::Call {
                    block: number,
                    id: call.id.as_str().to_owned(),
                    name: call.name.clone(),
                    arguments,
                };
                let more = |arguments| Delta::Call { block: number, id: String::new(), name: String::new(), arguments };
                let pieces = pieces(&call.arguments, dice).into_iter().enumerate();
                pieces.map(|(n, piece)| if n == 0 { head(piece) } else { more(piece) }).collect()
            }
            BlockKind::Other => std::collections::VecDeque::new(),
        };
        if let Some(raw) = &block.raw {
            pieces.push_back(Delta::Raw { block: number, raw: raw.clone() });
        }
        queues.push(pieces);
        number += 1 + dice.u32(..3);
    }
    interleave(queues, dice)
}

/// The answer put together again from its pieces: what a streamed answer becomes.
pub fn fold(reply: &Reply, deltas: Vec<Delta>) -> Reply {
    let mut builder = ReplyBuilder::default();
    deltas.into_iter().for_each(|delta| builder.push(delta));
    Reply { blocks: builder.finish().blocks, ..reply.clone() }
}

/// At least one piece, so that an empty block is announced too.
fn pieces(text: &str, dice: &mut fastrand::Rng) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in text.chars() {
        if dice.u32(..4) == 0 {
            pieces.push(String::new());
        }
        if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces
}

fn interleave(mut queues: Vec<std::collections::VecDeque<Delta>>, dice: &mut fastrand::Rng) -> Vec<Delta> {
    let mut deltas = Vec::new();
    while queues.iter().any(|queue| !queue.is_empty()) {
        let at = dice.usize(..queues.len());
        deltas.extend(queues[at].pop_front());
    }
    deltas
}

#[cfg(test)]
mod tests {
    use super::*;
    use gesta_run::message::Block;

    #[test]
    fn a_cut_answer_folds_back_whatever_the_dice_say() {
        let blocks = vec![
            Block::text("Grüße, 🙂"),
            Block::call("c1", "find", r#"{"q":"é"}"#),
            Block::text(""),
            Block::call("", "list", ""),
            BlockKind::Thinking("hm".to_owned()).into(),
        ];
        let reply = Reply { blocks, finish_reason: "x".to_owned(), ..Reply::default() };
        for seed in 0..200 {
            let deltas = cut(&reply, &mut fastrand::Rng::with_seed(seed));
            assert_eq!(fold(&reply, deltas), reply, "seed {seed}");
        }
    }
}
