//! Late replies and the limits of calls.

use gesta_channel::manychat::{Call, CallError, Failure, FlowKind, FlowRoom, Limiter, Operation, Slot, flow_room};
use gesta_channel::outbox::{After, after_failure, due_at, next_part, wait_ms};
use gesta_run::Timestamp;
use serde_json::json;

fn error(operation: Operation, failure: Failure, retry_after_ms: Option<u64>) -> CallError {
    CallError { retry_after_ms, ..CallError::without_answer(operation, failure) }
}

#[test]
fn a_row_waits_longer_each_time_and_dies_at_the_fifth_attempt() {
    assert_eq!([1, 2, 3, 4, 8, 9, 64, u32::MAX].map(wait_ms), [2, 4, 8, 16, 256, 300, 300, 300].map(|s| s * 1000));
    let timeout = |ms| error(Operation::SendFlow, Failure::TimedOut, ms);
    assert_eq!(after_failure(4, &timeout(None)), After::Again(16_000));
    assert_eq!(after_failure(5, &timeout(None)), After::Dead);
    assert_eq!(after_failure(1, &timeout(Some(90_000))), After::Again(90_000));
    assert_eq!(after_failure(4, &timeout(Some(1))), After::Again(16_000));
}

#[test]
fn what_is_dead_at_once_and_what_is_tried_again() {
    use Operation::{SendFlow, SetField};
    for (operation, failure, dead) in [
        (SendFlow, Failure::Status(400), true),
        (SendFlow, Failure::Status(401), true),
        (SetField, Failure::Status(404), true),
        (SetField, Failure::Status(429), false),
        (SendFlow, Failure::Status(429), false),
        (SendFlow, Failure::Status(500), false),
        (SendFlow, Failure::Status(502), false),
        (SendFlow, Failure::Status(302), false),
        (SendFlow, Failure::NotJson(200), true),
        (SetField, Failure::NotJson(200), true),
        (SendFlow, Failure::Refused(200), true),
        (SetField, Failure::Refused(200), false),
        (SendFlow, Failure::TimedOut, false),
        (SendFlow, Failure::Network, false),
        (SendFlow, Failure::Aborted, false),
        (SendFlow, Failure::NoToken, false),
    ] {
        assert_eq!(
            after_failure(1, &error(operation, failure, None)) == After::Dead,
            dead,
            "{operation:?} {failure:?}"
        );
    }
}

#[test]
fn parts_go_on_where_they_stopped_and_are_paced() {
    assert_eq!((next_part(3, 0), next_part(3, 2), next_part(3, 3)), (Some(0), Some(2), None));
    let at = |ms| Some(Timestamp(ms));
    for (last, gap, not_before, queued, expected) in [
        (None, 2000, None, None, 0),
        (at(1000), 2000, None, None, 3000),
        (at(1000), 60_000, None, None, 11_000),
        (at(1000), 2000, at(9000), None, 9000),
        (at(1000), 2000, at(9000), at(9500), 9500),
    ] {
        assert_eq!(due_at(last, gap, not_before, queued), Timestamp(expected));
    }
}

#[test]
fn a_delivery_is_the_field_and_then_the_flow() {
    let [field, flow] = Call::delivery(&"12345".into(), "ai_message", "content_1", "Hello").map(|it| it.request("k"));
    assert_eq!(field.target, "/fb/subscriber/setCustomFieldByName");
    let body = field.body.unwrap().to_string();
    assert_eq!(body, json!({"subscriber_id": 12345, "field_name": "ai_message", "field_value": "Hello"}).to_string());
    assert_eq!(flow.target, "/fb/sending/sendFlow");
    assert_eq!(flow.body.unwrap(), json!({"subscriber_id": 12345, "flow_ns": "content_1"}));
}

#[test]
fn the_limiter_gives_five_at_once_and_ten_a_second() {
    let mut limiter = Limiter::default();
    let mut now = Timestamp(1_000_000);
    let mut times = Vec::new();
    while times.len() < 25 {
        match limiter.take(Operation::SendFlow, now) {
            Slot::Now => times.push(now.0 - 1_000_000),
            Slot::At(then) => {
                assert!(then > now, "it gets on");
                now = then;
            }
        }
    }
    assert_eq!(times[..7], [0, 0, 0, 0, 0, 100, 200]);
    assert_eq!(times[24], 2000);
}

#[test]
fn an_operation_keeps_its_own_limit_in_every_sliding_second() {
    let mut limiter = Limiter::default();
    let mut now = Timestamp(5_000);
    let mut times: Vec<i64> = Vec::new();
    while times.len() < 60 {
        match limiter.take(Operation::AddTag, now) {
            Slot::Now => times.push(now.0),
            Slot::At(then) => now = then,
        }
    }
    for window in times.windows(11) {
        assert!(window[10] - window[0] >= 1000, "{window:?}");
    }
    let limits = [
        (Operation::SendFlow, 20),
        (Operation::AddTag, 10),
        (Operation::RemoveTag, 10),
        (Operation::SetField, 10),
        (Operation::GetContact, 10),
        (Operation::GetFlows, 10),
        (Operation::GetTags, 100),
        (Operation::GetFields, 100),
        (Operation::GetPage, 100),
    ];
    assert!(limits.iter().all(|(it, max)| it.per_second_max() == *max));
}

#[test]
fn twenty_of_a_contacts_hundred_flows_are_kept_for_replies() {
    let now = Timestamp(3_700_000);
    let sends = |n: i64| (0..n).map(|it| Timestamp(200_000 + it)).collect::<Vec<_>>();
    assert_eq!(flow_room(&sends(79), now, FlowKind::Tool), FlowRoom::Yes);
    assert_eq!(flow_room(&sends(80), now, FlowKind::Tool), FlowRoom::At(Timestamp(3_800_000)));
    assert_eq!(flow_room(&sends(99), now, FlowKind::Reply), FlowRoom::Yes);
    assert_eq!(flow_room(&sends(100), now, FlowKind::Reply), FlowRoom::At(Timestamp(3_800_000)));
    assert_eq!(flow_room(&sends(102), now, FlowKind::Reply), FlowRoom::At(Timestamp(3_800_002)));
    assert_eq!(flow_room(&sends(100), Timestamp(3_800_000), FlowKind::Reply), FlowRoom::Yes);
}
