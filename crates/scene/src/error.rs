//! Why a scene or a script cannot be read: the line, and the way out.

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ReadError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: ReadReason,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadReason {
    /// A word that stands nowhere in the vocabulary.
    #[error("`{word}` is no {kind}; did you mean `{nearest}`?")]
    Unknown {
        /// What kind of word was looked for.
        kind: &'static str,
        /// What stands there.
        word: String,
        /// The known word that is nearest to it.
        nearest: String,
    },
    /// Something else was to stand there.
    #[error("expected {expected}, found {}", or_nothing(.found))]
    Expected {
        /// What was to stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A text that is no JSON.
    #[error("cannot read the JSON: {why}")]
    Json {
        /// What the reader says.
        why: String,
    },
    /// A line that is not allowed where it stands.
    #[error("{0}")]
    Misplaced(&'static str),
    /// A regular expression or another pattern that cannot be used.
    #[error("{0}")]
    Pattern(gesta_run::pattern::PatternError),
    /// The scene brings a plan of its own, and its agent has another one.
    #[error("the agent's plan is another: {clause}; take the scene's plan lines out to play it under the agent's")]
    OtherPlan {
        /// The clause that only one of them has.
        clause: String,
    },
    /// The file has nothing to play.
    #[error("{0}")]
    Empty(&'static str),
}

fn or_nothing(text: &str) -> String {
    if text.is_empty() { "nothing".to_owned() } else { format!("`{text}`") }
}

impl ReadError {
    pub(crate) fn new(line: usize, reason: ReadReason) -> Self {
        Self { line, reason }
    }

    pub(crate) fn expected(line: usize, expected: &'static str, found: &str) -> Self {
        let found = found.chars().take(60).collect();
        Self::new(line, ReadReason::Expected { expected, found })
    }

    pub(crate) fn unknown<'a>(
        line: usize,
        kind: &'static str,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let word: String = word.chars().take(60).collect();
        let nearest = nearest(&word, known).to_owned();
        Self::new(line, ReadReason::Unknown { kind, word, nearest })
    }
}

/// The known word that takes the fewest edits to reach.
fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> &'a str {
    known.into_iter().min_by_key(|it| distance(word, it)).unwrap_or("#")
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_takes_the_fewest_edits() {
        assert_eq!(nearest("modle", ["user", "model", "tool"]), "model");
        assert_eq!(nearest("polcy", ["plan", "policy"]), "policy");
    }
}
