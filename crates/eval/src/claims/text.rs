//! From a reply to the plain text in which claims are looked for: one form of Unicode, no markup, nothing quoted.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// What stands for a span that was taken out, so that the sentence around it still reads as one.
pub(super) const GAP: char = '\u{A4}';
/// All tick marks become this one.
pub(super) const TICK: char = '\u{2713}';

/// Bytes of one quoted span; what is longer is no quotation but a pair of stray marks.
const QUOTE_BYTES_MAX: usize = 400;

/// The reply itself, or its two ends when it is longer than `max` bytes.
pub(super) fn bounded(reply: &str, max: usize) -> Cow<'_, str> {
    if reply.len() <= max {
        return Cow::Borrowed(reply);
    }
    let head = reply.floor_char_boundary(max / 2);
    let tail = reply.ceil_char_boundary(reply.len() - max / 2);
    Cow::Owned(format!("{}\n{}", &reply[..head], &reply[tail..]))
}

/// The text without code, block quotes, quoted spans and markup; one character for each kind of apostrophe, dash and
/// tick.
pub(super) fn plain(reply: &str) -> String {
    let folded = unescape(reply);
    let folded: String = folded.chars().filter_map(one_form).nfkc().filter_map(one_form).collect();
    let mut out = String::with_capacity(folded.len());
    let mut fence: Option<&str> = None;
    for line in folded.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            // A fence that opens and closes on one line is inline code.
            (None, Some(mark)) if start[mark.len()..].contains(mark) => unmarked(line, &mut out),
            (None, Some(mark)) => fence = Some(mark),
            (None, None) if start.starts_with('>') => {}
            (None, None) => unmarked(line, &mut out),
        }
        out.push('\n');
    }
    out
}

/// Some models write `\u00f3` where they mean the letter.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let code = from.get(2..6).and_then(|it| u32::from_str_radix(it, 16).ok()).and_then(char::from_u32);
        match code {
            Some(letter) => {
                out.push(letter);
                rest = &from[6..];
            }
            None => {
                out.push_str("\\u");
                rest = &from[2..];
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn one_form(letter: char) -> Option<char> {
    Some(match letter {
        '\u{2018}' | '\u{2019}' | '\u{201B}' | '\u{02BC}' | '\u{00B4}' | '\u{2032}' => '\'',
        '\u{201C}' | '\u{201D}' | '\u{201E}' | '\u{201F}' | '\u{2033}' => '"',
        '\u{2010}' | '\u{2011}' => '-',
        '\u{2012}'..='\u{2015}' => '\u{2014}',
        '\u{2705}' | '\u{2714}' | '\u{2611}' | '\u{1F5F8}' | '\u{1F44D}' => TICK,
        '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' | '\u{FE0F}' | '\u{00AD}' => return None,
        '\r' => '\n',
        it if it != '\n' && it.is_whitespace() => ' ',
        it => it,
    })
}

/// Appends a line without markup, inline code and quoted spans.
fn unmarked(line: &str, out: &mut String) {
    let mut at = 0;
    while let Some(letter) = line[at..].chars().next() {
        let rest = &line[at..];
        let next = at + letter.len_utf8();
        at = match letter {
            '*' => next,
            '_' if rest.starts_with("__") => at + 2,
            '\\' if rest[1..].starts_with(|it: char| it.is_ascii_punctuation()) => next,
            '`' | '"' | '\u{00AB}' => at + without_quote(rest, letter, out),
            '\'' if !out.ends_with(|it: char| it.is_alphanumeric()) => at + without_quote(rest, letter, out),
            ']' if rest[1..].starts_with('(') => at + reach(rest).find(')').map_or(1, |end| end + 1),
            '[' => next,
            _ => {
                out.push(letter);
                next
            }
        };
    }
}

/// Steps over an opening mark, or the span that it begins, and says how far.
fn without_quote(rest: &str, mark: char, out: &mut String) -> usize {
    let Some(length) = quoted(rest, mark) else { return mark.len_utf8() };
    out.push(GAP);
    // A sentence may end within its quotation: `as "pending." Is there …`.
    let ends = rest[..length].trim_end_matches(['`', '"', '\'', '\u{BB}']).ends_with('.');
    let mut after = rest[length..].chars();
    if ends && after.next() == Some(' ') && after.next().is_some_and(char::is_uppercase) {
        out.push('.');
    }
    length
}

/// As far as a span may go, so that many opening marks do not cost the square of their number.
fn reach(rest: &str) -> &str {
    &rest[..rest.floor_char_boundary(QUOTE_BYTES_MAX)]
}

/// The length of the span that this opening mark begins, with its closing mark; nothing where none ends it in reach.
fn quoted(rest: &str, mark: char) -> Option<usize> {
    let close = if mark == '\u{00AB}' { '\u{00BB}' } else { mark };
    let reach = reach(rest);
    let ends = |at: usize| {
        let after = rest[at + close.len_utf8()..].chars().next();
        // An apostrophe within a word closes nothing.
        mark != '\'' || !after.is_some_and(char::is_alphanumeric)
    };
    let mut found = reach.match_indices(close).map(|(at, _)| at).filter(|at| *at > 0);
    found.find(|at| ends(*at)).map(|at| at + close.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_goes_and_the_sentence_stays() {
        let table = [
            ("It\u{2019}s **done**", "It's done\n"),
            ("say \u{201C}I have moved it\u{201D} then", "say \u{A4} then\n"),
            ("the 'Yes, cancelled' button isn't it", "the \u{A4} button isn't it\n"),
            ("it's the users' turn, isn't it", "it's the users' turn, isn't it\n"),
            ("```\nI have moved it\n```\nso", "\n\n\nso\n"),
            ("> I have moved it\nso", "\nso\n"),
            ("your `ORD-1` went", "your \u{A4} went\n"),
            ("see [the page](http://x/y_z)", "see the page\n"),
            ("est\\u00e1 hecho \\u12", "está hecho \\u12\n"),
            ("as \"open.\" Is it", "as \u{A4}. Is it\n"),
            ("10\" wide, 5\"", "10\u{A4}\n"),
        ];
        for (reply, expected) in table {
            assert_eq!(plain(reply), expected, "{reply}");
        }
    }

    #[test]
    fn a_reply_without_end_is_cut_to_its_two_ends() {
        let long = format!("a{}z", "é".repeat(100));
        assert_eq!(bounded(&long, 10), "aéé\nééz");
        assert_eq!(bounded("short", 10), "short");
    }
}
