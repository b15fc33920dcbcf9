//! Writes the JSON of a request straight into its body: no tree is built and no text is copied twice.

use gesta_run::json::{DEPTH_MAX, depth};
use serde_json::Value;

/// A JSON text that grows from left to right. Keys and values are separated as needed; the caller closes what it opens.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
    /// A value stands before the place of writing, so that another needs a comma.
    comma: bool,
}

impl Writer {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), comma: false }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    fn next(&mut self) {
        if self.comma {
            self.out.push(b',');
        }
        self.comma = true;
    }

    pub(crate) fn open(&mut self, bracket: char) -> &mut Self {
        self.next();
        self.out.push(bracket as u8);
        self.comma = false;
        self
    }

    pub(crate) fn close(&mut self, bracket: char) -> &mut Self {
        self.out.push(bracket as u8);
        self.comma = true;
        self
    }

    /// A key that may hold anything.
    pub(crate) fn key(&mut self, key: &str) -> &mut Self {
        self.string(key);
        self.out.push(b':');
        self.comma = false;
        self
    }

    /// JSON that is the same every time, up to the place of a value: `{"role":"user","content":`.
    #[inline]
    pub(crate) fn fixed(&mut self, json: &'static str) -> &mut Self {
        self.next();
        self.out.extend_from_slice(json.as_bytes());
        self.comma = false;
        self
    }

    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        self.next();
        self.out.push(b'"');
        escape(text, &mut self.out);
        self.out.push(b'"');
        self
    }

    /// A string that is put together from pieces which need no escaping after `plain`.
    pub(crate) fn string_of(&mut self, pieces: &[&str]) -> &mut Self {
        self.string(&pieces.concat())
    }

    pub(crate) fn value(&mut self, value: &Value) -> &mut Self {
        self.next();
        // Writing a value into a vector cannot fail.
        let _ = serde_json::to_writer(&mut self.out, value);
        self
    }

    /// Text that is JSON already.
    pub(crate) fn raw(&mut self, json: &str) -> &mut Self {
        self.next();
        self.out.extend_from_slice(json.as_bytes());
        self
    }

    pub(crate) fn field(&mut self, key: &str, text: &str) -> &mut Self {
        self.key(key).string(text)
    }
}

/// Writes a text as the inside of a JSON string. Texts are long and seldom hold what must be escaped: many are
/// looked at together.
fn escape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let Some((byte, after)) = special.split_first() else { return };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
            }
        }
        rest = after;
    }
}

/// How many bytes at the beginning stand in a JSON string as they are.
fn plain_length(bytes: &[u8]) -> usize {
    let (Some((first, rest)), Some(last)) = (bytes.split_first_chunk(), bytes.last_chunk()) else {
        let is_special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
        return bytes.iter().position(is_special).unwrap_or(bytes.len());
    };
    // Where one byte is special another is often near, and where none is near there is often none for long.
    if let Some(at) = special_in(first) {
        return at;
    }
    let (blocks, _) = rest.as_chunks();
    let mut length = first.len() + BLOCK * blocks.iter().take_while(|block| is_plain(block)).count();
    let (words, _) = bytes[length..].as_chunks();
    for word in words {
        if let Some(at) = special_in(word) {
            return length + at;
        }
        length += word.len();
    }
    // What is left is less than a word: the last word holds it, and before it nothing special.
    special_in(last).map_or(bytes.len(), |at| bytes.len() - last.len() + at)
}

/// Where the first byte stands that must be escaped.
fn special_in(word: &[u8; 8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = ONES << 7;
    let word = u64::from_le_bytes(*word);
    // The lowest top bit that is set belongs to the first byte that is zero, or below 0x20.
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let control = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
    let special = control | is_zero(word ^ (ONES * u64::from(b'"'))) | is_zero(word ^ (ONES * u64::from(b'\\')));
    (special != 0).then(|| (special.trailing_zeros() / 8) as usize)
}

/// How many bytes are looked at together in long stretches.
const BLOCK: usize = 32;

/// Whether no byte must be escaped. It looks at all of them without a branch, so that the compiler can take 16 at once.
fn is_plain(block: &[u8; BLOCK]) -> bool {
    !block.iter().fold(false, |found, byte| found | (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\'))
}

/// The arguments as they are sent: as the model wrote them where that is an object that others can read, else `{}`.
pub(crate) fn sendable(arguments: &str) -> &str {
    let looks = arguments.trim_start().starts_with('{');
    let is_object = looks && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok();
    if is_object && !is_deep(arguments.as_bytes()) { arguments } else { "{}" }
}

/// Whether a JSON text is nested deeper than readers commonly bear.
fn is_deep(json: &[u8]) -> bool {
    // Nearly every text has too few brackets to be.
    memchr::memchr2_iter(b'[', b'{', json).nth(DEPTH_MAX).is_some() && depth(json) > DEPTH_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_where_they_belong() {
        let mut w = Writer::default();
        w.open('{').key("a").open('[').string("x").string("y\n").open('{').close('}').close(']');
        w.field("b", "é").key("c").raw("{\"d\":1}").fixed("\"e\":{\"f\":").string("g").close('}').close('}');
        assert_eq!(String::from_utf8(w.finish()).unwrap(), r#"{"a":["x","y\n",{}],"b":"é","c":{"d":1},"e":{"f":"g"}}"#);
    }

    #[test]
    fn a_text_is_escaped_as_serde_does_it() {
        let all: String = (0..0x300).filter_map(char::from_u32).chain("€😀\u{10ffff}".chars()).collect();
        let mut texts: Vec<String> = all.chars().map(|c| format!("1234567{c}89{c}{c}abcdefgh{c}")).collect();
        let places =
            (0..100).flat_map(|n| ["\"", "\\", "\n", "\u{1f}", " ", "\u{7f}", "é"].map(|special| (n, special)));
        texts.extend(places.map(|(n, special)| format!("{}{special}{}", "x".repeat(n), "y".repeat(100 - n))));
        texts.push(all);
        for text in texts {
            let mut w = Writer::default();
            w.string(&text);
            assert_eq!(String::from_utf8(w.finish()).unwrap(), serde_json::to_string(&text).unwrap());
        }
    }

    #[test]
    fn only_an_object_is_sent_as_arguments() {
        let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert_eq!(sendable(&deep(DEPTH_MAX)), deep(DEPTH_MAX));
        assert_eq!(sendable(&deep(DEPTH_MAX + 1)), "{}");
        for (text, sent) in [("{\"a\":1}", "{\"a\":1}"), ("", "{}"), ("null", "{}"), ("{\"a\":", "{}"), ("[1]", "{}")] {
            assert_eq!(sendable(text), sent);
        }
    }
}
