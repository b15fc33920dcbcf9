//! Interleaved rounds: every client does the same runs in every round, and is compared within the round.

use std::fmt::Write as _;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::agent::Measured;
use crate::bare::{Bare, Http};

/// CPU time of this process so far, user and system, in microseconds.
fn cpu_us() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

/// Somebody who does the run.
#[derive(Clone)]
pub(crate) enum Client {
    Bare(Bare),
    Gesta(Measured),
}

impl Client {
    pub(crate) async fn run(&self) {
        let shown = match self {
            Self::Bare(bare) => bare.run().await,
            Self::Gesta(measured) => measured.run().await,
        };
        assert_eq!(shown, 600, "the whole text came");
    }
}

/// A client with its name.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) client: Client,
    /// Its runs wait for the disk, so there are fewer of them.
    waits: bool,
}

/// All that are compared; the first is what the others are compared with.
pub(crate) fn rows(base: &str, stream: bool, folder: Option<&Path>) -> Vec<Row> {
    let bare = |http| Client::Bare(Bare::new(http, base, stream));
    let row = |name, client| Row { name, client, waits: false };
    let mut rows = vec![
        row("reqwest, bare", bare(Http::reqwest())),
        row("hyper, bare", bare(Http::hyper())),
        row("gesta", Client::Gesta(Measured::new(base, stream, None))),
    ];
    if let Some(folder) = folder {
        let client = Client::Gesta(Measured::new(base, stream, Some(folder)));
        rows.push(Row { name: "gesta, SQLite", client, waits: true });
    }
    rows
}

/// Does `runs` runs, `at_once` of them at a time, and says what one cost in microseconds of CPU.
async fn cost(client: &Client, runs: usize, at_once: usize) -> f64 {
    let before = cpu_us();
    let done = repeat(client, runs, at_once).await;
    (cpu_us() - before) / done as f64
}

/// Does at least `runs` runs, `at_once` of them at a time, and says how many it did.
pub(crate) async fn repeat(client: &Client, runs: usize, at_once: usize) -> usize {
    let each = runs.div_ceil(at_once);
    let talk = |client: Client| async move {
        for _ in 0..each {
            client.run().await;
        }
    };
    in_tasks((0..at_once).map(|_| talk(client.clone()))).await;
    each * at_once
}

/// Runs every future in a task of its own.
pub(crate) async fn in_tasks<F: Future<Output = ()> + Send + 'static>(work: impl Iterator<Item = F>) {
    let tasks: Vec<_> = work.map(tokio::spawn).collect();
    for task in tasks {
        task.await.expect("no run panics");
    }
}

/// What is measured in one row of rounds.
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// Runs in a round, of one client.
    pub(crate) runs: usize,
    pub(crate) at_once: usize,
}

/// Measures all rows, round by round, and writes a table of medians.
pub(crate) async fn compare(title: &str, rows: &[Row], plan: &Plan, out: &mut String) {
    for row in rows {
        cost(&row.client, plan.at_once, plan.at_once).await;
    }
    let mut costs = vec![Vec::new(); rows.len()];
    let mut ratios = vec![Vec::new(); rows.len()];
    for round in 0..plan.rounds {
        for n in 0..rows.len() {
            // Each round begins with another client, so that none always follows the same one.
            let at = (n + round) % rows.len();
            let runs = if rows[at].waits { (plan.runs / 8).max(plan.at_once) } else { plan.runs };
            costs[at].push(cost(&rows[at].client, runs, plan.at_once).await);
        }
        for at in 0..rows.len() {
            ratios[at].push(costs[at][round] / costs[0][round]);
        }
    }
    let _ = writeln!(out, "\n{title}, {} at once: CPU of the client per run", plan.at_once);
    for (at, row) in rows.iter().enumerate() {
        let (us, times) = (median(&mut costs[at]), median(&mut ratios[at]));
        let (low, high) = (ratios[at][plan.rounds / 5], ratios[at][plan.rounds - 1 - plan.rounds / 5]);
        let _ = writeln!(out, "  {:<16} {us:>8.1} µs   × {times:.2}   ({low:.2} to {high:.2})", row.name);
    }
}

/// The median; the list is sorted afterwards.
pub(crate) fn median(list: &mut [f64]) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

/// The median of durations, in milliseconds.
pub(crate) fn median_ms(list: &[Duration]) -> f64 {
    let mut list: Vec<f64> = list.iter().map(|it| it.as_secs_f64() * 1e3).collect();
    median(&mut list)
}
