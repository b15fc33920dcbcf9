//! A store that lasts as long as the process: for tests, and for agents that were given no other.

mod documents;
mod retention;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gesta_run::event::{Event, EventKind};
use gesta_run::hold::{Hold, HoldState};
use gesta_run::id::{CallId, ConversationId, RunId};
use gesta_run::outcome::Status;
use gesta_run::time::Timestamp;

use crate::document::{self, StoredDocument};
use crate::error::{Busy, StoreError};
use crate::place::{TENANT_LOCAL, Tenant};
use crate::sqlite::StoreOptions;
use crate::traits::{Configs, Conversations, Holds, Pending, RunLog, Wire};
use crate::types::{
    ConversationHead, HeadChange, HoldClosed, HoldFilter, Lease, LeaseHolder, NewRun, OpenHold, RunFilter, RunHead,
    StoredRun, Turn, WireRecord, page,
};

/// How many closed runs a store in memory remembers; beyond that the oldest are forgotten.
pub const RUNS_KEPT_MAX: usize = 10_000;

/// A store without a file. Cheap to clone; all clones share what they hold.
#[derive(Debug, Clone)]
pub struct Memory {
    tenants: Arc<Mutex<BTreeMap<String, Rows>>>,
    options: Arc<StoreOptions>,
    tenant: Tenant,
}

#[derive(Debug, Default)]
struct Rows {
    runs: BTreeMap<RunId, Kept>,
    closed: VecDeque<RunId>,
    conversations: BTreeMap<ConversationId, Talk>,
    documents: BTreeMap<ConversationId, StoredDocument>,
    configs: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Kept {
    head: RunHead,
    events: Vec<Event>,
    turn_recorded: bool,
    holds: BTreeMap<CallId, KeptHold>,
    wire: BTreeMap<(u32, u32), WireRecord>,
    working: Option<Vec<u8>>,
}

#[derive(Debug)]
struct KeptHold {
    hold: Hold,
    opened_at: Timestamp,
    closed: Option<HoldClosed>,
}

#[derive(Debug)]
struct Talk {
    head: ConversationHead,
    turns: Vec<Turn>,
}

/// Everybody in the process is the same owner: whoever is gone took the store along.
const OWNER: &str = "memory";

impl Default for Memory {
    fn default() -> Self {
        Self::new(StoreOptions::default())
    }
}

impl Memory {
    /// An empty store. Of the options, those of files have no meaning here.
    pub fn new(options: StoreOptions) -> Self {
        Self { tenants: Arc::default(), options: Arc::new(options), tenant: Tenant::new(TENANT_LOCAL) }
    }

    /// The same store, seen by another tenant: nothing of one is reached from the other.
    #[must_use]
    pub fn of_tenant(&self, tenant: &str) -> Self {
        Self { tenants: self.tenants.clone(), options: self.options.clone(), tenant: Tenant::new(tenant) }
    }

    /// Does one piece of work on the tenant's rows. Never held across an await.
    fn with<T>(&self, work: impl FnOnce(&mut Rows) -> T) -> T {
        let mut tenants: MutexGuard<'_, BTreeMap<String, Rows>> =
            self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        match tenants.get_mut(self.tenant.as_str()) {
            Some(rows) => work(rows),
            None => work(tenants.entry(self.tenant.as_str().to_owned()).or_default()),
        }
    }

    fn lease_times(&self) -> (Timestamp, Timestamp) {
        let now = self.options.clock.now();
        (now, now.plus_ms(self.options.lease_ttl_ms))
    }
}

fn ready<'a, T: Send + 'a>(result: Result<T, StoreError>) -> Pending<'a, T> {
    Box::pin(std::future::ready(result))
}

/// What a file would give back: the arguments that a call was read into are not part of the log.
fn as_stored(events: &[Event]) -> impl Iterator<Item = Event> {
    events.iter().map(|event| {
        let mut event = event.clone();
        if let EventKind::Replied { calls, .. } = &mut event.what {
            calls.iter_mut().for_each(|call| call.arguments = None);
        }
        event
    })
}

impl Rows {
    fn run(&mut self, run: &RunId) -> Result<&mut Kept, StoreError> {
        self.runs.get_mut(run).ok_or_else(|| StoreError::NoSuchRun { run: run.clone() })
    }

