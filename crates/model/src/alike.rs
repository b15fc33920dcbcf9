//! Knows an event that differs from an earlier one in its text alone, so that it need not be parsed.

/// What stands around the text of an event that held nothing else. In a stream of text nearly every event is the same
/// but for its text: then two comparisons do the work of a parser.
#[derive(Debug, Default)]
pub(crate) struct Alike {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Alike {
    /// Remembers an event with its text, which must be a part of it. Whoever calls this makes sure that nothing else in
    /// the event counts.
    pub(crate) fn learn(&mut self, data: &[u8], text: &str) {
        self.before.clear();
        self.after.clear();
        let Some(at) = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize) else { return };
        let (Some(before), Some(after)) = (data.get(..at), data.get(at + text.len()..)) else { return };
        // Only between quotes does the text end where it ends, whatever it is.
        if !text.is_empty() && before.ends_with(b"\"") && after.starts_with(b"\"") {
            self.before.extend_from_slice(before);
            self.after.extend_from_slice(after);
        }
    }

    /// The text of an event that is otherwise the one remembered. None where that is not certain, also where the text
    /// holds an escape.
    pub(crate) fn text<'a>(&self, data: &'a [u8]) -> Option<&'a str> {
        if self.after.is_empty() {
            return None;
        }
        let text = data.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        let plain = text.iter().all(|byte| *byte >= 0x20 && *byte != b'"' && *byte != b'\\');
        if plain { std::str::from_utf8(text).ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_event_that_is_the_same_but_for_a_plain_text_is_known() {
        let mut alike = Alike::default();
        assert_eq!(alike.text(b"{\"a\":\"x\"}"), None);
        let data = b"{\"a\":\"one\",\"b\":1}";
        alike.learn(data, std::str::from_utf8(&data[6..9]).unwrap());
        let cases: [(&str, Option<&str>); 8] = [
            ("{\"a\":\"two three\",\"b\":1}", Some("two three")),
            ("{\"a\":\"\",\"b\":1}", Some("")),
            ("{\"a\":\"é😀\",\"b\":1}", Some("é😀")),
            ("{\"a\":\"two\",\"b\":2}", None),
            ("{\"a\":\"two\",\"c\":\"x\",\"b\":1}", None),
            ("{\"a\":\"t\\\"o\",\"b\":1}", None),
            ("{\"a\":\"t\no\",\"b\":1}", None),
            ("{\"a\":\",\"b\":1}", None),
        ];
        for (data, text) in cases {
            assert_eq!(alike.text(data.as_bytes()), text, "{data}");
        }
        assert_eq!(alike.text(b"{\"a\":\"\xff\",\"b\":1}"), None);
        alike.learn(data, "from elsewhere");
        assert_eq!(alike.text(data), None);
    }
}
