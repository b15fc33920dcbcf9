//! A model written as a script: its answers in order, chosen by what the user says.
//!
//! ```
//! use gesta_scene::Script;
//!
//! let script = Script::parse(
//!     r#"
//! user matches "move", /resched/i:
//! model: Shall I move it to Friday?
//! model: calls c1 move_visit {"day":"fri"}
//! and: uses 120 tokens in, 30 out
//! model: Your visit is on Friday now.
//!
//! otherwise:
//! model: I can move your visits. Which one?
//! "#,
//! )?;
//! let reply = script.answer(2, "Please move my visit").expect("the script answers");
//! assert_eq!(reply.joined_text(), "Your visit is on Friday now.");
//! # Ok::<(), gesta_scene::ScriptError>(())
//! ```

use gesta_run::pattern::{Pattern, PatternSpec};
use gesta_run::reply::{Fault, FaultKind, Reply, Usage};

use crate::answer::{self, ModelAnswer};
use crate::error::{ReadError, ReadReason};
use crate::patterns;
use crate::text::{Cursor, Line, margin_lines};

/// Why a script cannot be read.
pub type ScriptError = ReadError;

/// The words that begin a line of a script.
const WORDS: [&str; 5] = ["model:", "and:", "user matches", "otherwise:", "#"];

/// A model that answers from a list. Each section has its own answers; the last of them repeats.
#[derive(Debug, Clone)]
pub struct Script {
    sections: Vec<Section>,
}

#[derive(Debug, Clone)]
struct Section {
    /// Line of its heading.
    line: usize,
    /// Any of them chooses it; none stands for every text.
    patterns: Option<Vec<(PatternSpec, Pattern)>>,
    answers: Vec<ModelAnswer>,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// A line that cannot be read, with its number and the nearest known word; a section without answers.
    pub fn parse(source: &str) -> Result<Self, ScriptError> {
        let lines = margin_lines(source, 1);
        let mut sections = Vec::new();
        let mut pieces: Vec<Cursor<'_>> = Vec::new();
        for line in &lines {
            if line.head.is_empty() || line.head.starts_with('#') {
                continue;
            }
            if let Some(heading) = Section::heading(line)? {
                close(&mut sections, &mut pieces)?;
                sections.push(heading);
                continue;
            }
            match Cursor::keyword(line) {
                Some(("model", piece)) => {
                    close(&mut sections, &mut pieces)?;
                    pieces.push(piece);
                }
                Some(("and", _)) if pieces.is_empty() => {
                    return Err(ReadError::new(line.number, ReadReason::Misplaced("`and:` continues a `model:` line")));
                }
                Some(("and", piece)) => pieces.push(piece),
                _ => return Err(ReadError::unknown(line.number, "line of a script", line.head, WORDS)),
            }
        }
        close(&mut sections, &mut pieces)?;
        Self::checked(sections)
    }

    fn checked(sections: Vec<Section>) -> Result<Self, ScriptError> {
        if sections.is_empty() {
            return Err(ReadError::new(1, ReadReason::Empty("the script has no answer; write one as `model: …`")));
        }
        match sections.iter().find(|section| section.answers.is_empty()) {
            Some(section) => Err(ReadError::new(section.line, ReadReason::Empty("the section has no `model:` line"))),
            None => Ok(Self { sections }),
        }
    }

    /// What the model answers: `n` is how many answers it has given in this run, `user_text` what the user said.
    ///
    /// # Errors
    /// The script says that the call fails, or has no answer to this text.
    pub fn answer(&self, n: usize, user_text: &str) -> Result<Reply, Fault> {
        match self.turn(n, user_text) {
            Some(answer) => answer.outcome.clone(),
            None => Err(Fault {
                kind: FaultKind::Config,
                message: "the script has no answer to this text; add a section `otherwise:`".to_owned(),
                retryable: false,
                status: None,
                retry_after_ms: None,
                usage: Usage::default(),
            }),
        }
    }

    /// The answer with the faults that a server shows beside it. The first section that matches is used, and one for
    /// every text (`otherwise:`, or what stands ahead of all sections) only where none matches.
    pub fn turn(&self, n: usize, user_text: &str) -> Option<&ModelAnswer> {
        let matching = self.sections.iter().find(|section| section.matches(user_text));
        let section = matching.or_else(|| self.sections.iter().find(|section| section.patterns.is_none()))?;
        section.answers.get(n).or_else(|| section.answers.last())
    }

