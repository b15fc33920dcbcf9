//! The command line of Gesta: the only crate that prints.

mod commands;

mod holds;
mod lines;
mod live;
mod render;
mod stored;
mod talk;

mod environment;
mod exit;
mod logs;
mod place;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use commands::Cli;
use terminal::{Look, Screen};

fn main() -> ExitCode {
    let cli = Cli::parse();
    logs::start(&cli.globals);
    match cli.command.run(&cli.globals) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let mut screen = Screen::stderr();
            screen.text(Look::Bad, "error: ");
            screen.line_on(&failure.to_string());
            failure.exit.into()
        }
    }
}
