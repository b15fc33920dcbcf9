//! From rows to our types. A row that does not fit is an error that names what it belongs to.

use gesta_run::event::Event;
use gesta_run::id::{CallId, ConversationId, RunId};
use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres as Server, Row, Type};

use crate::codec::{self, EventRow};
use crate::document::{DocumentHead, StoredDocument};
use crate::error::StoreError;
use crate::front::{ApiKey, AuditRecord, Dispatch, StoredAnswer};
use crate::prepared::from_word;
use crate::types::{ConversationHead, HoldClosed, LeaseHolder, OpenHold, RunHead, Turn, WireRecord};

/// A run's head and the bucket it lies in.
pub(super) struct FoundRun {
    pub(super) bucket: i16,
    pub(super) head: RunHead,
}

/// One row, and what it belongs to.
struct Cells<'r> {
    row: &'r PgRow,
    what: String,
}

impl<'r> Cells<'r> {
    fn of(row: &'r PgRow, what: impl Into<String>) -> Self {
        Self { row, what: what.into() }
    }

    fn get<T: Decode<'r, Server> + Type<Server>>(&self, column: usize) -> Result<T, StoreError> {
        self.row.try_get(column).map_err(|cause| self.damaged(cause.to_string()))
    }

    fn count(&self, column: usize) -> Result<u64, StoreError> {
        let number: i64 = self.get(column)?;
        u64::try_from(number).map_err(|_| self.damaged(format!("{number} is no count")))
    }

    fn small(&self, column: usize) -> Result<u32, StoreError> {
        let number: i64 = self.get(column)?;
        u32::try_from(number).map_err(|_| self.damaged(format!("{number} is no small count")))
    }

    fn time(&self, column: usize) -> Result<Timestamp, StoreError> {
        self.get(column).map(Timestamp)
    }

    fn name<T: for<'a> From<&'a str>>(&self, column: usize) -> Result<T, StoreError> {
        self.get::<&str>(column).map(T::from)
    }

    fn name_if<T: for<'a> From<&'a str>>(&self, column: usize) -> Result<Option<T>, StoreError> {
        self.get::<Option<&str>>(column).map(|name| name.map(T::from))
    }

    /// Text that was stored as bytes, since it may hold any character.
    fn text(&self, column: usize) -> Result<String, StoreError> {
        String::from_utf8(self.get(column)?).map_err(|cause| self.damaged(cause.to_string()))
    }

    fn damaged(&self, reason: String) -> StoreError {
        StoreError::DamagedRow { what: self.what.clone(), reason }
    }
}

/// Reads one row of `run_columns!`.
pub(super) fn run(row: &PgRow) -> Result<FoundRun, StoreError> {
    let run: RunId = Cells::of(row, "a run").name(1)?;
    let cells = Cells::of(row, format!("the head of run `{run}`"));
    let status: Status = from_word(&cells.what, cells.get(6)?)?;
    let outcome: Option<String> = cells.get(7)?;
    let outcome: Option<Outcome> = outcome.map(|word| from_word(&cells.what, word)).transpose()?;
    let (owner, until): (Option<String>, Option<i64>) = (cells.get(13)?, cells.get(14)?);
    let head = RunHead {
        run,
        agent: cells.get(2)?,
        conversation: cells.name_if(3)?,
        contact: cells.name_if(4)?,
        config: cells.get(5)?,
        status,
        outcome,
        closed: cells.get(8)?,
        events: cells.count(9)?,
        started_at: cells.time(10)?,
        updated_at: cells.time(11)?,
        fence: cells.count(12)?,
        held_by: owner.zip(until).map(|(owner, until)| LeaseHolder { owner, until: Timestamp(until) }),
    };
    Ok(FoundRun { bucket: cells.get(0)?, head })
}

/// Reads the time that follows the columns of a run.
pub(super) fn now_beside_run(row: &PgRow) -> Result<Timestamp, StoreError> {
    Cells::of(row, "the time").time(15)
}

