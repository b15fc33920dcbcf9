//! One append: a single statement where it changes nothing but the head and the events, else a transaction.

use gesta_run::id::ConversationId;
use gesta_run::time::Timestamp;
use sqlx::postgres::PgConnection;

use super::fault::Failure;
use super::steps::{self, Place, run_at, write_events};
use super::work::{Bound, Work, bound};
use super::{LeaseTimes, documents, rows, statements as sql};
use crate::document::DocumentChange;
use crate::error::{Busy, StoreError};
use crate::prepared::{Append, number};
use crate::types::Lease;

/// Appends, or says why not. The lease and the position come first: whoever lost them is told that, whatever else would
/// be refused.
pub(super) struct Appending<'a> {
    pub(super) append: &'a Append,
    pub(super) times: LeaseTimes,
}

/// A statement that changes a run's head, with the fourteen values that it takes.
macro_rules! bound_head {
    ($statement:expr, $it:expr $(, $more:expr)*) => {{
        let Append { lease, batch, status, outcome, closed, updated_at, release, tenant, .. } = $it.append;
        let LeaseTimes { told, ttl_ms } = $it.times;
        let owner = (!release).then_some(lease.owner.as_str());
        bound!(
            $statement, lease.bucket, tenant.as_str(), lease.run.as_str(), number(lease.fence), lease.owner.as_str(),
            batch.position, batch.number, status.as_str(), *outcome, *closed, updated_at.map(|at| at.0), owner, told,
            ttl_ms $(, $more)*
        )
    }};
}

