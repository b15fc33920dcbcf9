//! Documents as a store keeps them: an image of bytes that mean nothing to it, and a version that only grows.

use gesta_run::id::ConversationId;
use gesta_run::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// The largest image of a document that a store takes, in bytes: 4 MiB.
pub const DOCUMENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What becomes of a run's working copy with one append (`spec/documents.md`, 3.12).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DocumentChange {
    /// It stays the working copy, and the conversation's document is as it was.
    #[default]
    Keep,
    /// It becomes the document of the run's conversation, with the next version, and there is no working copy any more.
    /// A run that has no working copy leaves the document as it is, whatever its version; that of a run without a
    /// conversation is gone.
    Adopt {
        /// The version that the turn began with; 0 where the conversation had no document. The whole append is refused
        /// where there is another by now.
        from: u64,
    },
    /// It is gone, and the conversation's document is as it was.
    Drop,
}

/// A conversation's document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument {
    /// How often it was changed: 1 for the first.
    pub version: u64,
    /// Its bytes as they were handed in. Nothing here looks into them or checks them.
    pub image: Vec<u8>,
    /// When it was changed last: the time of the last event of the append that did it, else by the store's clock.
    pub changed_at: Timestamp,
}

/// What is known of a document without reading its image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentHead {
    /// The conversation it belongs to.
    pub conversation: ConversationId,
    /// How often it was changed: 1 for the first.
    pub version: u64,
    /// The size of its image.
    pub bytes: u64,
    /// When it was changed last.
    pub changed_at: Timestamp,
}

/// Refuses an image that is too large.
pub(crate) fn check_size(image: Option<&[u8]>) -> Result<(), StoreError> {
    let bytes = image.map_or(0, <[u8]>::len);
    if bytes > DOCUMENT_BYTES_MAX {
        return Err(StoreError::DocumentTooLarge { bytes: bytes as u64, max: DOCUMENT_BYTES_MAX as u64 });
    }
    Ok(())
}

/// Refuses where the document has another version than its writer began with; gives the next one.
pub(crate) fn next_version(conversation: &ConversationId, from: u64, found: u64) -> Result<u64, StoreError> {
    if from != found {
        return Err(StoreError::DocumentConflict { conversation: conversation.clone(), from, found });
    }
    Ok(found.saturating_add(1))
}
