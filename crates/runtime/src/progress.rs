//! What a listener is told while a turn goes on.

use std::sync::Arc;

use gesta_run::{Delta, Event, InputLabel, RunId, RunResult};

/// One thing a listener is told.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The run has a name, and is stored where there is a store.
    Started {
        /// The run.
        run: RunId,
    },
    /// The turn before was left unfinished when its process died, and is ended first: what had happened in it. What
    /// is told until [`Progress::Started`] belongs to that run.
    TakenUp {
        /// That run.
        run: RunId,
        /// Its log so far.
        events: Vec<Event>,
    },
    /// The model is being asked.
    TripStarted {
        /// The trip, from 0.
        trip: u32,
        /// What caused it.
        label: InputLabel,
    },
    /// A piece of the model's answer.
    Delta {
        /// The trip.
        trip: u32,
        /// The piece.
        delta: Delta,
    },
    /// Something happened; it is in the log.
    Happened(Arc<Event>),
    /// The turn is over for now: ended or parked. The last thing told.
    Finished(Arc<RunResult>),
}

/// Takes what happens. Called in the driver: it must not block.
pub type Listener = Arc<dyn Fn(Progress) + Send + Sync>;
