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
    #[error("`{word}` is no {kind}; {}", way_out(.near, .known))]
    Unknown {
        /// What kind of word was looked for.
        kind: &'static str,
        /// What stands there.
        word: String,
        /// The known word that was probably meant; none where no word is near.
        near: Option<String>,
        /// Every word that can stand there.
        known: Vec<String>,
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
    /// The document that the scene carries cannot be played.
    #[error("the document: {0}")]
    Document(String),
    /// The file has nothing to play.
    #[error("{0}")]
    Empty(&'static str),
}

/// The most words that are listed.
const LISTED_MAX: usize = 16;

fn way_out(near: &Option<String>, known: &[String]) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.len() == 1 => format!("only `{}` can stand there", known.concat()),
        None if known.len() <= LISTED_MAX => format!("it is one of `{}`", known.join("`, `")),
        None => "docs/scenes.md lists what can stand there".to_owned(),
    }
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
        let known: Vec<String> = known.into_iter().map(str::to_owned).collect();
        let near = near(&word, &known).map(str::to_owned);
        Self::new(line, ReadReason::Unknown { kind, word, near, known })
    }
}

/// The known word that was probably meant: one that the word begins, or that takes few edits for its length.
fn near<'a>(word: &str, known: &'a [String]) -> Option<&'a str> {
    let begun = |it: &&String| word.chars().count() > 1 && it.starts_with(word);
    if let Some(longer) = known.iter().find(begun) {
        return Some(longer);
    }
    let edits = |it: &String| {
        // Of a whole line only as many words are looked at as the known one has.
        let words: Vec<&str> = word.split_whitespace().take(it.split_whitespace().count()).collect();
        distance(&words.join(" "), it)
    };
    let nearest = known.iter().min_by_key(|it| edits(it))?;
    let length = nearest.chars().count();
    (edits(nearest) <= (length / 3).max(2) && edits(nearest) < length).then_some(nearest)
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
    fn only_a_word_that_is_near_is_suggested() {
        let near = |word: &str, known: &[&str]| {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            near(word, &known).unwrap_or("none").to_owned()
        };
        assert_eq!(near("modle: hi there", &["user", "model:", "tool"]), "model:");
        assert_eq!(near("polcy", &["plan", "policy"]), "policy");
        assert_eq!(near("int", &["string", "integer", "any"]), "integer");
        assert_eq!(near("weeks", &["ms", "s", "min", "h", "d"]), "none");
        assert_eq!(near("allow", &["run", "deny", "defer", "fails"]), "none");
        assert_eq!(near("badly", &["auth", "network"]), "none");
    }
}
