//! A language ready to look at clauses: names filled in, expressions compiled, excuses in place.

use std::collections::BTreeMap;
use std::ops::Range;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use toml::Spanned;

use super::clause::Clause;
use super::set::{PatternSet, Place, SetError};
use super::{Finding, Kind};

/// Bytes of one compiled expression.
const REGEX_BYTES_MAX: usize = 8 << 20;
/// Levels in which a word may name another.
const NESTING_MAX: usize = 8;
/// Characters of one expression after its names are filled in.
const FILLED_MAX: usize = 200_000;

/// One language, compiled.
#[derive(Debug, Clone)]
pub(super) struct Compiled {
    language: String,
    breakers: Option<Regex>,
    /// Which patterns occur at all: one pass over a clause instead of one for each.
    any: RegexSet,
    patterns: Vec<Pattern>,
    excuses: Vec<Excuse>,
    offers: Option<Regex>,
}

#[derive(Debug, Clone)]
struct Pattern {
    name: String,
    family: String,
    kind: Kind,
    find: Regex,
    unless: Option<Regex>,
    after: Option<String>,
    ends: Option<String>,
    weak: bool,
}

#[derive(Debug, Clone)]
struct Excuse {
    place: Place,
    find: Regex,
    families: Vec<String>,
}

impl Compiled {
    pub(super) fn new(set: &PatternSet) -> Result<Self, SetError> {
        let words = Words::new(set)?;
        let mut patterns: Vec<Pattern> = Vec::new();
        let mut all = Vec::new();
        for it in &set.parts.patterns {
            if patterns.iter().any(|other| other.name == *it.name.get_ref()) {
                let reason = format!("there is a pattern `{}` already; give it a name of its own", it.name.get_ref());
                return Err(set.wrong(it.name.span().start, reason));
            }
            all.push(words.wrapped(&it.find)?);
            patterns.push(Pattern {
                name: it.name.get_ref().clone(),
                family: it.family.clone(),
                kind: it.kind,
                find: words.regex(&it.find)?,
                unless: it.unless.as_ref().map(|it| words.regex(it)).transpose()?,
                after: it.after.clone(),
                ends: it.ends.clone(),
                weak: it.weak,
            });
        }
        let mut excuses = Vec::new();
        for it in &set.parts.excuses {
            excuses.push(Excuse { place: it.place, find: words.regex(&it.find)?, families: it.families.clone() });
        }
        let any = RegexSetBuilder::new(&all).size_limit(REGEX_BYTES_MAX * 8).dfa_size_limit(REGEX_BYTES_MAX).build();
        let any = any.map_err(|why| set.wrong(0, format!("the patterns together are too large: {why}")))?;
        let (breakers, offers) = (words.union(&set.parts.breakers)?, words.union(&set.parts.offers)?);
        Ok(Self { language: set.parts.language.clone(), breakers, any, patterns, excuses, offers })
    }

    /// Whether one of the clauses asks for the user's word.
    pub(super) fn offers(&self, clauses: &[Clause<'_>]) -> bool {
        self.offers.as_ref().is_some_and(|it| clauses.iter().any(|clause| it.is_match(&clause.words)))
    }

    /// The first claim of a clause; a reply that `offers` hears its weak patterns not.
    pub(super) fn find(&self, clause: &Clause<'_>, offers: bool) -> Option<Finding> {
        if !self.any.is_match(&clause.words) {
            return None;
        }
        self.pieces(clause).into_iter().find_map(|piece| {
            let words = &clause.words[piece.clone()];
            let whole = piece == (0..clause.words.len());
            let last = piece.end == clause.words.len();
            if last && clause.end == '?' {
                return None;
            }
            for at in self.any.matches(words) {
                let pattern = &self.patterns[at];
                let marks = pattern.stands(clause, whole || piece.start == 0, last);
                if marks && !(offers && pattern.weak) && self.holds(pattern, words) {
                    return Some(self.finding(pattern, clause.shown(piece)));
                }
            }
            None
        })
    }

    /// The clauses within what stands between two marks.
    fn pieces(&self, clause: &Clause<'_>) -> Vec<Range<usize>> {
        let mut from = 0;
        let mut pieces = Vec::new();
        for cut in self.breakers.iter().flat_map(|it| it.find_iter(&clause.words)) {
            pieces.push(from..cut.start());
            from = cut.end();
        }
        pieces.push(from..clause.words.len());
        pieces.retain(|it| it.start < it.end);
        pieces
    }

    fn holds(&self, pattern: &Pattern, words: &str) -> bool {
        if pattern.unless.as_ref().is_some_and(|it| it.is_match(words)) {
            return false;
        }
        pattern.find.find_iter(words).any(|found| {
            !self.excuses.iter().any(|excuse| {
                let part = match excuse.place {
                    Place::Before => &words[..found.end()],
                    Place::After => &words[found.end()..],
                    Place::Clause => words,
                };
                let meant = excuse.families.is_empty() || excuse.families.contains(&pattern.family);
                meant && excuse.find.is_match(part.trim())
            })
        })
    }

    fn finding(&self, pattern: &Pattern, clause: String) -> Finding {
        Finding {
            kind: pattern.kind,
            language: self.language.clone(),
            family: pattern.family.clone(),
            pattern: pattern.name.clone(),
            clause,
        }
    }
}

impl Pattern {
    /// Whether the marks around the clause are those that it asks for.
    fn stands(&self, clause: &Clause<'_>, first: bool, last: bool) -> bool {
        let has = |marks: &Option<String>, mark: char, at_it: bool| {
            let mark = if mark == '\n' { 'n' } else { mark };
            marks.as_ref().is_none_or(|marks| at_it && marks.contains(mark))
        };
        has(&self.after, clause.after, first) && has(&self.ends, clause.end, last)
    }
}

/// The names that a file's expressions may use.
struct Words<'a> {
    set: &'a PatternSet,
    named: BTreeMap<&'a str, String>,
}

