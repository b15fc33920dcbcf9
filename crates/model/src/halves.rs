//! Mends characters that a server cut in two: `\ud83d` at the end of one piece, `\ude00` at the start of the next.
//!
//! Servers that count in UTF-16 cut there. JSON knows no half of a character, so an event that has one is written anew:
//! a half that the next piece may complete becomes a mark, any other the replacement character. The draft joins marks.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::Value;

/// A half is marked by one of the last 2048 characters there are, all of private use.
const MARK: u32 = 0x0010_F800;
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The keys whose texts grow piece by piece. Halves elsewhere have nothing to be joined to.
const GROWING: [&[u8]; 9] = [
    b"arguments",
    b"content",
    b"input",
    b"partial_json",
    b"reasoning",
    b"reasoning_content",
    b"refusal",
    b"text",
    b"thinking",
];

/// An event of a stream in which every half is marked or replaced; none where it has no half.
pub(crate) fn marked(json: &[u8]) -> Option<Vec<u8>> {
    // An event that has such characters of its own gets no marks: they could not be told apart.
    let plain = memmem::find_iter(json, b"\xf4\x8f").any(|at| json.get(at + 2).is_some_and(|byte| *byte >= 0xa0));
    let is_such = |at: usize| json.get(at + 2..at + 5).is_some_and(|digits| digits.eq_ignore_ascii_case(b"dbf"));
    rewritten(json, !plain && !memmem::find_iter(json, br"\u").any(is_such))
}

/// A whole JSON text in which every half is replaced; none where it has no half.
pub(crate) fn replaced(json: &[u8]) -> Option<Vec<u8>> {
    rewritten(json, false)
}

fn rewritten(json: &[u8], marks: bool) -> Option<Vec<u8>> {
    memmem::find_iter(json, br"\u").find(|at| json.get(at + 2).is_some_and(|byte| byte | 0x20 == b'd'))?;
    let (mut out, mut copied, mut at) = (Vec::new(), 0, 0);
    let (mut begin, mut key): (Option<usize>, &[u8]) = (None, b"");
    while let Some(byte) = json.get(at) {
        let Some(start) = begin else {
            begin = (*byte == b'"').then_some(at + 1);
            at += 1;
            continue;
        };
        if *byte == b'"' {
            if json[at + 1..].trim_ascii_start().first() == Some(&b':') {
                key = &json[start..at];
            }
            begin = None;
        }
        if *byte != b'\\' {
            at += 1;
            continue;
        }
        let Some(half) = escaped(&json[at..]).filter(|code| is_half(*code)) else {
            at += 2;
            continue;
        };
        let is_pair = is_high(half) && escaped(&json[at + 6..]).is_some_and(is_low);
        if is_pair {
            at += 12;
            continue;
        }
        let at_edge = if is_high(half) { json.get(at + 6) == Some(&b'"') } else { at == start };
        let mark = char::from_u32(MARK + (half - 0xd800)).filter(|_| marks && at_edge && GROWING.contains(&key));
        out.extend_from_slice(&json[copied..at]);
        out.extend_from_slice(mark.unwrap_or(REPLACEMENT).encode_utf8(&mut [0; 4]).as_bytes());
        at += 6;
        copied = at;
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&json[copied..]);
    Some(out)
}

/// The number of an escape `\uXXXX` that a text begins with.
fn escaped(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
}

fn is_half(code: u32) -> bool {
    (0xd800..0xe000).contains(&code)
}

fn is_high(code: u32) -> bool {
    (0xd800..0xdc00).contains(&code)
}

fn is_low(code: u32) -> bool {
    (0xdc00..0xe000).contains(&code)
}

/// The half that a mark stands for.
fn half_of(mark: char) -> Option<u32> {
    u32::from(mark).checked_sub(MARK).map(|at| 0xd800 + at)
}

/// The half of a character with which a text broke off.
#[derive(Debug, Default)]
pub(crate) struct Half(Option<u32>);

impl Half {
    /// More of the text, with halves joined. `has_marks` says whether the event it came in has been written anew.
    pub(crate) fn join<'a>(&mut self, more: &'a str, has_marks: bool) -> Cow<'a, str> {
        if self.0.is_none() && !has_marks || more.is_empty() {
            return Cow::Borrowed(more);
        }
        let mut out = String::with_capacity(more.len() + 4);
        for c in more.chars() {
            let half = half_of(c).filter(|_| has_marks);
            match (self.0.take(), half) {
                (Some(high), Some(low)) if is_low(low) => {
                    let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                    out.push(char::from_u32(code).unwrap_or(REPLACEMENT));
                    continue;
                }
                (Some(_), _) => out.push(REPLACEMENT),
                (None, _) => {}
            }
            match half {
                Some(high) if is_high(high) => self.0 = Some(high),
                Some(_) => out.push(REPLACEMENT),
                None => out.push(c),
            }
        }
        Cow::Owned(out)
    }

    /// What is left when nothing more comes.
    pub(crate) fn end(&mut self) -> &'static str {
        if self.0.take().is_some() { "\u{fffd}" } else { "" }
    }
}

