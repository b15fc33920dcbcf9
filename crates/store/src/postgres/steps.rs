//! What is done inside transactions. Each piece checks before it writes and may be done again from the start.
//!
//! A transaction locks in this order: a run, its conversation, its document. Opening and putting a document begin with
//! the conversation, and touch no run that is there.

use gesta_run::id::{ContactId, ConversationId, RunId};
use gesta_run::time::Timestamp;
use sqlx::postgres::PgConnection;

use super::fault::Failure;
use super::rows;
use super::work::{Work, bound};
use super::{LeaseTimes, statements as sql};
use crate::error::{Busy, StoreError};
use crate::prepared::{Batch, Open};
use crate::types::RunHead;

/// Where a row lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) bucket: i16,
    pub(super) tenant: &'a str,
}

/// Reads a run's head, and the time.
pub(super) async fn run_at(
    it: &mut PgConnection,
    place: Place<'_>,
    run: &RunId,
    told: Option<i64>,
) -> Result<Option<(RunHead, Timestamp)>, Failure> {
    let found = bound!(sql::RUN, place.bucket, place.tenant, run.as_str(), told).fetch_optional(it).await?;
    Ok(match found {
        Some(row) => Some((rows::run(&row)?.head, rows::now_beside_run(&row)?)),
        None => None,
    })
}

/// The run that has a conversation.
pub(super) async fn holder(
    it: &mut PgConnection,
    place: Place<'_>,
    conversation: &ConversationId,
) -> Result<Option<RunId>, Failure> {
    let key = bound!(sql::CONVERSATION, place.bucket, place.tenant, conversation.as_str());
    let row = key.fetch_optional(it).await?;
    Ok(row.as_ref().map(rows::conversation).transpose()?.and_then(|head| head.run))
}

/// How a run has the conversation; none where the run is not there, since nobody could ever give it back then.
pub(super) async fn busy(
    it: &mut PgConnection,
    place: Place<'_>,
    run: &RunId,
    told: Option<i64>,
) -> Result<Option<Busy>, Failure> {
    Ok(run_at(it, place, run, told).await?.map(|(head, now)| head.busy(now, |_| false)))
}

/// Writes the events of one append.
pub(super) async fn write_events(
    it: &mut PgConnection,
    place: Place<'_>,
    run: &RunId,
    batch: &Batch,
) -> Result<(), Failure> {
    if batch.number > 0 {
        let version = i64::from(gesta_run::event::LOG_VERSION);
        let Place { bucket, tenant } = place;
        let (position, number, body) = (batch.position, batch.number, batch.body.as_str());
        bound!(sql::EVENTS_APPEND, bucket, tenant, run.as_str(), position, number, version, body).execute(it).await?;
    }
    Ok(())
}

/// Opens a run, unless its conversation is taken. Gives the end of its lease.
pub(super) struct Opening<'a> {
    pub(super) open: &'a Open,
    pub(super) owner: &'a str,
    pub(super) times: LeaseTimes,
    /// The id was found, perhaps in another bucket: the key alone, which leads with the bucket, would let it in there.
    pub(super) is_known: bool,
}

impl Work for Opening<'_> {
    type Out = Timestamp;

    async fn perform(&self, it: &mut PgConnection) -> Result<Timestamp, Failure> {
        let open = self.open;
        let place = self.place();
        if let Some(conversation) = &open.conversation {
            self.take(it, conversation).await?;
        }
        let exists = || StoreError::RunExists { run: open.run.clone() };
        if self.is_known {
            return Err(exists().into());
        }
        let added = bound!(
            sql::RUN_OPEN,
            place.bucket,
            place.tenant,
            open.run.as_str(),
            open.agent.as_str(),
            open.conversation.as_ref().map(ConversationId::as_str),
            open.contact.as_ref().map(ContactId::as_str),
            open.config.as_str(),
            open.first.number,
            open.at.0,
            self.owner,
            self.times.told,
            self.times.ttl_ms,
        );
        let row = added.fetch_optional(&mut *it).await?.ok_or_else(exists)?;
        write_events(it, place, &open.run, &open.first).await?;
        Ok(Timestamp(rows::number(&row, 0, "a lease")?))
    }
}

impl Opening<'_> {
    fn place(&self) -> Place<'_> {
        Place { bucket: self.open.bucket, tenant: &self.open.tenant }
    }

    /// The conversation is locked from here on, whether it was taken or not.
    async fn take(&self, it: &mut PgConnection, conversation: &ConversationId) -> Result<(), Failure> {
        let (open, place) = (self.open, self.place());
        let contact = open.contact.as_ref().map(ContactId::as_str);
        let (run, agent, at) = (open.run.as_str(), open.agent.as_str(), open.at.0);
        let Place { bucket, tenant } = place;
        let take = bound!(sql::CONVERSATION_TAKE, bucket, tenant, conversation.as_str(), agent, contact, run, at);
        if take.execute(&mut *it).await?.rows_affected() > 0 {
            return Ok(());
        }
        let Some(holder) = holder(it, place, conversation).await? else {
            let what = format!("the head of conversation `{conversation}`");
            return Err(StoreError::DamagedRow { what, reason: "it is neither free nor taken".to_owned() }.into());
        };
        if let Some(busy) = busy(it, place, &holder, self.times.told).await? {
            return Err(StoreError::ConversationBusy { conversation: conversation.clone(), run: holder, busy }.into());
        }
        let name = conversation.as_str();
        bound!(sql::CONVERSATION_TAKE_LEFT, bucket, tenant, name, agent, contact, run, at, holder.as_str())
            .execute(it)
            .await?;
        Ok(())
    }
}

