//! Follows one run: first what its log says, then what happens, without a gap and without anything twice.

use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use gesta_run::{CallId, Event, RunError, RunId, Status};
use gesta_store::RunHead;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::app::App;
use crate::ask::Asker;
use crate::hub::{Listening, News, Piece};
use crate::keys;
use crate::problem::Problem;
use crate::repeat::{ItsRun, Since};
use crate::told::{self, Mark, Teller, Told};
use crate::work;

/// How often the store is asked about a run that nobody works on here: another process may.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How many events wait for a client that reads slowly before the follower does.
const AHEAD_MAX: usize = 64;
/// How often a silent stream shows that it lives.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// When following ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Nobody works on the run any more: it is parked or has ended.
    Quiet,
    /// It has ended.
    Ended,
}

/// Follows a run as a stream of server-sent events.
///
/// It ends with an error when the key of whoever asked is taken back.
pub(crate) fn stream(app: &Arc<App>, asker: &Asker, run: RunId, after: Option<Mark>, until: Until) -> Response {
    let (tell, told) = mpsc::channel(AHEAD_MAX);
    let of = run.clone();
    let listening = app.hub.listen(&run);
    let follower = Follower {
        app: app.clone(),
        asker: asker.clone(),
        teller: Teller::new(run.clone()),
        run,
        listening,
        after,
        until,
        next: 0,
        stood_at: None,
        tell,
    };
    tokio::spawn(follower.follow());
    let events = futures_util::stream::unfold(told, |mut told| async { Some((told.recv().await?, told)) });
    let alive = KeepAlive::new().interval(ALIVE_EVERY);
    let mut response = Sse::new(events).keep_alive(alive).into_response();
    // Proxies that gather a response before they pass it on would hold everything back.
    response.extensions_mut().insert(ItsRun(of));
    if let Some(mark) = after {
        response.extensions_mut().insert(Since(mark));
    }
    response.headers_mut().insert("x-accel-buffering", http::HeaderValue::from_static("no"));
    response
}

type Line = Result<SseEvent, std::convert::Infallible>;

struct Follower {
    app: Arc<App>,
    /// Whoever listens.
    asker: Asker,
    run: RunId,
    teller: Teller,
    listening: Listening,
    /// What the client has.
    after: Option<Mark>,
    until: Until,
    /// How many events of the log were told.
    next: u64,
    /// How many events the log had when the run was told to stand.
    stood_at: Option<u64>,
    tell: mpsc::Sender<Line>,
}

/// Why following stops.
enum Stop {
    /// There is nothing more to tell, or nobody to tell it to.
    Done,
    /// It cannot be told.
    Failed(Problem),
}

impl From<Problem> for Stop {
    fn from(why: Problem) -> Self {
        Self::Failed(why)
    }
}

impl Follower {
    async fn follow(mut self) {
        let gone = self.tell.clone();
        let stopping = {
            let app = self.app.clone();
            async move { app.works.stopping().await }
        };
        let going_on = self.listening.going_on.take();
        let (app, asker) = (self.app.clone(), self.asker.clone());
        let stop = tokio::select! {
            stop = self.until_done(going_on) => stop,
            () = gone.closed() => return,
            () = keys::taken_back(&app, &asker) => Stop::Failed(keys::stranger("the key was taken back")),
            // What goes on is given its time; a stream that only waits is not waited for.
            () = stopping, if self.until == Until::Ended => return,
        };
        if let Stop::Failed(why) = stop {
            let data =
                json!({ "run": self.run, "code": why.code(), "category": "server", "message": json!(why)["detail"] });
            let _ = self.send(None, Told { name: "error", data }).await;
        }
    }

    async fn until_done(&mut self, mut going_on: Option<Piece>) -> Stop {
        loop {
            match self.once(going_on.take()).await {
                Ok(()) => {}
                Err(stop) => return stop,
            }
        }
    }

    /// Reads the log once, and goes on with the news until some were missed or the run should be looked at again.
    async fn once(&mut self, going_on: Option<Piece>) -> Result<(), Stop> {
        let working = self.listening.has_worker();
        let stored = self.app.store.load(&self.run).await.map_err(Problem::from)?;
        let fresh: Vec<Event> =
            stored.events.into_iter().skip(usize::try_from(self.next).unwrap_or(usize::MAX)).collect();
        self.events(self.next, &fresh).await?;
        if let Some(piece) = going_on {
            self.trip(piece.trip).await?;
            if !piece.text.is_empty() {
                self.delta(piece).await?;
            }
        }
        if !working {
            self.stand(&stored.head).await?;
        }
        self.news().await
    }

