//! One turn from its beginning: takes the conversation, closes what was left there, begins the run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gesta_run::{
    ConversationId, Event, FeedError, HoldKind, Input, InputKind, OnMessageWhileParked, Opening, Run, RunId, RunResult,
    Status,
};
use gesta_store::{Busy, NewRun, StoreError};
use gesta_telemetry::Recorder;

use crate::agent::{Ask, Parts, Resume};
use crate::document::Working;
use crate::driver::Driver;
use crate::error::AgentError;
use crate::history::History;
use crate::journal::Journal;
use crate::progress::Progress;
use crate::{clock, resume};

/// How many runs left behind in a conversation are closed before a turn begins. One is what a crash leaves.
const LEFT_MAX: usize = 4;
/// How often a turn that waits for its conversation asks whether it is free.
const QUEUE_EVERY: Duration = Duration::from_millis(20);

/// The result is shared with whoever listened to the end.
pub(crate) async fn run(parts: &Arc<Parts>, mut ask: Ask) -> Result<Arc<RunResult>, AgentError> {
    let at = parts.clock.now();
    let id = ask.run.clone().unwrap_or_else(gesta_store::new_run_id);
    let opening = Opening {
        run: id.clone(),
        conversation: ask.conversation.clone(),
        contact: ask.contact.clone(),
        input: std::mem::take(&mut ask.input),
        now: clock::notice(at, &parts.zone, &parts.plan.spec.timezone),
        trace: ask.trace,
    };
    // The machine looks at the input before anything is stored: an input it refuses leaves no trace.
    let mut run = Run::new(parts.plan.clone());
    let events = run.feed_owned(Input { at, kind: InputKind::Opened(opening) }).map_err(AgentError::Input)?;
    let new = NewRun {
        run: id.clone(),
        agent: parts.plan.spec.agent.clone(),
        conversation: ask.conversation.clone(),
        contact: ask.contact.clone(),
        config: parts.plan.hash().to_owned(),
        at,
    };
    belongs(parts, ask.conversation.as_ref()).await?;
    // A document that cannot be read or opened leaves no trace either: nothing of the run is stored then.
    let opened = working(parts, &id, ask.conversation.as_ref(), false).await?;
    let journal = if !parts.stored && ask.conversation.is_none() {
        Journal::new(parts.store.clone(), new, true)
    } else {
        Box::pin(open(parts, new, &events, &ask)).await?
    };
    let working = unless_changed(opened, working_unopened(parts, &id, ask.conversation.as_ref(), false).await?);
    let history = match &ask.conversation {
        Some(conversation) => {
            History::new(parts.store.history(conversation, parts.history.turns_max).await?, parts.history)
        }
        None => History::default(),
    };
    if let Some(listener) = &ask.listener {
        listener(Progress::Started { run: id });
    }
    let driver = Driver::new(parts.clone(), run, journal, history, ask.cancel, ask.listener, false);
    let recorder = ask.traces.map(|traces| Recorder::new(traces, parts.plan.clone(), None));
    let mut driver = driver.with_document(working).with_recorder(recorder);
    driver.begin(events);
    driver.drive().await
}

/// A conversation is one agent's: what was said to one is not told to another, and what waits in it is not closed by
/// another.
async fn belongs(parts: &Arc<Parts>, conversation: Option<&ConversationId>) -> Result<(), AgentError> {
    let Some(conversation) = conversation else { return Ok(()) };
    match parts.store.conversation(conversation).await? {
        Some(head) if head.agent != parts.plan.spec.agent => {
            Err(AgentError::OfAnother { conversation: conversation.clone(), agent: head.agent })
        }
        _ => Ok(()),
    }
}

/// The turn's working copy of the document, opened, where the agent has one.
pub(crate) async fn working(
    parts: &Arc<Parts>,
    run: &RunId,
    conversation: Option<&ConversationId>,
    resumed: bool,
) -> Result<Option<Working>, AgentError> {
    let working = working_unopened(parts, run, conversation, resumed).await?;
    if let Some(working) = &working {
        working.open().await?;
    }
    Ok(working)
}

/// The copy that was opened before the conversation was the run's, unless another turn has changed the document since.
fn unless_changed(opened: Option<Working>, now: Option<Working>) -> Option<Working> {
    match (opened, now) {
        (Some(opened), Some(now)) if opened.from == now.from => Some(opened),
        (_, now) => now,
    }
}

