//! Finds out which call a piece of a stream belongs to, also where a server counts wrongly or not at all.

use serde::Deserialize;

use crate::draft::Draft;
use crate::loose::{Count, Text};

/// Numbers of call blocks begin here, behind everything else of an answer.
const FIRST: u32 = 1 << 20;

/// One entry of `tool_calls`, whole or in part.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CallPiece<'a> {
    #[serde(default)]
    pub(super) index: Count,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) function: Option<FunctionPiece<'a>>,
    /// A call of a kind that we never offer; its input is no JSON.
    #[serde(borrow, default)]
    pub(super) custom: Option<FunctionPiece<'a>>,
    /// What Gemini's compatible server wants back.
    #[serde(default)]
    pub(super) extra_content: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default, alias = "input")]
    pub(super) arguments: Text<'a>,
}

/// One call that has begun.
#[derive(Debug)]
struct Slot {
    block: u32,
    index: Option<u64>,
    id: String,
    named: bool,
}

/// The calls of one answer, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
    /// The one that the last piece belonged to.
    last: usize,
}

impl Calls {
    pub(super) fn push(&mut self, piece: &CallPiece<'_>, draft: &mut Draft, origin: &str) {
        let nothing = FunctionPiece::default();
        let function = piece.function.as_ref().or(piece.custom.as_ref()).unwrap_or(&nothing);
        let (id, name) = (piece.id.as_str(), function.name.as_str());
        let at = match self.find(piece.index.0, id, name, draft) {
            Some(at) => at,
            None => self.begin(piece.index.0),
        };
        self.last = at;
        let slot = &mut self.slots[at];
        slot.index = slot.index.or(piece.index.0);
        slot.named |= !name.is_empty();
        if slot.id.is_empty() {
            slot.id.push_str(id);
        }
        draft.call(slot.block, id, name, function.arguments.as_str());
        if let Some(extra) = &piece.extra_content {
            draft.raw(slot.block, origin, serde_json::json!({"extra_content": extra}));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The call that a piece goes on with; none where it begins another.
    fn find(&self, index: Option<u64>, id: &str, name: &str, draft: &Draft) -> Option<usize> {
        let by_id = |slot: &Slot| !id.is_empty() && slot.id == id;
        let Some(index) = index else {
            if !id.is_empty() {
                return self.slots.iter().position(by_id);
            }
            let last = self.slots.get(self.last)?;
            let begins = !name.is_empty() && last.named && is_whole(draft.arguments(last.block).unwrap_or_default());
            return (!begins).then_some(self.last);
        };
        // The newest call of this number: a server that gives every call the number 0 goes on with its last.
        if let Some(at) = self.slots.iter().rposition(|slot| slot.index == Some(index)) {
            let slot = &self.slots[at];
            let other = !id.is_empty() && !slot.id.is_empty() && slot.id != id && !name.is_empty();
            return (!other).then_some(at);
        }
        // A number that comes late, for a call that began without one.
        let unnumbered = |slot: &Slot| slot.index.is_none();
        if !id.is_empty() {
            return self.slots.iter().position(|slot| unnumbered(slot) && by_id(slot));
        }
        if !name.is_empty() {
            return None;
        }
        let nth = usize::try_from(index).ok().filter(|at| self.slots.get(*at).is_some_and(unnumbered));
        nth.or_else(|| self.slots.iter().position(unnumbered))
    }

    fn begin(&mut self, index: Option<u64>) -> usize {
        let wanted = index.and_then(|index| u32::try_from(index).ok()).and_then(|index| FIRST.checked_add(index));
        let free = |block: &u32| !self.slots.iter().any(|slot| slot.block == *block);
        let after = self.slots.iter().map(|slot| slot.block.saturating_add(1)).max().unwrap_or(FIRST);
        let block = wanted.filter(free).unwrap_or(after);
        self.slots.push(Slot { block, index, id: String::new(), named: false });
        self.slots.len() - 1
    }
}

/// Whether arguments are complete, so that a name which follows begins another call.
fn is_whole(arguments: &str) -> bool {
    arguments.is_empty() || serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}
