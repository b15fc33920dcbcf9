//! What is not kept for ever, in memory.

use gesta_run::outcome::Status;
use gesta_run::time::Timestamp;

use super::{Kept, Memory, ready};
use crate::traits::{Conversations, Old, Pending, Retention};
use crate::types::page;

fn is_old(kept: &Kept, before: Timestamp) -> bool {
    let head = &kept.head;
    let waits = kept.holds.values().any(|hold| hold.closed.is_none());
    let held = head.held_by.as_ref().is_some_and(|holder| holder.until >= before);
    head.status == Status::Ended && head.updated_at < before && !waits && !held
}

impl Retention for Memory {
    fn old<'a>(&'a self, agent: &'a str, before: Timestamp, limit: u32) -> Pending<'a, Vec<Old>> {
        let limit = page(limit) as usize;
        ready(Ok(self.with(|rows| {
            let young = |talk: &_| {
                let mut of_talk = rows.runs.values().filter(|kept| kept.head.conversation.as_ref() == Some(talk));
                of_talk.any(|kept| !is_old(kept, before))
            };
            let mut talks: Vec<_> = rows.conversations.values().map(|talk| &talk.head).collect();
            talks.retain(|it| it.agent == agent && it.updated_at < before && !young(&it.conversation));
            talks.sort_by_key(|it| (it.updated_at, it.conversation.clone()));
            let mut runs: Vec<_> =
                rows.runs.values().filter(|kept| is_old(kept, before)).map(|kept| &kept.head).collect();
            runs.retain(|it| it.agent == agent && it.conversation.is_none());
            runs.sort_by_key(|it| (it.updated_at, it.run.clone()));
            let talks = talks.into_iter().take(limit).map(|it| Old::Conversation(it.conversation.clone()));
            talks.chain(runs.into_iter().take(limit).map(|it| Old::Run(it.run.clone()))).collect()
        })))
    }

    fn erase_old<'a>(&'a self, old: &'a Old, before: Timestamp) -> Pending<'a, bool> {
        match old {
            Old::Conversation(talk) => {
                let young = self.with(|rows| {
                    let mut of_talk = rows.runs.values().filter(|kept| kept.head.conversation.as_ref() == Some(talk));
                    of_talk.any(|kept| !is_old(kept, before))
                });
                if young { ready(Ok(false)) } else { self.erase(talk) }
            }
            Old::Run(run) => ready(Ok(self.with(|rows| {
                let kept = rows.runs.get(run);
                let old = kept.is_some_and(|it| it.head.conversation.is_none() && is_old(it, before));
                if old {
                    rows.runs.remove(run);
                    rows.closed.retain(|it| it != run);
                }
                old
            }))),
        }
    }
}