/// Takes a run that nobody works on. Gives the lease's fence, its conversation and the lease's end.
pub(super) struct Claim<'a> {
    pub(super) place: Place<'a>,
    pub(super) run: &'a RunId,
    pub(super) owner: &'a str,
    pub(super) times: LeaseTimes,
    pub(super) skips_locked: bool,
}

impl Claim<'_> {
    async fn attempt(
        &self,
        it: &mut PgConnection,
        statement: &'static str,
    ) -> Result<Option<<Self as Work>::Out>, Failure> {
        let Place { bucket, tenant } = self.place;
        let LeaseTimes { told, ttl_ms } = self.times;
        let row = bound!(statement, bucket, tenant, self.run.as_str(), self.owner, told, ttl_ms);
        Ok(row.fetch_optional(it).await?.as_ref().map(rows::claimed).transpose()?)
    }
}

impl Work for Claim<'_> {
    type Out = (u64, Option<ConversationId>, Timestamp);

    async fn perform(&self, it: &mut PgConnection) -> Result<Self::Out, Failure> {
        let statement = if self.skips_locked { sql::RUN_CLAIM_UNLOCKED } else { sql::RUN_CLAIM };
        if let Some(claimed) = self.attempt(it, statement).await? {
            return Ok(claimed);
        }
        let none = || StoreError::NoSuchRun { run: self.run.clone() };
        let (head, now) = run_at(it, self.place, self.run, self.times.told).await?.ok_or_else(none)?;
        let until = head.held_by.map(|holder| holder.until);
        // It was free, and written to at that moment by somebody who doesn't take it, or who is about to: their
        // transaction is waited for.
        if self.skips_locked
            && until.is_none_or(|until| until <= now)
            && let Some(claimed) = self.attempt(it, sql::RUN_CLAIM).await?
        {
            return Ok(claimed);
        }
        Err(StoreError::Leased { run: self.run.clone(), until: until.unwrap_or(now) }.into())
    }
}

/// A conversation that nobody takes or erases until the transaction ends.
pub(super) struct Locked {
    /// Nobody had begun it: what was locked is to go again with this transaction.
    pub(super) is_stand_in: bool,
    pub(super) holder: Option<RunId>,
    pub(super) now: Timestamp,
}

/// Locks a conversation, whether it has begun or not.
pub(super) async fn lock(
    it: &mut PgConnection,
    place: Place<'_>,
    conversation: &ConversationId,
    told: Option<i64>,
) -> Result<Locked, Failure> {
    let Place { bucket, tenant } = place;
    let name = conversation.as_str();
    for _ in 0..LOCKS_MAX {
        let stand_in = bound!(sql::CONVERSATION_STAND_IN, bucket, tenant, name).execute(&mut *it).await?;
        let lock = bound!(sql::CONVERSATION_LOCK, bucket, tenant, name, told).fetch_optional(&mut *it).await?;
        // One that was erased between the two is looked for again.
        if let Some(row) = lock {
            let (holder, now) = rows::holder(&row)?;
            return Ok(Locked { is_stand_in: stand_in.rows_affected() > 0, holder, now });
        }
    }
    let what = format!("conversation `{conversation}`");
    Err(StoreError::DamagedRow { what, reason: "it is erased again and again".to_owned() }.into())
}

const LOCKS_MAX: u32 = 8;

/// Erases everything of a conversation; whether there was anything.
pub(super) struct Erase<'a> {
    pub(super) place: Place<'a>,
    pub(super) conversation: &'a ConversationId,
    /// Where answers to requests lie.
    pub(super) everyones: i16,
    /// Only where nothing goes on in it, and nothing was changed at this moment or later.
    pub(super) before: Option<Timestamp>,
}

impl Work for Erase<'_> {
    type Out = bool;

    async fn perform(&self, it: &mut PgConnection) -> Result<bool, Failure> {
        let (Place { bucket, tenant }, name) = (self.place, self.conversation.as_str());
        // Nobody appends to its runs, and then nobody opens another, and those that were opened until then are locked
        // too: so that nothing is written to what was already erased.
        bound!(sql::RUNS_LOCK, bucket, tenant, name).execute(&mut *it).await?;
        let locked = lock(it, self.place, self.conversation, None).await?;
        let runs = bound!(sql::RUNS_LOCK, bucket, tenant, name).fetch_all(&mut *it).await?;
        let runs = runs.iter().map(|row| rows::word(row, "a run")).collect::<Result<Vec<_>, _>>()?;
        if let Some(before) = self.before {
            let young =
                bound!(sql::CONVERSATION_YOUNG, bucket, tenant, name, before.0).fetch_optional(&mut *it).await?;
            if young.is_some() {
                return Ok(false);
            }
        }
        bound!(sql::ERASE_REQUESTS, self.everyones, tenant, runs).execute(&mut *it).await?;
        let steps = [
            sql::ERASE_EVENTS,
            sql::ERASE_WIRE,
            sql::ERASE_HOLDS,
            sql::ERASE_WORKING,
            sql::ERASE_DOCUMENT,
            sql::ERASE_TURNS,
            sql::ERASE_RUNS,
            sql::ERASE_CONVERSATION,
        ];
        let mut erased = 0;
        for step in steps {
            erased += bound!(step, bucket, tenant, name).execute(&mut *it).await?.rows_affected();
        }
        Ok(erased > u64::from(locked.is_stand_in))
    }
}