    fn check_free(&self, conversation: Option<&ConversationId>, now: Timestamp) -> Result<(), StoreError> {
        let holder = conversation.and_then(|it| self.conversations.get(it)).and_then(|talk| talk.head.run.as_ref());
        let Some((conversation, kept)) = conversation.zip(holder.and_then(|run| self.runs.get(run))) else {
            return Ok(());
        };
        let busy = kept.head.busy(now, |_| false);
        Err(StoreError::ConversationBusy { conversation: conversation.clone(), run: kept.head.run.clone(), busy })
    }

    fn open(&mut self, new: NewRun, first: &[Event], now: Timestamp, until: Timestamp) -> Result<(), StoreError> {
        self.check_free(new.conversation.as_ref(), now)?;
        if self.runs.contains_key(&new.run) {
            return Err(StoreError::RunExists { run: new.run });
        }
        if let Some(conversation) = &new.conversation {
            let talk = self.conversations.entry(conversation.clone()).or_insert_with(|| Talk {
                head: ConversationHead {
                    conversation: conversation.clone(),
                    agent: new.agent.clone(),
                    contact: None,
                    turns: 0,
                    run: None,
                    updated_at: new.at,
                },
                turns: Vec::new(),
            });
            talk.head.agent.clone_from(&new.agent);
            talk.head.contact.clone_from(&new.contact);
            talk.head.run = Some(new.run.clone());
            talk.head.updated_at = new.at;
        }
        let head = RunHead {
            run: new.run.clone(),
            agent: new.agent,
            conversation: new.conversation,
            contact: new.contact,
            config: new.config,
            status: Status::Open,
            outcome: None,
            closed: false,
            events: first.len() as u64,
            started_at: new.at,
            updated_at: new.at,
            fence: 1,
            held_by: Some(LeaseHolder { owner: OWNER.to_owned(), until }),
        };
        let events = as_stored(first).collect();
        let (holds, wire) = (BTreeMap::new(), BTreeMap::new());
        let kept = Kept { head, events, turn_recorded: false, holds, wire, working: None };
        self.runs.insert(new.run, kept);
        Ok(())
    }

    /// All that can be refused is refused before anything is changed.
    fn check(&self, lease: &Lease, at: u64, change: &HeadChange) -> Result<(), StoreError> {
        let run = || lease.run.clone();
        let kept = self.runs.get(&lease.run).filter(|kept| kept.head.is_held_by(lease));
        let kept = kept.ok_or_else(|| StoreError::Fenced { run: run() })?;
        if kept.head.events != at {
            return Err(StoreError::Conflict { run: run(), at, found: kept.head.events });
        }
        for closed in &change.holds_closed {
            let call = closed.call.clone();
            match kept.holds.get(&call) {
                _ if change.holds.iter().any(|hold| hold.id == call) => {}
                None => return Err(StoreError::NoSuchHold { run: run(), call }),
                Some(hold) if hold.closed.is_some() => return Err(StoreError::HoldSettled { run: run(), call }),
                Some(_) => {}
            }
        }
        let reopened = change.holds.iter().filter(|hold| hold.state == HoldState::Open);
        for hold in reopened {
            if kept.holds.get(&hold.id).is_some_and(|kept| kept.closed.is_some()) {
                return Err(StoreError::HoldSettled { run: run(), call: hold.id.clone() });
            }
        }
        let talk = lease.conversation.as_ref().and_then(|it| self.conversations.get(it));
        match talk.and_then(|talk| talk.head.run.as_ref().map(|holder| (talk, holder))) {
            Some((talk, holder)) if change.status != Status::Ended && *holder != lease.run => {
                let conversation = talk.head.conversation.clone();
                return Err(StoreError::ConversationBusy { conversation, run: holder.clone(), busy: Busy::Open });
            }
            _ => {}
        }
        if change.turn.is_some() && kept.turn_recorded && lease.conversation.is_some() {
            return Err(StoreError::TurnRecorded { run: run() });
        }
        self.check_document(lease, change)
    }

