//! What is wrong with an agent's folder, said so that a person can mend it: file, line, column, key and way out.

use std::fmt;

use serde::Serialize;

/// Where something stands in a file. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// The place of a byte in a text; the last place for a byte behind its end.
    pub fn of(text: &str, byte: usize) -> Self {
        let before = &text[..text.floor_char_boundary(byte)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// One thing that is wrong, or doubtful, in one file of the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, relative to the folder.
    pub file: String,
    /// Where in it, where that is known.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// The key or the section concerned, for instance `tools[0].url`; blank where none is.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it; blank where the message says it.
    pub fix: String,
}

impl Problem {
    /// A problem without a place.
    pub fn new(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: file.into(), place: None, key: String::new(), message: message.into(), fix: String::new() }
    }

    /// The same problem, at a place.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    /// The same problem, about a key.
    #[must_use]
    pub fn about(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// The same problem, with a way out.
    #[must_use]
    pub fn fixed_by(mut self, fix: impl Into<String>) -> Self {
        self.fix = fix.into();
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(place) = self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if !self.fix.is_empty() {
            write!(f, "; {}", self.fix)?;
        }
        Ok(())
    }
}

/// Everything that keeps a folder from being used, in the order of its files and lines. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct FolderErrors(pub Vec<Problem>);

impl FolderErrors {
    /// `Ok` where nothing is wrong.
    ///
    /// # Errors
    /// The problems, sorted by file and place.
    pub(crate) fn check(mut problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            return Ok(());
        }
        problems.sort_by(|a, b| (&a.file, a.place).cmp(&(&b.file, b.place)));
        // Two stages may find the same mistake, one at its key and one at its value.
        let line = |it: &Problem| it.place.map(|place| place.line);
        problems.dedup_by(|b, a| !a.key.is_empty() && (&a.file, line(a), &a.key) == (&b.file, line(b), &b.key));
        Err(Self(problems))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_characters_from_one() {
        assert_eq!(Place::of("ä = 1\nöx = 2", 9), Place { line: 2, column: 2 });
        assert_eq!(Place::of("a", 100), Place { line: 1, column: 2 });
        assert_eq!(Place::of("", 0), Place { line: 1, column: 1 });
    }
}
