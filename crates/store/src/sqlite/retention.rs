//! What is not kept for ever, in SQLite.

use gesta_run::id::{ConversationId, RunId};
use gesta_run::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::failure::Failure;
use super::{Sqlite, rows, statements as sql, steps};
use crate::place::Tenant;
use crate::traits::{Old, Pending, Retention};
use crate::types::page;

impl Retention for Sqlite {
    fn old<'a>(&'a self, agent: &'a str, before: Timestamp, limit: u32) -> Pending<'a, Vec<Old>> {
        let (agent, tenant) = (agent.to_owned(), self.tenant.clone());
        Box::pin(async move {
            let read = move |connection: &Connection| {
                let names = |sql: &str| -> Result<Vec<String>, Failure> {
                    let mut statement = connection.prepare_cached(sql)?;
                    let key = params![tenant.as_str(), agent, before.0, page(limit)];
                    let names = statement.query_map(key, |row| row.get(0))?;
                    Ok(names.collect::<Result<_, _>>()?)
                };
                let talks =
                    names(sql::OLD_CONVERSATIONS)?.into_iter().map(|it| Old::Conversation(ConversationId::new(it)));
                let runs = names(sql::OLD_RUNS)?.into_iter().map(|it| Old::Run(RunId::new(it)));
                Ok(talks.chain(runs).collect())
            };
            self.readers().read(read).await
        })
    }

    fn erase_old<'a>(&'a self, old: &'a Old, before: Timestamp) -> Pending<'a, bool> {
        let (old, tenant) = (old.clone(), self.tenant.clone());
        Box::pin(async move {
            let erase = move |connection: &Connection| match &old {
                Old::Conversation(it) => conversation(connection, &tenant, it, before),
                Old::Run(it) => match rows::bucket_of(connection, tenant.as_str(), it)? {
                    Some((bucket, _)) => run(connection, bucket, &tenant, it, before),
                    None => Ok(false),
                },
            };
            let erased = self.writer()?.write(erase).await?;
            if erased {
                self.writer()?.forget().await;
            }
            Ok(erased)
        })
    }
}

fn conversation(
    connection: &Connection,
    tenant: &Tenant,
    it: &ConversationId,
    before: Timestamp,
) -> Result<bool, Failure> {
    let key = params![tenant.bucket_of(it), tenant.as_str(), it.as_str(), before.0];
    let young = connection.prepare_cached(sql::CONVERSATION_YOUNG)?.query_row(key, |_| Ok(())).optional()?;
    if young.is_some() {
        return Ok(false);
    }
    steps::erase(connection, tenant, it)
}

fn run(connection: &Connection, bucket: i16, tenant: &Tenant, it: &RunId, before: Timestamp) -> Result<bool, Failure> {
    let (everyones, tenant) = (tenant.bucket_of_all(), tenant.as_str());
    let key = params![bucket, tenant, it.as_str(), before.0];
    if connection.prepare_cached(sql::RUN_FORGET)?.execute(key)? == 0 {
        return Ok(false);
    }
    for step in [sql::RUN_FORGET_EVENTS, sql::RUN_FORGET_WIRE, sql::RUN_FORGET_HOLDS, sql::WORKING_DROP] {
        connection.prepare_cached(step)?.execute(params![bucket, tenant, it.as_str()])?;
    }
    connection.prepare_cached(sql::ERASE_REQUESTS)?.execute(params![everyones, tenant, it.as_str()])?;
    Ok(true)
}