    fn append(
        &mut self,
        lease: &Lease,
        at: u64,
        events: &[Event],
        mut change: HeadChange,
        (now, until): (Timestamp, Timestamp),
    ) -> Result<(), StoreError> {
        document::check_size(change.working.as_deref())?;
        self.check(lease, at, &change)?;
        let time = events.last().map_or(now, |event| event.at);
        self.change_document(lease, change.working.take(), change.document, time);
        let Self { runs, conversations, .. } = self;
        let Some(kept) = runs.get_mut(&lease.run) else { return Err(StoreError::Fenced { run: lease.run.clone() }) };
        let frees = change.frees_conversation();
        kept.events.extend(as_stored(events));
        kept.head.events = kept.events.len() as u64;
        kept.head.status = change.status;
        kept.head.outcome = change.outcome;
        let newly_closed = change.closed && !kept.head.closed;
        kept.head.closed = change.closed;
        if !events.is_empty() {
            kept.head.updated_at = time;
        }
        kept.head.held_by = (!change.release).then(|| LeaseHolder { owner: OWNER.to_owned(), until });
        for hold in change.holds {
            let opened_at = kept.holds.get(&hold.id).map_or(time, |before| before.opened_at);
            kept.holds.insert(hold.id.clone(), KeptHold { hold, opened_at, closed: None });
        }
        for closed in change.holds_closed {
            if let Some(hold) = kept.holds.get_mut(&closed.call) {
                hold.closed = Some(closed);
            }
        }
        if let Some(talk) = lease.conversation.as_ref().and_then(|it| conversations.get_mut(it)) {
            if frees {
                let freed = talk.head.run.take_if(|run| *run == lease.run).is_some();
                // What comes after the turn, such as the delivery, is no change of the conversation.
                if freed || change.turn.is_some() {
                    talk.head.updated_at = time;
                }
            } else if change.status != Status::Ended {
                talk.head.run = Some(lease.run.clone());
            }
            if let Some(turn) = change.turn {
                kept.turn_recorded = true;
                talk.turns.push(turn);
                talk.head.turns = talk.turns.len() as u64;
            }
        }
        if newly_closed {
            self.closed.push_back(lease.run.clone());
            self.forget_old();
        }
        Ok(())
    }

    fn forget_old(&mut self) {
        while self.closed.len() > RUNS_KEPT_MAX {
            if let Some(run) = self.closed.pop_front() {
                self.runs.remove(&run);
            }
        }
    }

    fn claim(&mut self, run: &RunId, now: Timestamp, until: Timestamp) -> Result<Lease, StoreError> {
        let kept = self.run(run)?;
        if let Some(holder) = kept.head.held_by.as_ref().filter(|holder| holder.until > now) {
            return Err(StoreError::Leased { run: run.clone(), until: holder.until });
        }
        kept.head.fence += 1;
        kept.head.held_by = Some(LeaseHolder { owner: OWNER.to_owned(), until });
        let conversation = kept.head.conversation.clone();
        Ok(Lease { run: run.clone(), conversation, bucket: 0, owner: OWNER.to_owned(), fence: kept.head.fence, until })
    }

    fn leased(&mut self, lease: &Lease) -> Result<&mut RunHead, StoreError> {
        let kept = self.runs.get_mut(&lease.run).filter(|kept| kept.head.is_held_by(lease));
        kept.map(|kept| &mut kept.head).ok_or_else(|| StoreError::Fenced { run: lease.run.clone() })
    }
}

impl RunLog for Memory {
    fn open<'a>(&'a self, new: NewRun, first: &'a [Event]) -> Pending<'a, Lease> {
        let (now, until) = self.lease_times();
        let lease = Lease {
            run: new.run.clone(),
            conversation: new.conversation.clone(),
            bucket: 0,
            owner: OWNER.to_owned(),
            fence: 1,
            until,
        };
        ready(self.with(|rows| rows.open(new, first, now, until)).map(|()| lease))
    }

    fn append<'a>(&'a self, lease: &'a Lease, at: u64, events: &'a [Event], change: HeadChange) -> Pending<'a, ()> {
        let times = self.lease_times();
        ready(self.with(|rows| rows.append(lease, at, events, change, times)))
    }

    fn load<'a>(&'a self, run: &'a RunId) -> Pending<'a, StoredRun> {
        ready(
            self.with(|rows| {
                rows.run(run).map(|kept| StoredRun { head: kept.head.clone(), events: kept.events.clone() })
            }),
        )
    }

    fn head<'a>(&'a self, run: &'a RunId) -> Pending<'a, RunHead> {
        ready(self.with(|rows| rows.run(run).map(|kept| kept.head.clone())))
    }

    fn claim<'a>(&'a self, run: &'a RunId) -> Pending<'a, Lease> {
        let (now, until) = self.lease_times();
        ready(self.with(|rows| rows.claim(run, now, until)))
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> Pending<'a, ()> {
        let (_, until) = self.lease_times();
        let holder = LeaseHolder { owner: OWNER.to_owned(), until };
        ready(self.with(|rows| rows.leased(lease).map(|head| head.held_by = Some(holder))))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, ()> {
        self.with(|rows| {
            if let Ok(head) = rows.leased(lease) {
                head.held_by = None;
            }
        });
        ready(Ok(()))
    }

    fn runs<'a>(&'a self, filter: &'a RunFilter) -> Pending<'a, Vec<RunHead>> {
        let mut heads = self.with(|rows| {
            let heads = rows.runs.values().map(|kept| &kept.head);
            heads.filter(|head| filter.matches(head)).cloned().collect::<Vec<_>>()
        });
        heads.sort_by_key(|head| std::cmp::Reverse(head.cursor()));
        heads.truncate(page(filter.limit) as usize);
        ready(Ok(heads))
    }
}

