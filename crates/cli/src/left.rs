//! What a conversation was left with: told before its next turn closes it.

use std::sync::Arc;

use gesta_run::{ConversationId, OnMessageWhileParked, Status};
use gesta_store::Store;

use crate::exit::Failure;
use crate::holds;
use crate::live::short;
use crate::stored::{self, Shown};

/// What a new turn of a conversation closes, as one line; nothing where nothing waits, or where the agent refuses
/// messages meanwhile.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn closes(store: &Arc<dyn Store>, conversation: &ConversationId) -> Result<Option<String>, Failure> {
    let head = store.conversation(conversation).await?;
    let Some(run) = head.and_then(|head| head.run) else { return Ok(None) };
    if store.head(&run).await?.status != Status::Parked {
        return Ok(None);
    }
    Ok(closed(&stored::read(store, &run).await?))
}

/// The same of the run that has the conversation.
pub(crate) fn closed(shown: &Shown) -> Option<String> {
    let refuses = shown.run.plan().spec.on_message_while_parked == OnMessageWhileParked::Refuse;
    if refuses || shown.stored.head.status != Status::Parked {
        return None;
    }
    let waits: Vec<String> =
        shown.run.holds().iter().map(|hold| format!("{} ({})", hold.name, holds::name(hold))).collect();
    Some(format!("closes what waited in run {}: {}", short(shown.stored.head.run.as_str()), waits.join(", ")))
}