impl Appending<'_> {
    /// The append as one statement, where nothing else is to be changed with it.
    pub(super) fn plain(&self) -> Option<Bound<'_>> {
        let Append { batch, holds, holds_closed, turn, document, frees, ended, .. } = self.append;
        let is_plain = batch.number > 0
            && holds.is_empty()
            && holds_closed.is_empty()
            && turn.is_none()
            && document.working.is_none()
            && document.change == DocumentChange::Keep
            && !frees
            && !ended;
        let version = i64::from(gesta_run::event::LOG_VERSION);
        is_plain.then(|| bound_head!(sql::RUN_APPEND_PLAIN, self, version, batch.body.as_str()))
    }

    fn place(&self) -> Place<'_> {
        Place { bucket: self.append.lease.bucket, tenant: &self.append.tenant }
    }

    fn run(&self) -> &str {
        self.append.lease.run.as_str()
    }

    /// Gives the time.
    async fn update_head(&self, it: &mut PgConnection) -> Result<Timestamp, Failure> {
        let changed = bound_head!(sql::RUN_APPEND, self).fetch_optional(&mut *it).await?;
        match changed {
            Some(row) => Ok(Timestamp(rows::number(&row, 0, "the time")?)),
            None => Err(self.refusal(it).await?.into()),
        }
    }

    async fn refusal(&self, it: &mut PgConnection) -> Result<StoreError, Failure> {
        let Append { lease, batch, .. } = self.append;
        let run = lease.run.clone();
        Ok(match run_at(it, self.place(), &run, self.times.told).await? {
            Some((head, _)) if head.is_held_by(lease) => {
                let at = u64::try_from(batch.position).unwrap_or(u64::MAX);
                StoreError::Conflict { run, at, found: head.events }
            }
            _ => StoreError::Fenced { run },
        })
    }

    async fn is_closed(&self, it: &mut PgConnection, call: &str) -> Result<Option<bool>, Failure> {
        let Place { bucket, tenant } = self.place();
        let row = bound!(sql::HOLD_STATE, bucket, tenant, self.run(), call).fetch_optional(it).await?;
        let state = row.map(|row| rows::word(&row, "the state of a hold")).transpose()?;
        Ok(state.map(|state| state == "closed"))
    }

    /// The first committed answer wins; one that is opened by this append may be closed by it too. Holds are written
    /// under their run's row, which is changed by now: nobody else does so meanwhile.
    async fn check_holds(&self, it: &mut PgConnection) -> Result<(), Failure> {
        let Append { holds, holds_closed, lease, .. } = self.append;
        for closed in holds_closed {
            let (run, call) = (lease.run.clone(), closed.call.clone());
            if holds.iter().any(|hold| hold.call == call.as_str()) {
                continue;
            }
            match self.is_closed(it, call.as_str()).await? {
                None => return Err(StoreError::NoSuchHold { run, call }.into()),
                Some(true) => return Err(StoreError::HoldSettled { run, call }.into()),
                Some(false) => {}
            }
        }
        // An approved call that was lost in a crash waits again; otherwise what was answered stays answered.
        for hold in holds.iter().filter(|hold| !hold.undecided) {
            if self.is_closed(it, &hold.call).await? == Some(true) {
                let (run, call) = (lease.run.clone(), hold.call.as_str().into());
                return Err(StoreError::HoldSettled { run, call }.into());
            }
        }
        Ok(())
    }

    /// A run that goes on after its end needs its conversation back, if another has taken it meanwhile it can't.
    async fn check_conversation(&self, it: &mut PgConnection) -> Result<(), Failure> {
        let Append { lease, ended, .. } = self.append;
        let Some(conversation) = lease.conversation.as_ref().filter(|_| !ended) else { return Ok(()) };
        if self.is_ours(it, conversation).await? {
            return Ok(());
        }
        let Place { bucket, tenant } = self.place();
        let retake = bound!(sql::CONVERSATION_RETAKE, bucket, tenant, conversation.as_str(), self.run());
        if retake.execute(&mut *it).await?.rows_affected() == 0 {
            // Taken at this moment, or not there.
            self.is_ours(it, conversation).await?;
        }
        Ok(())
    }

    /// Whether the run has the conversation; an error where another has.
    async fn is_ours(&self, it: &mut PgConnection, conversation: &ConversationId) -> Result<bool, Failure> {
        match steps::holder(it, self.place(), conversation).await? {
            Some(run) if run != self.append.lease.run => {
                let conversation = conversation.clone();
                Err(StoreError::ConversationBusy { conversation, run, busy: Busy::Open }.into())
            }
            holder => Ok(holder.is_some()),
        }
    }

    async fn write_holds(&self, it: &mut PgConnection, at: Timestamp) -> Result<(), Failure> {
        let (Place { bucket, tenant }, run) = (self.place(), self.run());
        for hold in &self.append.holds {
            let (call, tool, kind) = (hold.call.as_str(), hold.tool.as_str(), hold.kind.as_str());
            let (state, body) = (hold.state.as_str(), hold.body.as_str());
            bound!(sql::HOLD_OPEN, bucket, tenant, run, call, tool, kind, state, at.0, body).execute(&mut *it).await?;
        }
        for closed in &self.append.holds_closed {
            let (call, answer) = (closed.call.as_str(), closed.answer.as_deref());
            let close = bound!(sql::HOLD_CLOSE, bucket, tenant, run, call, closed.at.0, answer);
            if close.execute(&mut *it).await?.rows_affected() == 0 {
                let (run, call) = (self.append.lease.run.clone(), closed.call.clone());
                return Err(StoreError::HoldSettled { run, call }.into());
            }
        }
        Ok(())
    }

    async fn update_conversation(&self, it: &mut PgConnection, at: Timestamp) -> Result<(), Failure> {
        let Append { lease, frees, turn, .. } = self.append;
        let Some(conversation) = lease.conversation.as_ref().filter(|_| *frees) else { return Ok(()) };
        let (Place { bucket, tenant }, run, name) = (self.place(), self.run(), conversation.as_str());
        let Some(turn) = turn else {
            bound!(sql::CONVERSATION_FREE, bucket, tenant, name, run, at.0).execute(it).await?;
            return Ok(());
        };
        let counted = bound!(sql::CONVERSATION_TURN, bucket, tenant, name, run, at.0).fetch_optional(&mut *it).await?;
        let row = counted.ok_or_else(|| StoreError::DamagedRow {
            what: format!("conversation `{conversation}`"),
            reason: "it has a run and no head".to_owned(),
        })?;
        let seq: i64 = rows::number(&row, 0, "the number of a turn")?;
        if bound!(sql::RUN_TURN, bucket, tenant, run, seq).execute(&mut *it).await?.rows_affected() == 0 {
            return Err(StoreError::TurnRecorded { run: lease.run.clone() }.into());
        }
        let version = i64::from(gesta_run::event::LOG_VERSION);
        bound!(sql::TURN_ADD, bucket, tenant, name, seq, run, turn.tokens, version, turn.body.as_str())
            .execute(it)
            .await?;
        Ok(())
    }
}

impl Work for Appending<'_> {
    type Out = ();

    async fn perform(&self, it: &mut PgConnection) -> Result<(), Failure> {
        let Append { lease, batch, updated_at, document, .. } = self.append;
        let now = self.update_head(it).await?;
        let at = updated_at.unwrap_or(now);
        self.check_holds(it).await?;
        self.check_conversation(it).await?;
        write_events(it, self.place(), &lease.run, batch).await?;
        self.write_holds(it, at).await?;
        self.update_conversation(it, at).await?;
        let Lease { conversation, run, .. } = lease;
        documents::write(it, self.place(), document, (conversation.as_ref(), run), at).await
    }
}
