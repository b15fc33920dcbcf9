//! Who works on which run, and whoever listens to it: what is stored, and the pieces of answers that never are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gesta_run::{Event, RunError, RunId};
use tokio::sync::{broadcast, watch};

/// How many news a listener may lag behind before it reads the log again.
const NEWS_MAX: usize = 512;

/// What is told of a run while somebody works on it here.
#[derive(Debug, Clone)]
pub(crate) enum News {
    /// These events are in the store now, the first of them at this place.
    Stored {
        /// The place of the first.
        at: u64,
        /// The events.
        events: Arc<[Event]>,
    },
    /// The model is being asked.
    Trip {
        /// Which trip.
        trip: u32,
    },
    /// More of the model's text.
    Delta(Piece),
    /// Nobody works on it here any more.
    Quiet {
        /// Why that is not in its log, where it is not.
        error: Option<RunError>,
    },
}

/// A piece of the model's text.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// The trip.
    pub(crate) trip: u32,
    /// How many bytes of the trip's text stand before it.
    pub(crate) offset: usize,
    /// The text.
    pub(crate) text: String,
}

/// One run's listeners.
#[derive(Debug)]
pub(crate) struct Feed {
    news: broadcast::Sender<News>,
    state: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    workers: usize,
    trip: Option<u32>,
    text: String,
}

impl Feed {
    fn new() -> Self {
        Self { news: broadcast::Sender::new(NEWS_MAX), state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Now> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn trip(&self, trip: u32) {
        let mut now = self.state();
        now.trip = Some(trip);
        now.text.clear();
        let _ = self.news.send(News::Trip { trip });
    }

    pub(crate) fn delta(&self, trip: u32, text: &str) {
        let mut now = self.state();
        let piece = Piece { trip, offset: now.text.len(), text: text.to_owned() };
        now.text.push_str(text);
        let _ = self.news.send(News::Delta(piece));
    }

    /// Whether somebody works on the run here.
    pub(crate) fn has_worker(&self) -> bool {
        self.state().workers > 0
    }
}

/// Ends with the work it stands for.
pub(crate) struct Worker {
    hub: Arc<Hub>,
    run: RunId,
    feed: Arc<Feed>,
    error: Option<RunError>,
}

impl Worker {
    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// The work stopped for a reason that is not in the log.
    pub(crate) fn failed(&mut self, error: RunError) {
        self.error = Some(error);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        {
            let mut now = self.feed.state();
            now.workers -= 1;
            now.trip = None;
            now.text.clear();
            let _ = self.feed.news.send(News::Quiet { error: self.error.take() });
        }
        self.hub.forget(&self.run);
    }
}

/// Hears what is told of a run. Listening begins before the log is read, so that nothing falls between.
pub(crate) struct Listening {
    hub: Arc<Hub>,
    run: RunId,
    feed: Arc<Feed>,
    /// Taken only when the listening ends.
    news: Option<broadcast::Receiver<News>>,
    /// The trip that goes on, and its text so far.
    pub(crate) going_on: Option<Piece>,
}

impl Listening {
    /// The next news; none where some were missed.
    pub(crate) async fn next(&mut self) -> Option<News> {
        match &mut self.news {
            Some(news) => news.recv().await.ok(),
            None => None,
        }
    }

    pub(crate) fn has_worker(&self) -> bool {
        self.feed.has_worker()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.news = None;
        self.hub.forget(&self.run);
    }
}

/// All runs that somebody works on or listens to.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    feeds: Mutex<HashMap<RunId, Arc<Feed>>>,
    /// Counts what was stored, of whatever run.
    any: watch::Sender<u64>,
}

impl Hub {
    /// Tells that something was stored here, of whatever run.
    pub(crate) fn any(&self) -> watch::Receiver<u64> {
        self.any.subscribe()
    }

    fn feeds(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody begins to work on a run here.
    pub(crate) fn work(self: &Arc<Self>, run: &RunId) -> Worker {
        let mut feeds = self.feeds();
        let feed = feeds.entry(run.clone()).or_insert_with(|| Arc::new(Feed::new())).clone();
        feed.state().workers += 1;
        Worker { hub: self.clone(), run: run.clone(), feed, error: None }
    }

    /// Somebody listens to a run from now on.
    pub(crate) fn listen(self: &Arc<Self>, run: &RunId) -> Listening {
        // Until it is subscribed to, nobody may find it unused and put another in its place.
        let mut feeds = self.feeds();
        let feed = feeds.entry(run.clone()).or_insert_with(|| Arc::new(Feed::new())).clone();
        let (news, going_on) = {
            let now = feed.state();
            let going_on = now.trip.map(|trip| Piece { trip, offset: 0, text: now.text.clone() });
            (feed.news.subscribe(), going_on)
        };
        drop(feeds);
        Listening { hub: self.clone(), run: run.clone(), feed, news: Some(news), going_on }
    }

    /// Whether somebody works on a run here.
    pub(crate) fn has_worker(&self, run: &RunId) -> bool {
        self.feeds().get(run).is_some_and(|feed| feed.has_worker())
    }

    /// Events of a run are in the store.
    pub(crate) fn stored(&self, run: &RunId, at: u64, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        self.any.send_modify(|count| *count = count.wrapping_add(1));
        let feed = self.feeds().get(run).cloned();
        if let Some(feed) = feed.filter(|feed| feed.news.receiver_count() > 0) {
            let _ = feed.news.send(News::Stored { at, events: events.into() });
        }
    }

    /// A run that nobody works on and nobody listens to costs nothing.
    fn forget(&self, run: &RunId) {
        let mut feeds = self.feeds();
        let unused = |feed: &Arc<Feed>| !feed.has_worker() && feed.news.receiver_count() == 0;
        if feeds.get(run).is_some_and(unused) {
            feeds.remove(run);
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.feeds().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_known_as_long_as_somebody_works_or_listens() {
        let hub = Arc::new(Hub::default());
        let run = RunId::new("r1");
        let (worker, listening) = (hub.work(&run), hub.listen(&run));
        assert!(listening.has_worker());
        drop(worker);
        assert!(!listening.has_worker() && hub.len() == 1);
        drop(listening);
        assert_eq!(hub.len(), 0);
    }

    #[tokio::test]
    async fn who_comes_late_hears_the_text_so_far_and_then_the_rest() {
        let hub = Arc::new(Hub::default());
        let run = RunId::new("r1");
        let worker = hub.work(&run);
        worker.feed().trip(0);
        worker.feed().delta(0, "Good ");
        let mut listening = hub.listen(&run);
        worker.feed().delta(0, "day");
        let so_far = listening.going_on.take().unwrap();
        assert_eq!((so_far.offset, so_far.text.as_str()), (0, "Good "));
        let Some(News::Delta(more)) = listening.next().await else { panic!("a delta comes") };
        assert_eq!((more.offset, more.text.as_str()), (5, "day"));
        drop(worker);
        assert!(matches!(listening.next().await, Some(News::Quiet { error: None })));
    }
}
