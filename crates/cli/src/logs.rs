//! Logs go to standard error, and hold nothing that was said.

use std::io::IsTerminal;

use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;

use crate::commands::Globals;

/// How a server's log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line, for programs.
    Json,
}

/// What is logged without being asked: what the program does not tell in its own words. Of the driver and the journal it
/// tells what matters: a log that cannot be written is an outcome.
const USUAL: &str = "warn,gesta_runtime::trace=off,gesta_runtime::driver=off,gesta_runtime::journal=off";

/// What a server logs without being asked: a line for each request, run and hold.
const SERVED: &str = "warn,gesta=info,gesta_server=info,gesta_runtime=info";

/// Starts logging: `GESTA_LOG` says what, else `-v` and `-q`. A server says how.
/// Gives what has to live until the last line is written.
pub(crate) fn start(globals: &Globals, format: Option<LogFormat>) -> Option<WorkerGuard> {
    let asked = std::env::var("GESTA_LOG").ok().filter(|text| !text.trim().is_empty());
    let usual = asked.is_none() && globals.verbose == 0 && format.is_none();
    let filter = match (asked, globals.quiet, globals.verbose) {
        (Some(asked), _, _) => asked,
        (None, true, _) => USUAL.replace("warn", "error"),
        (None, false, 0) if format.is_some() => SERVED.to_owned(),
        (None, false, 0) => USUAL.to_owned(),
        (None, false, 1) => "warn,gesta_runtime::trace=off".to_owned(),
        (None, false, 2) => "warn,gesta_runtime=debug,gesta_model=debug,gesta_store=debug".to_owned(),
        (None, false, _) => "debug".to_owned(),
    };
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new(USUAL));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colour);
    let Some(format) = format else {
        let log = log.with_writer(std::io::stderr);
        if usual {
            // Beside lines for people, when and where in the program is no matter.
            log.without_time().with_target(false).compact().init();
        } else {
            log.init();
        }
        return None;
    };
    // Whoever reads a server's log slowly, or not at all, keeps no run waiting: lines are lost then.
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    match format {
        LogFormat::Json => log.with_writer(writer).json().flatten_event(true).init(),
        LogFormat::Text => log.with_writer(writer).init(),
    }
    Some(guard)
}
