//! What is not kept for ever, on Postgres.

use gesta_run::id::{ConversationId, RunId};
use gesta_run::time::Timestamp;
use sqlx::PgConnection;

use super::fault::Failure;
use super::steps::{Erase, Place};
use super::work::{Work, bound};
use super::{Postgres, rows, statements as sql};
use crate::traits::{Old, Pending, Retention};
use crate::types::page;

impl Retention for Postgres {
    fn old<'a>(&'a self, agent: &'a str, before: Timestamp, limit: u32) -> Pending<'a, Vec<Old>> {
        Box::pin(async move {
            let (tenant, limit) = (self.tenant.as_str(), i64::from(page(limit)));
            let talks = self.link().rows(|| bound!(sql::OLD_CONVERSATIONS, tenant, agent, before.0, limit)).await?;
            let runs = self.link().rows(|| bound!(sql::OLD_RUNS, tenant, agent, before.0, limit)).await?;
            let name = |row| rows::word(row, "a name");
            let talks = talks.iter().map(|row| name(row).map(|it| Old::Conversation(ConversationId::new(it))));
            talks.chain(runs.iter().map(|row| name(row).map(|it| Old::Run(RunId::new(it))))).collect()
        })
    }

    fn erase_old<'a>(&'a self, old: &'a Old, before: Timestamp) -> Pending<'a, bool> {
        Box::pin(async move {
            match old {
                Old::Conversation(conversation) => {
                    let place = self.place_of(conversation);
                    let everyones = self.tenant.bucket_of_all();
                    self.link().transact(&Erase { place, conversation, everyones, before: Some(before) }).await
                }
                Old::Run(run) => {
                    let Some(found) = self.found(run).await? else { return Ok(false) };
                    let place = Place { bucket: found.bucket, tenant: self.tenant.as_str() };
                    let everyones = self.tenant.bucket_of_all();
                    self.link().transact(&Forget { place, run, everyones, before }).await
                }
            }
        })
    }
}

/// Erases everything of a run that belongs to no conversation; whether it was old.
struct Forget<'a> {
    place: Place<'a>,
    run: &'a RunId,
    /// Where answers to requests lie.
    everyones: i16,
    before: Timestamp,
}

impl Work for Forget<'_> {
    type Out = bool;

    async fn perform(&self, it: &mut PgConnection) -> Result<bool, Failure> {
        let (Place { bucket, tenant }, run) = (self.place, self.run.as_str());
        // Its head first: who would write to the run waits for that, and finds it gone.
        let gone = bound!(sql::RUN_FORGET, bucket, tenant, run, self.before.0).execute(&mut *it).await?;
        if gone.rows_affected() == 0 {
            return Ok(false);
        }
        for step in [sql::RUN_FORGET_EVENTS, sql::RUN_FORGET_WIRE, sql::RUN_FORGET_HOLDS, sql::WORKING_DROP] {
            bound!(step, bucket, tenant, run).execute(&mut *it).await?;
        }
        bound!(sql::ERASE_REQUESTS, self.everyones, tenant, vec![run]).execute(&mut *it).await?;
        Ok(true)
    }
}
