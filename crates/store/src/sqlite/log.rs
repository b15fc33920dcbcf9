//! The event log in SQLite.

use gesta_run::event::Event;
use gesta_run::id::{ContactId, RunId};
use gesta_run::outcome::Status;
use rusqlite::types::Value as Cell;
use rusqlite::{params, params_from_iter};

use super::{Sqlite, rows, statements as sql, steps};
use crate::error::StoreError;
use crate::prepared::{Open, append, batch, number, word};
use crate::traits::{Pending, RunLog};
use crate::types::{HeadChange, Lease, NewRun, RunFilter, RunHead, StoredRun, page};

impl RunLog for Sqlite {
    fn open<'a>(&'a self, new: NewRun, first: &'a [Event]) -> Pending<'a, Lease> {
        let (now, until) = self.lease_times();
        let bucket = self.tenant.bucket_of_run(new.conversation.as_ref(), new.contact.as_ref());
        Box::pin(async move {
            let first = batch(&new.run, 0, first)?;
            let owners = self.owners();
            let lease = Lease {
                run: new.run.clone(),
                conversation: new.conversation.clone(),
                bucket,
                owner: owners.id().to_owned(),
                fence: 1,
                until,
            };
            let tenant = self.tenant.as_str().to_owned();
            let NewRun { run, agent, conversation, contact, config, at } = new;
            let open = Open { tenant, bucket, run, agent, conversation, contact, config, at, first };
            self.writer()?.write(move |connection| open.perform(connection, &owners, (now, until))).await?;
            Ok(lease)
        })
    }

    fn append<'a>(&'a self, lease: &'a Lease, at: u64, events: &'a [Event], change: HeadChange) -> Pending<'a, ()> {
        let (now, until) = self.lease_times();
        Box::pin(async move {
            let append = append(self.tenant.as_str(), lease, at, events, change)?;
            self.writer()?.write(move |connection| append.perform(connection, (now, until))).await
        })
    }

    fn load<'a>(&'a self, run: &'a RunId) -> Pending<'a, StoredRun> {
        let (run, tenant) = (run.clone(), self.tenant.clone());
        Box::pin(async move {
            let read = move |connection: &rusqlite::Connection| {
                let found = rows::run_by_id(connection, tenant.as_str(), &run)?;
                let events = rows::events(connection, tenant.as_str(), &found)?;
                Ok(StoredRun { head: found.head, events })
            };
            self.readers().read(read).await
        })
    }

    fn head<'a>(&'a self, run: &'a RunId) -> Pending<'a, RunHead> {
        let (run, tenant) = (run.clone(), self.tenant.clone());
        Box::pin(async move {
            let owners = self.owners();
            let read = move |connection: &rusqlite::Connection| {
                Ok(owners.seen(rows::run_by_id(connection, tenant.as_str(), &run)?.head))
            };
            self.readers().read(read).await
        })
    }

    fn claim<'a>(&'a self, run: &'a RunId) -> Pending<'a, Lease> {
        let (now, until) = self.lease_times();
        Box::pin(async move {
            let (owners, tenant, id) = (self.owners(), self.tenant.clone(), run.clone());
            // Who is gone is found out before the transaction; the claim itself checks that it is still the same one.
            let find = move |connection: &rusqlite::Connection| {
                let found = rows::bucket_of(connection, tenant.as_str(), &id)?;
                let (bucket, owner) = found.ok_or(StoreError::NoSuchRun { run: id })?;
                Ok((bucket, owner.filter(|owner| owners.is_gone(owner))))
            };
            let (bucket, gone) = self.readers().read(find).await?;
            let (owners, tenant, id) = (self.owners(), self.tenant.clone(), run.clone());
            let owner = owners.id().to_owned();
            let claim = move |connection: &rusqlite::Connection| {
                let key = (bucket, tenant.as_str(), &id);
                steps::claim(connection, key, &owners, gone.as_deref(), (now, until))
            };
            let (fence, conversation) = self.writer()?.write(claim).await?;
            Ok(Lease { run: run.clone(), conversation, bucket, owner, fence, until })
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> Pending<'a, ()> {
        let (_, until) = self.lease_times();
        let (lease, tenant) = (lease.clone(), self.tenant.clone());
        Box::pin(async move {
            let renew = move |connection: &rusqlite::Connection| {
                let Lease { bucket, run, fence, owner, .. } = &lease;
                let key = params![bucket, tenant.as_str(), run.as_str(), number(*fence), owner, until.0];
                match connection.prepare_cached(sql::RUN_RENEW)?.execute(key)? {
                    0 => Err(StoreError::Fenced { run: run.clone() }.into()),
                    _ => Ok(()),
                }
            };
            self.writer()?.write(renew).await
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, ()> {
        let (lease, tenant) = (lease.clone(), self.tenant.clone());
        Box::pin(async move {
            let release = move |connection: &rusqlite::Connection| {
                let Lease { bucket, run, fence, owner, .. } = &lease;
                let key = params![bucket, tenant.as_str(), run.as_str(), number(*fence), owner];
                connection.prepare_cached(sql::RUN_RELEASE)?.execute(key)?;
                Ok(())
            };
            self.writer()?.write(release).await
        })
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> Pending<'a, Vec<RunHead>> {
        Box::pin(async move {
            let tenant = Cell::from(self.tenant.as_str().to_owned());
            let (statement, mut cells) = match &filter.conversation {
                Some(it) => {
                    let bucket = Cell::from(i64::from(self.tenant.bucket_of(it)));
                    (sql::RUNS_OF_CONVERSATION, vec![bucket, tenant, Cell::from(it.as_str().to_owned())])
                }
                None => (sql::RUNS, vec![tenant]),
            };
            cells.extend(filter_cells(filter)?);
            let owners = self.owners();
            let read = move |connection: &rusqlite::Connection| {
                let mut statement = connection.prepare_cached(statement)?;
                let mut rows = statement.query(params_from_iter(cells))?;
                let mut heads = Vec::new();
                while let Some(row) = rows.next()? {
                    heads.push(owners.seen(rows::run(row)?.head));
                }
                Ok(heads)
            };
            self.readers().read(read).await
        })
    }
}

fn filter_cells(filter: &RunFilter) -> Result<[Cell; 9], StoreError> {
    let after = filter.after.as_ref();
    Ok([
        filter.agent.clone().into(),
        filter.status.as_ref().map(word::<Status>).transpose()?.into(),
        filter.closed.into(),
        filter.contact.as_ref().map(|it| ContactId::as_str(it).to_owned()).into(),
        filter.since.map(|it| it.0).into(),
        after.map(|it| it.started_at.0).into(),
        after.map(|it| it.run.as_str().to_owned()).into(),
        i64::from(page(filter.limit)).into(),
        filter.outcome.map(|it| it.as_str().to_owned()).into(),
    ])
}
