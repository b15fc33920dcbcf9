//! Agents with a document, in real worker processes: this program is its own worker.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod desk;

mod grants;
mod kept;
mod tools;

use libtest_mimic::{Arguments, Trial};

fn main() {
    gesta_sandbox::worker_main();
    let arguments = Arguments::from_args();
    let all = [tools::trials(), grants::trials(), kept::trials()];
    libtest_mimic::run(&arguments, all.into_iter().flatten().collect()).exit();
}

/// A test that runs on a runtime of its own, as a server would.
fn trial<F: Future<Output = ()> + 'static>(name: &str, test: fn() -> F) -> Trial {
    Trial::test(name, move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test());
        Ok(())
    })
}
