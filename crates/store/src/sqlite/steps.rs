//! What is done inside the writing transactions. Each piece checks before it writes and may be done again from the start.

use gesta_run::id::{ContactId, ConversationId, RunId};
use gesta_run::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::failure::Failure;
use super::owners::Owners;
use super::rows;
use super::statements as sql;
use crate::error::{Busy, StoreError};
use crate::place::Tenant;
use crate::prepared::{Append, Batch, Open, number};
use crate::types::Lease;

impl Batch {
    fn write(&self, connection: &Connection, bucket: i16, tenant: &str, run: &RunId) -> Result<(), Failure> {
        if self.number > 0 {
            let version = gesta_run::event::LOG_VERSION;
            connection.prepare_cached(sql::EVENTS_APPEND)?.execute(params![
                bucket,
                tenant,
                run.as_str(),
                self.position,
                self.number,
                version,
                self.body
            ])?;
        }
        Ok(())
    }
}

impl Open {
    /// Opens it, unless its conversation is taken.
    pub(super) fn perform(
        &self,
        connection: &Connection,
        owners: &Owners,
        (now, until): (Timestamp, Timestamp),
    ) -> Result<(), Failure> {
        let contact = self.contact.as_ref().map(ContactId::as_str);
        if let Some(conversation) = &self.conversation {
            check_free(connection, (self.bucket, &self.tenant, conversation), owners, now)?;
        }
        // The key leads with the bucket, so it alone would let one id into two.
        if rows::bucket_of(connection, &self.tenant, &self.run)?.is_some() {
            return Err(StoreError::RunExists { run: self.run.clone() }.into());
        }
        let added = connection.prepare_cached(sql::RUN_OPEN)?.execute(params![
            self.bucket,
            self.tenant,
            self.run.as_str(),
            self.agent,
            self.conversation.as_ref().map(ConversationId::as_str),
            contact,
            self.config,
            self.first.number,
            self.at.0,
            owners.id(),
            until.0,
        ])?;
        if added == 0 {
            return Err(StoreError::RunExists { run: self.run.clone() }.into());
        }
        if let Some(conversation) = &self.conversation {
            connection.prepare_cached(sql::CONVERSATION_TAKE)?.execute(params![
                self.bucket,
                self.tenant,
                conversation.as_str(),
                self.agent,
                contact,
                self.run.as_str(),
                self.at.0
            ])?;
        }
        self.first.write(connection, self.bucket, &self.tenant, &self.run)
    }
}

/// Refuses where a run has the conversation.
pub(super) fn check_free(
    connection: &Connection,
    (bucket, tenant, conversation): (i16, &str, &ConversationId),
    owners: &Owners,
    now: Timestamp,
) -> Result<(), Failure> {
    let Some(holder) = holder(connection, bucket, tenant, conversation)? else { return Ok(()) };
    // A conversation that names a run which is not there is free: nobody could ever give it back.
    let Some(found) = rows::run_at(connection, bucket, tenant, &holder)? else { return Ok(()) };
    let busy = found.head.busy(now, |owner| owners.is_gone(owner));
    Err(StoreError::ConversationBusy { conversation: conversation.clone(), run: holder, busy }.into())
}

/// The run that has a conversation.
fn holder(
    connection: &Connection,
    bucket: i16,
    tenant: &str,
    conversation: &ConversationId,
) -> Result<Option<RunId>, Failure> {
    let mut statement = connection.prepare_cached(sql::CONVERSATION)?;
    let mut rows = statement.query(params![bucket, tenant, conversation.as_str()])?;
    Ok(rows.next()?.map(rows::conversation).transpose()?.and_then(|head| head.run))
}

impl Append {
    /// Appends, or says why not. The lease and the position come first: whoever lost them is told that, whatever else
    /// would be refused, and nothing has been written then.
    pub(super) fn perform(&self, connection: &Connection, (now, until): (Timestamp, Timestamp)) -> Result<(), Failure> {
        self.update_head(connection, until)?;
        self.check_holds(connection)?;
        self.check_conversation(connection)?;
        self.batch.write(connection, self.lease.bucket, &self.tenant, &self.lease.run)?;
        self.write_holds(connection, now)?;
        self.update_conversation(connection, now)?;
        self.document.write(connection, &self.tenant, &self.lease, self.updated_at.unwrap_or(now))
    }

