//! `--watch`: does something again whenever a file changes.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::exit::{Ended, Exit};
use crate::terminal::{Look, Screen};

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(150);

/// Does it now, and after each change, until somebody presses Ctrl-C. What fails is told, and tried again.
pub(super) async fn watch(files: &[PathBuf], mut each: impl AsyncFnMut() -> Ended) -> Ended {
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    loop {
        let seen = stamps(files);
        if let Err(failure) = each().await {
            crate::tell(&failure);
        }
        Screen::stderr().line(Look::Faint, "waiting for a change; Ctrl-C ends");
        while stamps(files) == seen {
            tokio::select! {
                _ = &mut stop => return Ok(Exit::Cancelled),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }
}

/// When each was last written, and how long it is.
fn stamps(files: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let stamp = |file: &PathBuf| {
        let found = std::fs::metadata(file).ok()?;
        Some((found.modified().ok()?, found.len()))
    };
    files.iter().map(stamp).collect()
}