/// Joins and replaces the marks of a value.
pub(crate) fn clean(value: &mut Value) {
    match value {
        Value::String(text) => {
            let mut half = Half::default();
            let joined = half.join(text, true) + half.end();
            *text = joined.into_owned();
        }
        Value::Array(list) => list.iter_mut().for_each(clean),
        Value::Object(object) => object.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Reads the arguments of a call, which are JSON within a text and so have escapes of their own, as they come. An
/// escape that is not complete is held back.
#[derive(Debug, Default)]
pub(crate) struct Escapes(String);

impl Escapes {
    /// More of the arguments, with halves that nothing completes replaced.
    pub(crate) fn pass<'a>(&mut self, more: &'a str) -> Cow<'a, str> {
        if self.0.is_empty() && memchr::memchr(b'\\', more.as_bytes()).is_none() {
            return Cow::Borrowed(more);
        }
        let text = std::mem::take(&mut self.0) + more;
        let bytes = text.as_bytes();
        let (mut out, mut copied, mut at) = (String::with_capacity(text.len()), 0, 0);
        while let Some(next) = memchr::memchr(b'\\', &bytes[at..]) {
            at += next;
            let rest = &bytes[at..];
            let Some(half) = escaped(rest).filter(|code| is_half(*code)) else {
                if is_begun(rest) {
                    break;
                }
                // The character behind the backslash may have several bytes; none of them is a backslash.
                at = (at + 2).min(bytes.len());
                continue;
            };
            let after = &rest[6..];
            if is_high(half) && is_begun(after) {
                break;
            }
            let is_pair = is_high(half) && escaped(after).is_some_and(is_low);
            if !is_pair {
                out.push_str(&text[copied..at]);
                out.push_str(r"\ufffd");
                copied = at + 6;
            }
            at += if is_pair { 12 } else { 6 };
        }
        let held = match memchr::memchr(b'\\', &bytes[at..]) {
            Some(_) => at,
            None => bytes.len(),
        };
        out.push_str(&text[copied..held]);
        self.0.push_str(&text[held..]);
        Cow::Owned(out)
    }

    /// What is left when nothing more comes.
    pub(crate) fn end(&mut self) -> String {
        let left = std::mem::take(&mut self.0);
        match escaped(left.as_bytes()) {
            Some(_) => format!(r"\ufffd{}", &left[6..]),
            None => left,
        }
    }
}

/// Whether a text is the beginning of an escape `\uXXXX` and no more, so that what follows decides.
fn is_begun(text: &[u8]) -> bool {
    match text {
        [] => true,
        [b'\\'] => true,
        [b'\\', b'u', digits @ ..] => digits.len() < 4 && digits.iter().all(u8::is_ascii_hexdigit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_are_written_anew() {
        let cases = [
            (r#"{"text":"a\ud83d"}"#, Some("{\"text\":\"a\u{10f83d}\"}")),
            (r#"{"text":"\ude00b"}"#, Some("{\"text\":\"\u{10fe00}b\"}")),
            (r#"{"text":"a\ud83db"}"#, Some("{\"text\":\"a\u{fffd}b\"}")),
            (r#"{"text":"a\ude00"}"#, Some("{\"text\":\"a\u{fffd}\"}")),
            (r#"{"id":"a\ud83d"}"#, Some("{\"id\":\"a\u{fffd}\"}")),
            (r#"{"text" : "\uD83D\uD83D"}"#, Some("{\"text\" : \"\u{fffd}\u{10f83d}\"}")),
            ("{\"text\":\"\u{10f83d}\\ud83d\"}", Some("{\"text\":\"\u{10f83d}\u{fffd}\"}")),
            (r#"{"text":"\ud83d\ude00"}"#, None),
            (r#"{"text":"\\ud83d"}"#, None),
            (r#"{"text":"\ud83"}"#, None),
            (r#"{"text":"plain"}"#, None),
            (r#"{"text":"\ud83d"#, Some("{\"text\":\"\u{fffd}")),
        ];
        for (json, expected) in cases {
            let found = marked(json.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(found.as_deref(), expected, "{json}");
        }
        let whole = replaced(br#"{"text":"a\ud83d","b":"\ud83d\ude00"}"#).unwrap();
        assert_eq!(whole, "{\"text\":\"a\u{fffd}\",\"b\":\"\\ud83d\\ude00\"}".as_bytes());
    }

    #[test]
    fn escapes_within_arguments_are_read_wherever_they_are_cut() {
        let cases = [
            (r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#),
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\ude00\ud83d\n"}"#, r#"{"a":"\ufffd\ufffd\n"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, r#"{"a":"\ufffd\ud83d\ude00"}"#),
            (r#"{"a":"\\ud83d \" \u00e9 \é"}"#, r#"{"a":"\\ud83d \" \u00e9 \é"}"#),
            (r#"{"a":"\ud83d"#, r#"{"a":"\ufffd"#),
            (r#"{"a":"\ud83d\u"#, r#"{"a":"\ufffd\u"#),
            (r#"{"a":"\ud8"#, r#"{"a":"\ud8"#),
            (r#"{"a":"\"#, r#"{"a":"\"#),
        ];
        for (text, expected) in cases {
            let places: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
            for (first, second) in places.iter().flat_map(|a| places.iter().map(move |b| (*a, *b))) {
                let (first, second) = (first.min(second), first.max(second));
                let mut escapes = Escapes::default();
                let mut out = String::new();
                for piece in [&text[..first], &text[first..second], &text[second..]] {
                    out.push_str(&escapes.pass(piece));
                }
                out.push_str(&escapes.end());
                assert_eq!(out, expected, "{text} cut at {first} and {second}");
            }
        }
    }
}