    /// The script as it is written canonically.
    pub fn print(&self) -> String {
        let mut out = String::new();
        for (n, section) in self.sections.iter().enumerate() {
            if n > 0 {
                out.push('\n');
            }
            match &section.patterns {
                Some(list) => {
                    let specs: Vec<PatternSpec> = list.iter().map(|(spec, _)| spec.clone()).collect();
                    out.push_str(&format!("user matches {}:\n", patterns::write(&specs)));
                }
                None if n > 0 => out.push_str("otherwise:\n"),
                None => {}
            }
            for answer in &section.answers {
                out.push_str(&answer.print());
                out.push('\n');
            }
        }
        out
    }
}

impl Section {
    fn heading(line: &Line<'_>) -> Result<Option<Self>, ReadError> {
        if line.head == "otherwise:" {
            return Ok(Some(Self { line: line.number, patterns: None, answers: Vec::new() }));
        }
        let Some(rest) = line.head.strip_prefix("user matches") else { return Ok(None) };
        let mut cursor = Cursor { line: line.number, rest: rest.trim(), block: None };
        let mut compiled = Vec::new();
        for spec in patterns::read(&mut cursor)? {
            let pattern = patterns::check(line.number, &spec)?;
            compiled.push((spec, pattern));
        }
        cursor.eat(":");
        cursor.done()?;
        Ok(Some(Self { line: line.number, patterns: Some(compiled), answers: Vec::new() }))
    }

    fn matches(&self, text: &str) -> bool {
        self.patterns.as_ref().is_some_and(|list| list.iter().any(|(_, pattern)| pattern.is_in(text)))
    }
}

/// Ends the answer whose pieces were gathered.
fn close(sections: &mut Vec<Section>, pieces: &mut Vec<Cursor<'_>>) -> Result<(), ReadError> {
    let Some(first) = pieces.first() else { return Ok(()) };
    let line = first.line;
    let answer = answer::read(std::mem::take(pieces))?;
    if sections.is_empty() {
        sections.push(Section { line, patterns: None, answers: Vec::new() });
    }
    if let Some(section) = sections.last_mut() {
        section.answers.push(answer);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = r#"model: Shall I?
and: calls c1 move_visit {"day":"fri"}
and: calls - find
and: calls c3 find \"{\"a\":\n"
and: thinks: \\hm
and: cut off
and: uses 120 tokens in, 30 out, 5 cached
and: answered by m-1
model: \calls for a vote
model: fails rate limit, again after 2000 ms: slow down
and: uses 7 tokens in, 0 out
model:
model: |
        two

        lines
and: served with delay 300 ms, cut, status 429 retry after 2 s
model: I
and: finishes stop end_turn
and: raw form anthropic {"type":"text"}

user matches "move", /re\/s/i:
model: moved

otherwise:
model: hm
"#;

    #[test]
    fn what_is_printed_is_read_as_the_same() {
        let script = Script::parse(ALL).unwrap();
        let printed = script.print();
        assert_eq!(Script::parse(&printed).unwrap().print(), printed);
        let reply = script.answer(0, "hello").unwrap();
        let calls: Vec<&str> = reply.calls().map(|call| call.arguments.as_str()).collect();
        assert_eq!(calls, [r#"{"day":"fri"}"#, "", "{\"a\":\n"]);
        assert_eq!(script.answer(1, "x").unwrap(), Reply::text("calls for a vote"));
        assert_eq!(script.answer(2, "x").unwrap_err().retry_after_ms, Some(2000));
        assert_eq!(script.answer(3, "x").unwrap(), Reply::default());
        assert_eq!(script.answer(4, "x").unwrap().joined_text(), "two\n\nlines");
        assert_eq!(script.answer(9, "RE/S").unwrap().joined_text(), "moved");
        assert_eq!(script.turn(4, "x").unwrap().faults.status, Some(429));
    }

    #[test]
    fn an_error_names_the_line_and_the_nearest_word() {
        let cases = [
            ("modle: x", "line 1: `modle: x` is no line of a script; did you mean `model:`?"),
            ("\n# c\nmodel: fails rate limt", "line 3: `rate limt` is no kind of failure; did you mean `rate limit`?"),
            ("and: x", "line 1: `and:` continues a `model:` line"),
            ("model: calls", "line 1: expected the id of a call, or `-` for none, found nothing"),
            ("", "line 1: the script has no answer; write one as `model: …`"),
            ("user matches \"a\":\n", "line 1: the section has no `model:` line"),
        ];
        for (source, error) in cases {
            assert_eq!(Script::parse(source).unwrap_err().to_string(), error);
        }
    }
}
