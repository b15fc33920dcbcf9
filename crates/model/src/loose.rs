//! Reads what providers send as they send it: borrowed where possible, and forgiving about null, numbers and nesting.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A text. `null` is none; anything else but a string is its own JSON, since some servers send arguments unquoted.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

impl Text<'_> {
    /// The text, blank where there is none.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(text.to_owned()))))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_bool<E>(self, it: bool) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(it.to_string()))))
    }

    fn visit_u64<E>(self, it: u64) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(it.to_string()))))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(it.to_string()))))
    }

    fn visit_f64<E>(self, it: f64) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(it.to_string()))))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let value = Value::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Text(Some(Cow::Owned(value.to_string()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        let value = Value::deserialize(SeqAccessDeserializer::new(seq))?;
        Ok(Text(Some(Cow::Owned(value.to_string()))))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(TextVisitor)
    }
}

/// The content of a message: a text, a list of parts, or nothing.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Content::Nothing)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Ok(Content::Parts(vec![Value::deserialize(MapAccessDeserializer::new(map))?]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Ok(Content::Parts(Vec::deserialize(SeqAccessDeserializer::new(seq))?))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(ContentVisitor)
    }
}

/// The largest number of tokens that is believed. Any JSON reader can hold it, also summed up over a long run.
const COUNT_MAX: u64 = 1_000_000_000_000;

/// A number of tokens. Whatever is no sensible number counts as not given: a text, what is below 0 or above
/// [`COUNT_MAX`], what is no number at all. Fractions are cut off.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Count(pub(crate) Option<u64>);

impl Count {
    fn believed(it: u64) -> Self {
        Self(Some(it).filter(|it| *it <= COUNT_MAX))
    }

    /// The number, 0 where there is none.
    pub(crate) fn get(self) -> u64 {
        self.0.unwrap_or_default()
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of tokens")
    }

    fn visit_u64<E>(self, it: u64) -> Result<Self::Value, E> {
        Ok(Count::believed(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(it).map_or(Count(None), Count::believed))
    }

    fn visit_f64<E>(self, it: f64) -> Result<Self::Value, E> {
        // A cast from a float saturates.
        Ok(if it >= 0.0 { Count::believed(it as u64) } else { Count(None) })
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Count(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.parse().map_or(Count(None), Count::believed))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(CountVisitor)
    }
}

/// A list in which `null` means none.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(source: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(source)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_from_whatever_stands_there() {
        let cases = [("\"a\"", "a"), ("null", ""), ("{\"a\":1}", "{\"a\":1}"), ("[1]", "[1]"), ("7", "7")];
        for (json, text) in cases {
            assert_eq!(serde_json::from_str::<Text<'_>>(json).unwrap().as_str(), text);
        }
        assert!(matches!(serde_json::from_str::<Text<'_>>("\"a\"").unwrap().0, Some(Cow::Borrowed(_))));
    }

    #[test]
    fn a_count_is_never_an_error() {
        let cases = [
            ("3", Some(3)),
            ("2.7", Some(2)),
            ("\"9\"", Some(9)),
            ("1e12", Some(COUNT_MAX)),
            ("-1", None),
            ("-0.5", None),
            ("null", None),
            ("\"x\"", None),
            ("1e30", None),
            ("18446744073709551615", None),
            ("\"1000000000001\"", None),
        ];
        for (json, count) in cases {
            assert_eq!(serde_json::from_str::<Count>(json).unwrap().0, count, "{json}");
        }
    }
}
