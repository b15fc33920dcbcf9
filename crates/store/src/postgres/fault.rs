//! What Postgres and the network say, in our words.

use std::path::PathBuf;

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::error::StoreError;
use crate::server::ServerFault;

/// Why a piece of work inside a transaction failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server or the way to it failed.
    Sql(sqlx::Error),
    /// The rules of the store say no, or a row can't be read.
    Store(StoreError),
}

impl From<sqlx::Error> for Failure {
    fn from(cause: sqlx::Error) -> Self {
        Self::Sql(cause)
    }
}

impl From<StoreError> for Failure {
    fn from(cause: StoreError) -> Self {
        Self::Store(cause)
    }
}

/// What a failure means for the work that met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The connection is gone: what was not committed is not there.
    Lost,
    /// Another transaction was in the way: the same may succeed at once.
    Clash,
    /// It will fail again.
    Final,
}

pub(super) fn kind(cause: &sqlx::Error) -> Kind {
    match cause {
        _ if is_untrusted(cause) => Kind::Final,
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => Kind::Lost,
        sqlx::Error::BeginFailed => Kind::Lost,
        sqlx::Error::Database(_) => match code(cause) {
            // Serialization failure, deadlock.
            "40001" | "40P01" => Kind::Clash,
            // The server is going down, coming up, or ended this connection.
            "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Kind::Lost,
            code if code.starts_with("08") => Kind::Lost,
            _ if is_fatal(cause) => Kind::Lost,
            _ => Kind::Final,
        },
        _ => Kind::Final,
    }
}

fn code(cause: &sqlx::Error) -> &str {
    database(cause).map_or("", PgDatabaseError::code)
}

fn database(cause: &sqlx::Error) -> Option<&PgDatabaseError> {
    match cause {
        sqlx::Error::Database(error) => error.try_downcast_ref::<PgDatabaseError>(),
        _ => None,
    }
}

/// TLS was refused, by us or by the server: that does not pass.
fn is_untrusted(cause: &sqlx::Error) -> bool {
    match cause {
        sqlx::Error::Tls(_) => true,
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        _ => false,
    }
}

fn is_fatal(cause: &sqlx::Error) -> bool {
    database(cause).is_some_and(|error| matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}

/// What a failed connection or statement means. Nothing was written.
pub(super) fn explain(server: &str, cause: &sqlx::Error) -> StoreError {
    StoreError::Server { server: server.to_owned(), fault: fault(cause) }
}

/// Nobody knows whether it was committed.
pub(super) fn unknown(server: &str, reason: impl Into<String>) -> StoreError {
    StoreError::CommitUnknown { path: PathBuf::from(server), reason: reason.into() }
}

/// One line, without values: what the server says of a row may hold what a person wrote.
pub(super) fn said(cause: &sqlx::Error) -> String {
    match database(cause) {
        Some(error) => format!("{}, {}", error.message(), error.code()),
        None => cause.to_string(),
    }
}

fn fault(cause: &sqlx::Error) -> ServerFault {
    let reason = said(cause);
    match code(cause) {
        "28P01" | "28000" => ServerFault::Refused { reason },
        "3D000" => ServerFault::NoDatabase { reason },
        "42501" => ServerFault::NoRight { reason },
        "25006" => ServerFault::ReadOnly,
        "53100" => ServerFault::Full { reason },
        "53300" => ServerFault::Unreachable { reason },
        "57014" | "55P03" | "40001" | "40P01" => ServerFault::Slow { reason },
        "22021" => ServerFault::Unstorable { reason },
        code if code.starts_with("42") || code.starts_with("XX") => ServerFault::Damaged { reason },
        _ => match cause {
            _ if is_untrusted(cause) => ServerFault::Untrusted { reason },
            sqlx::Error::Configuration(_) => {
                ServerFault::Address { reason: "a certificate or parameter in it can't be used".to_owned() }
            }
            _ if kind(cause) == Kind::Lost => ServerFault::Unreachable { reason },
            _ => ServerFault::Failed { reason },
        },
    }
}
