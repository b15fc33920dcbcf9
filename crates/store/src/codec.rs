//! How events and turns are written as JSON and read again: exactly, or with an error that says where.

use gesta_run::event::{Event, LOG_VERSION};
use gesta_run::id::{ConversationId, RunId};
use gesta_run::json::{self, STORED_DEPTH_MAX};
use gesta_run::message::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreError;

/// One row of the log, as it was found: the events of one append.
pub(crate) struct EventRow<'a> {
    /// How many events stand before it.
    pub(crate) position: i64,
    /// How many it says it holds.
    pub(crate) number: i64,
    /// The log version it was written in.
    pub(crate) version: i64,
    /// The events, as a JSON list.
    pub(crate) body: &'a [u8],
}

/// Writes the events of one append.
pub(crate) fn write_events(run: &RunId, events: &[Event]) -> Result<String, StoreError> {
    write(&events).map_err(|reason| StoreError::Unwritable { run: run.clone(), reason })
}

/// Writes what a row holds beside the events.
pub(crate) fn write<T: Serialize>(value: &T) -> Result<String, String> {
    let body = serde_json::to_string(value).map_err(|cause| cause.to_string())?;
    let depth = json::depth(body.as_bytes());
    if depth > STORED_DEPTH_MAX {
        return Err(format!("it is {depth} levels deep, at most {STORED_DEPTH_MAX} can be stored"));
    }
    Ok(body)
}

/// Adds the events of one row to those before it.
pub(crate) fn read_events(run: &RunId, events: &mut Vec<Event>, row: &EventRow<'_>) -> Result<(), StoreError> {
    let position = events.len() as u64;
    let damaged = |reason: String| StoreError::DamagedEvents { run: run.clone(), position, reason };
    if u64::try_from(row.position).ok() != Some(position) {
        return Err(damaged(format!("the next row stands at {}", row.position)));
    }
    let found = u32::try_from(row.version).map_err(|_| damaged(format!("log version {}", row.version)))?;
    if found > LOG_VERSION {
        return Err(StoreError::LogNewer { run: run.clone(), position, found, known: LOG_VERSION });
    }
    let more: Vec<Event> = read(row.body).map_err(damaged)?;
    if i64::try_from(more.len()).ok() != Some(row.number) {
        return Err(damaged(format!("the row holds {} events, not {}", more.len(), row.number)));
    }
    events.extend(more);
    Ok(())
}

/// Reads the messages of one turn.
pub(crate) fn read_messages(
    conversation: &ConversationId,
    turn: u64,
    version: i64,
    body: &[u8],
) -> Result<Vec<Message>, StoreError> {
    let damaged = |reason| StoreError::DamagedTurn { conversation: conversation.clone(), turn, reason };
    if version > i64::from(LOG_VERSION) {
        return Err(damaged(format!("it has log version {version}, this program reads up to {LOG_VERSION}")));
    }
    read(body).map_err(damaged)
}

/// Reads one JSON value of ours.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    json::read_stored(body)
}

#[cfg(test)]
mod tests {
    use gesta_run::call::{CallEnd, CallStatus};
    use gesta_run::event::EventKind;
    use gesta_run::time::Timestamp;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn answered(result: Value) -> Event {
        let end =
            CallEnd { status: CallStatus::Completed, result, refusal: None, by_hook_edit: false, is_error: false };
        Event { at: Timestamp(1), what: EventKind::Answered { call: "c1".into(), end, duration_ms: 3 } }
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, _| json!([inner]))
    }

    fn read_body(body: &[u8]) -> Result<Vec<Event>, StoreError> {
        let mut events = Vec::new();
        let row = EventRow { position: 0, number: 1, version: 1, body };
        read_events(&"r1".into(), &mut events, &row).map(|()| events)
    }

    #[test]
    fn a_result_as_deep_as_tools_may_return_is_read_again() {
        let event = answered(nested(gesta_run::json::DEPTH_MAX));
        let body = write_events(&"r1".into(), std::slice::from_ref(&event)).unwrap();
        assert_eq!(read_body(body.as_bytes()).unwrap(), [event]);
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        let refused = write_events(&"r1".into(), &[answered(nested(200))]);
        assert!(matches!(refused, Err(StoreError::Unwritable { .. })));
        assert!(matches!(read_body("[".repeat(100_000).as_bytes()), Err(StoreError::DamagedEvents { .. })));
    }

    #[test]
    fn a_number_comes_back_to_the_last_bit() {
        let mut dice = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            let number = f64::from_bits(dice.u64(..));
            if number.is_finite() {
                let event = answered(json!(number));
                let body = write_events(&"r1".into(), std::slice::from_ref(&event)).unwrap();
                assert_eq!(read_body(body.as_bytes()).unwrap(), [event]);
            }
        }
    }

    #[test]
    fn a_row_of_a_newer_log_says_so() {
        let row = EventRow { position: 0, number: 0, version: i64::from(LOG_VERSION) + 1, body: b"[]" };
        let newer = read_events(&"r1".into(), &mut Vec::new(), &row);
        assert!(matches!(newer, Err(StoreError::LogNewer { position: 0, .. })), "{newer:?}");
    }

    proptest! {
        #[test]
        fn a_damaged_row_is_an_error_that_names_run_and_position_and_never_a_panic(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let event = answered(json!({"day": "fri \"quoted\" \\ é", "n": [1, 2.5, null, {"x": true}]}));
            let sound = write_events(&"r1".into(), &[event]).unwrap().into_bytes();
            let mut body = sound.clone();
            for (place, byte) in damage {
                let place = place.index(body.len());
                body[place] = byte;
            }
            body.truncate(cut.index(body.len()) + 1);
            if let Err(error) = read_body(&body) {
                let named = matches!(&error, StoreError::DamagedEvents { run, position: 0, .. } if run.as_str() == "r1");
                prop_assert!(named, "{error:?}");
            }
        }

        #[test]
        fn any_bytes_at_all_are_no_panic(
            body in prop::collection::vec(any::<u8>(), 0..400),
            position in any::<i64>(), number in any::<i64>(), version in any::<i64>(),
        ) {
            let row = EventRow { position, number, version, body: &body };
            let _ = read_events(&"r1".into(), &mut Vec::new(), &row);
            let _ = read_messages(&"k".into(), 1, version, &body);
        }
    }
}
