//! Requests, keys and deeds in SQLite. They belong to the tenant alone, and lie in its bucket.

use std::sync::Arc;

use gesta_run::id::{CallId, RunId};
use gesta_run::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure::Failure;
use super::{Sqlite, statements as sql};
use crate::error::StoreError;
use crate::front::{
    ApiKey, Audit, AuditRecord, Deed, Dispatch, Dispatches, Front, Keys, RequestName, Requests, Reserved, StoredAnswer,
    Tenants, written,
};
use crate::prepared::number;
use crate::traits::{Pending, Store};
use crate::types::page;

/// A value kept as JSON.
fn read<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text)
        .map_err(|cause| StoreError::DamagedRow { what: what.to_owned(), reason: cause.to_string() }.into())
}

type AnswerRow = (String, String, Option<u16>, Option<String>, Option<Vec<u8>>);

fn answer_row(row: &Row<'_>) -> rusqlite::Result<AnswerRow> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
}

impl Requests for Sqlite {
    fn reserve<'a>(
        &'a self,
        request: &'a RequestName,
        fingerprint: &'a str,
        run: &'a RunId,
        at: Timestamp,
    ) -> Pending<'a, Reserved> {
        let (request, fingerprint, run) = (request.clone(), fingerprint.to_owned(), run.clone());
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let write = move |connection: &Connection| {
                let key = (tenant.bucket_of_all(), tenant.as_str());
                let row = params![key.0, key.1, request.owner, request.name, fingerprint, run.as_str(), at.0];
                if connection.prepare_cached(sql::REQUEST_PUT)?.execute(row)? == 1 {
                    return Ok(Reserved::New { run: run.clone() });
                }
                let mut statement = connection.prepare_cached(sql::REQUEST)?;
                let row = params![key.0, key.1, request.owner, request.name];
                let (known, run, status, content_type, body) = statement.query_row(row, answer_row)?;
                Ok(match (status, content_type, body) {
                    _ if known != fingerprint => Reserved::Other,
                    (Some(status), Some(content_type), Some(body)) => {
                        Reserved::Answered(StoredAnswer { status, content_type, body })
                    }
                    _ => Reserved::Begun { run: RunId::new(run) },
                })
            };
            self.writer()?.write(write).await
        })
    }

    fn settle<'a>(&'a self, request: &'a RequestName, answer: StoredAnswer) -> Pending<'a, ()> {
        let (request, tenant) = (request.clone(), self.tenant.clone());
        Box::pin(async move {
            let write = move |connection: &Connection| {
                let key = (tenant.bucket_of_all(), tenant.as_str());
                let (status, kind, body) = (answer.status, &answer.content_type, &answer.body);
                let row = params![key.0, key.1, request.owner, request.name, status, kind, body];
                connection.prepare_cached(sql::REQUEST_SETTLE)?.execute(row)?;
                Ok(())
            };
            self.writer()?.write(write).await
        })
    }

    fn let_go<'a>(&'a self, request: &'a RequestName) -> Pending<'a, ()> {
        let (request, tenant) = (request.clone(), self.tenant.clone());
        Box::pin(async move {
            let write = move |connection: &Connection| {
                let row = params![tenant.bucket_of_all(), tenant.as_str(), request.owner, request.name];
                connection.prepare_cached(sql::REQUEST_LET_GO)?.execute(row)?;
                Ok(())
            };
            self.writer()?.write(write).await
        })
    }

    fn forget_requests(&self, before: Timestamp) -> Pending<'_, u64> {
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let write = move |connection: &Connection| {
                let row = params![tenant.bucket_of_all(), tenant.as_str(), before.0];
                Ok(connection.prepare_cached(sql::REQUESTS_FORGET)?.execute(row)? as u64)
            };
            self.writer()?.write(write).await
        })
    }
}

fn key_row(row: &Row<'_>) -> rusqlite::Result<(String, Option<i64>)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn api_key((body, revoked_at): (String, Option<i64>)) -> Result<ApiKey, Failure> {
    let key: ApiKey = read("an API key", &body)?;
    Ok(ApiKey { revoked_at: revoked_at.map(Timestamp), ..key })
}

impl Keys for Sqlite {
    fn put_key(&self, key: ApiKey) -> Pending<'_, ()> {
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let body = written("an API key", &ApiKey { revoked_at: None, ..key.clone() })?;
            let write = move |connection: &Connection| {
                let row = params![tenant.bucket_of_all(), tenant.as_str(), key.id, body, key.created_at.0];
                connection.prepare_cached(sql::KEY_PUT)?.execute(row)?;
                Ok(())
            };
            self.writer()?.write(write).await
        })
    }

    fn keys(&self) -> Pending<'_, Vec<ApiKey>> {
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let list = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::KEYS)?;
                let rows = statement.query_map(params![tenant.bucket_of_all(), tenant.as_str()], key_row)?;
                rows.map(|row| api_key(row?)).collect()
            };
            self.readers().read(list).await
        })
    }

    fn key<'a>(&'a self, id: &'a str) -> Pending<'a, Option<ApiKey>> {
        let (id, tenant) = (id.to_owned(), self.tenant.clone());
        Box::pin(async move {
            let find = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::KEY)?;
                let row = params![tenant.bucket_of_all(), tenant.as_str(), id];
                statement.query_row(row, key_row).optional()?.map(api_key).transpose()
            };
            self.readers().read(find).await
        })
    }

    fn revoke_key<'a>(&'a self, id: &'a str, at: Timestamp) -> Pending<'a, bool> {
        let (id, tenant) = (id.to_owned(), self.tenant.clone());
        Box::pin(async move {
            let write = move |connection: &Connection| {
                let row = params![tenant.bucket_of_all(), tenant.as_str(), id, at.0];
                Ok(connection.prepare_cached(sql::KEY_REVOKE)?.execute(row)? == 1)
            };
            self.writer()?.write(write).await
        })
    }
}