impl Conversations for Memory {
    fn history<'a>(&'a self, conversation: &'a ConversationId, turns_max: u32) -> Pending<'a, Vec<Turn>> {
        ready(Ok(self.with(|rows| {
            let turns = rows.conversations.get(conversation).map_or(&[][..], |talk| &talk.turns);
            turns[turns.len().saturating_sub(turns_max as usize)..].to_vec()
        })))
    }

    fn conversation<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, Option<ConversationHead>> {
        ready(Ok(self.with(|rows| rows.conversations.get(conversation).map(|talk| talk.head.clone()))))
    }

    fn conversations(&self, limit: u32) -> Pending<'_, Vec<ConversationHead>> {
        let mut heads: Vec<_> = self.with(|rows| rows.conversations.values().map(|talk| talk.head.clone()).collect());
        heads.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then_with(|| a.conversation.cmp(&b.conversation)));
        heads.truncate(page(limit) as usize);
        ready(Ok(heads))
    }

    fn erase<'a>(&'a self, conversation: &'a ConversationId) -> Pending<'a, bool> {
        ready(Ok(self.with(|rows| {
            let before = rows.runs.len();
            rows.runs.retain(|_, kept| kept.head.conversation.as_ref() != Some(conversation));
            let Rows { runs, closed, .. } = rows;
            closed.retain(|run| runs.contains_key(run));
            let document = rows.documents.remove(conversation).is_some();
            rows.conversations.remove(conversation).is_some() || rows.runs.len() < before || document
        })))
    }
}

impl Holds for Memory {
    fn holds<'a>(&'a self, filter: &'a HoldFilter) -> Pending<'a, Vec<OpenHold>> {
        let mut holds = self.with(|rows| {
            let of_run = |kept: &Kept| -> Vec<OpenHold> {
                let open = kept.holds.values().filter(|hold| hold.closed.is_none());
                open.map(|it| OpenHold {
                    hold: it.hold.clone(),
                    agent: kept.head.agent.clone(),
                    conversation: kept.head.conversation.clone(),
                    contact: kept.head.contact.clone(),
                    opened_at: it.opened_at,
                })
                .filter(|hold| filter.matches(hold))
                .collect()
            };
            rows.runs.values().flat_map(of_run).collect::<Vec<_>>()
        });
        holds.sort_by_key(OpenHold::cursor);
        holds.truncate(page(filter.limit) as usize);
        ready(Ok(holds))
    }

    fn hold_closed<'a>(&'a self, run: &'a RunId, call: &'a CallId) -> Pending<'a, Option<HoldClosed>> {
        ready(Ok(self.with(|rows| rows.runs.get(run).and_then(|kept| kept.holds.get(call)?.closed.clone()))))
    }
}

impl Configs for Memory {
    fn put_config<'a>(&'a self, hash: &'a str, json: &'a str) -> Pending<'a, ()> {
        self.with(|rows| {
            if !rows.configs.contains_key(hash) {
                rows.configs.insert(hash.to_owned(), json.to_owned());
            }
        });
        ready(Ok(()))
    }

    fn config<'a>(&'a self, hash: &'a str) -> Pending<'a, Option<String>> {
        ready(Ok(self.with(|rows| rows.configs.get(hash).cloned())))
    }
}

impl Wire for Memory {
    fn put_wire<'a>(&'a self, run: &'a RunId, record: WireRecord) -> Pending<'a, ()> {
        ready(self.with(|rows| rows.run(run).map(|kept| drop(kept.wire.insert((record.trip, record.attempt), record)))))
    }

    fn wire<'a>(&'a self, run: &'a RunId) -> Pending<'a, Vec<WireRecord>> {
        ready(Ok(self.with(|rows| rows.runs.get(run).map_or(Vec::new(), |kept| kept.wire.values().cloned().collect()))))
    }
}
