//! What a run costs beside a client that does nothing but its exchanges. Only ratios within one run of this mean
//! anything: `cargo bench -p gesta-runtime --bench run_cost`, and `-- --quick` to see that it works.

mod agent;
mod bare;
mod processes;
mod rounds;
mod server;
mod words;

use std::io::Write as _;

use rounds::{Plan, Row};
use server::Server;

/// What every process here runs on: one thread, as the command line does.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve"] => server::serve(),
        ["begin", _, "nothing"] => {
            let _ = writeln!(std::io::stdout(), "done");
        }
        ["begin", base, which] => processes::begin(base, which),
        ["hold", base, which, stream, count] => processes::hold(base, which, stream, count),
        ["loop", which, stream, runs, ref server @ ..] => repeat(which, stream == "streamed", runs, server.first()),
        // Cargo names the bench only when it is to be measured; `cargo test --benches` merely looks whether it runs.
        _ => all(!arguments.contains(&"--bench") || arguments.contains(&"--quick")),
    }
}

/// One client again and again, for a profiler: `loop 2 streamed 1000`, with the address of a server that `serve` began
/// where the profiler cannot begin one.
fn repeat(which: &str, stream: bool, runs: &str, server: Option<&&str>) {
    let own = server.is_none().then(Server::start);
    let address = own.as_ref().map_or_else(|| server.copied().unwrap_or_default(), |it| &it.address);
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let which: usize = which.parse().expect("a client's number is a number");
    let base = format!("http://{address}/fast/v1");
    let row: Row = rounds::rows(&base, stream, Some(folder.path())).swap_remove(which);
    let runs = runs.parse().expect("a number of runs is a number");
    let done = runtime().block_on(rounds::repeat(&row.client, runs, 64));
    let _ = writeln!(std::io::stdout(), "{}: {done} runs", row.name);
}

fn all(quick: bool) {
    let server = Server::start();
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let base = format!("http://{}", server.address);
    let mut out = String::new();
    runtime().block_on(async {
        for (form, stream) in [("Plain", false), ("Streamed", true)] {
            let folder = folder.path().join(form);
            let rows = rounds::rows(&format!("{base}/fast/v1"), stream, Some(&folder));
            for at_once in [1, 64] {
                let runs = if quick { at_once } else { 512 };
                let rounds = if quick { 1 } else { 15 };
                rounds::compare(form, &rows, &Plan { rounds, runs, at_once }, &mut out).await;
                say(&mut out);
            }
        }
        let rows = rounds::rows(&format!("{base}/paced/v1"), true, None);
        let plan = Plan { rounds: if quick { 1 } else { 7 }, runs: 64, at_once: 64 };
        rounds::compare("Text events 10 ms apart", &rows, &plan, &mut out).await;
        say(&mut out);
    });
    processes::held(&base, if quick { 20 } else { 1_000 }, &mut out);
    processes::cold(&base, if quick { 1 } else { 25 }, &mut out);
    say(&mut out);
}

fn say(out: &mut String) {
    let _ = std::io::stdout().write_all(out.as_bytes());
    out.clear();
}
