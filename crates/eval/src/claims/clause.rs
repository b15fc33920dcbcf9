//! From plain text to clauses: what stands between two marks, as words in lower case with one space between them.

use std::ops::Range;

use super::text::{GAP, TICK};

/// Characters of a clause that a finding quotes.
const SHOWN_MAX: usize = 300;

/// Words whose full stop ends no sentence, besides single letters.
const ABBREVIATIONS: [&str; 13] =
    ["dr", "sr", "sra", "srta", "av", "mr", "mrs", "ms", "jr", "st", "vs", "approx", "aprox"];

/// What stands between two marks. Patterns see its words; a finding quotes the text.
#[derive(Debug)]
pub(super) struct Clause<'a> {
    text: &'a str,
    /// Lower case, one space apart, without punctuation but `,` (a comma or parenthesis) and `✓`.
    pub(super) words: String,
    /// Where each word begins in `words` and where it stands in the text.
    places: Vec<(usize, Range<usize>)>,
    /// The mark before it; a line end where the text begins.
    pub(super) after: char,
    /// The mark that ends it; a line end where the text ends.
    pub(super) end: char,
}

impl<'a> Clause<'a> {
    /// All clauses of a text that have words.
    pub(super) fn all(text: &'a str) -> Vec<Self> {
        let mut found = Vec::new();
        let mut one = Self::empty(text, '\n');
        let mut before = '\n';
        for (at, letter) in text.char_indices() {
            let next = text[at + letter.len_utf8()..].chars().next().unwrap_or('\n');
            if one.ends_at(letter, before, next) {
                let done = std::mem::replace(&mut one, Self::empty(text, letter));
                if done.places.is_empty() {
                    // Several marks in a row count as the first: an end of a line keeps nothing of what came before.
                    one.after = if letter == '\n' { letter } else { done.after };
                } else {
                    found.push(Self { end: letter, ..done });
                }
            } else {
                one.push(at, letter);
            }
            before = letter;
        }
        if !one.places.is_empty() {
            found.push(one);
        }
        found
    }

    fn empty(text: &'a str, after: char) -> Self {
        Self { text, words: String::new(), places: Vec::new(), after, end: '\n' }
    }

    fn ends_at(&self, letter: char, before: char, next: char) -> bool {
        match letter {
            '\n' | '!' | '?' | ';' | '|' | '\u{2014}' | '\u{BF}' | '\u{A1}' | '\u{2022}' | '\u{25CF}' => true,
            '.' => !next.is_alphanumeric() && !self.is_abbreviated(),
            // Not within a time or an address.
            ':' => !next.is_alphanumeric() && next != '/',
            '-' => before.is_whitespace() && next.is_whitespace(),
            _ => false,
        }
    }

    fn is_abbreviated(&self) -> bool {
        let last = self.words.rsplit([' ', '.']).next().unwrap_or_default();
        ABBREVIATIONS.contains(&last) || (last.chars().count() == 1 && last.chars().all(char::is_alphabetic))
    }

    fn push(&mut self, at: usize, letter: char) {
        let end = at + letter.len_utf8();
        let alone = match letter {
            ',' | '(' | ')' | '[' | ']' => Some(','),
            TICK => Some(TICK),
            _ => None,
        };
        if let Some(word) = alone {
            if !(word == ',' && (self.places.is_empty() || self.words.ends_with(','))) {
                self.begin(at..end);
                self.words.push(word);
            }
            return;
        }
        if !(letter.is_alphanumeric() || letter == GAP || "'$#@&%+_-/.:\u{20AC}\u{A3}".contains(letter)) {
            return;
        }
        let joined = self.places.last().is_some_and(|(_, place)| place.end == at) && !self.words.ends_with([',', TICK]);
        if joined {
            if let Some((_, place)) = self.places.last_mut() {
                place.end = end;
            }
        } else if letter.is_alphanumeric() || letter == GAP || "$#@".contains(letter) {
            self.begin(at..end);
        } else {
            return;
        }
        self.words.extend(letter.to_lowercase());
    }

    fn begin(&mut self, place: Range<usize>) {
        if !self.words.is_empty() {
            self.words.push(' ');
        }
        self.places.push((self.words.len(), place));
    }

    /// The text behind a range of `words`.
    pub(super) fn shown(&self, range: Range<usize>) -> String {
        let mut inside = self.places.iter().filter(|(at, _)| range.contains(at)).map(|(_, place)| place);
        let Some(first) = inside.next() else { return String::new() };
        let last = inside.next_back().unwrap_or(first);
        let text = self.text[first.start..last.end].trim_end_matches([',', '(', ':', '-', '.', ' ']);
        let mut shown: String = text.chars().map(|it| if it == GAP { '\u{2026}' } else { it }).collect();
        if let Some((cut, _)) = shown.char_indices().nth(SHOWN_MAX) {
            shown.truncate(cut);
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_its_marks() {
        let table = [
            ("Done! I've moved it.", "done|i've moved it"),
            ("It costs $1.50, at 8 a.m. today. Fine", "it costs $1.50 , at 8 a.m. today|fine"),
            ("1. **x** \u{2014} moved\n- y: gone", "1|x|moved|y|gone"),
            ("Your line (555-1) is on", "your line , 555-1 , is on"),
            ("\u{BF}Lo cancelo? S\u{ED}", "lo cancelo|s\u{ED}"),
            ("| a | b |", "a|b"),
            ("at 10:30 see http://x.y/z", "at 10:30 see http://x.y/z"),
            ("...", ""),
        ];
        for (text, expected) in table {
            let text = super::super::text::plain(text);
            let words: Vec<_> = Clause::all(&text).into_iter().map(|it| it.words).collect();
            assert_eq!(words.join("|"), expected, "{text}");
        }
    }

    #[test]
    fn a_clause_knows_its_marks_and_its_text() {
        let clauses = Clause::all("Status: Done, all (of it).\nSure?");
        let marks: Vec<_> = clauses.iter().map(|it| (it.after, it.end)).collect();
        assert_eq!(marks, [('\n', ':'), (':', '.'), ('\n', '?')]);
        assert_eq!(clauses[1].shown(0..99), "Done, all (of it)");
        assert_eq!(clauses[1].shown(7..10), "all");
    }
}
