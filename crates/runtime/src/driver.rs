//! The driver, the only thing that waits: performs each new want, stores events before what they lead to, feeds answers
//! back. Every use goes through this one loop.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use gesta_run::{
    Effect, Event, EventKind, FaultKind, FeedError, Input, InputKind, Met, Outcome, Run, RunError, RunResult, Status,
    Want, WantId,
};
use gesta_store::StoreError;
use gesta_telemetry::Recorder;
use tracing::{Instrument, Span};

use crate::agent::Parts;
use crate::cancel::Cancel;
use crate::document::{Asked, Working};
use crate::error::AgentError;
use crate::history::History;
use crate::journal::Journal;
use crate::perform::{self, Begun, Done, Performing};
use crate::progress::{Listener, Progress};
use crate::trace;

/// How often a lease is renewed while nothing is written.
const RENEW_EVERY: Duration = Duration::from_secs(10);

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
    /// What is being performed. Few things are at any time, so each is asked whenever one has news.
    going: Vec<(WantId, Performing)>,
    /// What is logged meanwhile says of which run it is.
    span: Span,
    recorder: Option<Recorder>,
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
    ) -> Box<Self> {
        Box::new(Self {
            span: trace::span(&run),
            recorder: None,
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
            going: Vec::new(),
        })
    }

    /// With a working copy of the document, which is kept with the turn.
    pub(crate) fn with_document(mut self: Box<Self>, working: Option<Working>) -> Box<Self> {
        if let Some(working) = &working {
            self.journal.has_document(working.from);
        }
        self.working = working;
        self
    }

    /// With somebody who reads spans from what happens.
    pub(crate) fn with_recorder(mut self: Box<Self>, recorder: Option<Recorder>) -> Box<Self> {
        self.recorder = recorder;
        self
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// Drives the run, and hands back how it stands when nothing is left to do here.
    pub(crate) async fn drive(mut self: Box<Self>) -> Result<Arc<RunResult>, AgentError> {
        let span = self.span.clone();
        let (result, failed) = match self.until_quiet().instrument(span.clone()).await {
            Ok(()) => (self.run.into_result(), None),
            // It goes on elsewhere: what was done here counts for nothing, and how it ends is told there.
            Err(why @ StoreError::Fenced { .. }) => {
                tracing::info!(%why, "the run goes on elsewhere");
                self.going.clear();
                return Err(why.into());
            }
            Err(why) => (self.store_failed(&why).await, Some(Outcome::StoreFailed)),
        };
        span.in_scope(|| trace::left(&result));
        if let Some(recorder) = self.recorder {
            recorder.finish(failed);
        }
        let result = Arc::new(result);
        if let Some(listener) = &self.listener {
            listener(Progress::Finished(result.clone()));
        }
        Ok(result)
    }

    async fn until_quiet(&mut self) -> Result<(), StoreError> {
        loop {
            if self.cancel.is_cancelled() && !self.cancel_fed() {
                let _ = self.feed(InputKind::Cancelled);
            }
            let done = self.start_wants().await?;
            if !done.is_empty() {
                done.into_iter().for_each(|done| self.take(done));
            } else if self.going.is_empty() {
                break;
            } else {
                self.wait().await?;
            }
        }
        if !self.run.closed() || self.run.can_go_on() {
            crate::turn::store_snapshot(&self.parts).await?;
        }
        self.journal.leave(&self.run).await
    }

    /// Stops what is no longer wanted and starts what is newly wanted. Gives what was answered at once.
    async fn start_wants(&mut self) -> Result<Vec<Done>, StoreError> {
        let wants = self.run.wants();
        // Dropped, what is going on is stopped.
        self.going.retain(|(id, _)| wants.iter().any(|want| want.id == *id));
        let mut done = Vec::new();
        for want in wants {
            let waits_outside = matches!(want.effect, Effect::Hold(_));
            if waits_outside || self.going.iter().any(|(id, _)| *id == want.id) {
                continue;
            }
            if want.effect.needs_stored_log() {
                self.journal.flush(&self.run).await?;
            }
            match std::future::poll_fn(|cx| Poll::Ready(self.start(&want, cx))).await {
                Begun::Done(answer) => done.push(answer),
                Begun::Going(performing) => self.going.push((want.id, performing)),
            }
        }
        Ok(done)
    }

    fn start(&mut self, want: &Want, cx: &mut Context<'_>) -> Begun {
        let is_trip = want.effect == Effect::CallModel;
        if is_trip && let Some(listener) = &self.listener {
            listener(Progress::TripStarted { trip: self.run.trip(), label: self.run.next_label() });
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
        stage.begin(want, cx)
    }

    /// Waits for one thing to happen, then takes what else is at hand, so that it shares an append.
    async fn wait(&mut self) -> Result<(), StoreError> {
        let deadline = self.run.next_deadline().filter(|until| self.ticked != Some(*until));
        let left = deadline.map(|until| Duration::from_millis(until.since_ms(self.parts.clock.now())));
        tokio::select! {
            biased;
            done = any_done(&mut self.going) => done.into_iter().for_each(|done| self.take(done)),
            Some(asked) = asked(&mut self.working) => self.ask(asked),
            () = fired(&self.cancel), if self.cancel.may_fire() && !self.cancel_fed() => {
                let _ = self.feed(InputKind::Cancelled);
            }
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
        if let Met::Failed(fault) = &done.met
            && fault.kind == FaultKind::ContextLength
            && !self.shortened
            && self.history.shorten()
        {
            // The want stands: it is started again with a shorter history.
            self.shortened = true;
            tracing::warn!("the history was too long and was shortened");
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
            Err(_) => tracing::debug!("an answer came too late"),
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
        let span = self.span.clone();
        let _within = span.enter();
        let events = self.run.feed_owned(input)?;
        self.resumed |= events.iter().any(|event| matches!(event.what, EventKind::Held { .. }));
        if let Some(working) = &mut self.working {
            working.hand_back(&events);
        }
        for event in events {
            let event = Arc::new(event);
            self.tell(&event);
            self.journal.gather(event);
        }
        Ok(())
    }

    /// Tells of the events that the run began with, and keeps those that are not stored yet.
    pub(crate) fn begin(&mut self, events: Vec<Event>) {
        let span = self.span.clone();
        let _within = span.enter();
        for event in events {
            let event = Arc::new(event);
            self.tell(&event);
            self.journal.gather_first(event);
        }
    }

    /// Tells the log and the listener what happened.
    fn tell(&mut self, event: &Arc<Event>) {
        trace::event(event);
        if let Some(recorder) = &mut self.recorder {
            recorder.happened(event);
        }
        if let Some(listener) = &self.listener {
            listener(Progress::Happened(event.clone()));
        }
    }

    pub(crate) async fn abandon(mut self: Box<Self>) {
        self.journal.abandon().await;
    }

    /// A checkpoint that cannot be written ends the run here; its log goes on from the last one.
    async fn store_failed(&mut self, why: &StoreError) -> RunResult {
        tracing::error!(code = why.code(), "a checkpoint could not be written; the run stops here");
        self.going.clear();
        self.journal.abandon().await;
        let mut result = self.run.result();
        result.status = Status::Ended;
        result.outcome = Some(Outcome::StoreFailed);
        result.error = Some(RunError::of(Outcome::StoreFailed, why.to_string()));
        result
    }
}

/// Waits until something that is being performed is done, and takes all that is.
async fn any_done(going: &mut Vec<(WantId, Performing)>) -> Vec<Done> {
    std::future::poll_fn(|cx| {
        let mut all = Vec::new();
        going.retain_mut(|(_, performing)| match performing.as_mut().poll(cx) {
            Poll::Ready(done) => {
                all.push(done);
                false
            }
            Poll::Pending => true,
        });
        if all.is_empty() { Poll::Pending } else { Poll::Ready(all) }
    })
    .await
}

/// The next grant that a running call of the document asks for; never, where there is no document.
async fn asked(working: &mut Option<Working>) -> Option<Asked> {
    match working {
        Some(working) => working.next_asked().await,
        None => std::future::pending().await,
    }
}

/// Waits for the signal, whose place in memory is taken only then.
async fn fired(cancel: &Cancel) {
    Box::pin(cancel.cancelled()).await;
}

/// A timer that is set up only when it is waited for.
async fn pause(duration: Duration) {
    Box::pin(tokio::time::sleep(duration)).await;
}

fn text_of(delta: &gesta_run::Delta) -> &str {
    match delta {
        gesta_run::Delta::Text { text, .. } | gesta_run::Delta::Thinking { text, .. } => text,
        gesta_run::Delta::Call { .. } | gesta_run::Delta::Raw { .. } => "",
    }
}