impl<'a> Words<'a> {
    fn new(set: &'a PatternSet) -> Result<Self, SetError> {
        let mut named: BTreeMap<&str, String> = BTreeMap::new();
        for (at, form) in set.parts.forms.iter().enumerate() {
            let mut all = Vec::new();
            for (verb, forms) in &set.parts.verbs {
                let Some(one) = forms.get_ref().get(at).or(forms.get_ref().last()) else {
                    return Err(set.wrong(forms.span().start, format!("the verb `{verb}` has no forms")));
                };
                all.push(one.as_str());
            }
            named.insert(form, all.join("|"));
        }
        for (name, text) in &set.parts.words {
            if named.insert(name, text.get_ref().clone()).is_some() {
                return Err(set.wrong(text.span().start, format!("`{name}` is the name of a form already")));
            }
        }
        Ok(Self { set, named })
    }

    /// The expression with its names filled in, between the edges of words.
    fn wrapped(&self, written: &Spanned<String>) -> Result<String, SetError> {
        let wrong = |reason| self.set.wrong(written.span().start, reason);
        if written.get_ref().trim().is_empty() {
            return Err(wrong("an empty expression matches everything; leave it out".to_owned()));
        }
        let filled = self.filled(written.get_ref(), 0).map_err(wrong)?;
        Ok(format!("(?:^| )(?:{filled})(?: |$)"))
    }

    fn regex(&self, written: &Spanned<String>) -> Result<Regex, SetError> {
        let built = RegexBuilder::new(&self.wrapped(written)?).size_limit(REGEX_BYTES_MAX).build();
        built.map_err(|why| self.set.wrong(written.span().start, last_line(&why)))
    }

    fn union(&self, written: &[Spanned<String>]) -> Result<Option<Regex>, SetError> {
        let Some(first) = written.first() else { return Ok(None) };
        let mut all = Vec::new();
        for one in written {
            // Each alone, so that a mistake is told at its own line.
            self.regex(one)?;
            all.push(format!("(?:{})", self.wrapped(one)?));
        }
        let built = RegexBuilder::new(&all.join("|")).size_limit(REGEX_BYTES_MAX).build();
        built.map(Some).map_err(|why| self.set.wrong(first.span().start, last_line(&why)))
    }

    /// Fills in `{name}`; a brace before a digit is a repetition and stays.
    fn filled(&self, text: &str, depth: usize) -> Result<String, String> {
        if depth > NESTING_MAX {
            return Err("words that name one another have no end".to_owned());
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, from) = rest.split_at(open);
            out.push_str(before);
            let Some(close) = from.find('}') else { return Err("a `{` without its `}`".to_owned()) };
            let name = &from[1..close];
            if name.starts_with(|it: char| it.is_ascii_digit()) {
                out.push_str(&from[..=close]);
            } else {
                let Some(meant) = self.named.get(name) else {
                    let known: Vec<_> = self.named.keys().copied().collect();
                    return Err(format!("nothing is called `{{{name}}}`; there are {}", known.join(", ")));
                };
                out.push_str("(?:");
                out.push_str(&self.filled(meant, depth + 1)?);
                out.push(')');
            }
            if out.len() > FILLED_MAX {
                return Err(format!("the expression has more than {FILLED_MAX} characters"));
            }
            rest = &from[close + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// What is wrong with an expression; the lines before quote it.
fn last_line(why: &regex::Error) -> String {
    let text = why.to_string();
    text.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned()
}
