//! An answer in the making: what has come so far, and the deltas that were not handed out yet.

use gesta_run::message::{Block, BlockKind, CallBlock, Raw};
use gesta_run::reply::{Delta, Reply};
use serde_json::Value;

use crate::halves::{self, Escapes, Half};

/// Grows by pieces. Each is kept twice: in the answer, and as a delta for the listener, where neighbours of one block
/// that came in one read are joined. Blocks are in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    blocks: Vec<(u32, Grown)>,
    deltas: Vec<Delta>,
    /// Whether deltas are wanted at all.
    quiet: bool,
    /// The event that is being read has marks in place of halves of characters.
    has_marks: bool,
    /// So had an earlier one.
    had_marks: bool,
}

#[derive(Debug)]
struct Grown {
    kind: Kind,
    raw: Option<Raw>,
    half: Half,
    escapes: Escapes,
}

#[derive(Debug)]
enum Kind {
    Text(String),
    Thinking(String),
    Call { id: String, name: String, arguments: String },
    Other,
}

impl Draft {
    /// A draft that makes no deltas.
    pub(crate) fn quiet() -> Self {
        Self { quiet: true, ..Self::default() }
    }

    /// Says of what is pushed from now on whether it has marks in place of halves of characters.
    pub(crate) fn marks(&mut self, has_marks: bool) {
        self.has_marks = has_marks;
        self.had_marks |= has_marks;
    }

    pub(crate) fn text(&mut self, block: u32, more: &str) {
        let has_marks = self.has_marks;
        let grown = self.at(block, || Kind::Text(String::new()));
        let more = grown.half.join(more, has_marks);
        if let Kind::Text(text) = &mut grown.kind {
            text.push_str(&more);
        }
        if self.quiet {
            return;
        }
        match self.deltas.last_mut() {
            Some(Delta::Text { block: last, text }) if *last == block => text.push_str(&more),
            _ => self.deltas.push(Delta::Text { block, text: more.into_owned() }),
        }
    }

    pub(crate) fn thinking(&mut self, block: u32, more: &str) {
        let has_marks = self.has_marks;
        let grown = self.at(block, || Kind::Thinking(String::new()));
        let more = grown.half.join(more, has_marks);
        if let Kind::Thinking(text) = &mut grown.kind {
            text.push_str(&more);
        }
        if self.quiet {
            return;
        }
        match self.deltas.last_mut() {
            Some(Delta::Thinking { block: last, text }) if *last == block => text.push_str(&more),
            _ => self.deltas.push(Delta::Thinking { block, text: more.into_owned() }),
        }
    }

    /// More of a call. The first id and the first name that are not blank count.
    pub(crate) fn call(&mut self, block: u32, new_id: &str, new_name: &str, more: &str) {
        let has_marks = self.has_marks;
        let empty = || Kind::Call { id: String::new(), name: String::new(), arguments: String::new() };
        let grown = self.at(block, empty);
        let joined = grown.half.join(more, has_marks);
        let more = grown.escapes.pass(&joined);
        self.call_of(block, new_id, new_name, &more);
    }

    fn call_of(&mut self, block: u32, new_id: &str, new_name: &str, more: &str) {
        let mut news = ("", "");
        if let Kind::Call { id, name, arguments } = &mut self.at(block, || Kind::Other).kind {
            if id.is_empty() && !new_id.is_empty() {
                id.push_str(new_id);
                news.0 = new_id;
            }
            if name.is_empty() && !new_name.is_empty() {
                name.push_str(new_name);
                news.1 = new_name;
            }
            arguments.push_str(more);
        }
        if self.quiet {
            return;
        }
        match self.deltas.last_mut() {
            Some(Delta::Call { block: last, arguments, .. }) if *last == block && news == ("", "") => {
                arguments.push_str(more);
            }
            _ => self.deltas.push(Delta::Call {
                block,
                id: news.0.to_owned(),
                name: news.1.to_owned(),
                arguments: more.to_owned(),
            }),
        }
    }

