//! Claimed changes: finds the clauses of a reply that say something was changed, and what backs them.

mod backing;
mod clause;
mod compiled;
mod examples;
mod json;
mod lines;
mod score;
mod set;
mod text;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

pub use backing::{Backed, Calls};
use clause::Clause;
use compiled::Compiled;
pub use lines::{CallLine, Line, LineError, Verdict, read_line};
pub use score::{Label, Row, Score};
pub use set::{PatternSet, SetError};

/// Bytes of a reply that are looked at: its beginning and its end, half each. Claims gather there.
pub const REPLY_BYTES_MAX: usize = 1 << 20;

/// What a claim says of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Something was changed.
    Change,
    /// The case was given to a person.
    Handoff,
    /// Something is being done at this moment: what an agent may say of an action that is only staged
    /// (`spec/channel.md`, 7).
    Staged,
}

/// A clause that claims something, and the pattern that says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it says.
    pub kind: Kind,
    /// The tag of the language file.
    pub language: String,
    /// The family of the pattern, for instance `passive_perfect`.
    pub family: String,
    /// The pattern's name, unique in its file.
    pub pattern: String,
    /// The clause as it stands in the reply, without markup, at most 300 characters.
    pub clause: String,
}

/// The check: one or several languages, ready to look at replies. Cheap to share, costly to build (tens of
/// milliseconds): build it once.
#[derive(Debug, Clone)]
pub struct Claims {
    sets: Vec<Compiled>,
}

/// The English set, as text: what `--export` writes.
pub const ENGLISH: &str = include_str!("../../languages/en.toml");
/// The Spanish set, as text.
pub const SPANISH: &str = include_str!("../../languages/es.toml");

const BUILT_IN: [(&str, &str); 2] = [("en", ENGLISH), ("es", SPANISH)];

/// The tags of the languages that are built in.
pub fn languages() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(tag, _)| *tag)
}

/// The set of a built-in language, to be changed and handed to [`Claims::new`]; nothing for others.
pub fn for_language(tag: &str) -> Option<PatternSet> {
    let (tag, text) = BUILT_IN.iter().find(|(it, _)| *it == tag)?;
    Some(PatternSet::parse(&format!("{tag}.toml"), text).expect("the built-in languages are read by a test"))
}

/// The text of a built-in language's file; nothing for others.
pub fn source(tag: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(it, _)| *it == tag).map(|(_, text)| *text)
}

impl Claims {
    /// A check with these sets; a claim in any of them counts. None at all find nothing.
    ///
    /// # Errors
    /// A pattern that does not compile, or a name that nothing stands behind, with its file and line.
    pub fn new(sets: &[PatternSet]) -> Result<Self, SetError> {
        sets.iter().map(Compiled::new).collect::<Result<_, _>>().map(|sets| Self { sets })
    }

    /// The check for English alone, which is the default of `spec/contract.md`, 4.4.
    pub fn english() -> Self {
        Self::built_in(&["en"])
    }

    /// The check for all languages that are built in.
    pub fn all() -> Self {
        Self::built_in(&BUILT_IN.map(|(tag, _)| tag))
    }

    fn built_in(tags: &[&str]) -> Self {
        let sets: Vec<_> = tags.iter().filter_map(|tag| for_language(tag)).collect();
        Self::new(&sets).expect("the built-in languages are compiled by a test")
    }

    /// All claims of a reply, one a clause at most and language, in the order of the text.
    pub fn find(&self, reply: &str) -> Vec<Finding> {
        let mut found = Vec::new();
        self.each(reply, |finding| {
            found.push(finding);
            ControlFlow::Continue(())
        });
        found
    }

    /// The claim that decides about a reply: its first change, else its first handoff, else its first announcement.
    pub fn first(&self, reply: &str) -> Option<Finding> {
        let mut best: Option<Finding> = None;
        self.each(reply, |finding| {
            if best.as_ref().is_none_or(|it| finding.kind < it.kind) {
                best = Some(finding);
            }
            match &best {
                Some(it) if it.kind == Kind::Change => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        best
    }

    /// The first claimed change that no call of this run backs (`spec/contract.md`, 4.5). Handoffs and announcements
    /// are not judged here: whether they are a deed is the author's to say.
    pub fn unbacked(&self, reply: &str, calls: &Calls) -> Option<Finding> {
        if calls.back(Kind::Change) == Backed::ThisTurn {
            return None;
        }
        self.first(reply).filter(|it| it.kind == Kind::Change)
    }

    fn each(&self, reply: &str, mut take: impl FnMut(Finding) -> ControlFlow<()>) {
        let cut = text::bounded(reply, REPLY_BYTES_MAX);
        let plain = text::plain(&json::readable(&cut));
        let clauses = Clause::all(&plain);
        for set in &self.sets {
            let offers = set.offers(&clauses);
            for clause in &clauses {
                if let Some(found) = set.find(clause, offers)
                    && take(found).is_break()
                {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbered_cases_of_the_contract_hold() {
        let claims = Claims::english();
        let none = Calls::default();
        let table = [
            ("I've swapped it", true),
            ("I haven't swapped it", false),
            ("Want me to swap it?", false),
            ("I\u{2019}ve swapped it", true),
            ("Once it has been updated, refresh", false),
            ("Use this:\n```\nI have swapped it\n```", false),
            ("Done!", true),
            ("", false),
        ];
        for (reply, fires) in table {
            assert_eq!(claims.unbacked(reply, &none).is_some(), fires, "{reply}");
        }
    }

    #[test]
    fn a_false_claim_beside_a_printed_call_is_found() {
        let reply = "```json\n{\"tool_call_result\": {\"status\": \"created\"}}\n```\n\nThe lead has been successfully created.";
        assert_eq!(
            Claims::english().first(reply).map(|it| it.clause).as_deref(),
            Some("The lead has been successfully created")
        );
        assert_eq!(Claims::english().first("```json\n{\"tool\": \"x\", \"arguments\": {}}\n```"), None);
    }

    #[test]
    fn a_reply_of_any_size_and_kind_is_looked_at_and_its_end_counts() {
        let claims = Claims::all();
        let bricks = [
            "[](", "\"", "'", "`", "```\n", "{", "\u{FDFA}", "not ", "i have ", "\u{0301}", "once, ", "\\u00", "* - | ",
        ];
        for brick in bricks {
            let long = brick.repeat(40_000 / brick.len());
            let _ = claims.find(&long);
            let told = format!("{long}\n```\n\n```\n\nI've moved it.");
            let found = claims.first(&told);
            // What opened a fence or JSON may have swallowed the end; everywhere else it counts.
            assert!(found.is_some() || brick.contains("```"), "{brick}");
        }
        let huge = format!("{}\nI've moved it.", "word ".repeat(2 * REPLY_BYTES_MAX / 5));
        assert_eq!(claims.first(&huge).map(|it| it.pattern).as_deref(), Some("have_done"));
    }
}
