//! Conversations, holds, snapshots and captured exchanges on Postgres.

use gesta_run::hold::HoldKind;
use gesta_run::id::{CallId, ContactId, ConversationId, RunId};

use super::steps::{Erase, Place};
use super::work::{Bound, bound};
use super::{Postgres, rows, statements as sql};
use crate::error::StoreError;
use crate::prepared::word;
use crate::traits::{Configs, Conversations, Holds, Pending, Wire};
use crate::types::{ConversationHead, HoldClosed, HoldFilter, OpenHold, Turn, WireRecord, page};

impl Conversations for Postgres {
    fn history<'a>(&'a self, conversation: &'a ConversationId, turns_max: u32) -> Pending<'a, Vec<Turn>> {
        Box::pin(async move {
            let (Place { bucket, tenant }, name) = (self.place_of(conversation), conversation.as_str());
            let last = || bound!(sql::TURNS_LAST, bucket, tenant, name, i64::from(turns_max));
            let rows = self.link().rows(last).await?;
            rows.iter().rev().map(|row| rows::turn(conversation, row)).collect()
        })
    }

    fn conversation<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, Option<ConversationHead>> {
        Box::pin(async move {
            let Place { bucket, tenant } = self.place_of(conversation);
            let rows = self.link().rows(|| bound!(sql::CONVERSATION, bucket, tenant, conversation.as_str())).await?;
            rows.first().map(rows::conversation).transpose()
        })
    }

    fn conversations(&self, limit: u32) -> Pending<'_, Vec<ConversationHead>> {
        Box::pin(async move {
            let tenant = self.tenant.as_str();
            let rows = self.link().rows(|| bound!(sql::CONVERSATIONS, tenant, i64::from(page(limit)))).await?;
            rows.iter().map(rows::conversation).collect()
        })
    }

    fn erase<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, bool> {
        Box::pin(async move {
            let place = self.place_of(conversation);
            let everyones = self.tenant.bucket_of_all();
            self.link().transact(&Erase { place, conversation, everyones, before: None }).await
        })
    }
}

impl Holds for Postgres {
    fn holds<'a>(&'a self, filter: &'a HoldFilter) -> Pending<'a, Vec<OpenHold>> {
        Box::pin(async move {
            let kind = filter.kind.as_ref().map(word::<HoldKind>).transpose()?;
            let rows = self.link().rows(|| holds_open(self.tenant.as_str(), filter, &kind)).await?;
            rows.iter().map(rows::open_hold).collect()
        })
    }

    fn hold_closed<'a>(&'a self, run: &'a RunId, call: &'a CallId) -> Pending<'a, Option<HoldClosed>> {
        Box::pin(async move {
            let Some(found) = self.found(run).await? else { return Ok(None) };
            let (bucket, tenant) = (found.bucket, self.tenant.as_str());
            let closed = || bound!(sql::HOLD_CLOSED, bucket, tenant, run.as_str(), call.as_str());
            let rows = self.link().rows(closed).await?;
            rows.first().map(|row| rows::hold_closed(run, call, row)).transpose()
        })
    }
}

fn holds_open<'q>(tenant: &'q str, filter: &'q HoldFilter, kind: &'q Option<String>) -> Bound<'q> {
    let after = filter.after.as_ref();
    bound!(
        sql::HOLDS_OPEN,
        tenant,
        filter.agent.as_deref(),
        filter.run.as_ref().map(RunId::as_str),
        filter.tool.as_deref(),
        filter.contact.as_ref().map(ContactId::as_str),
        kind.as_deref(),
        filter.opened_before.map(|at| at.0),
        after.map(|after| after.opened_at.0),
        after.map(|after| after.run.as_str()),
        after.map(|after| after.call.as_str()),
        i64::from(page(filter.limit)),
    )
}

impl Configs for Postgres {
    fn put_config<'a>(&'a self, hash: &'a str, json: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let (bucket, tenant) = (self.tenant.bucket_of_all(), self.tenant.as_str());
            self.link().execute(|| bound!(sql::CONFIG_PUT, bucket, tenant, hash, json), true).await.map(drop)
        })
    }

    fn config<'a>(&'a self, hash: &'a str) -> Pending<'a, Option<String>> {
        Box::pin(async move {
            let (bucket, tenant) = (self.tenant.bucket_of_all(), self.tenant.as_str());
            let rows = self.link().rows(|| bound!(sql::CONFIG, bucket, tenant, hash)).await?;
            rows.first().map(|row| rows::word(row, "a snapshot")).transpose()
        })
    }
}

impl Wire for Postgres {
    fn put_wire<'a>(&'a self, run: &'a RunId, record: WireRecord) -> Pending<'a, ()> {
        Box::pin(async move {
            let none = || StoreError::NoSuchRun { run: run.clone() };
            let bucket = self.found(run).await?.ok_or_else(none)?.bucket;
            let tenant = self.tenant.as_str();
            let put = || {
                let (trip, attempt, at) = (i64::from(record.trip), i64::from(record.attempt), record.at.0);
                let (request, response) = (record.request.as_bytes(), record.response.as_bytes());
                bound!(sql::WIRE_PUT, bucket, tenant, run.as_str(), trip, attempt, at, request, response)
            };
            if self.link().execute(put, true).await? == 0 { Err(none()) } else { Ok(()) }
        })
    }

    fn wire<'a>(&'a self, run: &'a RunId) -> Pending<'a, Vec<WireRecord>> {
        Box::pin(async move {
            let Some(found) = self.found(run).await? else { return Ok(Vec::new()) };
            let (bucket, tenant) = (found.bucket, self.tenant.as_str());
            let rows = self.link().rows(|| bound!(sql::WIRE, bucket, tenant, run.as_str())).await?;
            rows.iter().map(rows::wire).collect()
        })
    }
}
