//! A language as a data file: words, verbs, patterns, what excuses them, and sentences that show it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::Kind;

/// Bytes of one language file.
const FILE_BYTES_MAX: usize = 1 << 20;

/// A language's set of patterns, as its file says it; `docs/claims.md` describes the file.
#[derive(Debug, Clone)]
pub struct PatternSet {
    pub(super) file: String,
    pub(super) text: String,
    pub(super) parts: SetParts,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetParts {
    pub(super) language: String,
    /// Lists of alternatives, or pieces of patterns, that patterns name as `{word}`.
    #[serde(default)]
    pub(super) words: BTreeMap<String, Spanned<String>>,
    /// The names of the forms of each verb, in the order of `verbs`; patterns name a form as `{form}`.
    #[serde(default)]
    pub(super) forms: Vec<String>,
    /// Each verb's forms. A verb with fewer forms than there are names repeats its last.
    #[serde(default)]
    pub(super) verbs: BTreeMap<String, Spanned<Vec<String>>>,
    /// What cuts a sentence into clauses, besides punctuation.
    #[serde(default)]
    pub(super) breakers: Vec<Spanned<String>>,
    pub(super) patterns: Vec<PatternParts>,
    /// What makes a match no claim, and where it has to stand.
    #[serde(default)]
    pub(super) excuses: Vec<ExcuseParts>,
    /// Clauses that ask for the user's word: a reply with one of them proposes, and its `weak` patterns say nothing.
    #[serde(default)]
    pub(super) offers: Vec<Spanned<String>>,
    pub(super) examples: Examples,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PatternParts {
    pub(super) name: Spanned<String>,
    pub(super) family: String,
    #[serde(default = "change")]
    pub(super) kind: Kind,
    pub(super) find: Spanned<String>,
    /// What must not stand in the clause for this pattern alone.
    pub(super) unless: Option<Spanned<String>>,
    /// The marks one of which must stand before the clause; a line end is `n`.
    pub(super) after: Option<String>,
    /// The marks one of which must end the clause; a line end is `n`.
    pub(super) ends: Option<String>,
    /// Says nothing in a reply that asks for the user's word.
    #[serde(default)]
    pub(super) weak: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExcuseParts {
    /// What it is: a negation, a condition, somebody else's act. Named in tests and nowhere else.
    #[serde(rename = "name")]
    pub(super) _name: String,
    pub(super) place: Place,
    pub(super) find: Spanned<String>,
    /// The families it excuses; all of them without it.
    #[serde(default)]
    pub(super) families: Vec<String>,
}

/// Where an excuse has to stand, seen from the match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Place {
    /// Between the beginning of the clause and the end of the match.
    Before,
    /// Behind the match.
    After,
    /// Anywhere in the clause.
    Clause,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Examples {
    /// Sentences that claim, by family.
    pub(super) fires: BTreeMap<String, Vec<Spanned<String>>>,
    /// Sentences that do not, by what excuses them.
    pub(super) silent: BTreeMap<String, Vec<Spanned<String>>>,
}

/// A language file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct SetError {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub reason: String,
}

const fn change() -> Kind {
    Kind::Change
}

impl PatternSet {
    /// Reads the text of a language file; `file` is its name for messages.
    ///
    /// # Errors
    /// The text is too large, no TOML, or has a key that does not belong there.
    pub fn parse(file: &str, text: &str) -> Result<Self, SetError> {
        let wrong = |line, reason| SetError { file: file.to_owned(), line, reason };
        if text.len() > FILE_BYTES_MAX {
            return Err(wrong(1, format!("a language file has at most {FILE_BYTES_MAX} bytes")));
        }
        let parts: SetParts = toml::from_str(text).map_err(|why| {
            let line = why.span().map_or(1, |span| line_of(text, span.start));
            wrong(line, why.message().to_owned())
        })?;
        if parts.language.trim().is_empty() {
            return Err(wrong(1, "`language` is blank; give its tag, such as `fr`".to_owned()));
        }
        Ok(Self { file: file.to_owned(), text: text.to_owned(), parts })
    }

    /// Reads every `.toml` file of a folder, in the order of their names.
    ///
    /// # Errors
    /// The folder or a file cannot be read, two files have one language, there is none, or the first file that
    /// [`PatternSet::parse`] refuses.
    pub fn read_folder(folder: &Path) -> Result<Vec<Self>, SetError> {
        let wrong = |path: &Path, reason| SetError { file: path.display().to_string(), line: 1, reason };
        let listed = std::fs::read_dir(folder).map_err(|why| wrong(folder, format!("cannot be read: {why}")))?;
        let mut paths: Vec<_> = listed.filter_map(|it| Some(it.ok()?.path())).collect();
        paths.retain(|it| it.extension().is_some_and(|it| it == "toml"));
        paths.sort();
        let mut sets: Vec<Self> = Vec::new();
        for path in &paths {
            let text = std::fs::read_to_string(path).map_err(|why| wrong(path, format!("cannot be read: {why}")))?;
            let set = Self::parse(&path.display().to_string(), &text)?;
            if let Some(other) = sets.iter().find(|it| it.language() == set.language()) {
                return Err(wrong(path, format!("{} has the language `{}` already", other.file, set.language())));
            }
            sets.push(set);
        }
        if sets.is_empty() {
            return Err(wrong(folder, "no language file; `gesta eval claims --export DIR` writes two".to_owned()));
        }
        Ok(sets)
    }

    /// The tag of its language.
    pub fn language(&self) -> &str {
        &self.parts.language
    }

    /// Its own text, as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn wrong(&self, at: usize, reason: String) -> SetError {
        SetError { file: self.file.clone(), line: line_of(&self.text, at), reason }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|it| *it == b'\n').count() + 1
}
