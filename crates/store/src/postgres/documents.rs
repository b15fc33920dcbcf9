//! Documents and working copies on Postgres.

use gesta_run::id::{ConversationId, RunId};
use gesta_run::time::Timestamp;
use sqlx::postgres::PgConnection;

use super::fault::Failure;
use super::steps::{self, Place};
use super::work::{Work, bound};
use super::{Postgres, rows, statements as sql};
use crate::document::{DocumentChange, DocumentHead, StoredDocument, check_size, next_version};
use crate::error::StoreError;
use crate::prepared::{DocumentRow, number};
use crate::traits::{Documents, Pending};
use crate::types::page;

/// Writes what an append does to documents; one that is not about them costs no statement.
pub(super) async fn write(
    it: &mut PgConnection,
    place: Place<'_>,
    row: &DocumentRow,
    (conversation, run): (Option<&ConversationId>, &RunId),
    at: Timestamp,
) -> Result<(), Failure> {
    let Place { bucket, tenant } = place;
    match (row.change, &row.working) {
        (DocumentChange::Keep, None) => return Ok(()),
        (DocumentChange::Keep, Some(image)) => {
            bound!(sql::WORKING_PUT, bucket, tenant, run.as_str(), image.as_slice()).execute(it).await?;
            return Ok(());
        }
        (DocumentChange::Adopt { from }, working) => {
            if let Some(conversation) = conversation {
                let kept = match working {
                    Some(_) => None,
                    None => bound!(sql::WORKING, bucket, tenant, run.as_str()).fetch_optional(&mut *it).await?,
                };
                let kept = kept.as_ref().map(rows::image).transpose()?;
                if let Some(image) = working.as_ref().or(kept.as_ref()) {
                    put(it, place, conversation, from, image, at).await?;
                }
            }
        }
        (DocumentChange::Drop, _) => {}
    }
    bound!(sql::WORKING_DROP, bucket, tenant, run.as_str()).execute(it).await?;
    Ok(())
}

/// Puts an image in the place of version `from`; gives the version it has now.
async fn put(
    it: &mut PgConnection,
    Place { bucket, tenant }: Place<'_>,
    conversation: &ConversationId,
    from: u64,
    image: &[u8],
    at: Timestamp,
) -> Result<u64, Failure> {
    let name = conversation.as_str();
    let found = bound!(sql::DOCUMENT_VERSION, bucket, tenant, name).fetch_optional(&mut *it).await?;
    let version = next_version(conversation, from, rows::document_version(found.as_ref())?)?;
    let to = number(version);
    let written = if from == 0 {
        bound!(sql::DOCUMENT_FIRST, bucket, tenant, name, to, at.0, image).execute(&mut *it).await?
    } else {
        bound!(sql::DOCUMENT_NEXT, bucket, tenant, name, to, at.0, image, number(from)).execute(&mut *it).await?
    };
    if written.rows_affected() == 0 {
        // The first one, put by another at this moment.
        let found = bound!(sql::DOCUMENT_VERSION, bucket, tenant, name).fetch_optional(it).await?;
        let found = rows::document_version(found.as_ref())?;
        return Err(StoreError::DocumentConflict { conversation: conversation.clone(), from, found }.into());
    }
    Ok(version)
}

/// Puts a document from outside.
struct Putting<'a> {
    place: Place<'a>,
    conversation: &'a ConversationId,
    from: u64,
    image: &'a [u8],
    told: Option<i64>,
}

impl Work for Putting<'_> {
    type Out = u64;

    async fn perform(&self, it: &mut PgConnection) -> Result<u64, Failure> {
        let locked = steps::lock(it, self.place, self.conversation, self.told).await?;
        if let Some(run) = locked.holder
            && let Some(busy) = steps::busy(it, self.place, &run, self.told).await?
        {
            return Err(StoreError::ConversationBusy { conversation: self.conversation.clone(), run, busy }.into());
        }
        let version = put(it, self.place, self.conversation, self.from, self.image, locked.now).await?;
        if locked.is_stand_in {
            let Place { bucket, tenant } = self.place;
            bound!(sql::ERASE_CONVERSATION, bucket, tenant, self.conversation.as_str()).execute(it).await?;
        }
        Ok(version)
    }
}

impl Documents for Postgres {
    fn document<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, Option<StoredDocument>> {
        Box::pin(async move {
            let Place { bucket, tenant } = self.place_of(conversation);
            let rows = self.link().rows(|| bound!(sql::DOCUMENT, bucket, tenant, conversation.as_str())).await?;
            rows.first().map(rows::document).transpose()
        })
    }

    fn working<'a>(&'a self, run: &'a RunId) -> Pending<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let Some(found) = self.found(run).await? else { return Ok(None) };
            let (bucket, tenant) = (found.bucket, self.tenant.as_str());
            let rows = self.link().rows(|| bound!(sql::WORKING, bucket, tenant, run.as_str())).await?;
            rows.first().map(rows::image).transpose()
        })
    }

    fn put_document<'a>(&'a self, conversation: &'a ConversationId, from: u64, image: Vec<u8>) -> Pending<'a, u64> {
        Box::pin(async move {
            check_size(Some(&image))?;
            let told = self.lease_times().told;
            let place = self.place_of(conversation);
            self.link().transact(&Putting { place, conversation, from, image: &image, told }).await
        })
    }

    fn documents(&self, limit: u32) -> Pending<'_, Vec<DocumentHead>> {
        Box::pin(async move {
            let tenant = self.tenant.as_str();
            let rows = self.link().rows(|| bound!(sql::DOCUMENTS, tenant, i64::from(page(limit)))).await?;
            rows.iter().map(rows::document_head).collect()
        })
    }
}
