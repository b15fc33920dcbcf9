//! `cargo xtask test`: every group, what came of each, and one closing line.

use std::time::{Duration, Instant};

use clap::Args;

use crate::groups::{GROUPS, Group};
use crate::shell::Count;

/// What to run and how strictly.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Run this group alone; may be given again.
    #[arg(long, value_name = "GROUP")]
    only: Vec<String>,
    /// Name the groups and run nothing.
    #[arg(long)]
    list: bool,
    /// A group that cannot be run is a failure.
    #[arg(long, env = "CI", value_parser = clap::builder::FalseyValueParser::new())]
    strict: bool,
    /// Show also the tests that pass.
    #[arg(long, short)]
    verbose: bool,
}

/// Runs the groups. Whether all is well.
pub(crate) fn run(options: &Options) -> bool {
    if options.list {
        for group in &GROUPS {
            println!("{:<11} {}", group.name, group.what);
        }
        return true;
    }
    if let Some(unknown) = options.only.iter().find(|it| GROUPS.iter().all(|group| group.name != *it)) {
        let known: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
        eprintln!("there is no group `{unknown}`; groups: {}", known.join(", "));
        return false;
    }
    let wanted = |group: &&Group| options.only.is_empty() || options.only.iter().any(|it| it == group.name);
    let mut done: Vec<Done> = Vec::new();
    for group in GROUPS.iter().filter(wanted) {
        println!("\n=== {}: {}", group.name, group.what);
        let began = Instant::now();
        let came = (group.run)(options.verbose);
        let it = Done { group, came, took: began.elapsed() };
        println!("--- {}", it.told());
        done.push(it);
    }
    summary(&done, options.strict)
}

/// A group that was run, or could not be.
struct Done<'a> {
    group: &'a Group,
    came: Result<Count, String>,
    took: Duration,
}

impl Done<'_> {
    fn told(&self) -> String {
        let name = self.group.name;
        let seconds = self.took.as_secs_f64();
        match &self.came {
            Ok(count) if count.failed > 0 => {
                format!("{name:<11} FAILED   {:>5} passed {:>4} failed {seconds:>8.1} s", count.passed, count.failed)
            }
            Ok(count) => format!("{name:<11} ok       {:>5} passed             {seconds:>8.1} s", count.passed),
            Err(why) => format!("{name:<11} not run  {why}"),
        }
    }
}

/// Prints what came of all groups. The last line is for machines too.
fn summary(done: &[Done<'_>], strict: bool) -> bool {
    println!("\n=== summary");
    let mut total = Count::default();
    let mut missing = Vec::new();
    for it in done {
        println!("{}", it.told());
        match &it.came {
            Ok(count) => total.add(*count),
            Err(_) if strict && !it.group.optional => missing.push(it.group.name),
            Err(_) => {}
        }
    }
    if !missing.is_empty() {
        println!("a strict run needs every group; not run: {}", missing.join(", "));
        total.failed += missing.len() as u64;
    }
    println!("\n{} passed, {} failed", total.passed, total.failed);
    total.failed == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &'static str, optional: bool) -> Group {
        Group { name, what: "", optional, run: |_| Ok(Count::default()) }
    }

    #[test]
    fn a_group_that_cannot_be_run_fails_a_strict_run_unless_it_is_optional() {
        for (optional, strict, fine) in [(false, false, true), (false, true, false), (true, true, true)] {
            let group = group("far", optional);
            let done = [Done { group: &group, came: Err("out of reach".to_owned()), took: Duration::ZERO }];
            assert_eq!(summary(&done, strict), fine);
        }
    }

    #[test]
    fn one_failed_test_fails_the_whole() {
        let group = group("near", false);
        let came = |failed| [Done { group: &group, came: Ok(Count { passed: 3, failed }), took: Duration::ZERO }];
        assert!(summary(&came(0), true) && !summary(&came(1), true));
    }

    #[test]
    fn groups_have_names_of_their_own() {
        for (at, group) in GROUPS.iter().enumerate() {
            assert!(GROUPS[at + 1..].iter().all(|other| other.name != group.name), "{}", group.name);
        }
    }
}
