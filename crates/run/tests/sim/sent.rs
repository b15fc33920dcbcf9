//! Whether a transcript could be sent to any provider.

use std::collections::BTreeSet;

use gesta_run::{BlockKind, CallId, Message};

/// What a provider would refuse in these messages.
pub fn refused(messages: &[Message]) -> Option<String> {
    let mut seen: BTreeSet<CallId> = BTreeSet::new();
    let mut messages = messages.iter().peekable();
    while let Some(message) = messages.next() {
        match message {
            Message::Assistant { blocks } => {
                let mut calls = Vec::new();
                for block in blocks {
                    let BlockKind::Call(call) = &block.kind else { continue };
                    if call.id.as_str().is_empty() || !seen.insert(call.id.clone()) {
                        return Some(format!("call id {:?} is blank or there twice", call.id));
                    }
                    if !gesta_run::json::read_strict(&call.arguments).is_ok_and(|it| it.is_object()) {
                        return Some(format!("the arguments of {} are no object", call.id));
                    }
                    calls.push(&call.id);
                }
                let answered: Vec<&CallId> = match messages.peek() {
                    Some(Message::Tools { results }) => results.iter().map(|it| &it.call_id).collect(),
                    _ => Vec::new(),
                };
                if answered != calls {
                    return Some(format!("calls {calls:?}, results {answered:?}"));
                }
                if !calls.is_empty() {
                    messages.next();
                }
            }
            Message::Tools { .. } => return Some("results without calls".to_owned()),
            Message::User { parts, .. } if parts.is_empty() => return Some("a message of nothing".to_owned()),
            Message::User { .. } | Message::Notice { .. } => {}
        }
    }
    None
}