async fn working_unopened(
    parts: &Arc<Parts>,
    run: &RunId,
    conversation: Option<&ConversationId>,
    resumed: bool,
) -> Result<Option<Working>, AgentError> {
    match &parts.documents {
        // Set aside, so that a run without a document takes no memory for it.
        Some(documents) => Box::pin(documents.open(parts.store.as_ref(), run, conversation, resumed)).await.map(Some),
        None => Ok(None),
    }
}

async fn open(parts: &Arc<Parts>, new: NewRun, first: &[Event], ask: &Ask) -> Result<Journal, AgentError> {
    store_snapshot(parts).await?;
    let mut left = 0;
    let mut executing = Executing::default();
    loop {
        let mut journal = Journal::new(parts.store.clone(), new.clone(), false);
        match journal.open(first).await {
            Ok(()) => return Ok(journal),
            Err(StoreError::ConversationBusy { run, busy: Busy::Open, .. })
                if !ask.cancel.is_cancelled() && (executing.in_parked(parts, &run).await? || ask.queue) =>
            {
                tokio::time::sleep(QUEUE_EVERY).await;
            }
            Err(StoreError::ConversationBusy { run, busy, .. }) if left < LEFT_MAX => {
                left += 1;
                make_room(parts, run, busy, ask).await?;
            }
            Err(StoreError::ConversationBusy { run, .. }) => return Err(AgentError::Busy { run }),
            Err(why) => return Err(why.into()),
        }
    }
}

/// Looks whether a run that someone works on is parked all the same: an approved call of it executes while other holds
/// are open. It is finished first, then the run is closed like any parked one (`spec/contract.md`, 7.7).
#[derive(Default)]
struct Executing {
    /// The run whose plan was looked at.
    seen: Option<RunId>,
}

impl Executing {
    async fn in_parked(&mut self, parts: &Arc<Parts>, id: &RunId) -> Result<bool, AgentError> {
        if parts.store.head(id).await?.status != Status::Parked {
            return Ok(false);
        }
        if self.seen.as_ref() != Some(id) {
            let (run, ..) = resume::load(parts, id).await?;
            if run.plan().spec.on_message_while_parked == OnMessageWhileParked::Refuse {
                let holds = run.holds().into_iter().filter(|hold| hold.kind == HoldKind::Call);
                let open = holds.map(|hold| hold.id).collect();
                return Err(AgentError::Waiting { run: id.clone(), open });
            }
            self.seen = Some(id.clone());
        }
        Ok(true)
    }
}

/// Closes the run that has the conversation, where it may be closed (`spec/contract.md`, 2.4 and 7.7).
async fn make_room(parts: &Arc<Parts>, run: RunId, busy: Busy, ask: &Ask) -> Result<(), AgentError> {
    match busy {
        Busy::Open => Err(AgentError::Busy { run }),
        Busy::Left => {
            let stored = parts.store.load(&run).await?;
            if let Some(listener) = &ask.listener {
                listener(Progress::TakenUp { run: run.clone(), events: stored.events });
            }
            let traces = ask.traces.clone();
            let going_on = Resume { listener: ask.listener.clone(), traces, ..Resume::default() };
            // Boxed, because taking a run up drives it, and driving is what this is part of.
            if stored.head.config == parts.plan.hash() {
                Box::pin(resume::resume(parts, &run, going_on)).await.map(drop)
            } else {
                Box::pin(resume::close_left(parts, &run, going_on)).await
            }
        }
        Busy::Parked | Busy::CanGoOn => match Box::pin(resume::supersede(parts, &run, ask.traces.clone())).await {
            Err(AgentError::Input(FeedError::Waiting { open })) => Err(AgentError::Waiting { run, open }),
            // Someone answered the last hold in between: it is looked at again.
            Err(AgentError::Input(FeedError::OutOfTurn(_))) => Ok(()),
            other => other,
        },
    }
}

/// Keeps the configuration by value, once, so that a parked run goes on with what it parked under.
pub(crate) async fn store_snapshot(parts: &Parts) -> Result<(), StoreError> {
    if parts.snapshot_stored.load(Ordering::Relaxed) {
        return Ok(());
    }
    parts.store.put_config(parts.plan.hash(), &parts.snapshot().to_string()).await?;
    parts.snapshot_stored.store(true, Ordering::Relaxed);
    Ok(())
}