/// Reads one number.
pub(super) fn number<T: for<'r> Decode<'r, Server> + Type<Server>>(
    row: &PgRow,
    column: usize,
    what: &str,
) -> Result<T, StoreError> {
    Cells::of(row, what).get(column)
}

/// Reads all events of a run, as its head counted them.
pub(super) fn events(head: &RunHead, rows: &[PgRow]) -> Result<Vec<Event>, StoreError> {
    let id = &head.run;
    let mut events = Vec::new();
    for row in rows {
        let position = events.len() as u64;
        let damaged =
            |cause: sqlx::Error| StoreError::DamagedEvents { run: id.clone(), position, reason: cause.to_string() };
        let whole = |column: usize| row.try_get::<i64, _>(column).map_err(damaged);
        let body: &str = row.try_get(3).map_err(damaged)?;
        let row = EventRow { position: whole(0)?, number: whole(1)?, version: whole(2)?, body: body.as_bytes() };
        codec::read_events(id, &mut events, &row)?;
    }
    let position = events.len() as u64;
    if position != head.events {
        let reason = format!("{position} events are there, the head counts {}", head.events);
        return Err(StoreError::DamagedEvents { run: id.clone(), position, reason });
    }
    Ok(events)
}

/// Reads one row of `TURNS_LAST`.
pub(super) fn turn(conversation: &ConversationId, row: &PgRow) -> Result<Turn, StoreError> {
    let cells = Cells::of(row, format!("a turn of conversation `{conversation}`"));
    let body: &str = cells.get(3)?;
    let messages = codec::read_messages(conversation, cells.count(0)?, cells.get(2)?, body.as_bytes())?;
    Ok(Turn { messages, tokens: cells.count(1)? })
}

/// Reads one row of `CONVERSATION` or `CONVERSATIONS`.
pub(super) fn conversation(row: &PgRow) -> Result<ConversationHead, StoreError> {
    let cells = Cells::of(row, "the head of a conversation");
    Ok(ConversationHead {
        conversation: cells.name(0)?,
        agent: cells.get(1)?,
        contact: cells.name_if(2)?,
        turns: cells.count(3)?,
        run: cells.name_if(4)?,
        updated_at: cells.time(5)?,
    })
}

/// Reads one row of `CONVERSATION_LOCK`: the run that has it, and the time.
pub(super) fn holder(row: &PgRow) -> Result<(Option<RunId>, Timestamp), StoreError> {
    let cells = Cells::of(row, "the head of a conversation");
    Ok((cells.name_if(0)?, cells.time(1)?))
}

/// Reads what a claim gives: fence, conversation and the end of the lease.
pub(super) fn claimed(row: &PgRow) -> Result<(u64, Option<ConversationId>, Timestamp), StoreError> {
    let cells = Cells::of(row, "the head of a run");
    Ok((cells.count(0)?, cells.name_if(1)?, cells.time(2)?))
}

/// Reads one row of `DOCUMENT`.
pub(super) fn document(row: &PgRow) -> Result<StoredDocument, StoreError> {
    let cells = Cells::of(row, "a document");
    Ok(StoredDocument { version: cells.count(0)?, changed_at: cells.time(1)?, image: cells.get(2)? })
}

/// Reads one row of `DOCUMENTS`.
pub(super) fn document_head(row: &PgRow) -> Result<DocumentHead, StoreError> {
    let cells = Cells::of(row, "the head of a document");
    Ok(DocumentHead {
        conversation: cells.name(0)?,
        version: cells.count(1)?,
        bytes: cells.count(2)?,
        changed_at: cells.time(3)?,
    })
}

/// Reads the version of a conversation's document; 0 where it has none.
pub(super) fn document_version(row: Option<&PgRow>) -> Result<u64, StoreError> {
    row.map_or(Ok(0), |row| Cells::of(row, "the version of a document").count(0))
}

/// Reads one row of `WORKING`.
pub(super) fn image(row: &PgRow) -> Result<Vec<u8>, StoreError> {
    Cells::of(row, "a working copy").get(0)
}

/// Reads one row of `CONFIG` or `HOLD_STATE`.
pub(super) fn word(row: &PgRow, what: &str) -> Result<String, StoreError> {
    Cells::of(row, what).get(0)
}

