//! The pool: workers started ahead, lent to one conversation each, taken back, and never more than there may be.

mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use gesta_document::{Record, Terms};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use crate::worker::Worker;
use crate::{Cause, Demand, StartError, Walls, WorkerCommand};
use state::State;

/// How many workers there are, and how long each is kept (`spec/documents.md`, 3.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettings {
    /// Where documents run.
    pub isolation: Isolation,
    /// What to do where the kernel lacks a wall.
    pub demand: Demand,
    /// Workers that are started ahead and wait for a conversation.
    pub warm: usize,
    /// Workers at any time, those that wait included. At least one.
    pub workers_max: usize,
    /// How long a conversation waits for a worker before its tool gets an error, in milliseconds.
    pub wait_max_ms: u64,
    /// Calls after which a worker is replaced.
    pub calls_max: u32,
    /// Memory at which a worker is replaced after a call, in bytes.
    pub resident_bytes_max: u64,
    /// How long a worker with a conversation's open document is kept for its next call, in milliseconds.
    pub idle_max_ms: u64,
    /// How long one grant may take, in milliseconds.
    pub grant_time_max_ms: u64,
}

impl Default for PoolSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            isolation: Isolation::default(),
            demand: Demand::default(),
            warm: 2,
            workers_max: cores.saturating_mul(4),
            wait_max_ms: 5_000,
            calls_max: 500,
            resident_bytes_max: 64 * 1024 * 1024,
            idle_max_ms: 60_000,
            grant_time_max_ms: 10_000,
        }
    }
}

/// Where documents run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Isolation {
    /// In processes of their own, started like this.
    Process(WorkerCommand),
    /// In threads of this process (`--unsafe-in-process`): for documents whose authors are all trusted, and for systems
    /// other than Linux. A document that does not stop is left running, one that needs too much memory or nests too
    /// deeply takes the whole program with it, and what it prints goes to the program's output.
    None,
}

impl Default for Isolation {
    fn default() -> Self {
        Self::Process(WorkerCommand::default())
    }
}

/// How many workers do what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that live or are being started.
    pub live: usize,
    /// Started ahead, with no document.
    pub warm: usize,
    /// Idle, with the open document of a conversation that was active lately.
    pub kept: usize,
    /// Requests that wait for a worker.
    pub waiting: usize,
}

/// Workers for all conversations of a process. Clones share it; with the last one all workers end.
#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: PoolSettings,
    runtime: Handle,
    state: Mutex<State>,
}

/// A document as its conversation has it.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) conversation: Arc<str>,
    pub(crate) record: Arc<Record>,
    pub(crate) terms: Arc<Terms>,
}

impl Opened {
    /// Whether a worker that has `self` open can go on as `other`.
    fn is(&self, other: &Self) -> bool {
        self.conversation == other.conversation
            && (Arc::ptr_eq(&self.terms, &other.terms) || self.terms == other.terms)
            && (Arc::ptr_eq(&self.record, &other.record) || same(&self.record, &other.record))
    }
}

/// Whether two records are the same document. Who wrote a tool and when is the host's and never told to a worker.
fn same(a: &Record, b: &Record) -> bool {
    let tool = |(a, b): (&gesta_document::AddedTool, &gesta_document::AddedTool)| {
        a.name == b.name && a.source == b.source && a.set_aside == b.set_aside
    };
    a.base == b.base
        && a.data == b.data
        && a.data_base == b.data_base
        && a.added.len() == b.added.len()
        && a.added.iter().zip(&b.added).all(tool)
}

/// A worker, with the document that it has open.
#[derive(Debug)]
struct Held {
    worker: Worker,
    opened: Option<Opened>,
}

/// A worker on loan. Dropped, it ends: whoever wants it kept says so.
#[derive(Debug)]
pub(crate) struct Leased {
    shared: Arc<Shared>,
    held: Option<Held>,
}

