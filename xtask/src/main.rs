//! `cargo xtask`: the chores of the house.
#![allow(clippy::print_stdout, clippy::print_stderr)] // A chore talks to whoever runs it.

mod deploy;
mod groups;
mod openapi;
mod shell;
mod soak;
mod test;
mod tools;

use std::process::ExitCode;

use clap::Parser;
use xtask::{Tree, tidy};

/// The chores of the house.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
enum Chore {
    /// Check what the compiler does not: sizes, headers, arrows between crates, words, links, places.
    Tidy,
    /// Run every test there is, group by group. This is what CI runs.
    Test(test::Options),
    /// Run the long tests: millions of simulated runs, and more rounds of every property test.
    Soak(soak::Options),
}

fn main() -> ExitCode {
    let fine = match Chore::parse() {
        Chore::Tidy => tidied(),
        Chore::Test(options) => test::run(&options),
        Chore::Soak(options) => soak::run(&options),
    };
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints what is out of order. Whether nothing is.
fn tidied() -> bool {
    let tree = match Tree::read(&xtask::root()) {
        Ok(tree) => tree,
        Err(why) => {
            eprintln!("cannot read the workspace: {why}");
            return false;
        }
    };
    let findings = tidy::check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} findings", findings.len());
    findings.is_empty()
}
