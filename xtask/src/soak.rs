//! `cargo xtask soak`: what is worth hours and not minutes.

use std::io::Write;
use std::time::Instant;

use clap::{Args, Subcommand};

use crate::shell::{self, Count, command};
use crate::tools;

/// How long to go on.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: Option<What>,
    /// Simulated runs.
    #[arg(long, default_value_t = 5_000_000)]
    seeds: u64,
    /// The first seed: begin elsewhere to see other runs.
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// Rounds of every property test afterwards; 0 leaves them out.
    #[arg(long, default_value_t = 20_000)]
    rounds: u32,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Begin many runs at once over HTTP, against a model that takes its time, instead of the simulation.
    Load(Load),
}

/// How much at once, and for how long.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// Runs at the same time.
    #[arg(long, default_value_t = 1_000)]
    at_once: u32,
    /// How long new runs are begun.
    #[arg(long, default_value_t = 300)]
    seconds: u32,
    /// How long the model waits before each answer.
    #[arg(long, default_value_t = 2_000)]
    delay_ms: u32,
    /// How long it waits between two pieces of an answer.
    #[arg(long, default_value_t = 50)]
    pace_ms: u32,
}

impl Load {
    /// As much as the test command has time for.
    pub(crate) const SHORT: Self = Self { at_once: 50, seconds: 20, delay_ms: 500, pace_ms: 10 };

    /// Builds the program with this profile and loads it.
    pub(crate) fn run(&self, profile: &str, folder: &str) -> Count {
        let built = [
            command("cargo build --quiet -p gesta-cli --bin gesta"),
            command("cargo build --quiet -p gesta-fakes --example load"),
        ]
        .into_iter()
        .all(|mut cargo| cargo.args(["--profile", profile]).status().is_ok_and(|it| it.success()));
        if !built {
            return Count { passed: 0, failed: 1 };
        }
        let programs = tools::target().join(folder);
        let mut load = std::process::Command::new(programs.join("examples/load"));
        load.arg("--gesta").arg(programs.join("gesta")).current_dir(xtask::root());
        for (flag, value) in [
            ("--at-once", self.at_once),
            ("--seconds", self.seconds),
            ("--delay-ms", self.delay_ms),
            ("--pace-ms", self.pace_ms),
        ] {
            load.args([flag, &value.to_string()]);
        }
        shell::run(&mut load, true)
    }
}

/// Runs between two lines of progress.
const STEP: u64 = 100_000;

/// Soaks. Whether nothing broke.
pub(crate) fn run(options: &Options) -> bool {
    match &options.what {
        Some(What::Load(load)) => load.run("release", "release").failed == 0,
        None => simulated(options) && properties(options.rounds),
    }
}

/// The simulation, in steps, so that a break shows early and progress can be seen.
fn simulated(options: &Options) -> bool {
    println!("=== {} simulated runs from seed {}", options.seeds, options.start);
    let build = "cargo build --quiet --release -p gesta-run --example simulate";
    if shell::run(&mut command(build), true).failed > 0 {
        return false;
    }
    let began = Instant::now();
    let mut done = 0;
    while done < options.seeds {
        let step = STEP.min(options.seeds - done);
        let mut simulate = command("cargo run --quiet --release -p gesta-run --example simulate -- --quiet");
        simulate.args(["--seeds", &step.to_string(), "--start", &(options.start + done).to_string()]);
        if !simulate.status().is_ok_and(|status| status.success()) {
            println!("\nbroke between seeds {} and {}", options.start + done, options.start + done + step - 1);
            return false;
        }
        done += step;
        progress(done, options.seeds, began);
    }
    println!();
    true
}

#[allow(clippy::cast_precision_loss)] // A rate for people to read.
fn progress(done: u64, all: u64, began: Instant) {
    let rate = done as f64 / began.elapsed().as_secs_f64().max(0.001);
    let left = (all - done) as f64 / rate;
    let line = format!("{done} of {all} runs, {rate:.0} a second, {:.0} min left", left / 60.0);
    if shell::is_watched() {
        print!("\r{line}   ");
        // A line that cannot be shown is no reason to stop.
        let _ = std::io::stdout().flush();
    } else {
        println!("{line}");
    }
}

/// Every property test, with many more rounds than in the test command.
fn properties(rounds: u32) -> bool {
    if rounds == 0 {
        return true;
    }
    println!("=== {rounds} rounds of every property test");
    let mut cargo = command("cargo test --release --no-fail-fast --lib --tests");
    for package in with_properties() {
        cargo.args(["-p", &package]);
    }
    let count = shell::run(cargo.env("PROPTEST_CASES", rounds.to_string()), false);
    println!("\n{} passed, {} failed", count.passed, count.failed);
    count.failed == 0
}

/// The crates whose manifest asks for proptest.
fn with_properties() -> Vec<String> {
    let crates = std::fs::read_dir(xtask::root().join("crates")).into_iter().flatten().filter_map(Result::ok);
    let asks = |manifest: String| manifest.contains("proptest.workspace");
    crates
        .filter(|it| std::fs::read_to_string(it.path().join("Cargo.toml")).is_ok_and(asks))
        .map(|it| format!("gesta-{}", it.file_name().to_string_lossy()))
        .collect()
}
