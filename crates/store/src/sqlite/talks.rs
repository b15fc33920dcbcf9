//! Conversations, holds, configuration snapshots and captured exchanges in SQLite.

use gesta_run::hold::HoldKind;
use gesta_run::id::{CallId, ConversationId, RunId};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use super::failure::Failure;
use super::{Sqlite, rows, statements as sql, steps};
use crate::error::StoreError;
use crate::prepared::word;
use crate::traits::{Configs, Conversations, Holds, Pending, Wire};
use crate::types::{ConversationHead, HoldClosed, HoldFilter, OpenHold, Turn, WireRecord, page};

impl Conversations for Sqlite {
    fn history<'a>(&'a self, conversation: &'a ConversationId, turns_max: u32) -> Pending<'a, Vec<Turn>> {
        let (it, tenant) = (conversation.clone(), self.tenant.clone());
        Box::pin(async move {
            let read = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::TURNS_LAST)?;
                let key = params![tenant.bucket_of(&it), tenant.as_str(), it.as_str(), turns_max];
                let mut turns = all(statement.query(key)?, |row| rows::turn(&it, row))?;
                turns.reverse();
                Ok(turns)
            };
            self.readers().read(read).await
        })
    }

    fn conversation<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, Option<ConversationHead>> {
        let (it, tenant) = (conversation.clone(), self.tenant.clone());
        Box::pin(async move {
            let read = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::CONVERSATION)?;
                let mut rows = statement.query(params![tenant.bucket_of(&it), tenant.as_str(), it.as_str()])?;
                rows.next()?.map(rows::conversation).transpose()
            };
            self.readers().read(read).await
        })
    }

    fn conversations(&self, limit: u32) -> Pending<'_, Vec<ConversationHead>> {
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let read = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::CONVERSATIONS)?;
                all(statement.query(params![tenant.as_str(), page(limit)])?, rows::conversation)
            };
            self.readers().read(read).await
        })
    }

    fn erase<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, bool> {
        let (it, tenant) = (conversation.clone(), self.tenant.clone());
        Box::pin(async move {
            let erase = move |connection: &Connection| steps::erase(connection, &tenant, &it);
            let erased = self.writer()?.write(erase).await?;
            if erased {
                self.writer()?.forget().await;
            }
            Ok(erased)
        })
    }
}

impl Holds for Sqlite {
    fn holds<'a>(&'a self, filter: &'a HoldFilter) -> Pending<'a, Vec<OpenHold>> {
        Box::pin(async move {
            let cells = filter_cells(self.tenant.as_str(), filter)?;
            let read = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::HOLDS_OPEN)?;
                all(statement.query(params_from_iter(cells))?, rows::open_hold)
            };
            self.readers().read(read).await
        })
    }

    fn hold_closed<'a>(&'a self, run: &'a RunId, call: &'a CallId) -> Pending<'a, Option<HoldClosed>> {
        let (run, call, tenant) = (run.clone(), call.clone(), self.tenant.clone());
        Box::pin(async move {
            let read = move |connection: &Connection| {
                let Some((bucket, _)) = rows::bucket_of(connection, tenant.as_str(), &run)? else { return Ok(None) };
                let mut statement = connection.prepare_cached(sql::HOLD_CLOSED)?;
                let mut rows = statement.query(params![bucket, tenant.as_str(), run.as_str(), call.as_str()])?;
                rows.next()?.map(|row| rows::hold_closed(&run, &call, row)).transpose()
            };
            self.readers().read(read).await
        })
    }
}

impl Configs for Sqlite {
    fn put_config<'a>(&'a self, hash: &'a str, json: &'a str) -> Pending<'a, ()> {
        let (hash, json, tenant) = (hash.to_owned(), json.to_owned(), self.tenant.clone());
        Box::pin(async move {
            let put = move |connection: &Connection| {
                let key = params![tenant.bucket_of_all(), tenant.as_str(), hash, json];
                connection.prepare_cached(sql::CONFIG_PUT)?.execute(key)?;
                Ok(())
            };
            self.writer()?.write(put).await
        })
    }

    fn config<'a>(&'a self, hash: &'a str) -> Pending<'a, Option<String>> {
        let (hash, tenant) = (hash.to_owned(), self.tenant.clone());
        Box::pin(async move {
            let read = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::CONFIG)?;
                let key = params![tenant.bucket_of_all(), tenant.as_str(), hash];
                Ok(statement.query_row(key, |row| row.get(0)).optional()?)
            };
            self.readers().read(read).await
        })
    }
}

impl Wire for Sqlite {
    fn put_wire<'a>(&'a self, run: &'a RunId, record: WireRecord) -> Pending<'a, ()> {
        let (run, tenant) = (run.clone(), self.tenant.clone());
        Box::pin(async move {
            let put = move |connection: &Connection| {
                let none = || StoreError::NoSuchRun { run: run.clone() };
                let (bucket, _) = rows::bucket_of(connection, tenant.as_str(), &run)?.ok_or_else(none)?;
                connection.prepare_cached(sql::WIRE_PUT)?.execute(params![
                    bucket,
                    tenant.as_str(),
                    run.as_str(),
                    record.trip,
                    record.attempt,
                    record.at.0,
                    record.request,
                    record.response
                ])?;
                Ok(())
            };
            self.writer()?.write(put).await
        })
    }

    fn wire<'a>(&'a self, run: &'a RunId) -> Pending<'a, Vec<WireRecord>> {
        let (run, tenant) = (run.clone(), self.tenant.clone());
        Box::pin(async move {
            let read = move |connection: &Connection| {
                let Some((bucket, _)) = rows::bucket_of(connection, tenant.as_str(), &run)? else {
                    return Ok(Vec::new());
                };
                let mut statement = connection.prepare_cached(sql::WIRE)?;
                all(statement.query(params![bucket, tenant.as_str(), run.as_str()])?, rows::wire)
            };
            self.readers().read(read).await
        })
    }
}

pub(super) fn all<T>(
    mut rows: rusqlite::Rows<'_>,
    mut read: impl FnMut(&rusqlite::Row<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.push(read(row)?);
    }
    Ok(list)
}

fn filter_cells(tenant: &str, filter: &HoldFilter) -> Result<[Cell; 11], StoreError> {
    let after = filter.after.as_ref();
    Ok([
        tenant.to_owned().into(),
        filter.agent.clone().into(),
        filter.run.as_ref().map(|it| it.as_str().to_owned()).into(),
        filter.tool.clone().into(),
        filter.contact.as_ref().map(|it| it.as_str().to_owned()).into(),
        filter.kind.as_ref().map(word::<HoldKind>).transpose()?.into(),
        filter.opened_before.map(|it| it.0).into(),
        after.map(|it| it.opened_at.0).into(),
        after.map(|it| it.run.as_str().to_owned()).into(),
        after.map(|it| it.call.as_str().to_owned()).into(),
        i64::from(page(filter.limit)).into(),
    ])
}