    async fn news(&mut self) -> Result<(), Stop> {
        loop {
            let news = if self.listening.has_worker() {
                self.listening.next().await
            } else {
                match tokio::time::timeout(LOOK_EVERY, self.listening.next()).await {
                    Ok(news) => news,
                    Err(_) if self.has_changed().await? => return Ok(()),
                    Err(_) => continue,
                }
            };
            match news {
                Some(News::Stored { at, .. }) if at > self.next => return Ok(()),
                Some(News::Stored { at, events }) => {
                    let known = usize::try_from(self.next - at).unwrap_or(usize::MAX);
                    self.events(self.next, events.get(known..).unwrap_or_default()).await?;
                }
                Some(News::Trip { trip }) => self.trip(trip).await?,
                Some(News::Delta(piece)) => self.delta(piece).await?,
                Some(News::Quiet { error }) => {
                    if let Some(error) = error {
                        return Err(self.not_stored(&error).await);
                    }
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    async fn has_changed(&self) -> Result<bool, Stop> {
        let head = self.app.store.head(&self.run).await.map_err(Problem::from)?;
        Ok(head.events != self.next || (head.status != Status::Open && self.stood_at != Some(self.next)))
    }

    /// What happened could not be stored: whoever listens is told, and reads the log again.
    async fn not_stored(&mut self, error: &RunError) -> Stop {
        let told = told::error(&self.run, error);
        let _ = self.send(None, told).await;
        Stop::Done
    }

    async fn events(&mut self, first: u64, events: &[Event]) -> Result<(), Stop> {
        for (at, event) in (first..).zip(events) {
            let (trips, told) = self.teller.event(event).into_iter().partition::<Vec<_>, _>(Told::is_passing);
            // What is heard live or not at all has no place in the log, and is told only to who is not past it.
            let ahead = self.after.is_none_or(|after| after.event < at);
            for told in trips.into_iter().filter(|_| ahead) {
                self.send(None, told).await?;
            }
            for (part, mut told) in (0..).zip(told) {
                let mark = Mark { event: at, part };
                if self.after.is_some_and(|after| mark <= after) {
                    continue;
                }
                if told.name == "hold.opened" {
                    self.put_hold(at, &mut told).await?;
                }
                self.send(Some(mark), told).await?;
            }
            self.next = at + 1;
        }
        Ok(())
    }

    /// The hold as it was handed out when it was opened.
    async fn put_hold(&self, at: u64, told: &mut Told) -> Result<(), Stop> {
        let upto = usize::try_from(at + 1).unwrap_or(usize::MAX);
        let call = told.data.get("call").and_then(Value::as_str).map(CallId::from);
        let holds = self.app.holds_after(&self.run, upto).await?;
        let hold = holds.into_iter().find(|hold| Some(&hold.id) == call.as_ref());
        told.data["hold"] = json!(hold);
        Ok(())
    }

    async fn trip(&mut self, trip: u32) -> Result<(), Stop> {
        if self.teller.is_past(trip) {
            return Ok(());
        }
        match self.teller.trip(trip) {
            Some(told) => self.send(None, told).await,
            None => Ok(()),
        }
    }

    async fn delta(&self, piece: Piece) -> Result<(), Stop> {
        if self.teller.is_past(piece.trip) {
            return Ok(());
        }
        let data = json!({ "run": self.run, "trip": piece.trip, "offset": piece.offset, "text": piece.text });
        self.send(None, Told { name: "reply.delta", data }).await
    }

    /// Nobody works on it here: tells how it stands, once.
    async fn stand(&mut self, head: &RunHead) -> Result<(), Stop> {
        let stands = head.status != Status::Open;
        if stands && self.stood_at != Some(self.next) {
            self.stood_at = Some(self.next);
            let mark = Mark { event: self.next.saturating_sub(1), part: Mark::LAST };
            if self.after.is_none_or(|after| mark > after) {
                let (_, run) = self.app.read(&self.run).await?;
                self.send(Some(mark), told::standing(&run.result())).await?;
            }
        }
        match (self.until, head.status) {
            (Until::Quiet, Status::Parked | Status::Ended) | (Until::Ended, Status::Ended) => Err(Stop::Done),
            // Somebody else has taken it over, or is about to: it goes on there.
            (Until::Quiet, Status::Open) if self.is_held(head) => Ok(()),
            (Until::Quiet, Status::Open) => Err(Stop::Failed(work::stopped())),
            (Until::Ended, Status::Open | Status::Parked) => Ok(()),
        }
    }

    /// Whether another worker has the run, as far as its lease tells. What this server lets go of while it stops is
    /// nobody's until somebody takes it up.
    fn is_held(&self, head: &RunHead) -> bool {
        let now = self.app.now();
        !self.app.works.is_stopping() && head.held_by.as_ref().is_some_and(|holder| holder.until > now)
    }

    async fn send(&self, mark: Option<Mark>, told: Told) -> Result<(), Stop> {
        let line = SseEvent::default().event(told.name).data(told.data.to_string());
        let line = match mark {
            Some(mark) => line.id(mark.to_string()),
            None => line,
        };
        self.tell.send(Ok(line)).await.map_err(|_| Stop::Done)
    }
}
