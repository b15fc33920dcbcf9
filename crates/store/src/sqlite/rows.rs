//! From rows to our types. A row that does not fit is an error that names what it belongs to.

use gesta_run::id::{ConversationId, RunId};
use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure::Failure;
use super::statements as sql;
use crate::codec::{self, EventRow};
use crate::document::{DocumentHead, StoredDocument};
use crate::error::StoreError;
use crate::prepared::from_word;
use crate::types::{ConversationHead, HoldClosed, LeaseHolder, OpenHold, RunHead, Turn, WireRecord};

/// A run's head and the bucket it lies in.
pub(super) struct FoundRun {
    pub(super) bucket: i16,
    pub(super) head: RunHead,
}

/// The text of a column, whatever its type says: a damaged file may hold anything.
fn bytes<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a [u8]> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
    })
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

fn small(row: &Row<'_>, column: usize) -> rusqlite::Result<u32> {
    row.get(column)
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp)
}

fn name<T: for<'a> From<&'a str>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    Ok(T::from(text.as_str()))
}

fn name_if<T: for<'a> From<&'a str>>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    Ok(text.map(|text| T::from(text.as_str())))
}

/// Whatever does not fit in the columns of a row is damage of that row, not of the file.
fn fits<T>(what: &str, result: rusqlite::Result<T>) -> Result<T, Failure> {
    result.map_err(|cause| match cause {
        rusqlite::Error::SqliteFailure(..) => Failure::Sql(cause),
        other => StoreError::DamagedRow { what: what.to_owned(), reason: other.to_string() }.into(),
    })
}

/// Reads one row of `run_columns!`.
pub(super) fn run(row: &Row<'_>) -> Result<FoundRun, Failure> {
    let run: RunId = fits("a run", name(row, 1))?;
    let what = format!("the head of run `{run}`");
    let status: Status = from_word(&what, fits(&what, row.get(6))?)?;
    let outcome: Option<String> = fits(&what, row.get(7))?;
    let outcome: Option<Outcome> = outcome.map(|word| from_word(&what, word)).transpose()?;
    let read = || -> rusqlite::Result<FoundRun> {
        let owner: Option<String> = row.get(13)?;
        let until: Option<i64> = row.get(14)?;
        let head = RunHead {
            run: run.clone(),
            agent: row.get(2)?,
            conversation: name_if(row, 3)?,
            contact: name_if(row, 4)?,
            config: row.get(5)?,
            status,
            outcome,
            closed: row.get(8)?,
            events: count(row, 9)?,
            started_at: time(row, 10)?,
            updated_at: time(row, 11)?,
            fence: count(row, 12)?,
            held_by: owner.zip(until).map(|(owner, until)| LeaseHolder { owner, until: Timestamp(until) }),
        };
        Ok(FoundRun { bucket: row.get(0)?, head })
    };
    fits(&what, read())
}

/// Reads one run's head by its place.
pub(super) fn run_at(
    connection: &Connection,
    bucket: i16,
    tenant: &str,
    id: &RunId,
) -> Result<Option<FoundRun>, Failure> {
    let mut statement = connection.prepare_cached(sql::RUN)?;
    let mut rows = statement.query(params![bucket, tenant, id.as_str()])?;
    rows.next()?.map(run).transpose()
}

