//! The worker: what runs in the child process, from its first instruction to its last.

mod confine;
mod serve;
mod wire;

use std::io::IsTerminal;

use gesta_document::{Document, OpenError, Record, Terms};

pub(crate) use serve::{Process, serve};
pub(crate) use wire::Wire;

/// How a document is opened; `gesta_document::open` outside tests.
pub type Open = fn(&Record, &Terms) -> Result<Box<dyn Document>, OpenError>;

/// The argument by which a program knows that it is to be the worker.
pub const WORKER_ARGUMENT: &str = "document-worker";

/// Makes this process the worker if it was started as one, and returns at once if it was not.
///
/// To be called first in `main`, before any thread is started or any file opened: by the program `gesta`, and by every
/// program that embeds Gesta and runs documents. Started by a pool, it does not return.
pub fn worker_main() {
    worker_main_with(gesta_document::open);
}

/// As [`worker_main`], with another engine behind the documents.
pub fn worker_main_with(open: Open) {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != WORKER_ARGUMENT) || arguments.next().is_some() {
        return;
    }
    std::process::exit(if serve_alone(open) { 0 } else { 2 });
}

/// Serves one conversation over standard input and output. Whether that came to a regular end.
fn serve_alone(open: Open) -> bool {
    if std::io::stdin().is_terminal() {
        explain();
        return false;
    }
    confine::enter(open).is_ok()
}

#[expect(clippy::print_stderr, reason = "a person has started what only a pool starts; there is nobody else to tell")]
fn explain() {
    eprintln!("`{WORKER_ARGUMENT}` is started by gesta itself, as the process in which documents run");
}
