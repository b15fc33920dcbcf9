//! Requests, keys, dispatches and deeds on Postgres. They belong to the tenant alone, and lie in its bucket.

use std::sync::Arc;

use gesta_run::id::{CallId, RunId};
use gesta_run::time::Timestamp;
use sqlx::postgres::PgConnection;

use super::fault::Failure;
use super::steps::Place;
use super::work::{Work, bound};
use super::{Postgres, rows, statements as sql};
use crate::error::StoreError;
use crate::front::{
    ApiKey, Audit, AuditRecord, Deed, Dispatch, Dispatches, Front, Keys, RequestName, Requests, Reserved, StoredAnswer,
    Tenants, written,
};
use crate::prepared::number;
use crate::traits::{Pending, Store};
use crate::types::page;

/// How often a place that another is taking is looked for anew.
const TRIES_MAX: u32 = 8;

impl Postgres {
    /// Where what belongs to nobody in particular lies.
    fn everyones(&self) -> (i16, &str) {
        (self.tenant.bucket_of_all(), self.tenant.as_str())
    }
}

impl Requests for Postgres {
    fn reserve<'a>(
        &'a self,
        request: &'a RequestName,
        fingerprint: &'a str,
        run: &'a RunId,
        at: Timestamp,
    ) -> Pending<'a, Reserved> {
        Box::pin(async move {
            let ((bucket, tenant), RequestName { owner, name }) = (self.everyones(), request);
            for _ in 0..TRIES_MAX {
                let put = || bound!(sql::REQUEST_PUT, bucket, tenant, owner, name, fingerprint, run.as_str(), at.0);
                if self.link().execute(put, false).await? == 1 {
                    return Ok(Reserved::New { run: run.clone() });
                }
                let found = self.link().rows(|| bound!(sql::REQUEST, bucket, tenant, owner, name)).await?;
                // One that was let go of between the two is asked for again.
                let Some(row) = found.first() else { continue };
                let (known, run, answer) = rows::request(row)?;
                return Ok(match answer {
                    _ if known != fingerprint => Reserved::Other,
                    Some(answer) => Reserved::Answered(answer),
                    None => Reserved::Begun { run },
                });
            }
            let reason = "it is let go of again and again".to_owned();
            Err(StoreError::DamagedRow { what: "a request that came before".to_owned(), reason })
        })
    }

    fn settle<'a>(&'a self, request: &'a RequestName, answer: StoredAnswer) -> Pending<'a, ()> {
        Box::pin(async move {
            let ((bucket, tenant), RequestName { owner, name }) = (self.everyones(), request);
            let StoredAnswer { status, content_type, body } = &answer;
            let settle = || {
                let status = i64::from(*status);
                bound!(sql::REQUEST_SETTLE, bucket, tenant, owner, name, status, content_type, body.as_slice())
            };
            self.link().execute(settle, true).await.map(drop)
        })
    }

    fn let_go<'a>(&'a self, request: &'a RequestName) -> Pending<'a, ()> {
        Box::pin(async move {
            let ((bucket, tenant), RequestName { owner, name }) = (self.everyones(), request);
            let let_go = || bound!(sql::REQUEST_LET_GO, bucket, tenant, owner, name);
            // Done twice it could be another's, who came in between.
            self.link().execute(let_go, false).await.map(drop)
        })
    }

    fn forget_requests(&self, before: Timestamp) -> Pending<'_, u64> {
        Box::pin(async move {
            let (bucket, tenant) = self.everyones();
            self.link().execute(|| bound!(sql::REQUESTS_FORGET, bucket, tenant, before.0), true).await
        })
    }
}

impl Keys for Postgres {
    fn put_key(&self, key: ApiKey) -> Pending<'_, ()> {
        Box::pin(async move {
            let (bucket, tenant) = self.everyones();
            let body = written("an API key", &ApiKey { revoked_at: None, ..key.clone() })?;
            let put = || bound!(sql::KEY_PUT, bucket, tenant, key.id.as_str(), body.as_str(), key.created_at.0);
            self.link().execute(put, true).await.map(drop)
        })
    }

    fn keys(&self) -> Pending<'_, Vec<ApiKey>> {
        Box::pin(async move {
            let (bucket, tenant) = self.everyones();
            let rows = self.link().rows(|| bound!(sql::KEYS, bucket, tenant)).await?;
            rows.iter().map(rows::api_key).collect()
        })
    }

    fn key<'a>(&'a self, id: &'a str) -> Pending<'a, Option<ApiKey>> {
        Box::pin(async move {
            let (bucket, tenant) = self.everyones();
            let rows = self.link().rows(|| bound!(sql::KEY, bucket, tenant, id)).await?;
            rows.first().map(rows::api_key).transpose()
        })
    }

    fn revoke_key<'a>(&'a self, id: &'a str, at: Timestamp) -> Pending<'a, bool> {
        Box::pin(async move {
            let (bucket, tenant) = self.everyones();
            // Whoever revokes it must know whether it was they: done again it would say no.
            Ok(self.link().execute(|| bound!(sql::KEY_REVOKE, bucket, tenant, id, at.0), false).await? == 1)
        })
    }
}