/// Finds the bucket of a run by its id alone, and who holds it.
pub(super) fn bucket_of(
    connection: &Connection,
    tenant: &str,
    id: &RunId,
) -> Result<Option<(i16, Option<String>)>, Failure> {
    let mut statement = connection.prepare_cached(sql::RUN_BUCKET)?;
    let found = statement.query_row(params![tenant, id.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional();
    fits("the place of a run", found)
}

/// Reads a run's head by its id alone.
pub(super) fn run_by_id(connection: &Connection, tenant: &str, id: &RunId) -> Result<FoundRun, Failure> {
    let none = || StoreError::NoSuchRun { run: id.clone() };
    let (bucket, _) = bucket_of(connection, tenant, id)?.ok_or_else(none)?;
    Ok(run_at(connection, bucket, tenant, id)?.ok_or_else(none)?)
}

/// Reads all events of a run.
pub(super) fn events(
    connection: &Connection,
    tenant: &str,
    found: &FoundRun,
) -> Result<Vec<gesta_run::event::Event>, Failure> {
    let id = &found.head.run;
    let mut events = Vec::new();
    let mut statement = connection.prepare_cached(sql::EVENTS)?;
    let mut rows = statement.query(params![found.bucket, tenant, id.as_str()])?;
    while let Some(row) = rows.next()? {
        let position = events.len() as u64;
        let damaged = |reason: String| StoreError::DamagedEvents { run: id.clone(), position, reason };
        let whole = |column| match row.get_ref(column) {
            Ok(ValueRef::Integer(number)) => Ok(number),
            _ => Err(damaged("a number is missing".to_owned())),
        };
        let row = EventRow { position: whole(0)?, number: whole(1)?, version: whole(2)?, body: bytes(row, 3)? };
        codec::read_events(id, &mut events, &row)?;
    }
    let position = events.len() as u64;
    if position != found.head.events {
        let reason = format!("{position} events are there, the head counts {}", found.head.events);
        return Err(StoreError::DamagedEvents { run: id.clone(), position, reason }.into());
    }
    Ok(events)
}

/// Reads one row of `TURNS_LAST`.
pub(super) fn turn(conversation: &ConversationId, row: &Row<'_>) -> Result<Turn, Failure> {
    let what = format!("a turn of conversation `{conversation}`");
    let (seq, tokens) = fits(&what, count(row, 0).and_then(|seq| Ok((seq, count(row, 1)?))))?;
    let version = fits(&what, row.get(2))?;
    let messages = codec::read_messages(conversation, seq, version, bytes(row, 3)?)?;
    Ok(Turn { messages, tokens })
}

/// Reads one row of `CONVERSATION` or `CONVERSATIONS`.
pub(super) fn conversation(row: &Row<'_>) -> Result<ConversationHead, Failure> {
    let read = || -> rusqlite::Result<ConversationHead> {
        Ok(ConversationHead {
            conversation: name(row, 0)?,
            agent: row.get(1)?,
            contact: name_if(row, 2)?,
            turns: count(row, 3)?,
            run: name_if(row, 4)?,
            updated_at: time(row, 5)?,
        })
    };
    fits("the head of a conversation", read())
}

/// Reads one row of `DOCUMENT`.
pub(super) fn document(row: &Row<'_>) -> Result<StoredDocument, Failure> {
    let read = || -> rusqlite::Result<StoredDocument> {
        Ok(StoredDocument { version: count(row, 0)?, changed_at: time(row, 1)?, image: bytes(row, 2)?.to_vec() })
    };
    fits("a document", read())
}

/// Reads one row of `DOCUMENTS`.
pub(super) fn document_head(row: &Row<'_>) -> Result<DocumentHead, Failure> {
    let read = || -> rusqlite::Result<DocumentHead> {
        Ok(DocumentHead {
            conversation: name(row, 0)?,
            version: count(row, 1)?,
            bytes: count(row, 2)?,
            changed_at: time(row, 3)?,
        })
    };
    fits("the head of a document", read())
}

/// The version of a conversation's document; 0 where it has none.
pub(super) fn document_version(
    connection: &Connection,
    bucket: i16,
    tenant: &str,
    conversation: &ConversationId,
) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached(sql::DOCUMENT_VERSION)?;
    let found = statement.query_row(params![bucket, tenant, conversation.as_str()], |row| count(row, 0)).optional();
    Ok(fits("the version of a document", found)?.unwrap_or(0))
}

/// Reads a run's working copy.
pub(super) fn working(
    connection: &Connection,
    bucket: i16,
    tenant: &str,
    run: &RunId,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut statement = connection.prepare_cached(sql::WORKING)?;
    let found = statement.query_row(params![bucket, tenant, run.as_str()], |row| bytes(row, 0).map(<[u8]>::to_vec));
    Ok(found.optional()?)
}

/// Reads one row of `HOLDS_OPEN`.
pub(super) fn open_hold(row: &Row<'_>) -> Result<OpenHold, Failure> {
    let (run, call): (String, String) = fits("a hold", row.get(5).and_then(|run| Ok((run, row.get(6)?))))?;
    let what = format!("hold `{call}` of run `{run}`");
    let hold = codec::read(bytes(row, 0)?).map_err(|reason| StoreError::DamagedRow { what: what.clone(), reason })?;
    let read = || -> rusqlite::Result<OpenHold> {
        Ok(OpenHold {
            hold,
            agent: row.get(1)?,
            conversation: name_if(row, 2)?,
            contact: name_if(row, 3)?,
            opened_at: time(row, 4)?,
        })
    };
    fits(&what, read())
}

/// Reads one row of `HOLD_CLOSED`.
pub(super) fn hold_closed(run: &RunId, call: &gesta_run::id::CallId, row: &Row<'_>) -> Result<HoldClosed, Failure> {
    let what = format!("the answer to hold `{call}` of run `{run}`");
    let answer = match bytes(row, 0)? {
        [] => None,
        body => Some(codec::read(body).map_err(|reason| StoreError::DamagedRow { what: what.clone(), reason })?),
    };
    Ok(HoldClosed { call: call.clone(), answer, at: fits(&what, time(row, 1))? })
}

/// Reads one row of `WIRE`.
pub(super) fn wire(row: &Row<'_>) -> Result<WireRecord, Failure> {
    let read = || -> rusqlite::Result<WireRecord> {
        Ok(WireRecord {
            trip: small(row, 0)?,
            attempt: small(row, 1)?,
            at: time(row, 2)?,
            request: row.get(3)?,
            response: row.get(4)?,
        })
    };
    fits("a captured exchange", read())
}
