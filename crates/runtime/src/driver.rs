//! The driver, the only thing that waits: performs each new want, stores events before what they lead to, feeds answers
//! back. Every use goes through this one loop.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use gesta_run::{
    Effect, Event, EventKind, FaultKind, FeedError, Input, InputKind, Met, Outcome, Run, RunError, RunResult, Status,
    Want, WantId,
};
use gesta_store::StoreError;
use tracing::{Instrument, Span};

use crate::agent::Parts;
use crate::cancel::Cancel;
use crate::document::{Asked, Working};
use crate::error::AgentError;
use crate::history::History;
use crate::journal::Journal;
use crate::perform::{self, Done};
use crate::progress::{Listener, Progress};
use crate::trace;

/// How often a lease is renewed while nothing is written.
const RENEW_EVERY: Duration = Duration::from_secs(10);

type Task = Abortable<perform::Performing>;

/// Drives one run until it is closed or parked.
pub(crate) struct Driver {
    parts: Arc<Parts>,
    run: Run,
    journal: Journal,
    history: History,
    /// The turn's working copy of the document, where the agent has one.
    working: Option<Working>,
    shortened: bool,
    cancel: Cancel,
    listener: Option<Listener>,
    /// The run has been parked, or was taken up.
    resumed: bool,
    /// The deadline that was told last, so that one is told once.
    ticked: Option<gesta_run::Timestamp>,
    tasks: FuturesUnordered<Task>,
    going: Vec<(WantId, AbortHandle)>,
    run_span: Span,
    /// Of the trip whose answer came last, or is awaited.
    trip_span: Span,
}

impl Driver {
    pub(crate) fn new(
        parts: Arc<Parts>,
        run: Run,
        journal: Journal,
        history: History,
        cancel: Cancel,
        listener: Option<Listener>,
        resumed: bool,
    ) -> Self {
        Self {
            run_span: trace::run_span(&run),
            trip_span: Span::none(),
            parts,
            run,
            journal,
            history,
            working: None,
            shortened: false,
            cancel,
            listener,
            resumed,
            ticked: None,
            tasks: FuturesUnordered::new(),
            going: Vec::new(),
        }
    }

