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
mod signals;
mod terminal;
mod visible;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use commands::Cli;
use exit::{Exit, Failure};
use terminal::{Look, Screen};

fn main() -> ExitCode {
    // Before anything else: started by a pool of workers, this process is one and does nothing besides.
    gesta_sandbox::worker_main();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(why) => return not_run(&why),
    };
    let _log = logs::start(&cli.globals, cli.command.log_format());
    let globals = cli.globals.clone();
    let ended = cli.command.run(&globals);
    let lost = terminal::lost().map(|why| {
        unwritten(why, "what was asked has been done; make room or name another place, and look with `gesta show last`")
    });
    lost.iter().for_each(tell);
    match (ended, lost) {
        (Ok(_), Some(lost)) => lost.exit.into(),
        (Ok(exit), None) => exit.into(),
        (Err(failure), _) => {
            let failure = failure.of_data(&globals);
            tell(&failure);
            failure.exit.into()
        }
    }
}

/// Help, the version, or why the command line cannot be read: with nothing run.
fn not_run(why: &clap::Error) -> ExitCode {
    let printed = why.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(failed) if why.exit_code() == 0 && failed.kind() != io::ErrorKind::BrokenPipe => {
            let failure = unwritten(&failed.to_string(), "make room, or name another place");
            tell(&failure);
            failure.exit.into()
        }
        _ => ExitCode::from(u8::try_from(why.exit_code()).unwrap_or(2)),
    }
}

fn unwritten(why: &str, help: &str) -> Failure {
    Failure::new(Exit::Unwritten, format!("standard output cannot be written: {why}"), help)
}

fn tell(failure: &Failure) {
    let mut screen = Screen::stderr();
    screen.text(Look::Bad, "error: ");
    screen.line_on(&failure.to_string());
}
