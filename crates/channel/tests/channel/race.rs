//! The race and its endings.

use gesta_channel::outcome::{Handoff, Outcome, Reason, of_turn};
use gesta_channel::race::{Progress, Race, Step, bounds_fit, expires_at, plays_until};
use gesta_run::Timestamp;

const SILENT: Step = Step::Silent { not_before: None };

fn at(ms: i64) -> Timestamp {
    Timestamp(1_000_000 + ms)
}

fn later(ms: i64) -> Step {
    Step::Silent { not_before: Some(at(ms)) }
}

#[test]
fn the_race_runs_from_arrival_and_knows_what_to_say_at_each_moment() {
    let race = Race::new(at(0));
    let until = |ms: i64| Some(at(ms));
    let running = |plays_until| Progress::Running { plays_until };
    let replied = |plays_until| Progress::Replied { plays_until };
    for (now, progress, queued, expected) in [
        (0, Progress::InLane, false, Step::Wait(at(8000))),
        (8000, Progress::InLane, false, SILENT),
        (0, running(None), false, Step::Wait(at(8000))),
        (7999, running(None), false, Step::Wait(at(8000))),
        (8000, running(None), false, Step::Holding),
        (8000, running(None), true, SILENT),
        (8000, running(until(8001)), false, later(8001)),
        (8000, running(until(8000)), false, Step::Holding),
        (10, Progress::Parked, false, Step::Holding),
        (10, Progress::Parked, true, SILENT),
        (10, replied(None), false, Step::Reply),
        (9500, replied(None), false, Step::Reply),
        (10, replied(None), true, SILENT),
        (10, replied(until(5000)), false, Step::Wait(at(5000))),
        (5000, replied(until(5000)), false, Step::Reply),
        (10, replied(until(7999)), false, Step::Wait(at(7999))),
        (10, replied(until(8000)), false, later(8000)),
        (10, replied(until(20_000)), false, later(20_000)),
        (10, replied(until(5000)), true, later(5000)),
    ] {
        assert_eq!(race.step(at(now), progress, queued), expected, "{now} {progress:?} {queued}");
    }
}

#[test]
fn the_abort_leaves_out_what_was_spent_parked_and_a_turn_expires_38_seconds_after_its_claim() {
    let race = Race::new(at(0));
    assert_eq!(race.aborts_at(at(500), 0), at(30_500));
    assert_eq!(race.aborts_at(at(500), 60_000), at(90_500));
    assert_eq!(expires_at(at(0)), at(38_000));
    assert_eq!(plays_until(at(100), 30), at(30_100));
    assert!(bounds_fit(8000, 30_000) && !bounds_fit(8000, 8000));
}

#[test]
fn every_ending_has_its_outcome_reason_and_notes() {
    use gesta_run::Outcome as Run;
    let model = Handoff::Model(Reason::Complaint);
    for (handoff, outcome, reason, keeps, marks, asked) in [
        (model, Outcome::EscalatedModel, Some(Reason::Complaint), true, true, true),
        (Handoff::Confidence, Outcome::EscalatedModel, Some(Reason::LowConfidence), true, true, true),
        (Handoff::Leak, Outcome::EscalatedModel, None, false, true, true),
        (Handoff::Schema, Outcome::FailedValidation, Some(Reason::LowConfidence), false, true, true),
        (Handoff::Failed, Outcome::Error, None, false, true, true),
        (Handoff::Aborted, Outcome::Error, None, false, true, true),
        (Handoff::Keyword, Outcome::EscalatedPrecheck, Some(Reason::ExplicitRequest), false, true, false),
        (Handoff::TurnCap, Outcome::EscalatedPrecheck, Some(Reason::ExplicitRequest), false, false, false),
        (Handoff::Rate, Outcome::EscalatedPrecheck, Some(Reason::ExplicitRequest), false, false, false),
        (Handoff::Budget, Outcome::EscalatedPrecheck, Some(Reason::OutOfScope), false, false, false),
    ] {
        for lost in [false, true] {
            assert_eq!(of_turn(Some(handoff), lost), outcome);
        }
        assert_eq!((handoff.reason(), handoff.keeps_notes()), (reason, keeps), "{handoff:?}");
        assert_eq!((handoff.marks_escalated(), handoff.asked_model()), (marks, asked), "{handoff:?}");
    }
    assert_eq!((of_turn(None, false), of_turn(None, true)), (Outcome::AnsweredInline, Outcome::AnsweredLate));
    assert_eq!(Handoff::of_run(Run::Completed), None);
    assert_eq!(Handoff::of_run(Run::MaxTrips), Some(Handoff::Schema));
    assert_eq!(Handoff::of_run(Run::ModelFailed), Some(Handoff::Failed));
}
