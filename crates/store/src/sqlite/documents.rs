//! Documents and working copies in SQLite.

use gesta_run::id::{ConversationId, RunId};
use gesta_run::time::Timestamp;
use rusqlite::{Connection, params};

use super::failure::Failure;
use super::talks::all;
use super::{Sqlite, rows, statements as sql, steps};
use crate::document::{DocumentChange, DocumentHead, StoredDocument, check_size, next_version};
use crate::prepared::{DocumentRow, number};
use crate::traits::{Documents, Pending};
use crate::types::{Lease, page};

impl DocumentRow {
    /// Writes it; an append that is not about documents costs no statement.
    pub(super) fn write(
        &self,
        connection: &Connection,
        tenant: &str,
        lease: &Lease,
        at: Timestamp,
    ) -> Result<(), Failure> {
        let (bucket, run) = (lease.bucket, &lease.run);
        match (self.change, &self.working) {
            (DocumentChange::Keep, None) => return Ok(()),
            (DocumentChange::Keep, Some(image)) => {
                connection.prepare_cached(sql::WORKING_PUT)?.execute(params![bucket, tenant, run.as_str(), image])?;
                return Ok(());
            }
            (DocumentChange::Adopt { from }, working) => {
                if let Some(conversation) = &lease.conversation {
                    let key = (bucket, tenant, conversation);
                    match working {
                        Some(image) => drop(put(connection, key, from, image, at)?),
                        None => adopt_kept(connection, key, run, from, at)?,
                    }
                }
            }
            (DocumentChange::Drop, _) => {}
        }
        connection.prepare_cached(sql::WORKING_DROP)?.execute(params![bucket, tenant, run.as_str()])?;
        Ok(())
    }
}

fn adopt_kept(
    connection: &Connection,
    (bucket, tenant, conversation): (i16, &str, &ConversationId),
    run: &RunId,
    from: u64,
    at: Timestamp,
) -> Result<(), Failure> {
    let Some(image) = rows::working(connection, bucket, tenant, run)? else { return Ok(()) };
    put(connection, (bucket, tenant, conversation), from, &image, at).map(drop)
}

/// Puts an image in the place of version `from`; gives the version it has now.
fn put(
    connection: &Connection,
    (bucket, tenant, conversation): (i16, &str, &ConversationId),
    from: u64,
    image: &[u8],
    at: Timestamp,
) -> Result<u64, Failure> {
    let found = rows::document_version(connection, bucket, tenant, conversation)?;
    let version = next_version(conversation, from, found)?;
    let row = params![bucket, tenant, conversation.as_str(), number(version), at.0, image];
    connection.prepare_cached(sql::DOCUMENT_PUT)?.execute(row)?;
    Ok(version)
}

impl Documents for Sqlite {
    fn document<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, Option<StoredDocument>> {
        let (it, tenant) = (conversation.clone(), self.tenant.clone());
        Box::pin(async move {
            let read = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::DOCUMENT)?;
                let mut rows = statement.query(params![tenant.bucket_of(&it), tenant.as_str(), it.as_str()])?;
                rows.next()?.map(rows::document).transpose()
            };
            self.readers().read(read).await
        })
    }

    fn working<'a>(&'a self, run: &'a RunId) -> Pending<'a, Option<Vec<u8>>> {
        let (run, tenant) = (run.clone(), self.tenant.clone());
        Box::pin(async move {
            let read = move |connection: &Connection| {
                let Some((bucket, _)) = rows::bucket_of(connection, tenant.as_str(), &run)? else { return Ok(None) };
                rows::working(connection, bucket, tenant.as_str(), &run)
            };
            self.readers().read(read).await
        })
    }

    fn put_document<'a>(&'a self, conversation: &'a ConversationId, from: u64, image: Vec<u8>) -> Pending<'a, u64> {
        let (now, _) = self.lease_times();
        let (it, tenant) = (conversation.clone(), self.tenant.clone());
        Box::pin(async move {
            check_size(Some(&image))?;
            let owners = self.owners();
            let write = move |connection: &Connection| {
                let key = (tenant.bucket_of(&it), tenant.as_str(), &it);
                steps::check_free(connection, key, &owners, now)?;
                put(connection, key, from, &image, now)
            };
            self.writer()?.write(write).await
        })
    }

    fn documents(&self, limit: u32) -> Pending<'_, Vec<DocumentHead>> {
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let read = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::DOCUMENTS)?;
                all(statement.query(params![tenant.as_str(), page(limit)])?, rows::document_head)
            };
            self.readers().read(read).await
        })
    }
}
