//! What gathers the events of a run while it goes on, and hands its spans to the exporter.

use std::sync::Arc;

use gesta_run::{Event, EventKind, Outcome, Plan, TraceParent};

use crate::queue::Queue;
use crate::settings::Sampler;
use crate::spans;

/// Makes a text fit to be shown: takes out what must not be.
pub type Redactor = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Gives a conversation a name in spans that tells nobody who is meant, the same each time.
type Alias = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Where spans of runs go. Cheap to clone.
#[derive(Clone)]
pub struct Traces {
    queue: Arc<Queue>,
    sampler: Sampler,
    pub(crate) content: Option<Redactor>,
    pub(crate) alias: Option<Alias>,
}

impl std::fmt::Debug for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traces").field("sampler", &self.sampler).finish_non_exhaustive()
    }
}

impl Traces {
    pub(crate) fn new(queue: Arc<Queue>, sampler: Sampler) -> Self {
        Self { queue, sampler, content: None, alias: None }
    }

    /// Lets what was said (input, replies, arguments, results, prompts) stand in spans, each text past `redact`. Off
    /// without this: spans hold names and numbers alone.
    #[must_use]
    pub fn with_content(mut self, redact: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.content = Some(Arc::new(redact));
        self
    }

    /// How a conversation is called in spans. It must tell nobody who is meant: a digest with a key, for instance. Without
    /// this, spans do not say to which conversation they belong.
    #[must_use]
    pub fn with_alias(mut self, alias: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.alias = Some(Arc::new(alias));
        self
    }
}

/// Gathers the events of one run while somebody works on it.
pub struct Recorder {
    traces: Traces,
    plan: Arc<Plan>,
    link: Option<TraceParent>,
    events: Vec<Arc<Event>>,
    from: usize,
}

impl Recorder {
    /// For a run of this plan. `link` is the trace of whoever made it go on; how it began is in its log.
    pub fn new(traces: Traces, plan: Arc<Plan>, link: Option<TraceParent>) -> Self {
        Self { traces, plan, link, events: Vec::new(), from: 0 }
    }

    /// The run is taken up: what had happened before. The spans of that have been sent where it was parked or had ended;
    /// where `left` says that whoever worked on it is gone, they are told now.
    #[must_use]
    pub fn after(mut self, events: impl IntoIterator<Item = Event>, left: bool) -> Self {
        self.events.extend(events.into_iter().map(Arc::new));
        let begins = |event: &Arc<Event>| {
            matches!(event.what, EventKind::Opened { .. } | EventKind::HoldAnswered { .. } | EventKind::Resumed { .. })
        };
        let begun = self.events.iter().rposition(begins).unwrap_or(0);
        self.from = if left { begun } else { self.events.len() };
        self
    }

    /// Something happened.
    pub fn happened(&mut self, event: &Arc<Event>) {
        self.events.push(event.clone());
    }

    /// Nobody works on it any more. `failed` is how it ended where that is not in its log.
    pub fn finish(self, failed: Option<Outcome>) {
        let Some(EventKind::Opened { opening, .. }) = self.events.first().map(|it| &it.what) else { return };
        if self.from >= self.events.len() || !self.traces.sampler.takes(opening) {
            return;
        }
        let stretch = spans::Stretch {
            traces: &self.traces,
            plan: &self.plan.spec,
            opening,
            events: &self.events,
            from: self.from,
            link: self.link,
            failed,
        };
        self.traces.queue.put(spans::of(&stretch));
    }
}
