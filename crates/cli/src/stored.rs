//! Runs as they stand in the store: found by the beginning of their id, read with the plan they were begun under.

use std::sync::Arc;

use gesta_run::{Functions, Plan, PlanSpec, Run, RunId};
use gesta_store::{RunFilter, RunHead, Store, StoredRun};
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::place::Place;

/// How many runs are named where a beginning fits several.
const NAMED_MAX: usize = 5;
/// How long a whole id is.
const ID_CHARS: usize = 36;

/// A run, replayed.
pub(crate) struct Shown {
    /// Its head and events.
    pub(crate) stored: StoredRun,
    /// The run.
    pub(crate) run: Run,
}

/// Finds a run: by its whole id, by the beginning or the end of one, or `last`.
///
/// # Errors
/// There is none, or there are several, or the store is damaged.
pub(crate) async fn find(place: &Place, named: &str) -> Result<RunHead, Failure> {
    let found = look(&place.store(), named).await;
    if found.is_err() {
        // What a damaged file does not show may be there: nobody is to think that it is gone.
        place.check().await?;
    }
    found
}

/// Nothing was run yet.
pub(crate) fn no_run() -> Failure {
    let help = "begin one with `gesta chat FOLDER`, or name another data folder with --data";
    Failure::usage("there is no run yet", help)
}

async fn look(store: &Arc<dyn Store>, named: &str) -> Result<RunHead, Failure> {
    let none = || Failure::usage(format!("there is no run `{named}`"), "`gesta runs` lists those there are");
    if named == "last" {
        let filter = RunFilter { limit: 1, ..RunFilter::default() };
        let newest = store.runs(&filter).await?.into_iter().next();
        return newest.ok_or_else(no_run);
    }
    if named.len() >= ID_CHARS {
        return store.head(&RunId::new(named)).await.map_err(Failure::from);
    }
    if named.is_empty() {
        return Err(none());
    }
    let mut found = Vec::new();
    let mut filter = RunFilter::default();
    loop {
        let page = store.runs(&filter).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.cursor());
        let fits = |head: &RunHead| head.run.as_str().starts_with(named) || head.run.as_str().ends_with(named);
        found.extend(page.into_iter().filter(fits));
    }
    match found.len() {
        0 => match store.head(&RunId::new(named)).await {
            Ok(head) => Ok(head),
            Err(_) => Err(none()),
        },
        1 => found.pop().ok_or_else(none),
        several => {
            let names: Vec<&str> = found.iter().take(NAMED_MAX).map(|head| head.run.as_str()).collect();
            Err(Failure::usage(
                format!("{several} runs are named by `{named}`: {}", names.join(", ")),
                "write more of the id",
            ))
        }
    }
}

/// Reads a run and replays it under the plan it was begun with. Nothing of its agent is needed.
///
/// # Errors
/// It cannot be read, or its plan is not in the store.
pub(crate) async fn read(store: &Arc<dyn Store>, run: &RunId) -> Result<Shown, Failure> {
    let stored = store.load(run).await?;
    let gone = || {
        Failure::new(
            Exit::StoreFailed,
            format!("the configuration of run `{run}` is not in the store, or of another version"),
            "show its events alone with `gesta show RUN --events`",
        )
    };
    let config = store.config(&stored.head.config).await?.ok_or_else(gone)?;
    let mut config: Value = gesta_run::json::read_stored(config.as_bytes()).map_err(|_| gone())?;
    let spec = config.get_mut("plan").map(Value::take).ok_or_else(gone)?;
    let spec: PlanSpec = serde_json::from_value(spec).map_err(|_| gone())?;
    let plan = Plan::new(spec, Functions::default()).map_err(|_| gone())?;
    let run = Run::replay(plan, &stored.events);
    Ok(Shown { stored, run })
}
