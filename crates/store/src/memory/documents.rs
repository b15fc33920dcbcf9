//! Documents and working copies in memory.

use gesta_run::id::{ConversationId, RunId};
use gesta_run::time::Timestamp;

use super::{Memory, Rows, ready};
use crate::document::{DocumentChange, DocumentHead, StoredDocument, check_size, next_version};
use crate::error::StoreError;
use crate::traits::{Documents, Pending};
use crate::types::{HeadChange, Lease, page};

impl Rows {
    fn document_version(&self, conversation: &ConversationId) -> u64 {
        self.documents.get(conversation).map_or(0, |document| document.version)
    }

    /// Whether the working copy may become the conversation's document, where this append wants that.
    pub(super) fn check_document(&self, lease: &Lease, change: &HeadChange) -> Result<(), StoreError> {
        let DocumentChange::Adopt { from } = change.document else { return Ok(()) };
        let kept = self.runs.get(&lease.run).is_some_and(|kept| kept.working.is_some());
        match &lease.conversation {
            Some(conversation) if kept || change.working.is_some() => {
                next_version(conversation, from, self.document_version(conversation)).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Changes what [`Self::check_document`] has let pass.
    pub(super) fn change_document(
        &mut self,
        lease: &Lease,
        working: Option<Vec<u8>>,
        change: DocumentChange,
        changed_at: Timestamp,
    ) {
        let Some(kept) = self.runs.get_mut(&lease.run) else { return };
        let working = working.or(kept.working.take());
        match (change, working, &lease.conversation) {
            (DocumentChange::Keep, working, _) => kept.working = working,
            (DocumentChange::Adopt { .. }, Some(image), Some(conversation)) => {
                self.put_document(conversation, image, changed_at);
            }
            (DocumentChange::Adopt { .. } | DocumentChange::Drop, ..) => {}
        }
    }

    fn put_document(&mut self, conversation: &ConversationId, image: Vec<u8>, changed_at: Timestamp) {
        let version = self.document_version(conversation).saturating_add(1);
        self.documents.insert(conversation.clone(), StoredDocument { version, image, changed_at });
    }
}

impl Documents for Memory {
    fn document<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, Option<StoredDocument>> {
        ready(Ok(self.with(|rows| rows.documents.get(conversation).cloned())))
    }

    fn working<'a>(&'a self, run: &'a RunId) -> Pending<'a, Option<Vec<u8>>> {
        ready(Ok(self.with(|rows| rows.runs.get(run).and_then(|kept| kept.working.clone()))))
    }

    fn put_document<'a>(&'a self, conversation: &'a ConversationId, from: u64, image: Vec<u8>) -> Pending<'a, u64> {
        let (now, _) = self.lease_times();
        ready(self.with(|rows| {
            check_size(Some(&image))?;
            rows.check_free(Some(conversation), now)?;
            let version = next_version(conversation, from, rows.document_version(conversation))?;
            rows.put_document(conversation, image, now);
            Ok(version)
        }))
    }

    fn documents(&self, limit: u32) -> Pending<'_, Vec<DocumentHead>> {
        let mut heads: Vec<DocumentHead> = self.with(|rows| {
            let head = |(conversation, document): (&ConversationId, &StoredDocument)| DocumentHead {
                conversation: conversation.clone(),
                version: document.version,
                bytes: document.image.len() as u64,
                changed_at: document.changed_at,
            };
            rows.documents.iter().map(head).collect()
        });
        heads.sort_by(|a, b| b.changed_at.cmp(&a.changed_at).then_with(|| a.conversation.cmp(&b.conversation)));
        heads.truncate(page(limit) as usize);
        ready(Ok(heads))
    }
}
