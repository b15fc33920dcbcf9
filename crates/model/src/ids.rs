//! Call ids as they go out: legal for the provider, unique in the request, the same for a call and its result.

use std::borrow::Cow;
use std::collections::BTreeSet;

use gesta_run::message::Block;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::calls;

/// Which call ids a provider takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdRule {
    /// 1 to 40 bytes without control characters: what OpenAI and most compatible servers take.
    #[default]
    Any,
    /// 1 to 40 letters, digits, `_` or `-`: what Anthropic takes.
    Word,
    /// Exactly nine letters or digits, as Mistral wants them.
    Nine,
}

impl IdRule {
    fn allows(self, id: &str) -> bool {
        let bytes = id.as_bytes();
        match self {
            Self::Any => !id.is_empty() && id.len() <= 40 && !id.contains(char::is_control),
            Self::Word => {
                let legal = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'-';
                !bytes.is_empty() && bytes.len() <= 40 && bytes.iter().all(legal)
            }
            Self::Nine => bytes.len() == 9 && bytes.iter().all(u8::is_ascii_alphanumeric),
        }
    }

    /// An id made from another. The same every time, so that a prefix which the provider has cached stays the same.
    fn make(self, id: &str, salt: u64) -> String {
        const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        // FNV-1a: no attacker gains by a collision, which only leads to another salt.
        let seed = 0xcbf2_9ce4_8422_2325_u64 ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut hash = id.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut out = match self {
            Self::Any | Self::Word => "call_".to_owned(),
            Self::Nine => String::new(),
        };
        for _ in 0..9 {
            out.push(char::from(LETTERS[(hash % 62) as usize]));
            hash /= 62;
        }
        out
    }
}

/// Gives each call of a request its id, turn by turn.
#[derive(Debug)]
pub(crate) struct Ids<'a> {
    rule: IdRule,
    /// Sorted: for the few that a run has, comparing costs less than hashing.
    used: BTreeSet<Cow<'a, str>>,
    /// The ids of the last turn's calls, in order.
    turn: Vec<Cow<'a, str>>,
}

impl<'a> Ids<'a> {
    pub(crate) fn new(rule: IdRule) -> Self {
        Self { rule, used: BTreeSet::new(), turn: Vec::new() }
    }

    /// Takes the calls of the next answer.
    pub(crate) fn begin(&mut self, blocks: &'a [Block]) {
        self.turn.clear();
        for (call, _) in calls(blocks) {
            let id = self.unique(call.id.as_str());
            self.used.insert(id.clone());
            self.turn.push(id);
        }
    }

    fn unique(&self, id: &'a str) -> Cow<'a, str> {
        if self.rule.allows(id) && !self.used.contains(id) {
            return Cow::Borrowed(id);
        }
        let mut salt = 0;
        loop {
            let made = Cow::Owned(self.rule.make(id, salt));
            if !self.used.contains(&made) {
                return made;
            }
            salt += 1;
        }
    }

    /// The id of the n-th call of the last answer, and of its result.
    pub(crate) fn nth(&self, n: usize) -> &str {
        self.turn.get(n).map_or("", |id| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_legal_and_unique_and_the_same_every_time() {
        let long = "x".repeat(60);
        let turns: Vec<Vec<Block>> = [vec!["call_1", "call_1", ""], vec!["call_1", "a.b|c"], vec![long.as_str(), "é"]]
            .iter()
            .map(|ids| ids.iter().map(|id| Block::call(id, "t", "{}")).collect())
            .collect();
        for rule in [IdRule::Any, IdRule::Word, IdRule::Nine] {
            let all = || {
                let mut ids = Ids::new(rule);
                let mut out: Vec<String> = Vec::new();
                for blocks in &turns {
                    ids.begin(blocks);
                    out.extend((0..blocks.len()).map(|n| ids.nth(n).to_owned()));
                }
                out
            };
            let first = all();
            assert!(first.iter().all(|id| rule.allows(id)), "{first:?}");
            assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), first.len());
            assert_eq!(first, all());
        }
    }
}