fn dispatch_row(row: &Row<'_>) -> rusqlite::Result<Dispatch> {
    let (run, call): (String, Option<String>) = (row.get(2)?, row.get(3)?);
    Ok(Dispatch {
        id: row.get(0)?,
        kind: row.get(1)?,
        run: RunId::new(run),
        call: call.map(CallId::new),
        at: Timestamp(row.get(4)?),
        due: Timestamp(row.get(5)?),
        attempts: row.get(6)?,
    })
}

impl Dispatches for Sqlite {
    fn put_dispatches(&self, dispatches: Vec<Dispatch>) -> Pending<'_, ()> {
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let write = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::DISPATCH_PUT)?;
                for it in &dispatches {
                    let (bucket, call) = (tenant.bucket_of_all(), it.call.as_ref().map(CallId::as_str));
                    let row =
                        params![bucket, tenant.as_str(), it.id, it.kind, it.run.as_str(), call, it.at.0, it.due.0];
                    statement.execute(row)?;
                }
                Ok(())
            };
            self.writer()?.write(write).await
        })
    }

    fn take_dispatches(&self, now: Timestamp, until: Timestamp, limit: u32) -> Pending<'_, Vec<Dispatch>> {
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let write = move |connection: &Connection| {
                let row = params![tenant.bucket_of_all(), tenant.as_str(), now.0, until.0, page(limit)];
                let mut statement = connection.prepare_cached(sql::DISPATCHES_TAKE)?;
                let rows = statement.query_map(row, dispatch_row)?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            };
            self.writer()?.write(write).await
        })
    }

    fn settle_dispatch<'a>(&'a self, id: &'a str, due: Option<Timestamp>) -> Pending<'a, ()> {
        let (id, tenant) = (id.to_owned(), self.tenant.clone());
        Box::pin(async move {
            let write = move |connection: &Connection| {
                let row = params![tenant.bucket_of_all(), tenant.as_str(), id, due.map(|at| at.0)];
                connection.prepare_cached(sql::DISPATCH_SETTLE)?.execute(row)?;
                Ok(())
            };
            self.writer()?.write(write).await
        })
    }

    fn forget_dispatches(&self, before: Timestamp) -> Pending<'_, u64> {
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let write = move |connection: &Connection| {
                let row = params![tenant.bucket_of_all(), tenant.as_str(), before.0];
                Ok(connection.prepare_cached(sql::DISPATCHES_FORGET)?.execute(row)? as u64)
            };
            self.writer()?.write(write).await
        })
    }
}

impl Audit for Sqlite {
    fn note(&self, deeds: Vec<Deed>) -> Pending<'_, ()> {
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let write = move |connection: &Connection| {
                let key = (tenant.bucket_of_all(), tenant.as_str());
                let mut statement = connection.prepare_cached(sql::AUDIT_LAST)?;
                let last = statement.query_row(params![key.0, key.1], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)));
                let mut last = last.optional()?.map(|(seq, hash)| (u64::try_from(seq).unwrap_or_default(), hash));
                for deed in &deeds {
                    let record = AuditRecord::after(last, deed.clone());
                    let body = written("a deed", &record)?;
                    let row = params![key.0, key.1, number(record.seq), record.hash, body];
                    connection.prepare_cached(sql::AUDIT_ADD)?.execute(row)?;
                    last = Some((record.seq, record.hash));
                }
                Ok(())
            };
            self.writer()?.write(write).await
        })
    }

    fn audit(&self, after: u64, limit: u32) -> Pending<'_, Vec<AuditRecord>> {
        let tenant = self.tenant.clone();
        Box::pin(async move {
            let list = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(sql::AUDIT)?;
                let row = params![tenant.bucket_of_all(), tenant.as_str(), number(after), page(limit)];
                let rows = statement.query_map(row, |row| row.get::<_, String>(0))?;
                rows.map(|row| read("a deed", &row?)).collect()
            };
            self.readers().read(list).await
        })
    }
}

impl Tenants for Sqlite {
    fn store_of(&self, tenant: &str) -> Arc<dyn Store> {
        Arc::new(self.of_tenant(tenant))
    }

    fn front_of(&self, tenant: &str) -> Arc<dyn Front> {
        Arc::new(self.of_tenant(tenant))
    }
}