impl Pool {
    /// A pool without a worker yet; [`Pool::start`] or the first call starts them.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time, to which it is bound.
    pub fn new(settings: PoolSettings) -> Self {
        let shared = Shared { settings, runtime: Handle::current(), state: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Starts the workers that wait ahead, and tells which walls are in force.
    ///
    /// # Errors
    /// No worker can be started, or a wall is missing that was demanded.
    pub async fn start(&self) -> Result<Walls, StartError> {
        let worker = self.shared.start_one().await?;
        let walls = worker.walls.clone();
        let mut state = self.shared.lock();
        state.live += 1;
        state.warm.push(worker);
        self.shared.settle(&mut state);
        Ok(walls)
    }

    /// How many workers do what.
    pub fn counts(&self) -> Counts {
        let state = self.shared.lock();
        Counts { live: state.live, warm: state.warm.len(), kept: state.kept.len(), waiting: state.waiting() }
    }

    pub(crate) fn settings(&self) -> &PoolSettings {
        &self.shared.settings
    }

    /// A worker for this document: the one that has it open, a new one, or whichever is free first.
    pub(crate) async fn lease(&self, document: &Opened) -> Result<Leased, Cause> {
        let waiting = {
            let mut state = self.shared.lock();
            if let Some(held) = state.take_kept(document) {
                return Ok(self.shared.lend(held));
            }
            let (sender, receiver) = oneshot::channel();
            state.queue.push(&document.conversation, sender);
            self.shared.settle(&mut state);
            receiver
        };
        let waited_ms = self.shared.settings.wait_max_ms;
        match timeout(Duration::from_millis(waited_ms), waiting).await {
            Ok(Ok(leased)) => Ok(leased?),
            Ok(Err(_)) | Err(_) => Err(Cause::Busy { waited_ms }),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under the lock; if it did, the counts would still be whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lend(self: &Arc<Self>, held: Held) -> Leased {
        Leased { shared: Arc::clone(self), held: Some(held) }
    }

    async fn start_one(&self) -> Result<Worker, StartError> {
        let worker = Worker::start(&self.settings.isolation).await?;
        if self.settings.demand == Demand::Required && !worker.walls.are_whole() {
            return Err(StartError::NotWhole { walls: worker.walls.to_string() });
        }
        Ok(worker)
    }

    /// Gives what is there to those who wait, and starts what is missing.
    fn settle(self: &Arc<Self>, state: &mut State) {
        while let Some(worker) = state.warm.pop() {
            let Some(sender) = state.queue.pop() else {
                state.warm.push(worker);
                break;
            };
            let lent = self.lend(Held { worker, opened: None });
            // Somebody who has gone meanwhile leaves it to the next.
            if let Err(Ok(mut back)) = sender.send(Ok(lent)) {
                state.warm.extend(back.held.take().map(|held| held.worker));
            }
        }
        let wanted = state.queue.len() + self.settings.warm;
        while state.warm.len() + state.starting < wanted {
            if state.live >= self.settings.workers_max.max(1) {
                // Those who wait come before a document that nobody uses just now; workers ahead do not.
                let in_need = state.starting < state.queue.len();
                if !in_need || !state.end_oldest_kept() {
                    break;
                }
            }
            state.live += 1;
            state.starting += 1;
            let shared = Arc::clone(self);
            self.runtime.spawn(async move {
                let started = shared.start_one().await;
                shared.started(started);
            });
        }
    }

    fn started(self: &Arc<Self>, started: Result<Worker, StartError>) {
        let mut state = self.lock();
        state.starting -= 1;
        match started {
            Ok(worker) => state.warm.push(worker),
            Err(why) => {
                state.live -= 1;
                // Who waits learns of it. Where nobody does, the next who needs a worker tries again.
                let Some(sender) = state.queue.pop() else { return };
                sender.send(Err(why)).ok();
            }
        }
        self.settle(&mut state);
    }

    /// Takes back a worker with its open document, or ends it.
    fn take_back(self: &Arc<Self>, held: Held, keep: bool) {
        let mut state = self.lock();
        if keep && self.settings.idle_max_ms > 0 {
            state.kept.push_back((Instant::now(), held));
            if !state.watched {
                state.watched = true;
                self.runtime.spawn(end_the_idle(Arc::downgrade(self)));
            }
        } else {
            state.live -= 1;
            drop(held);
        }
        self.settle(&mut state);
    }

    /// Ends documents that nobody has used for long. Gives the moment at which the next may be due.
    fn end_idle(self: &Arc<Self>) -> Option<Instant> {
        let idle_max = Duration::from_millis(self.settings.idle_max_ms);
        let mut state = self.lock();
        loop {
            let Some((since, _)) = state.kept.front() else {
                state.watched = false;
                return None;
            };
            let due = *since + idle_max;
            if due > Instant::now() {
                return Some(due);
            }
            state.end_oldest_kept();
            self.settle(&mut state);
        }
    }
}

async fn end_the_idle(shared: Weak<Shared>) {
    while let Some(due) = shared.upgrade().and_then(|shared| shared.end_idle()) {
        sleep_until(due).await;
    }
}

impl Leased {
    pub(crate) fn worker(&mut self) -> Option<&mut Worker> {
        self.held.as_mut().map(|held| &mut held.worker)
    }

    /// Whether it has the document open. From now on only [`Leased::keep`] says what it has.
    pub(crate) fn take_opened(&mut self) -> bool {
        self.held.as_mut().is_some_and(|held| held.opened.take().is_some())
    }

    /// Gives it back with this document open; it is kept unless it has served its time.
    pub(crate) fn keep(mut self, opened: Opened, resident_bytes: u64) {
        if let Some(held) = self.held.take() {
            let settings = &self.shared.settings;
            let keep = held.worker.asked < settings.calls_max && resident_bytes < settings.resident_bytes_max;
            self.shared.take_back(Held { opened: Some(opened), ..held }, keep);
        }
    }

    /// Takes the worker out, to be ended by the caller; its place is free.
    pub(crate) fn take(&mut self) -> Option<Worker> {
        let held = self.held.take()?;
        let mut state = self.shared.lock();
        state.live -= 1;
        self.shared.settle(&mut state);
        drop(state);
        Some(held.worker)
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.shared.take_back(held, false);
        }
    }
}
