//! Plays random runs from seeds and checks each: `cargo run -p gesta-run --example simulate -- --seeds 50000 --start 0`.

// An example stands outside of the machine: it has files, threads and a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../tests/sim/mod.rs"]
mod sim;

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let (mut seeds, mut start, mut quiet, mut logs) = (50_000, 0, false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.replace('_', "").parse::<u64>().ok());
        match argument.as_str() {
            "--seeds" => seeds = number().unwrap_or(seeds),
            "--start" => start = number().unwrap_or(start),
            "--quiet" => quiet = true,
            "--logs" => logs = true,
            other => {
                eprintln!("unknown argument `{other}`; known: --seeds N, --start S, --quiet, --logs");
                return ExitCode::from(2);
            }
        }
    }
    if logs {
        for seed in start..start + seeds {
            for event in sim::play(seed, &sim::plan_of(seed)).log {
                println!("{}", serde_json::to_string(&event).unwrap_or_default());
            }
        }
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (events, failed) = sim::play_all(start, seeds, threads as u64);
    for (seed, played) in &failed {
        println!("{}", played.told(*seed));
    }
    if !quiet {
        let seconds = began.elapsed().as_secs_f64();
        println!("{seeds} runs from seed {start}, {events} events, {seconds:.1} s, {} failed", failed.len());
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