    fn run(&self) -> &str {
        self.lease.run.as_str()
    }

    fn hold_state(&self, connection: &Connection, call: &str) -> Result<Option<String>, Failure> {
        let mut statement = connection.prepare_cached(sql::HOLD_STATE)?;
        let key = params![self.lease.bucket, self.tenant, self.run(), call];
        Ok(statement.query_row(key, |row| row.get(0)).optional()?)
    }

    /// The first committed answer wins; one that is opened by this append may be closed by it too.
    fn check_holds(&self, connection: &Connection) -> Result<(), Failure> {
        for closed in &self.holds_closed {
            let (run, call) = (self.lease.run.clone(), closed.call.clone());
            if self.holds.iter().any(|hold| hold.call == call.as_str()) {
                continue;
            }
            match self.hold_state(connection, call.as_str())?.as_deref() {
                None => return Err(StoreError::NoSuchHold { run, call }.into()),
                Some("closed") => return Err(StoreError::HoldSettled { run, call }.into()),
                Some(_) => {}
            }
        }
        // An approved call that was lost in a crash waits again; otherwise what was answered stays answered.
        for hold in self.holds.iter().filter(|hold| !hold.undecided) {
            if self.hold_state(connection, &hold.call)?.as_deref() == Some("closed") {
                let (run, call) = (self.lease.run.clone(), hold.call.as_str().into());
                return Err(StoreError::HoldSettled { run, call }.into());
            }
        }
        Ok(())
    }

    /// A run that goes on after its end needs its conversation back, if another has taken it meanwhile it can't.
    fn check_conversation(&self, connection: &Connection) -> Result<(), Failure> {
        let Some(conversation) = self.lease.conversation.as_ref().filter(|_| !self.ended) else { return Ok(()) };
        match holder(connection, self.lease.bucket, &self.tenant, conversation)? {
            Some(run) if run == self.lease.run => Ok(()),
            Some(run) => {
                let conversation = conversation.clone();
                Err(StoreError::ConversationBusy { conversation, run, busy: Busy::Open }.into())
            }
            None => {
                connection.prepare_cached(sql::CONVERSATION_RETAKE)?.execute(params![
                    self.lease.bucket,
                    self.tenant,
                    conversation.as_str(),
                    self.run()
                ])?;
                Ok(())
            }
        }
    }

    fn update_head(&self, connection: &Connection, until: Timestamp) -> Result<(), Failure> {
        let Lease { bucket, owner, fence, .. } = &self.lease;
        let changed = connection.prepare_cached(sql::RUN_APPEND)?.execute(params![
            bucket,
            self.tenant,
            self.run(),
            number(*fence),
            owner,
            self.batch.position,
            self.batch.number,
            self.status,
            self.outcome,
            self.closed,
            self.updated_at.map(|at| at.0),
            (!self.release).then_some(owner),
            (!self.release).then_some(until.0),
        ])?;
        if changed == 0 { Err(self.refusal(connection)?.into()) } else { Ok(()) }
    }

    fn refusal(&self, connection: &Connection) -> Result<StoreError, Failure> {
        let run = self.lease.run.clone();
        Ok(match rows::run_at(connection, self.lease.bucket, &self.tenant, &run)? {
            Some(found) if found.head.is_held_by(&self.lease) => {
                let at = u64::try_from(self.batch.position).unwrap_or(u64::MAX);
                StoreError::Conflict { run, at, found: found.head.events }
            }
            _ => StoreError::Fenced { run },
        })
    }

