//! What is done to texts: folding for comparison, shapes of personal data, cutting at words.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// The shapes that leave free text (`spec/channel.md`, 16 and 22): addresses of pages and mail, phone numbers, runs of
/// seven and more digits. One list for notes and for the logger.
static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:https?://|www\.)\S+",
        r"|[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+",
        r"|\b(?:[\p{L}\p{N}-]+\.)+(?:com|net|org|io|me|app|info|biz|co|ru|kz|de|es|br|mx|uz|ly)\b(?:/\S*)?",
        r"|\+?\(?\p{Nd}(?:[ ().\u{2011}/-]{0,2}\p{Nd}){6,}",
    ))
    .ok()
});

/// Replaces every shape of personal data.
pub fn without_shapes<'a>(text: &'a str, by: &str) -> Cow<'a, str> {
    match &*SHAPES {
        Some(shapes) => shapes.replace_all(text, regex::NoExpand(by)),
        None => Cow::Owned(by.to_owned()),
    }
}

/// Folds case for comparison: lower case character by character, with the letters that have two lower or no upper forms
/// brought together (`spec/channel.md`, 23, L53).
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            'ß' => out.push_str("ss"),
            'ς' => out.push('σ'),
            // What lower-casing a dotted capital I leaves behind.
            '\u{307}' if out.ends_with('i') => {}
            other => out.push(other),
        }
    }
    out
}

/// Whether the folded keyword stands in the text on word boundaries; white space of any length counts as one.
pub fn has_keyword(text: &str, keyword: &str) -> bool {
    let (text, keyword) = (collapse(&fold(text)), collapse(&fold(keyword)));
    !keyword.is_empty() && has_words(&text, &keyword)
}

/// Whether `words` stands in `text` exactly, with no letter or digit on either side.
pub fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        let is_edge = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        is_edge(before) && is_edge(after)
    })
}

/// White space of any kind and length becomes one space; none at the ends.
pub fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a character is an emoji or belongs to one: pictures, their joiners, skins and variants.
pub fn is_emoji(c: char) -> bool {
    matches!(u32::from(c),
        0x1F000..=0x1FAFF | 0x2600..=0x27BF | 0x2B00..=0x2BFF | 0x2190..=0x21FF | 0x2300..=0x23FF | 0x25A0..=0x25FF
        | 0xFE00..=0xFE0F | 0x200D | 0x20E3 | 0xE0020..=0xE007F | 0x203C | 0x2049 | 0x3030 | 0x303D | 0x3297 | 0x3299)
}

/// As repetitions are compared: lower case, no emoji, spaces collapsed (`spec/channel.md`, 7, point 5).
pub fn plain(text: &str) -> String {
    let kept: String = text.chars().filter(|c| !is_emoji(*c)).collect();
    collapse(&fold(&kept))
}

/// Whether a text ends in a question; emoji, spaces, quotes and brackets after it do not count (`spec/channel.md`, 7,
/// point 7).
pub fn ends_in_question(text: &str) -> bool {
    let rest = text.trim_end_matches(|c: char| {
        is_emoji(c) || c.is_whitespace() || matches!(c, '"' | '\'' | ')' | ']' | '»' | '”' | '’' | '*' | '_')
    });
    matches!(rest.chars().next_back(), Some('?' | '？' | '؟' | '՞' | '⸮'))
}

/// At most `chars_max` characters, cut at the last word that fits whole; a single longer word is cut within.
pub fn cut_at_word(text: &str, chars_max: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(chars_max) else { return text };
    let cut = &text[..end];
    let whole = text[end..].starts_with(char::is_whitespace);
    let at = if whole { end } else { cut.rfind(char::is_whitespace).unwrap_or(end) };
    let kept = cut[..at].trim_end();
    if kept.is_empty() { cut } else { kept }
}

/// How many characters a text has.
pub fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_personal_data_leave_a_text() {
        for (text, expected) in [
            ("see https://example.com/a?b=1 now", "see [removed] now"),
            ("write to ann.b@example.co.uk, please", "write to [removed], please"),
            ("call +1 (555) 123-45-67 today", "call [removed] today"),
            ("order 1234567 is late", "order [removed] is late"),
            ("123456 is short", "123456 is short"),
            ("at www.example.org", "at [removed]"),
            ("shop.example.com/x sells it", "[removed] sells it"),
            ("3 rooms, 2 baths, 1999", "3 rooms, 2 baths, 1999"),
            ("$1 is no pattern", "$1 is no pattern"),
        ] {
            assert_eq!(without_shapes(text, "[removed]"), expected);
        }
    }

    #[test]
    fn keywords_match_folded_on_word_boundaries() {
        for (text, keyword, expected) in [
            ("I want a HUMAN!", "human", true),
            ("humane treatment", "human", false),
            ("ГДЕ ОПЕРАТОР?", "оператор", true),
            ("оператора", "оператор", false),
            ("STRASSE", "straße", true),
            ("ΟΔΟΣ", "οδος", true),
            ("İstanbul", "istanbul", true),
            ("a  real\nperson", "Real person", true),
            ("anything", "", false),
            ("anything", " ", false),
            ("snake_human_case", "human", false),
        ] {
            assert_eq!(has_keyword(text, keyword), expected, "{text} / {keyword}");
        }
    }

    #[test]
    fn a_question_is_seen_through_what_follows_it() {
        for (text, expected) in [
            ("When?", true),
            ("When? 🙂", true),
            ("When?! ", false),
            ("(Or when?)", true),
            ("什么？", true),
            ("Fine.", false),
            ("", false),
            ("🙂", false),
            ("Sure? 👍🏽\u{FE0F}", true),
        ] {
            assert_eq!(ends_in_question(text), expected, "{text}");
        }
    }

    #[test]
    fn a_cut_keeps_whole_words() {
        for (text, max, expected) in [
            ("one two three", 13, "one two three"),
            ("one two three", 12, "one two"),
            ("one two three", 7, "one two"),
            ("abcdef", 3, "abc"),
            ("día más", 4, "día"),
            ("", 0, ""),
        ] {
            assert_eq!(cut_at_word(text, max), expected);
        }
    }
}
