//! Seeds played in a world that answers in any order, late, twice and wrongly, and that dies; every log is checked.

// Tests stand outside of the machine: they have files, threads and a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod sim;

/// Seeds of one test run; the example `simulate` plays more.
const SEEDS: u64 = 50_000;

#[test]
fn every_seed_keeps_every_promise() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seeds, start) = (number("GESTA_SEEDS").unwrap_or(SEEDS), number("GESTA_SEED_START").unwrap_or(0));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let (events, failed) = sim::play_all(start, seeds, threads);
    let told: Vec<String> = failed.iter().map(|(seed, played)| played.told(*seed)).collect();
    assert!(failed.is_empty(), "{}", told.join("\n"));
    assert!(events > seeds, "the dice came to nothing");
}
