//! Signals that ask this program to end: Ctrl-C, the end of the terminal, and whoever supervises it.

use std::sync::atomic::{AtomicU8, Ordering};

/// The exit code of whoever was ended from outside; 0 as long as nobody was.
static ENDED_BY: AtomicU8 = AtomicU8::new(0);

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C: ends what goes on, and not a talk.
    Interrupt,
    /// SIGTERM or SIGHUP: ends the program.
    End,
}

/// Whether SIGTERM or SIGHUP has come.
pub(crate) fn has_ended() -> bool {
    ENDED_BY.load(Ordering::Relaxed) != 0
}

/// The exit code of what was cancelled: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
pub(crate) fn cancelled_code() -> u8 {
    match ENDED_BY.load(Ordering::Relaxed) {
        0 => 130,
        code => code,
    }
}

/// Hears what comes from now on. Once there has been one, no signal ends the program by itself any more.
pub(crate) struct Signals {
    #[cfg(unix)]
    heard: [Option<tokio::signal::unix::Signal>; 3],
}

#[cfg(unix)]
impl Signals {
    /// Begins to listen.
    pub(crate) fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        // One that cannot be heard does what it does without us.
        Self { heard: kinds.map(|kind| signal(kind).ok()) }
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Signal {
        let [interrupt, terminate, hang_up] = &mut self.heard;
        let code = tokio::select! {
            () = heard(interrupt) => return Signal::Interrupt,
            () = heard(terminate) => 143,
            () = heard(hang_up) => 129,
        };
        ENDED_BY.store(code, Ordering::Relaxed);
        Signal::End
    }
}

#[cfg(unix)]
async fn heard(signal: &mut Option<tokio::signal::unix::Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending().await
}

#[cfg(not(unix))]
impl Signals {
    /// Begins to listen.
    pub(crate) fn listen() -> Self {
        Self {}
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}
