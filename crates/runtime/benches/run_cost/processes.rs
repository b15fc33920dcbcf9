//! What needs a fresh process for each figure: the peak of memory, and the way from nothing to a finished run.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::rounds::{Client, in_tasks, median_ms, rows};

/// The clients by their place in [`rows`].
const BARE: &str = "0";
const GESTA: &str = "2";
const STORED: &str = "3";

fn client(base: &str, stream: bool, which: &str, folder: Option<&std::path::Path>) -> Client {
    let which: usize = which.parse().expect("a client's number is a number");
    rows(base, stream, folder).swap_remove(which).client
}

/// Begins this program again, and waits for the first thing it says.
fn child(arguments: &[&str]) -> (String, Duration) {
    let program = std::env::current_exe().expect("a process knows its program");
    let begun = Instant::now();
    let child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("this program can be started again");
    let mut said = [0; 64];
    let length = child.stdout.take().map_or(0, |mut out| out.read(&mut said).unwrap_or(0));
    let taken = begun.elapsed();
    let _ = child.wait();
    (String::from_utf8_lossy(&said[..length]).trim().to_owned(), taken)
}

/// In the child: `count` runs, all of which the server holds until the last one has asked.
pub(crate) fn hold(base: &str, which: &str, stream: &str, count: &str) {
    let number: usize = count.parse().expect("a number of runs is a number");
    let base = format!("{base}/held/{number}/v1");
    let client = client(&base, stream == "true", which, None);
    crate::runtime().block_on(in_tasks((0..number).map(|_| {
        let client = client.clone();
        async move { client.run().await }
    })));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    let _ = writeln!(std::io::stdout(), "{}", peak.trim().trim_end_matches(" kB"));
}

/// Peak memory with `count` runs held open, and what one of them takes.
pub(crate) fn held(base: &str, count: usize, out: &mut String) {
    let _ = writeln!(out, "\nPeak memory with {count} runs held open in each of their exchanges");
    for stream in ["false", "true"] {
        for (name, which) in [("reqwest, bare", BARE), ("gesta", GESTA)] {
            let peak = |count: usize| {
                let peaks = (0..3).map(|_| child(&["hold", base, which, stream, &count.to_string()]).0);
                peaks.filter_map(|said| said.parse::<usize>().ok()).min().unwrap_or(0)
            };
            let (one, all) = (peak(1), peak(count));
            let each = (all.saturating_sub(one)) as f64 / (count - 1).max(1) as f64;
            let form = if stream == "true" { "streamed" } else { "plain" };
            let _ = writeln!(out, "  {name:<16} {form:<9} {:>6.1} MB   {each:>6.1} kB a run", all as f64 / 1024.0);
        }
    }
}

/// In the child: one run.
pub(crate) fn begin(base: &str, which: &str) {
    let folder = (which == STORED).then(|| tempfile::tempdir().expect("there is room for temporary files"));
    let base = format!("{base}/fast/v1");
    let client = match which {
        BARE => Client::Bare(crate::bare::Bare::new(crate::bare::Http::reqwest(), &base, true)),
        _ => Client::Gesta(crate::agent::Measured::new(&base, true, folder.as_ref().map(|it| it.path()))),
    };
    crate::runtime().block_on(client.run());
    let _ = writeln!(std::io::stdout(), "done");
}

/// From the start of the process to its first finished run.
pub(crate) fn cold(base: &str, rounds: usize, out: &mut String) {
    let clients = [("nothing", "nothing"), ("reqwest, bare", BARE), ("gesta", GESTA), ("gesta, SQLite", STORED)];
    let mut taken = vec![Vec::new(); clients.len()];
    for _ in 0..rounds {
        for (times, (_, which)) in taken.iter_mut().zip(clients) {
            times.push(child(&["begin", base, which]).1);
        }
    }
    let _ = writeln!(out, "\nFrom the start of the process to the end of its first run");
    for (times, (name, _)) in taken.iter().zip(clients) {
        let _ = writeln!(out, "  {name:<16} {:>6.2} ms", median_ms(times));
    }
}