    /// With a working copy of the document, which is kept with the turn.
    pub(crate) fn with_document(mut self, working: Option<Working>) -> Self {
        if let Some(working) = &working {
            self.journal.has_document(working.from);
        }
        self.working = working;
        self
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// Drives the run, and hands back how it stands when nothing is left to do here.
    pub(crate) async fn drive(mut self) -> Result<RunResult, AgentError> {
        let span = self.run_span.clone();
        let result = match self.until_quiet().instrument(span).await {
            Ok(()) => self.run.into_result(),
            Err(why) => self.store_failed(&why).await,
        };
        if let Some(listener) = &self.listener {
            listener(Progress::Finished(Box::new(result.clone())));
        }
        Ok(result)
    }

    async fn until_quiet(&mut self) -> Result<(), StoreError> {
        if self.cancel.is_cancelled() {
            let _ = self.feed(InputKind::Cancelled);
        }
        loop {
            self.start_wants().await?;
            if self.tasks.is_empty() {
                break;
            }
            self.wait().await?;
        }
        self.journal.leave(&self.run).await
    }

    /// Stops what is no longer wanted and starts what is newly wanted.
    async fn start_wants(&mut self) -> Result<(), StoreError> {
        let wants = self.run.wants();
        self.going.retain(|(id, handle)| {
            let wanted = wants.iter().any(|want| want.id == *id);
            if !wanted {
                handle.abort();
            }
            wanted
        });
        for want in wants {
            let waits_outside = matches!(want.effect, Effect::Hold(_));
            if waits_outside || self.going.iter().any(|(id, _)| *id == want.id) {
                continue;
            }
            if want.effect.needs_stored_log() {
                self.journal.flush(&self.run).await?;
            }
            self.start(want);
        }
        Ok(())
    }

    fn start(&mut self, want: Want) {
        if want.effect == Effect::CallModel {
            self.trip_span = trace::trip_span(&self.run, &self.parts.model_name);
            if let Some(listener) = &self.listener {
                listener(Progress::TripStarted { trip: self.run.trip(), label: self.run.next_label() });
            }
        }
        let stage = perform::Stage {
            parts: &self.parts,
            run: &self.run,
            history: self.history.messages(),
            working: self.working.as_ref(),
            listener: self.listener.as_ref(),
            resumed: self.resumed,
            shortened: self.shortened,
        };
        let (handle, registration) = AbortHandle::new_pair();
        let _within = (want.effect == Effect::CallModel).then(|| self.trip_span.enter());
        self.tasks.push(Abortable::new(stage.perform(&want), registration));
        self.going.push((want.id, handle));
    }

    /// Waits for one thing to happen, then takes what else is at hand, so that it shares an append.
    async fn wait(&mut self) -> Result<(), StoreError> {
        let deadline = self.run.next_deadline().filter(|until| self.ticked != Some(*until));
        let left = deadline.map(|until| Duration::from_millis(until.since_ms(self.parts.clock.now())));
        if self.cancel.is_cancelled() && !self.cancel_fed() {
            let _ = self.feed(InputKind::Cancelled);
            return Ok(());
        }
        tokio::select! {
            biased;
            done = self.tasks.next() => {
                if let Some(Ok(done)) = done { self.take(done); }
                while let Some(Some(done)) = self.tasks.next().now_or_never() {
                    if let Ok(done) = done { self.take(done); }
                }
            }
            Some(asked) = asked(&mut self.working) => self.ask(asked),
            () = self.cancel.cancelled(), if !self.cancel_fed() => { let _ = self.feed(InputKind::Cancelled); }
            () = pause(left.unwrap_or(RENEW_EVERY)), if left.is_some() => {
                self.ticked = deadline;
                // A timer may fire within the last millisecond before its moment.
                let at = deadline.map_or(self.parts.clock.now(), |until| until.max(self.parts.clock.now()));
                let _ = self.feed_at(Input { at, kind: InputKind::Tick });
            }
            () = pause(RENEW_EVERY), if self.journal.is_leased() => self.journal.renew().await?,
        }
        Ok(())
    }

    /// A running call of the document asks for a grant. What is asked too late is told that nobody listens.
    fn ask(&mut self, asked: Asked) {
        let Asked { call, n, grant, arguments, answer } = asked;
        let want = self.run.wants().into_iter().find(|want| want.effect == Effect::RunTool(call.clone()));
        let (Some(want), Some(working)) = (want, &mut self.working) else { return };
        working.wait_for(call.clone(), n, answer);
        if let Err(why) = self.feed(InputKind::Met { want: want.id, met: Met::Asked { n, grant, arguments } })
            && let Some(working) = &mut self.working
        {
            working.refuse(&call, n, why.to_string());
        }
    }

    fn cancel_fed(&self) -> bool {
        self.run.status() == Status::Ended
    }

    fn take(&mut self, done: Done) {
        self.going.retain(|(id, _)| *id != done.want);
        if let Met::Failed(fault) = &done.met
            && fault.kind == FaultKind::ContextLength
            && !self.shortened
            && self.history.shorten()
        {
            // The want stands: it is started again with a shorter history.
            self.shortened = true;
            tracing::warn!(run = ?self.run.opening().map(|it| &it.run), "the history was too long and was shortened");
            return;
        }
        if let Some(image) = self.working.as_ref().and_then(Working::take_changed) {
            self.journal.keep(image);
        }
        let said = self.feed(InputKind::Met { want: done.want.clone(), met: done.met });
        match said {
            Ok(()) => {}
            // The want stands, and would bring the same tools again.
            Err(FeedError::Tool(why)) => {
                let met = Met::Failed(perform::no_tools(&why));
                let _ = self.feed(InputKind::Met { want: done.want, met });
            }
            Err(why) => tracing::debug!(%why, "an answer came too late"),
        }
        if let (Some(delta), Some(listener)) = (done.held_back, &self.listener)
            && self.run.reply_text().trim_start() == text_of(&delta).trim_start()
        {
            listener(Progress::Delta { trip: self.run.trip().saturating_sub(1), delta });
        }
    }

    pub(crate) fn tick(&mut self) {
        let _ = self.feed(InputKind::Tick);
    }

    pub(crate) fn feed(&mut self, kind: InputKind) -> Result<(), FeedError> {
        self.feed_at(Input { at: self.parts.clock.now(), kind })
    }

    pub(crate) fn feed_at(&mut self, input: Input) -> Result<(), FeedError> {
        let _within = self.run_span.enter();
        let events = self.run.feed_owned(input)?;
        self.resumed |= events.iter().any(|event| matches!(event.what, EventKind::Held { .. }));
        if let Some(working) = &mut self.working {
            working.hand_back(&events);
        }
        self.tell(&events);
        self.journal.gather(events);
        Ok(())
    }

    /// Tells the log and the listener what happened.
    pub(crate) fn tell(&self, events: &[Event]) {
        for event in events {
            trace::event(event, &self.run_span, &self.trip_span, self.parts.content.as_ref());
            if let Some(listener) = &self.listener {
                listener(Progress::Happened(Box::new(event.clone())));
            }
        }
    }

    pub(crate) async fn abandon(mut self) {
        self.journal.abandon().await;
    }

    /// A checkpoint that cannot be written ends the run here; its log goes on from the last one.
    async fn store_failed(&mut self, why: &StoreError) -> RunResult {
        tracing::error!(%why, "a checkpoint could not be written; the run stops here");
        self.going.iter().for_each(|(_, handle)| handle.abort());
        self.journal.abandon().await;
        let mut result = self.run.result();
        result.status = Status::Ended;
        result.outcome = Some(Outcome::StoreFailed);
        result.error = Some(RunError::of(Outcome::StoreFailed, why.to_string()));
        result
    }
}

/// The next grant that a running call of the document asks for; never, where there is no document.
async fn asked(working: &mut Option<Working>) -> Option<Asked> {
    match working {
        Some(working) => working.next_asked().await,
        None => std::future::pending().await,
    }
}

/// A timer that is set up only when it is waited for.
async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

fn text_of(delta: &gesta_run::Delta) -> &str {
    match delta {
        gesta_run::Delta::Text { text, .. } | gesta_run::Delta::Thinking { text, .. } => text,
        gesta_run::Delta::Call { .. } | gesta_run::Delta::Raw { .. } => "",
    }
}