    fn write_holds(&self, connection: &Connection, now: Timestamp) -> Result<(), Failure> {
        let (bucket, tenant, run) = (self.lease.bucket, &self.tenant, self.run());
        for hold in &self.holds {
            let opened_at = self.updated_at.unwrap_or(now).0;
            connection.prepare_cached(sql::HOLD_OPEN)?.execute(params![
                bucket, tenant, run, hold.call, hold.tool, hold.kind, hold.state, opened_at, hold.body
            ])?;
        }
        for closed in &self.holds_closed {
            let key = params![bucket, tenant, run, closed.call.as_str(), closed.at.0, closed.answer];
            if connection.prepare_cached(sql::HOLD_CLOSE)?.execute(key)? == 0 {
                let (run, call) = (self.lease.run.clone(), closed.call.clone());
                return Err(StoreError::HoldSettled { run, call }.into());
            }
        }
        Ok(())
    }

    fn update_conversation(&self, connection: &Connection, now: Timestamp) -> Result<(), Failure> {
        let Some(conversation) = self.lease.conversation.as_ref().filter(|_| self.frees) else { return Ok(()) };
        let (bucket, tenant, run) = (self.lease.bucket, &self.tenant, self.run());
        let at = self.updated_at.unwrap_or(now).0;
        let key = params![bucket, tenant, conversation.as_str(), run, at];
        let Some(turn) = &self.turn else {
            connection.prepare_cached(sql::CONVERSATION_FREE)?.execute(key)?;
            return Ok(());
        };
        let seq: i64 = connection.prepare_cached(sql::CONVERSATION_TURN)?.query_row(key, |row| row.get(0))?;
        if connection.prepare_cached(sql::RUN_TURN)?.execute(params![bucket, tenant, run, seq])? == 0 {
            return Err(StoreError::TurnRecorded { run: self.lease.run.clone() }.into());
        }
        let version = gesta_run::event::LOG_VERSION;
        connection.prepare_cached(sql::TURN_ADD)?.execute(params![
            bucket,
            tenant,
            conversation.as_str(),
            seq,
            run,
            turn.tokens,
            version,
            turn.body
        ])?;
        Ok(())
    }
}

/// Takes a run that nobody works on, or the work of one that is gone. Gives the lease's fence and conversation.
pub(super) fn claim(
    connection: &Connection,
    (bucket, tenant, run): (i16, &str, &RunId),
    owners: &Owners,
    gone: Option<&str>,
    (now, until): (Timestamp, Timestamp),
) -> Result<(u64, Option<ConversationId>), Failure> {
    let key = params![bucket, tenant, run.as_str(), owners.id(), until.0, now.0, gone];
    let claimed = connection
        .prepare_cached(sql::RUN_CLAIM)?
        .query_row(key, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?)))
        .optional()?;
    if let Some((fence, conversation)) = claimed {
        let fence = u64::try_from(fence).unwrap_or(0);
        return Ok((fence, conversation.as_deref().map(ConversationId::from)));
    }
    let until = rows::run_at(connection, bucket, tenant, run)?.map(|found| found.head.held_by.map(|it| it.until));
    Err(match until {
        None => StoreError::NoSuchRun { run: run.clone() },
        Some(until) => StoreError::Leased { run: run.clone(), until: until.unwrap_or(now) },
    }
    .into())
}

/// Erases everything of a conversation; whether there was anything. Answers to requests lie where everything of the
/// tenant lies.
pub(super) fn erase(connection: &Connection, tenant: &Tenant, it: &ConversationId) -> Result<bool, Failure> {
    let (bucket, everyones, tenant) = (tenant.bucket_of(it), tenant.bucket_of_all(), tenant.as_str());
    let mut rows = 0;
    let mut runs = connection.prepare_cached(sql::RUNS_OF)?;
    let mut runs = runs.query(params![bucket, tenant, it.as_str()])?;
    while let Some(row) = runs.next()? {
        let key = params![everyones, tenant, row.get::<_, String>(0)?];
        connection.prepare_cached(sql::ERASE_REQUESTS)?.execute(key)?;
    }
    drop(runs);
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
    for step in steps {
        rows += connection.prepare_cached(step)?.execute(params![bucket, tenant, it.as_str()])?;
    }
    Ok(rows > 0)
}