/// Reads one row of `HOLDS_OPEN`.
pub(super) fn open_hold(row: &PgRow) -> Result<OpenHold, StoreError> {
    let cells = Cells::of(row, "a hold");
    let (run, call): (&str, &str) = (cells.get(5)?, cells.get(6)?);
    let cells = Cells::of(row, format!("hold `{call}` of run `{run}`"));
    let body: &str = cells.get(0)?;
    Ok(OpenHold {
        hold: codec::read(body.as_bytes()).map_err(|reason| cells.damaged(reason))?,
        agent: cells.get(1)?,
        conversation: cells.name_if(2)?,
        contact: cells.name_if(3)?,
        opened_at: cells.time(4)?,
    })
}

/// Reads one row of `HOLD_CLOSED`.
pub(super) fn hold_closed(run: &RunId, call: &CallId, row: &PgRow) -> Result<HoldClosed, StoreError> {
    let cells = Cells::of(row, format!("the answer to hold `{call}` of run `{run}`"));
    let body: Option<&str> = cells.get(0)?;
    let answer = body.map(|body| codec::read(body.as_bytes())).transpose();
    Ok(HoldClosed { call: call.clone(), answer: answer.map_err(|reason| cells.damaged(reason))?, at: cells.time(1)? })
}

/// Reads one row of `WIRE`.
pub(super) fn wire(row: &PgRow) -> Result<WireRecord, StoreError> {
    let cells = Cells::of(row, "a captured exchange");
    Ok(WireRecord {
        trip: cells.small(0)?,
        attempt: cells.small(1)?,
        at: cells.time(2)?,
        request: cells.text(3)?,
        response: cells.text(4)?,
    })
}

/// What became of a request: its fingerprint, its run, and its answer.
pub(super) fn request(row: &PgRow) -> Result<(String, RunId, Option<StoredAnswer>), StoreError> {
    let cells = Cells::of(row, "an answer to a request");
    let status: Option<i64> = cells.get(2)?;
    let status = status.map(u16::try_from).transpose().map_err(|cause| cells.damaged(cause.to_string()))?;
    let (content_type, body): (Option<String>, Option<Vec<u8>>) = (cells.get(3)?, cells.get(4)?);
    let answer = match (status, content_type, body) {
        (Some(status), Some(content_type), Some(body)) => Some(StoredAnswer { status, content_type, body }),
        _ => None,
    };
    Ok((cells.get(0)?, cells.name(1)?, answer))
}

/// Reads one row of `KEYS` or `KEY`.
pub(super) fn api_key(row: &PgRow) -> Result<ApiKey, StoreError> {
    let cells = Cells::of(row, "an API key");
    let body: &str = cells.get(0)?;
    let key: ApiKey = codec::read(body.as_bytes()).map_err(|reason| cells.damaged(reason))?;
    Ok(ApiKey { revoked_at: cells.get::<Option<i64>>(1)?.map(Timestamp), ..key })
}

/// Reads what taking a dispatch gives.
pub(super) fn dispatch(row: &PgRow) -> Result<Dispatch, StoreError> {
    let cells = Cells::of(row, "a dispatch");
    Ok(Dispatch {
        id: cells.get(0)?,
        kind: cells.get(1)?,
        run: cells.name(2)?,
        call: cells.name_if(3)?,
        at: cells.time(4)?,
        due: cells.time(5)?,
        attempts: cells.small(6)?,
    })
}

/// Reads one row of `AUDIT_LAST`.
pub(super) fn audit_last(row: &PgRow) -> Result<(u64, String), StoreError> {
    let cells = Cells::of(row, "a deed");
    Ok((cells.count(0)?, cells.get(1)?))
}

/// Reads one row of `AUDIT`.
pub(super) fn deed(row: &PgRow) -> Result<AuditRecord, StoreError> {
    let cells = Cells::of(row, "a deed");
    let body: &str = cells.get(0)?;
    codec::read(body.as_bytes()).map_err(|reason| cells.damaged(reason))
}
