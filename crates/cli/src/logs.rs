//! Logs go to standard error, and hold nothing that was said.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::commands::Globals;

/// What is logged without being asked: what the program does not tell in its own words. Of the driver and the journal it
/// tells what matters: a log that cannot be written is an outcome.
const USUAL: &str = "warn,gesta_runtime::trace=off,gesta_runtime::driver=off,gesta_runtime::journal=off";

/// Starts logging: `GESTA_LOG` says what, else `-v` and `-q`.
pub(crate) fn start(globals: &Globals) {
    let asked = std::env::var("GESTA_LOG").ok().filter(|text| !text.trim().is_empty());
    let usual = asked.is_none() && globals.verbose == 0;
    let filter = match (asked, globals.quiet, globals.verbose) {
        (Some(asked), _, _) => asked,
        (None, true, _) => USUAL.replace("warn", "error"),
        (None, false, 0) => USUAL.to_owned(),
        (None, false, 1) => "warn,gesta_runtime::trace=off".to_owned(),
        (None, false, 2) => "warn,gesta_runtime=debug,gesta_model=debug,gesta_store=debug".to_owned(),
        (None, false, _) => "debug".to_owned(),
    };
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new(USUAL));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colour).with_writer(std::io::stderr);
    if usual {
        // Beside lines for people, when and where in the program is no matter.
        log.without_time().with_target(false).compact().init();
    } else {
        log.init();
    }
}
