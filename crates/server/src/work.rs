//! Turns that go on: each in a task of its own, so that none depends on whether somebody still listens.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gesta_run::{Delta, EventKind, Outcome, RunError, RunId, RunResult, Status};
use gesta_runtime::{Agent, AgentError, Ask, Cancel, Listener, Progress, Resume, Resumed};
use gesta_store::{RunHead, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::AbortHandle;

use crate::app::App;
use crate::hub::{Feed, News};
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::requests;

/// What goes on here.
pub(crate) struct Works {
    places: Arc<Semaphore>,
    going: Mutex<HashMap<u64, Going>>,
    /// How many turns go on, and whether new ones are taken.
    count: watch::Sender<usize>,
    stopping: watch::Sender<bool>,
    next: AtomicU64,
}

struct Going {
    run: RunId,
    cancel: Cancel,
    task: Option<AbortHandle>,
}

/// A turn that has begun: its end arrives here, and is awaited or not.
pub(crate) struct Begun<T> {
    pub(crate) run: RunId,
    pub(crate) done: oneshot::Receiver<Result<T, AgentError>>,
}

impl<T> Begun<T> {
    /// Waits for its end.
    pub(crate) async fn end(self) -> Result<T, Problem> {
        Ok(self.done.await.map_err(|_| stopped())??)
    }
}

impl Works {
    pub(crate) fn new(runs_max: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(runs_max)),
            going: Mutex::default(),
            count: watch::Sender::new(0),
            stopping: watch::Sender::new(false),
            next: AtomicU64::new(0),
        }
    }

    fn going(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Going>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no new work is taken.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits until no new work is taken.
    pub(crate) async fn stopping(&self) {
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// Takes no new work, waits for what goes on, and at the latest after this while lets go of it: another process,
    /// or this one's next start, takes it up from the log.
    pub(crate) async fn stop(&self, wait: Duration) -> usize {
        self.stopping.send_replace(true);
        let mut count = self.count.subscribe();
        let _ = tokio::time::timeout(wait, count.wait_for(|count| *count == 0)).await;
        let left: Vec<AbortHandle> = self.going().values_mut().filter_map(|going| going.task.take()).collect();
        left.iter().for_each(AbortHandle::abort);
        if !left.is_empty() {
            let _ = tokio::time::timeout(Duration::from_secs(5), count.wait_for(|count| *count == 0)).await;
        }
        left.len()
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        if self.is_stopping() {
            return Err(Problem::busy("stopping", "the server is being stopped and takes no new work", 5));
        }
        let full = |_| Problem::busy("overloaded", "as many runs go on as this server carries", 1);
        self.places.clone().try_acquire_owned().map_err(full)
    }

    /// How many more turns may begin.
    pub(crate) fn free(&self) -> usize {
        self.places.available_permits()
    }

    /// Tells from now on when a turn has begun or ended.
    pub(crate) fn watch(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// How many turns go on.
    pub(crate) fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Ends what goes on of a run here. Says whether there was anything.
    fn cancel(&self, run: &RunId) -> bool {
        let going = self.going();
        let of_run = going.values().filter(|going| going.run == *run);
        of_run.map(|going| going.cancel.cancel()).count() > 0
    }
}

/// Leaves the list with the work, whether that ended, panicked or was let go of.
struct Listed {
    app: Arc<App>,
    id: u64,
    _place: OwnedSemaphorePermit,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.app.works.going().remove(&self.id);
        self.app.works.count.send_modify(|count| *count -= 1);
    }
}

/// Nobody works on it any more, and it has not ended.
pub(crate) fn stopped() -> Problem {
    Problem::busy("left", "the work was interrupted; what is stored is kept", 5)
}

/// Begins a turn. Gives it back as soon as it is stored, or refuses it.
pub(crate) async fn start(app: &Arc<App>, agent: &Agent, ask: Ask) -> Result<Begun<RunResult>, Problem> {
    let run = ask.run.clone().unwrap_or_else(gesta_store::new_run_id);
    let (told, begun) = oneshot::channel();
    let (traces, trace) = (app.traces.clone(), requests::trace());
    let (agent, ask) = (agent.clone(), Ask { run: Some(run.clone()), traces, trace, ..ask });
    let work = move |cancel, listener| async move {
        let ask = Ask { cancel, listener: Some(listener), ..ask };
        agent.run(ask).await
    };
    let done = spawn(app, &run, Admitted { by: AdmittedBy::Start, told }, work)?;
    admitted(run, begun, done).await
}

/// Waits until the work has begun for good. What ended before that has either done all there was to do, or is refused.
async fn admitted<T>(
    run: RunId,
    begun: oneshot::Receiver<()>,
    done: oneshot::Receiver<Result<T, AgentError>>,
) -> Result<Begun<T>, Problem> {
    if begun.await.is_ok() {
        return Ok(Begun { run, done });
    }
    let ended = done.await.map_err(|_| stopped())??;
    let (tell, done) = oneshot::channel();
    let _ = tell.send(Ok(ended));
    Ok(Begun { run, done })
}

/// Goes on with a run, under the configuration it was begun with.
pub(crate) async fn resume(app: &Arc<App>, head: &RunHead, resume: Resume) -> Result<Begun<Resumed>, Problem> {
    let agent = app.agent_of(head).await?;
    let run = head.run.clone();
    let id = run.clone();
    let resume = Resume { traces: app.traces.clone(), trace: requests::trace(), ..resume };
    let work = move |cancel: Cancel, listener| async move {
        // A signal that has fired already stays fired.
        let cancel = if resume.cancel.is_cancelled() { resume.cancel.clone() } else { cancel };
        agent.resume(&id, Resume { cancel, listener: Some(listener), ..resume }).await
    };
    let (told, begun) = oneshot::channel();
    let done = spawn(app, &run, Admitted { by: AdmittedBy::Resume, told }, work)?;
    admitted(run, begun, done).await
}

/// How a run stands when nobody works on it any more. One that was left is taken up.
pub(crate) async fn end_of(app: &Arc<App>, run: &RunId) -> Result<RunResult, Problem> {
    loop {
        let mut listening = app.hub.listen(run);
        if listening.has_worker() {
            while !matches!(listening.next().await, None | Some(News::Quiet { .. })) {}
            continue;
        }
        let head = app.store.head(run).await?;
        return match head.status {
            Status::Open => Ok(resume(app, &head, Resume::default()).await?.end().await?.result),
            Status::Parked | Status::Ended => Ok(app.read(run).await?.1.result()),
        };
    }
}

/// Cancels a run wherever it stands, and gives how it stands then.
pub(crate) async fn cancel(app: &Arc<App>, head: &RunHead) -> Result<RunResult, Problem> {
    if head.status == Status::Ended {
        return Ok(app.read(&head.run).await?.1.result());
    }
    if app.works.cancel(&head.run) {
        // Whoever works on it ends by itself; then it is read, or, where it parked just before, cancelled as parked.
        let mut count = app.works.count.subscribe();
        while app.works.going().values().any(|going| going.run == head.run) {
            if count.changed().await.is_err() {
                break;
            }
        }
        let now = app.store.head(&head.run).await?;
        if now.status == Status::Ended {
            return Ok(app.read(&head.run).await?.1.result());
        }
    }
    let fired = Cancel::new();
    fired.cancel();
    let cancelled = resume(app, head, Resume { cancel: fired, ..Resume::default() }).await?;
    Ok(cancelled.end().await?.result)
}

/// Tells that work has begun for good: it is stored, or its answers are admitted.
struct Admitted {
    by: AdmittedBy,
    told: oneshot::Sender<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AdmittedBy {
    Start,
    Resume,
}

impl AdmittedBy {
    fn is_it(self, progress: &Progress, run: &RunId) -> bool {
        match (self, progress) {
            (Self::Start, Progress::Started { run: started }) => started == run,
            (Self::Resume, Progress::TripStarted { .. }) => true,
            (Self::Resume, Progress::Happened(event)) => {
                matches!(event.what, EventKind::HoldAnswered { .. } | EventKind::Resumed { .. })
            }
            _ => false,
        }
    }
}

/// What a listener of the driver passes on. A run that was left in the conversation is taken up ahead of the one that
/// was asked for: what it does is not told as this one's.
fn listener(run: RunId, feed: Arc<Feed>, admitted: Admitted, metrics: Arc<Metrics>) -> Listener {
    let (by, told) = (admitted.by, Mutex::new(Some(admitted.told)));
    let begun = AtomicBool::new(by == AdmittedBy::Resume);
    let asked = Mutex::new(None);
    Arc::new(move |progress| {
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        match &progress {
            Progress::TripStarted { .. } => *asked = Some(Instant::now()),
            Progress::Happened(event) if is_of_model(&event.what) => {
                asked.take().into_iter().for_each(|since| metrics.model(since.elapsed()));
            }
            _ => {}
        }
        if by.is_it(&progress, &run)
            && let Some(told) = told.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            begun.store(true, Ordering::Relaxed);
            let _ = told.send(());
        }
        match progress {
            _ if !begun.load(Ordering::Relaxed) => {}
            Progress::TripStarted { trip, .. } => feed.trip(trip),
            Progress::Delta { trip, delta: Delta::Text { text, .. } } => feed.delta(trip, &text),
            Progress::Started { .. }
            | Progress::TakenUp { .. }
            | Progress::Retrying { .. }
            | Progress::Delta { .. }
            | Progress::Happened(_)
            | Progress::Finished(_) => {}
        }
    })
}

/// The model has answered, or failed.
fn is_of_model(what: &EventKind) -> bool {
    matches!(what, EventKind::Replied { .. } | EventKind::ModelFailed { .. })
}

/// How work stands at its end, as far as that is not in the log.
trait Ended {
    fn outcome(&self) -> (Option<Outcome>, Option<&RunError>);
}

impl Ended for RunResult {
    fn outcome(&self) -> (Option<Outcome>, Option<&RunError>) {
        (self.outcome, self.error.as_ref())
    }
}

impl Ended for Resumed {
    fn outcome(&self) -> (Option<Outcome>, Option<&RunError>) {
        self.result.outcome()
    }
}

fn spawn<T, W, F>(
    app: &Arc<App>,
    run: &RunId,
    admitted: Admitted,
    work: W,
) -> Result<oneshot::Receiver<Result<T, AgentError>>, Problem>
where
    T: Ended + Send + 'static,
    W: FnOnce(Cancel, Listener) -> F,
    F: Future<Output = Result<T, AgentError>> + Send + 'static,
{
    let place = app.works.place()?;
    let cancel = Cancel::new();
    let id = app.works.next.fetch_add(1, Ordering::Relaxed);
    app.works.count.send_modify(|count| *count += 1);
    app.works.going().insert(id, Going { run: run.clone(), cancel: cancel.clone(), task: None });
    let listed = Listed { app: app.clone(), id, _place: place };
    let mut worker = app.hub.work(run);
    let work = work(cancel, listener(run.clone(), worker.feed().clone(), admitted, app.metrics.clone()));
    let (tell, done) = oneshot::channel();
    tracing::debug!(%run, request = requests::id(), "work on a run begins");
    let task = tokio::spawn(async move {
        let ended = work.await;
        if let Some(error) = not_in_the_log(&ended) {
            worker.failed(error);
        }
        drop(worker);
        drop(listed);
        let _ = tell.send(ended);
    });
    if let Some(going) = app.works.going().get_mut(&id) {
        going.task = Some(task.abort_handle());
    }
    Ok(done)
}

fn not_in_the_log<T: Ended>(ended: &Result<T, AgentError>) -> Option<RunError> {
    match ended {
        Ok(result) => match result.outcome() {
            (Some(Outcome::StoreFailed), error) => error.cloned(),
            _ => None,
        },
        Err(AgentError::Store(StoreError::Leased { .. } | StoreError::Fenced { .. })) => {
            tracing::debug!("a run is worked on elsewhere");
            None
        }
        Err(_) => None,
    }
}