    /// Nothing more comes to this block: half a character that waits for its other half is one no more.
    pub(crate) fn end(&mut self, block: u32) {
        let Ok(at) = self.blocks.binary_search_by_key(&block, |(number, _)| *number) else { return };
        let grown = &mut self.blocks[at].1;
        let half = grown.half.end();
        let kind = match grown.kind {
            Kind::Call { .. } => {
                let more = format!("{}{}", grown.escapes.pass(half), grown.escapes.end());
                if !more.is_empty() {
                    self.call_of(block, "", "", &more);
                }
                return;
            }
            Kind::Text(_) => Self::text,
            Kind::Thinking(_) => Self::thinking,
            Kind::Other => return,
        };
        if !half.is_empty() {
            self.has_marks = false;
            kind(self, block, half);
        }
    }

    /// Nothing more comes to any block.
    pub(crate) fn end_all(&mut self) {
        for at in 0..self.blocks.len() {
            self.end(self.blocks[at].0);
        }
    }

    /// The provider's own form of a block; of one that has no other form where the number is new.
    pub(crate) fn raw(&mut self, block: u32, origin: &str, mut item: Value) {
        if self.had_marks {
            halves::clean(&mut item);
        }
        let raw = Raw { origin: origin.to_owned(), item };
        if !self.quiet {
            self.deltas.push(Delta::Raw { block, raw: raw.clone() });
        }
        self.at(block, || Kind::Other).raw = Some(raw);
    }

    /// The arguments of a call so far; none where the block is no call.
    pub(crate) fn arguments(&self, block: u32) -> Option<&str> {
        let at = self.blocks.binary_search_by_key(&block, |(number, _)| *number).ok()?;
        match &self.blocks[at].1.kind {
            Kind::Call { arguments, .. } => Some(arguments),
            Kind::Text(_) | Kind::Thinking(_) | Kind::Other => None,
        }
    }

    /// The text of a thinking block so far.
    pub(crate) fn thought(&self, block: u32) -> &str {
        let at = self.blocks.binary_search_by_key(&block, |(number, _)| *number);
        match at.ok().map(|at| &self.blocks[at].1.kind) {
            Some(Kind::Thinking(text)) => text,
            _ => "",
        }
    }

    /// The text of a text block so far.
    pub(crate) fn said(&self, block: u32) -> &str {
        let at = self.blocks.binary_search_by_key(&block, |(number, _)| *number);
        match at.ok().map(|at| &self.blocks[at].1.kind) {
            Some(Kind::Text(text)) => text,
            _ => "",
        }
    }

    /// Takes the deltas that were not handed out yet.
    pub(crate) fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    /// The answer so far, without finish, usage and model.
    pub(crate) fn into_reply(mut self) -> Reply {
        self.end_all();
        let blocks = self.blocks.into_iter().map(|(_, grown)| grown.into_block()).collect();
        Reply { blocks, ..Reply::default() }
    }

    fn at(&mut self, number: u32, new: impl FnOnce() -> Kind) -> &mut Grown {
        let at = match self.blocks.last() {
            Some((last, _)) if *last == number => self.blocks.len() - 1,
            _ => match self.blocks.binary_search_by_key(&number, |(n, _)| *n) {
                Ok(at) => at,
                Err(at) => {
                    self.blocks.insert(at, (number, Grown::of(new())));
                    at
                }
            },
        };
        &mut self.blocks[at].1
    }
}

impl Grown {
    fn of(kind: Kind) -> Self {
        Self { kind, raw: None, half: Half::default(), escapes: Escapes::default() }
    }

    fn into_block(self) -> Block {
        let kind = match self.kind {
            Kind::Text(text) => BlockKind::Text(text),
            Kind::Thinking(text) => BlockKind::Thinking(text),
            Kind::Call { id, name, arguments } => {
                BlockKind::Call(CallBlock { id: id.as_str().into(), name, arguments, recovered: false })
            }
            Kind::Other => BlockKind::Other,
        };
        Block { kind, raw: self.raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gesta_run::reply::ReplyBuilder;

    #[test]
    fn the_deltas_add_up_to_the_answer() {
        let mut draft = Draft::default();
        draft.call(9, "c1", "move", "");
        draft.call(9, "", "", "{\"a\"");
        draft.text(1, "Let");
        draft.text(1, " me");
        draft.thinking(0, "hm");
        draft.raw(4, "anthropic", serde_json::json!({"type": "x"}));
        draft.call(9, "c1", "move", ":1}");
        let mut builder = ReplyBuilder::default();
        let deltas = draft.take_deltas();
        assert_eq!(deltas.len(), 5);
        deltas.into_iter().for_each(|delta| builder.push(delta));
        assert_eq!(builder.finish(), draft.into_reply());
    }
}
