//! What was measured, and whether it is as it should be.

use std::time::Duration;

use super::asking::Asked;
use super::program::Program;

/// By how much memory may grow from the second quarter of the time to the last, in percent and kB, before it counts as
/// growing: the allocator and the store's caches settle for a while.
const GROWS_PERCENT_MAX: u64 = 15;
const GROWS_KB_MAX: u64 = 16 << 10;
/// How many of the things that went wrong are shown.
const SHOWN_MAX: usize = 5;

/// What was measured.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    added: Vec<Duration>,
    wrong: Vec<String>,
    memory_kb: Vec<u64>,
    files_max: usize,
    cpu_ticks: u64,
}

impl Measured {
    /// Looks at the program once.
    pub(crate) fn look(&mut self, program: &Program) {
        self.memory_kb.extend(program.memory_kb());
        self.files_max = self.files_max.max(program.files());
    }

    /// The processor's time of the program, at the end.
    pub(crate) fn cpu(&mut self, program: &Program) {
        self.cpu_ticks = program.cpu_ticks().unwrap_or_default();
    }

    /// Adds what came of somebody's runs. `own` is the model's own time for each.
    pub(crate) fn add(&mut self, asked: Asked, own: Duration) {
        self.added.extend(asked.took.into_iter().map(|took| took.saturating_sub(own)));
        self.wrong.extend(asked.wrong);
    }

    /// The times beyond the model's own, in words.
    pub(crate) fn added(&mut self) -> String {
        self.added.sort_unstable();
        let runs = self.added.len();
        let ms = |share: usize| {
            let at = (runs * share / 1_000).min(runs.saturating_sub(1));
            self.added.get(at).map_or(0.0, |it| it.as_secs_f64() * 1_000.0)
        };
        let (half, most, nearly_all, all) = (ms(500), ms(900), ms(990), ms(1_000));
        format!("p50 {half:.1} ms, p90 {most:.1} ms, p99 {nearly_all:.1} ms, at most {all:.1} ms")
    }

    /// Prints it. Whether it is as it should be.
    pub(crate) fn tell(mut self, at_once: u32) -> bool {
        let (runs, wrong) = (self.added.len(), self.wrong.len());
        println!("{runs} runs completed, {wrong} went wrong");
        println!("runs take longer than the model alone by {}", self.added());
        for why in self.wrong.iter().take(SHOWN_MAX) {
            println!("went wrong: {}", why.chars().take(400).collect::<String>());
        }
        let (before, after) = (self.quarter(1), self.quarter(3));
        let most = self.memory_kb.iter().max().copied().unwrap_or_default();
        let flat = after <= before + before * GROWS_PERCENT_MAX / 100 + GROWS_KB_MAX;
        println!(
            "memory: {} MB in the second quarter, {} MB in the last, {} MB at most{}",
            before >> 10,
            after >> 10,
            most >> 10,
            if flat { "" } else { ": it grows" }
        );
        let cpu_ms = self.cpu_ticks * 10;
        println!(
            "files: {} at most; processor: {} ms, {} µs a run",
            self.files_max,
            cpu_ms,
            cpu_ms * 1_000 / (runs as u64).max(1)
        );
        let enough = runs as u64 >= u64::from(at_once);
        wrong == 0 && flat && enough && !self.memory_kb.is_empty()
    }

    /// The median of the memory in a quarter of the time, from 0.
    fn quarter(&self, nth: usize) -> u64 {
        let looks = self.memory_kb.len();
        let mut quarter = self.memory_kb[looks * nth / 4..looks * (nth + 1) / 4].to_vec();
        quarter.sort_unstable();
        quarter.get(quarter.len() / 2).copied().unwrap_or_default()
    }
}