/// Keeps dispatches, all or none.
struct Putting<'a> {
    place: Place<'a>,
    dispatches: &'a [Dispatch],
}

impl Work for Putting<'_> {
    type Out = ();

    async fn perform(&self, it: &mut PgConnection) -> Result<(), Failure> {
        let Place { bucket, tenant } = self.place;
        for one in self.dispatches {
            let (id, kind, run) = (one.id.as_str(), one.kind.as_str(), one.run.as_str());
            let call = one.call.as_ref().map(CallId::as_str);
            let put = bound!(sql::DISPATCH_PUT, bucket, tenant, id, kind, run, call, one.at.0, one.due.0);
            put.execute(&mut *it).await?;
        }
        Ok(())
    }
}

impl Dispatches for Postgres {
    fn put_dispatches(&self, mut dispatches: Vec<Dispatch>) -> Pending<'_, ()> {
        Box::pin(async move {
            // Two who put the same wait for each other in one order.
            dispatches.sort_by(|a, b| a.id.cmp(&b.id));
            let (bucket, tenant) = self.everyones();
            self.link().transact(&Putting { place: Place { bucket, tenant }, dispatches: &dispatches }).await
        })
    }

    fn take_dispatches(&self, now: Timestamp, until: Timestamp, limit: u32) -> Pending<'_, Vec<Dispatch>> {
        Box::pin(async move {
            let (bucket, tenant) = self.everyones();
            let limit = i64::from(page(limit));
            // What was taken by a statement whose answer was lost is due again like what a dead process took.
            let rows = self.link().rows(|| bound!(sql::DISPATCHES_TAKE, bucket, tenant, now.0, until.0, limit)).await?;
            rows.iter().map(rows::dispatch).collect()
        })
    }

    fn settle_dispatch<'a>(&'a self, id: &'a str, due: Option<Timestamp>) -> Pending<'a, ()> {
        Box::pin(async move {
            let (bucket, tenant) = self.everyones();
            let settle = || bound!(sql::DISPATCH_SETTLE, bucket, tenant, id, due.map(|at| at.0));
            self.link().execute(settle, true).await.map(drop)
        })
    }

    fn forget_dispatches(&self, before: Timestamp) -> Pending<'_, u64> {
        Box::pin(async move {
            let (bucket, tenant) = self.everyones();
            self.link().execute(|| bound!(sql::DISPATCHES_FORGET, bucket, tenant, before.0), true).await
        })
    }
}

/// Adds deeds, all or none.
struct Noting<'a> {
    place: Place<'a>,
    deeds: &'a [Deed],
}

impl Work for Noting<'_> {
    type Out = ();

    async fn perform(&self, it: &mut PgConnection) -> Result<(), Failure> {
        for deed in self.deeds {
            self.add(it, deed).await?;
        }
        Ok(())
    }
}

impl Noting<'_> {
    /// Adds one behind the last. Whoever takes the same place is waited for, and theirs is the last then.
    async fn add(&self, it: &mut PgConnection, deed: &Deed) -> Result<(), Failure> {
        let Place { bucket, tenant } = self.place;
        loop {
            let last = bound!(sql::AUDIT_LAST, bucket, tenant).fetch_optional(&mut *it).await?;
            let record = AuditRecord::after(last.as_ref().map(rows::audit_last).transpose()?, deed.clone());
            let body = written("a deed", &record)?;
            let add = bound!(sql::AUDIT_ADD, bucket, tenant, number(record.seq), record.hash, body);
            if add.execute(&mut *it).await?.rows_affected() == 1 {
                return Ok(());
            }
        }
    }
}

impl Audit for Postgres {
    fn note(&self, deeds: Vec<Deed>) -> Pending<'_, ()> {
        Box::pin(async move {
            let (bucket, tenant) = self.everyones();
            self.link().transact(&Noting { place: Place { bucket, tenant }, deeds: &deeds }).await
        })
    }

    fn audit(&self, after: u64, limit: u32) -> Pending<'_, Vec<AuditRecord>> {
        Box::pin(async move {
            let (bucket, tenant) = self.everyones();
            let (after, limit) = (number(after), i64::from(page(limit)));
            let rows = self.link().rows(|| bound!(sql::AUDIT, bucket, tenant, after, limit)).await?;
            rows.iter().map(rows::deed).collect()
        })
    }
}

impl Tenants for Postgres {
    fn store_of(&self, tenant: &str) -> Arc<dyn Store> {
        Arc::new(self.of_tenant(tenant))
    }

    fn front_of(&self, tenant: &str) -> Arc<dyn Front> {
        Arc::new(self.of_tenant(tenant))
    }
}
