//! Why a source from outside was not let in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A source that was refused before it was parsed (`spec/documents.md`, 3.5): what is wrong, where, and what to write
/// instead. Nothing of it has run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// What is wrong and what to do.
    pub message: String,
    /// Where: line and column, from 1, in characters; none where the whole source is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
}

/// A place in a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Place {
    /// The line of `text` at this place, with its number and a caret below the column.
    pub fn frame(self, text: &str) -> String {
        frame(text, self)
    }
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "line {}, column {}: {}", at.line, at.column, self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Refused {
    /// A refusal of the source as a whole.
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Self { message: message.into(), at: None }
    }

    /// A refusal of what begins at `offset`, in bytes, of `text`.
    pub(crate) fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), at: Some(place(text, offset)) }
    }
}

/// The line and column of an offset in bytes.
pub(crate) fn place(text: &str, offset: usize) -> Place {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// The line of a place, with a caret below it.
pub(crate) fn frame(text: &str, at: Place) -> String {
    let line = text.lines().nth(at.line.saturating_sub(1)).unwrap_or("");
    let from = at.column.saturating_sub(61);
    let text: String = line.chars().skip(from).take(100).map(shown).collect();
    let number = at.line.to_string();
    format!("{number} | {text}\n{} | {}^", " ".repeat(number.len()), " ".repeat(at.column.saturating_sub(from + 1)))
}

/// A character as it is shown to a reader: one that cannot be seen is not handed on.
fn shown(found: char) -> char {
    match found {
        '\t' => ' ',
        hidden if crate::guard::is_hidden(hidden) => '\u{FFFD}',
        other => other,
    }
}
