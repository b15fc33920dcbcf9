//! Opening a document: from its record, on the host's terms.

use crate::{Document, Place, Record, Terms};

/// Why a document cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OpenError {
    /// The base does not parse.
    #[error("line {}, column {}: {message}\n{frame}", at.line, at.column)]
    Base {
        /// What is wrong.
        message: String,
        /// Where.
        at: Place,
        /// The line, with a caret below the place.
        frame: String,
    },
    /// Its terms contradict each other or the engine.
    #[error("{message}")]
    Terms {
        /// What does, and what to do.
        message: String,
    },
    /// The saved data cannot be read.
    #[error("{message}")]
    Data {
        /// What is wrong and what to do.
        message: String,
    },
}

/// Opens a document: the base, the tools added since, the data.
///
/// # Errors
/// As [`OpenError`] says. An added tool that does not pass any more is no error: it is set aside.
pub fn open(record: &Record, terms: &Terms) -> Result<Box<dyn Document>, OpenError> {
    Ok(Box::new(crate::engine::Engine::open(record, terms)?))
}

/// The hash of a base, for [`Record::data_base`].
pub fn base_hash(base: &str) -> String {
    gesta_run::json::sha256_hex(base.as_bytes())
}
