//! The command line of Gesta: the only crate that prints.

mod begun;
mod commands;

mod holds;
mod left;
mod lines;
mod live;
mod render;
mod shell;
mod stored;
mod talk;

mod environment;
mod exit;
mod folder_document;
mod logs;
mod place;
mod remote;
mod terminal;
mod visible;

use std::process::ExitCode;

use clap::Parser;

use commands::Cli;
use exit::{Exit, Failure};
use terminal::{Look, Screen};

fn main() -> ExitCode {
    // Before anything else: started by a pool of workers, this process is one and does nothing besides.
    gesta_sandbox::worker_main();
    let cli = Cli::parse();
    logs::start(&cli.globals);
    let ended = cli.command.run(&cli.globals);
    let lost = terminal::lost().map(|why| {
        let help = "what was asked has been done; make room or name another place, and look with `gesta show last`";
        Failure::new(Exit::Unwritten, format!("standard output cannot be written: {why}"), help)
    });
    lost.iter().for_each(tell);
    match (ended, lost) {
        (Ok(_), Some(lost)) => lost.exit.into(),
        (Ok(exit), None) => exit.into(),
        (Err(failure), _) => {
            tell(&failure);
            failure.exit.into()
        }
    }
}

fn tell(failure: &Failure) {
    let mut screen = Screen::stderr();
    screen.text(Look::Bad, "error: ");
    screen.line_on(&failure.to_string());
}
