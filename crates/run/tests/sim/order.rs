//! Which events may follow which.

use gesta_run::EventKind;

/// Whether an event may still come in a run that is to end.
pub fn closes(what: &EventKind) -> bool {
    matches!(
        what,
        EventKind::Answered { .. }
            | EventKind::GrantAsked { .. }
            | EventKind::GrantDecided { .. }
            | EventKind::GrantStarted { .. }
            | EventKind::GrantAnswered { .. }
            | EventKind::TripEnded { .. }
            | EventKind::Ended { .. }
            | EventKind::Intervened(_)
            | EventKind::Recovered
            | EventKind::FunctionFailed { .. }
    )
}
