//! Takes up what a process left that died, was stopped, or lost its store: from the log, as far as it had come.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gesta_run::{RunId, Status, Timestamp};
use gesta_runtime::Resume;
use gesta_store::{RunFilter, RunHead};

use crate::app::App;
use crate::apps::Apps;
use crate::problem::Problem;
use crate::work;

/// How long an answer is kept for a request that may come again.
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long it is remembered that a dispatch was sent.
const DISPATCHES_KEPT_MS: i64 = 7 * KEPT_MS;
/// How often is looked (`spec/durability.md`, 2: `sweep_interval_ms`).
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// How many conversations, and how many runs, of an agent are erased at once for their age.
const ERASED_AT_ONCE: u32 = 100;
/// Every so many sweeps, and at the start, parked runs are looked at too: an approved call may have been cut off.
const PARKED_EVERY: u32 = 60;
/// How often a run is taken up here before it is left to a person (`spec/durability.md`, 2: `claims_max`).
const CLAIMS_MAX: u32 = 5;

/// Sweeps until the server is stopped.
pub(crate) async fn sweep(apps: Arc<Apps>) {
    let mut tries: HashMap<RunId, u32> = HashMap::new();
    let works = &apps.first.works;
    for turn in 0_u32.. {
        let mut count = works.watch();
        apps.rates.forget();
        let mut left = Vec::new();
        match apps.all().await {
            Ok(all) => {
                for app in all {
                    match left_of(&app, turn).await {
                        Ok(heads) => left.extend(heads.into_iter().map(|head| (app.clone(), head))),
                        Err(why) => tracing::warn!(code = why.code(), "runs that were left cannot be looked for"),
                    }
                }
            }
            Err(why) => tracing::warn!(code = why.code(), "tenants cannot be looked for"),
        }
        let has_more = take_up_all(left, works.free(), &mut tries);
        tokio::select! {
            () = tokio::time::sleep(SWEEP_EVERY) => {}
            _ = count.changed(), if has_more => {}
            () = works.stopping() => return,
        }
    }
}

/// The runs of one tenant that nobody works on and somebody should.
async fn left_of(app: &App, turn: u32) -> Result<Vec<RunHead>, Problem> {
    if turn.is_multiple_of(PARKED_EVERY) {
        app.front.forget_requests(Timestamp(app.now().0 - KEPT_MS)).await?;
        app.front.forget_dispatches(Timestamp(app.now().0 - DISPATCHES_KEPT_MS)).await?;
    }
    let kept_long_enough = forget(app).await?;
    if kept_long_enough > 0 {
        tracing::info!(erased = kept_long_enough, "what was kept long enough is erased");
    }
    let mut left = Vec::new();
    for status in [Status::Open, Status::Parked] {
        if status == Status::Parked && !turn.is_multiple_of(PARKED_EVERY) {
            continue;
        }
        let mut filter = RunFilter { status: Some(status), ..RunFilter::default() };
        loop {
            let page = app.store.runs(&filter).await?;
            let Some(last) = page.last() else { break };
            filter.after = Some(last.cursor());
            left.extend(page.into_iter().filter(|head| is_left(app, head, turn == 0)));
        }
    }
    Ok(left)
}

/// Takes runs up, as many as there is room for, and says whether there are more. Those have not been tried.
fn take_up_all(mut left: Vec<(Arc<App>, RunHead)>, room: usize, tries: &mut HashMap<RunId, u32>) -> bool {
    let has_more = left.len() > room;
    left.truncate(room);
    tries.retain(|run, _| left.iter().any(|(_, head)| head.run == *run));
    for (app, head) in left {
        let tried = tries.entry(head.run.clone()).or_default();
        *tried += 1;
        // One that ends its process each time is found again by its fence, which grows with each claim.
        if *tried > CLAIMS_MAX || head.fence > head.events + u64::from(CLAIMS_MAX) {
            tracing::error!(run = %head.run, "a run was taken up again and again without getting on; answer or cancel it");
            continue;
        }
        tracing::info!(run = %head.run, agent = %head.agent, "a run that was left is taken up");
        tokio::spawn(take_up(app, head));
    }
    has_more
}

/// Erases what has ended and was kept as long as its agent says, one batch of each agent. Says how many.
async fn forget(app: &App) -> Result<u64, Problem> {
    let mut erased = 0;
    for (agent, live) in &app.agents {
        let Some(keep_ms) = live.served.folder.storage.keep_ms else { continue };
        let before = Timestamp(app.now().0.saturating_sub(i64::try_from(keep_ms).unwrap_or(i64::MAX)));
        for old in app.store.old(agent, before, ERASED_AT_ONCE).await? {
            if app.works.is_stopping() {
                return Ok(erased);
            }
            erased += u64::from(app.store.erase_old(&old, before).await?);
        }
    }
    Ok(erased)
}

/// Whether nobody works on a run that somebody should. At the start a lease says nothing yet: whoever held it may be
/// gone, and a claim finds that out.
fn is_left(app: &App, head: &RunHead, at_start: bool) -> bool {
    let let_go = match &head.held_by {
        Some(holder) => at_start || holder.until <= app.now(),
        None => head.status == Status::Open,
    };
    let_go && app.agents.contains_key(&head.agent) && !app.hub.has_worker(&head.run)
}

async fn take_up(app: Arc<App>, head: RunHead) {
    let resumed = match work::resume(&app, &head, Resume::default()).await {
        Ok(begun) => begun.end().await.map(drop),
        Err(why) => Err(why),
    };
    if let Err(why) = resumed {
        tracing::warn!(run = %head.run, code = why.code(), "a run that was left was not taken up");
    }
}
