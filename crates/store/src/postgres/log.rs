//! The event log on Postgres.

use gesta_run::event::Event;
use gesta_run::id::{ContactId, ConversationId, RunId};
use gesta_run::outcome::{Outcome, Status};

use super::append::Appending;
use super::rows::{self, FoundRun};
use super::steps::{Claim, Opening, Place};
use super::work::{Bound, bound};
use super::{LeaseTimes, Postgres, statements as sql};
use crate::error::StoreError;
use crate::prepared::{Open, append, batch, number, word};
use crate::traits::{Pending, RunLog};
use crate::types::{HeadChange, Lease, NewRun, RunFilter, RunHead, StoredRun, page};

impl RunLog for Postgres {
    fn open<'a>(&'a self, new: NewRun, first: &'a [Event]) -> Pending<'a, Lease> {
        Box::pin(async move {
            let first = batch(&new.run, 0, first)?;
            let bucket = self.tenant.bucket_of_run(new.conversation.as_ref(), new.contact.as_ref());
            let tenant = self.tenant.as_str().to_owned();
            let is_known = self.found(&new.run).await?.is_some();
            let NewRun { run, agent, conversation, contact, config, at } = new;
            let open = Open { tenant, bucket, run, agent, conversation, contact, config, at, first };
            let opening = Opening { open: &open, owner: self.owner(), times: self.lease_times(), is_known };
            let until = self.link().transact(&opening).await?;
            let Open { run, conversation, .. } = open;
            Ok(Lease { run, conversation, bucket, owner: self.owner().to_owned(), fence: 1, until })
        })
    }

    fn append<'a>(&'a self, lease: &'a Lease, at: u64, events: &'a [Event], change: HeadChange) -> Pending<'a, ()> {
        Box::pin(async move {
            let append = append(self.tenant.as_str(), lease, at, events, change)?;
            let appending = Appending { append: &append, times: self.lease_times() };
            if appending.plain().is_some() {
                let plain = || appending.plain().unwrap_or_else(|| bound!(""));
                if self.link().execute(plain, false).await? > 0 {
                    return Ok(());
                }
                // Refused, or not as plain as it looked: the transaction finds out.
            }
            self.link().transact(&appending).await
        })
    }

    fn load<'a>(&'a self, run: &'a RunId) -> Pending<'a, StoredRun> {
        Box::pin(async move {
            let none = || StoreError::NoSuchRun { run: run.clone() };
            let FoundRun { bucket, head } = self.found(run).await?.ok_or_else(none)?;
            let (tenant, counted) = (self.tenant.as_str(), number(head.events));
            let rows = self.link().rows(|| bound!(sql::EVENTS, bucket, tenant, run.as_str(), counted)).await?;
            match rows::events(&head, &rows) {
                Ok(events) => Ok(StoredRun { head, events }),
                // Erased between the two, or really damaged.
                Err(damaged) => Err(self.found(run).await?.map_or_else(none, |_| damaged)),
            }
        })
    }

    fn head<'a>(&'a self, run: &'a RunId) -> Pending<'a, RunHead> {
        Box::pin(async move {
            let found = self.found(run).await?;
            found.map(|found| found.head).ok_or_else(|| StoreError::NoSuchRun { run: run.clone() })
        })
    }

    fn claim<'a>(&'a self, run: &'a RunId) -> Pending<'a, Lease> {
        Box::pin(async move {
            let found = self.found(run).await?.ok_or_else(|| StoreError::NoSuchRun { run: run.clone() })?;
            let bucket = found.bucket;
            let claim = Claim {
                place: Place { bucket, tenant: self.tenant.as_str() },
                run,
                owner: self.owner(),
                times: self.lease_times(),
                skips_locked: self.shared.options.claims_skip_locked,
            };
            let (fence, conversation, until) = self.link().transact(&claim).await?;
            Ok(Lease { run: run.clone(), conversation, bucket, owner: self.owner().to_owned(), fence, until })
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> Pending<'a, ()> {
        Box::pin(async move {
            let LeaseTimes { told, ttl_ms } = self.lease_times();
            let Lease { bucket, run, fence, owner, .. } = lease;
            let tenant = self.tenant.as_str();
            let renew = || {
                let owner = owner.as_str();
                bound!(sql::RUN_RENEW, *bucket, tenant, run.as_str(), number(*fence), owner, told, ttl_ms)
            };
            match self.link().execute(renew, true).await? {
                0 => Err(StoreError::Fenced { run: run.clone() }),
                _ => Ok(()),
            }
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, ()> {
        Box::pin(async move {
            let Lease { bucket, run, fence, owner, .. } = lease;
            let tenant = self.tenant.as_str();
            let release = || bound!(sql::RUN_RELEASE, *bucket, tenant, run.as_str(), number(*fence), owner.as_str());
            self.link().execute(release, true).await.map(drop)
        })
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> Pending<'a, Vec<RunHead>> {
        Box::pin(async move {
            let status = filter.status.as_ref().map(word::<Status>).transpose()?;
            let statement = || match &filter.conversation {
                Some(it) => {
                    let Place { bucket, tenant } = self.place_of(it);
                    with_filter(bound!(sql::RUNS_OF_CONVERSATION, bucket, tenant, it.as_str()), filter, &status)
                }
                None => with_filter(bound!(sql::RUNS, self.tenant.as_str()), filter, &status),
            };
            let rows = self.link().rows(statement).await?;
            rows.iter().map(|row| rows::run(row).map(|found| found.head)).collect()
        })
    }
}

fn with_filter<'q>(statement: Bound<'q>, filter: &'q RunFilter, status: &'q Option<String>) -> Bound<'q> {
    let after = filter.after.as_ref();
    statement
        .bind(filter.agent.as_deref())
        .bind(status.as_deref())
        .bind(filter.closed)
        .bind(filter.contact.as_ref().map(ContactId::as_str))
        .bind(filter.since.map(|at| at.0))
        .bind(after.map(|after| after.started_at.0))
        .bind(after.map(|after| after.run.as_str()))
        .bind(i64::from(page(filter.limit)))
        .bind(filter.outcome.map(Outcome::as_str))
}

impl Postgres {
    /// Finds a run by its id alone.
    pub(super) async fn found(&self, run: &RunId) -> Result<Option<FoundRun>, StoreError> {
        let rows = self.link().rows(|| bound!(sql::RUN_BY_ID, self.tenant.as_str(), run.as_str())).await?;
        rows.first().map(rows::run).transpose()
    }

    /// Where a conversation lies.
    pub(super) fn place_of(&self, conversation: &ConversationId) -> Place<'_> {
        Place { bucket: self.tenant.bucket_of(conversation), tenant: self.tenant.as_str() }
    }
}
