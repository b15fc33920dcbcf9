//! What is written, ready for any backend: values as words and JSON, checked before a transaction begins.

use gesta_run::event::Event;
use gesta_run::hold::{Hold, HoldState};
use gesta_run::id::{CallId, ContactId, ConversationId, RunId};
use gesta_run::outcome::{Outcome, Status};
use gesta_run::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec;
use crate::document::{self, DocumentChange};
use crate::error::StoreError;
use crate::types::{HeadChange, HoldClosed, Lease, Turn};

/// The events of one append, ready to be written.
pub(crate) struct Batch {
    pub(crate) position: i64,
    pub(crate) number: i64,
    pub(crate) body: String,
}

/// A run that is to be opened.
pub(crate) struct Open {
    pub(crate) tenant: String,
    pub(crate) bucket: i16,
    pub(crate) run: RunId,
    pub(crate) agent: String,
    pub(crate) conversation: Option<ConversationId>,
    pub(crate) contact: Option<ContactId>,
    pub(crate) config: String,
    pub(crate) at: Timestamp,
    pub(crate) first: Batch,
}

/// One append, ready to be written.
pub(crate) struct Append {
    pub(crate) tenant: String,
    pub(crate) lease: Lease,
    pub(crate) batch: Batch,
    pub(crate) status: String,
    pub(crate) ended: bool,
    pub(crate) outcome: Option<&'static str>,
    pub(crate) closed: bool,
    pub(crate) updated_at: Option<Timestamp>,
    /// The lease is given back with it.
    pub(crate) release: bool,
    pub(crate) frees: bool,
    pub(crate) holds: Vec<HoldRow>,
    pub(crate) holds_closed: Vec<HoldClosedRow>,
    pub(crate) turn: Option<TurnRow>,
    pub(crate) document: DocumentRow,
}

/// A hold, ready to be written.
pub(crate) struct HoldRow {
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) kind: String,
    pub(crate) state: String,
    pub(crate) undecided: bool,
    pub(crate) body: String,
}

/// A closed hold, ready to be written.
pub(crate) struct HoldClosedRow {
    pub(crate) call: CallId,
    pub(crate) at: Timestamp,
    pub(crate) answer: Option<String>,
}

/// A turn, ready to be written.
pub(crate) struct TurnRow {
    pub(crate) tokens: i64,
    pub(crate) body: String,
}

impl TurnRow {
    /// Writes a turn's messages.
    pub(crate) fn of(run: &RunId, turn: &Turn) -> Result<Self, StoreError> {
        let body =
            codec::write(&turn.messages).map_err(|reason| StoreError::Unwritable { run: run.clone(), reason })?;
        Ok(Self { tokens: i64::try_from(turn.tokens).unwrap_or(i64::MAX), body })
    }
}

/// What one append does to documents.
pub(crate) struct DocumentRow {
    pub(crate) working: Option<Vec<u8>>,
    pub(crate) change: DocumentChange,
}

/// One append, as it is written.
pub(crate) fn append(
    tenant: &str,
    lease: &Lease,
    at: u64,
    events: &[Event],
    change: HeadChange,
) -> Result<Append, StoreError> {
    document::check_size(change.working.as_deref())?;
    let run = &lease.run;
    let conversation: Option<&ConversationId> = lease.conversation.as_ref();
    Ok(Append {
        tenant: tenant.to_owned(),
        lease: lease.clone(),
        batch: batch(run, at, events)?,
        status: word(&change.status)?,
        ended: change.status == Status::Ended,
        outcome: change.outcome.map(Outcome::as_str),
        closed: change.closed,
        updated_at: events.last().map(|event| event.at),
        release: change.release,
        frees: change.frees_conversation(),
        holds: change.holds.iter().map(|hold| hold_row(run, hold)).collect::<Result<_, _>>()?,
        holds_closed: change.holds_closed.iter().map(|closed| closed_row(run, closed)).collect::<Result<_, _>>()?,
        turn: change.turn.as_ref().filter(|_| conversation.is_some()).map(|turn| TurnRow::of(run, turn)).transpose()?,
        document: DocumentRow { working: change.working, change: change.document },
    })
}

fn hold_row(run: &RunId, hold: &Hold) -> Result<HoldRow, StoreError> {
    Ok(HoldRow {
        call: hold.id.as_str().to_owned(),
        tool: hold.name.clone(),
        kind: word(&hold.kind)?,
        state: word(&hold.state)?,
        undecided: hold.state == HoldState::Undecided,
        body: codec::write(hold).map_err(|reason| StoreError::Unwritable { run: run.clone(), reason })?,
    })
}

fn closed_row(run: &RunId, closed: &HoldClosed) -> Result<HoldClosedRow, StoreError> {
    let answer = closed.answer.as_ref().map(codec::write).transpose();
    let answer = answer.map_err(|reason| StoreError::Unwritable { run: run.clone(), reason })?;
    Ok(HoldClosedRow { call: closed.call.clone(), at: closed.at, answer })
}

/// The events of one append, as they are written.
pub(crate) fn batch(run: &RunId, at: u64, events: &[Event]) -> Result<Batch, StoreError> {
    let body = if events.is_empty() { String::new() } else { codec::write_events(run, events)? };
    Ok(Batch { position: number(at), number: number(events.len() as u64), body })
}

/// Counts are far below the end of what a database holds.
pub(crate) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The word of a value on disk, which is its word on the wire.
pub(crate) fn word<T: Serialize>(value: &T) -> Result<String, StoreError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        _ => {
            Err(StoreError::DamagedRow { what: "a value to be written".to_owned(), reason: "it is no word".to_owned() })
        }
    }
}

/// The value of a word on disk.
pub(crate) fn from_word<T: DeserializeOwned>(what: &str, word: String) -> Result<T, StoreError> {
    serde_json::from_value(serde_json::Value::String(word))
        .map_err(|cause| StoreError::DamagedRow { what: what.to_owned(), reason: cause.to_string() })
}
