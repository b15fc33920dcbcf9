//! Runs commands of the workspace, shows what they print and counts the tests they report.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};

/// What came of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Count {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Adds what a line of a test runner reports: `test result: ok. 3 passed; 0 failed; …`.
    fn read(&mut self, line: &str) {
        let Some((_, rest)) = line.split_once("test result: ") else { return };
        let number = |word: &str| {
            let before = rest.split(word).next()?.trim_end();
            before.rsplit([' ', ';']).next()?.parse::<u64>().ok()
        };
        self.passed += number("passed").unwrap_or(0);
        self.failed += number("failed").unwrap_or(0);
    }
}

/// A command that begins at the root of the workspace.
pub(crate) fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().expect("a command has a first word"));
    command.args(words).current_dir(xtask::root());
    command
}

/// Runs a command and passes on what it prints, but for lines that only say that all is well. A command that reports
/// no tests counts as one.
pub(crate) fn run(command: &mut Command, verbose: bool) -> Count {
    let mut child = match command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(why) => {
            println!("cannot start {}: {why}", command.get_program().display());
            return Count { passed: 0, failed: 1 };
        }
    };
    let mut count = Count::default();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            count.read(&line);
            if verbose || !is_noise(&line) {
                println!("{line}");
            }
        }
    }
    let fine = child.wait().is_ok_and(|status| status.success());
    if !fine && count.failed == 0 {
        count.failed = 1;
    } else if fine && count == Count::default() {
        count.passed = 1;
    }
    count
}

/// Whether a command ends well, without showing what it prints.
pub(crate) fn succeeds(line: &str) -> bool {
    output(line).is_some()
}

/// What a command prints, where it ends well.
pub(crate) fn output(line: &str) -> Option<String> {
    let output = command(line).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Says something to a command and hands back all that it printed, on either output.
pub(crate) fn told(command: &mut Command, input: &str) -> String {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let output = child.and_then(|mut child| {
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait_with_output()
    });
    match output {
        Ok(output) => String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        Err(why) => why.to_string(),
    }
}

/// Whether people watch.
pub(crate) fn is_watched() -> bool {
    std::io::stdout().is_terminal()
}

fn is_noise(line: &str) -> bool {
    let line = line.trim_end();
    line.is_empty()
        || line.starts_with("running ")
        || line.starts_with("test result: ok")
        || (line.starts_with("test ") && line.ends_with(" ... ok"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_a_runner_are_counted() {
        let mut count = Count::default();
        count.read("test result: ok. 14 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s");
        count.read("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        count.read("test a_thing ... ok");
        assert_eq!(count, Count { passed: 15, failed: 2 });
    }

    #[test]
    fn a_command_that_reports_no_tests_counts_as_one() {
        assert_eq!(run(&mut command("true"), false), Count { passed: 1, failed: 0 });
        assert_eq!(run(&mut command("false"), false), Count { passed: 0, failed: 1 });
        assert_eq!(run(&mut command("there-is-no-such-command"), false), Count { passed: 0, failed: 1 });
    }

    #[test]
    fn only_good_news_is_left_out() {
        assert!(is_noise("test a_thing ... ok") && is_noise("running 3 tests") && is_noise(""));
        assert!(!is_noise("test a_thing ... FAILED") && !is_noise("thread 'a' panicked"));
    }
}
