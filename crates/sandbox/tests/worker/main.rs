//! Documents in real worker processes: this program is its own worker.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod toy;

mod calls;
mod deaths;
mod escape;
mod hostile;
mod liars;
mod many;
mod told;

use libtest_mimic::{Arguments, Trial};

fn main() {
    gesta_sandbox::worker_main_with(toy::open);
    match std::env::args().nth(1).as_deref() {
        Some(deaths::MEASURE) => return alone(deaths::measure_memory()),
        Some(liars::LIAR) => return liars::play(&std::env::args().nth(2).unwrap_or_default()),
        Some(deaths::HOLD) => return alone(deaths::hold()),
        Some(hostile::ALONE) => return alone(hostile::alone()),
        _ => {}
    }
    let arguments = Arguments::from_args();
    let all = [calls::trials(), deaths::trials(), escape::trials(), many::trials(), hostile::trials(), liars::trials()];
    libtest_mimic::run(&arguments, all.into_iter().flatten().collect()).exit();
}

/// A test that runs on a runtime of its own, as a server would.
fn trial<F: Future<Output = ()> + 'static>(name: &str, test: fn() -> F) -> Trial {
    Trial::test(name, move || {
        alone(test());
        Ok(())
    })
}

fn alone(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}
