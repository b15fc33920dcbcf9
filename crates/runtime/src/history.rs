//! What earlier turns of a conversation the model is shown, and how it is shortened (`spec/contract.md`, 2.4).

use gesta_run::Message;
use gesta_store::Turn;

/// Limits of the history, in whole turns: the oldest go first, and a call is never parted from its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Turns. 50 by default.
    pub turns_max: u32,
    /// Tokens, about. By default 60 % of a window of 128,000.
    pub tokens_max: u64,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { turns_max: 50, tokens_max: 76_800 }
    }
}

/// The turns that are sent, flattened once.
#[derive(Debug, Default)]
pub(crate) struct History {
    turns: Vec<Turn>,
    messages: Vec<Message>,
}

impl History {
    pub(crate) fn new(mut turns: Vec<Turn>, limits: HistoryLimits) -> Self {
        let mut tokens: u64 = turns.iter().map(|turn| turn.tokens).sum();
        let mut gone = turns.len().saturating_sub(limits.turns_max as usize);
        tokens -= turns[..gone].iter().map(|turn| turn.tokens).sum::<u64>();
        while tokens > limits.tokens_max && gone < turns.len() {
            tokens -= turns[gone].tokens;
            gone += 1;
        }
        turns.drain(..gone);
        let mut history = Self { turns, messages: Vec::new() };
        history.flatten();
        history
    }

    fn flatten(&mut self) {
        let messages = self.turns.iter().flat_map(|turn| &turn.messages);
        self.messages = messages.filter(|it| !matches!(it, Message::Notice { .. })).cloned().collect();
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Leaves out the older half of the turns. Says whether there was anything to leave out.
    pub(crate) fn shorten(&mut self) -> bool {
        if self.turns.is_empty() {
            return false;
        }
        self.turns.drain(..self.turns.len().div_ceil(2));
        self.flatten();
        true
    }
}

/// What a run adds to the history: everything but the notices of its time.
pub(crate) fn turn_of(transcript: &[Message]) -> Turn {
    let messages: Vec<Message> =
        transcript.iter().filter(|message| !matches!(message, Message::Notice { .. })).cloned().collect();
    let bytes: usize = messages.iter().map(|message| serde_json::to_string(message).map_or(0, |text| text.len())).sum();
    Turn { tokens: (bytes / 4) as u64, messages }
}

#[cfg(test)]
mod tests {
    use gesta_run::{Message, Part};

    use super::*;

    fn turn(text: &str, tokens: u64) -> Turn {
        Turn { messages: vec![Message::User { parts: vec![Part::text(text)], prompted: false }], tokens }
    }

    #[test]
    fn the_oldest_whole_turns_go_first() {
        let turns = || vec![turn("a", 10), turn("b", 10), turn("c", 10)];
        let kept = |limits| History::new(turns(), limits).messages().len();
        assert_eq!(kept(HistoryLimits { turns_max: 2, tokens_max: 100 }), 2);
        assert_eq!(kept(HistoryLimits { turns_max: 9, tokens_max: 10 }), 1);
        assert_eq!(kept(HistoryLimits { turns_max: 9, tokens_max: 5 }), 0);
        let mut history = History::new(turns(), HistoryLimits::default());
        assert!(history.shorten() && history.messages().len() == 1 && history.shorten() && !history.shorten());
    }
}
