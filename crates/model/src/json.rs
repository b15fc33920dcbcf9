//! Writes the JSON of a request straight into its body: no tree is built and no text is copied twice.

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

    pub(crate) fn key(&mut self, key: &str) -> &mut Self {
        self.string(key);
        self.out.push(b':');
        self.comma = false;
        self
    }

    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        self.next();
        // Writing a string into a vector cannot fail.
        let _ = serde_json::to_writer(&mut self.out, text);
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

/// The arguments as they are sent: as the model wrote them where that is an object, else `{}`.
pub(crate) fn sendable(arguments: &str) -> &str {
    let looks = arguments.trim_start().starts_with('{');
    let is_object = looks && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok();
    if is_object { arguments } else { "{}" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_where_they_belong() {
        let mut w = Writer::default();
        w.open('{').key("a").open('[').string("x").string("y\n").open('{').close('}').close(']');
        w.field("b", "é").key("c").raw("{\"d\":1}").close('}');
        assert_eq!(String::from_utf8(w.finish()).unwrap(), r#"{"a":["x","y\n",{}],"b":"é","c":{"d":1}}"#);
    }

    #[test]
    fn only_an_object_is_sent_as_arguments() {
        for (text, sent) in [("{\"a\":1}", "{\"a\":1}"), ("", "{}"), ("null", "{}"), ("{\"a\":", "{}"), ("[1]", "{}")] {
            assert_eq!(sendable(text), sent);
        }
    }
}
