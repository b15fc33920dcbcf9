//! What a conversation was left with: told before its next turn closes it.

use std::sync::Arc;

use gesta_run::{ConversationId, OnMessageWhileParked, Status};
use gesta_store::Store;

use crate::exit::Failure;
use crate::holds;
use crate::live::short;
use crate::stored;

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
    let shown = stored::read(store, &run).await?;
    if shown.run.plan().spec.on_message_while_parked == OnMessageWhileParked::Refuse {
        return Ok(None);
    }
    let waits: Vec<String> =
        shown.run.holds().iter().map(|hold| format!("{} ({})", hold.name, holds::name(hold))).collect();
    Ok(Some(format!("closes what waited in run {}: {}", short(run.as_str()), waits.join(", "))))
}
