//! Who is next: conversations take turns, and each conversation's own requests stay in order.

use std::collections::{HashMap, VecDeque};

/// Waiting requests, fair between conversations.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// Conversations with something waiting, the next one first; each stands here once.
    turns: VecDeque<String>,
    waiting: HashMap<String, VecDeque<T>>,
    len: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { turns: VecDeque::new(), waiting: HashMap::new(), len: 0 }
    }
}

impl<T> Queue<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.values().flatten()
    }

    pub(crate) fn push(&mut self, conversation: &str, request: T) {
        self.len += 1;
        match self.waiting.get_mut(conversation) {
            Some(requests) => requests.push_back(request),
            None => {
                self.turns.push_back(conversation.to_owned());
                self.waiting.insert(conversation.to_owned(), VecDeque::from([request]));
            }
        }
    }

    /// The next request; its conversation goes to the end of the line.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let conversation = self.turns.pop_front()?;
        let requests = self.waiting.get_mut(&conversation)?;
        let request = requests.pop_front();
        if requests.is_empty() {
            self.waiting.remove(&conversation);
        } else {
            self.turns.push_back(conversation);
        }
        self.len -= usize::from(request.is_some());
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_take_turns_however_much_one_of_them_asks() {
        let mut queue = Queue::default();
        for n in 0..3 {
            queue.push("greedy", format!("greedy {n}"));
        }
        queue.push("a", "a 0".to_owned());
        queue.push("b", "b 0".to_owned());
        queue.push("a", "a 1".to_owned());
        assert_eq!(queue.len(), 6);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, ["greedy 0", "a 0", "b 0", "greedy 1", "a 1", "greedy 2"]);
        assert_eq!(queue.len(), 0);
    }
}
