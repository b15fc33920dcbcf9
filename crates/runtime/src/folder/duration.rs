//! Lengths of time as a person writes them: `"30s"`, `"500ms"`, `"2m"`, `"1h"`, `"7d"`, or a number of seconds.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length {
    /// The milliseconds.
    pub ms: u64,
}

const UNITS: [(&str, f64); 5] = [("ms", 1.0), ("s", 1_000.0), ("m", 60_000.0), ("h", 3_600_000.0), ("d", 86_400_000.0)];

/// The longest length: 100 years.
const MS_MAX: f64 = 100.0 * 365.0 * 86_400_000.0;

impl Length {
    /// Reads `30s` and the like.
    ///
    /// # Errors
    /// It is written in another way, or is no more than nothing, or longer than a hundred years.
    pub fn parse(text: &str) -> Result<Self, String> {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (count, unit) = text.split_at(digits);
        let factor = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| *factor);
        match (count.parse::<f64>(), factor) {
            (Ok(count), Some(factor)) => Self::from_ms(count * factor),
            _ => {
                Err(format!("`{text}` is no length of time; write it like \"30s\", \"500ms\", \"2m\", \"1h\", \"7d\""))
            }
        }
    }

    /// A number of seconds.
    ///
    /// # Errors
    /// It is no more than nothing, or longer than a hundred years.
    pub fn from_seconds(seconds: f64) -> Result<Self, String> {
        Self::from_ms(seconds * 1_000.0)
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn from_ms(ms: f64) -> Result<Self, String> {
        if (1.0..=MS_MAX).contains(&ms) {
            Ok(Self { ms: ms.round() as u64 })
        } else {
            Err("a length of time must be at least a millisecond and at most a hundred years".to_owned())
        }
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{}ms", self.ms))
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Seconds(f64),
            Text(String),
        }
        match Written::deserialize(from)? {
            Written::Seconds(seconds) => Self::from_seconds(seconds),
            Written::Text(text) => Self::parse(&text),
        }
        .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Length {
    fn schema_name() -> Cow<'static, str> {
        "Length".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time: \"30s\", \"500ms\", \"2m\", \"1h\", \"7d\", or a number of seconds.",
            "anyOf": [{"type": "string", "format": "length"}, {"type": "number", "format": "seconds"}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        let good = [("30s", 30_000), ("500ms", 500), ("1.5m", 90_000), ("2 h", 7_200_000), ("7d", 604_800_000)];
        for (text, ms) in good {
            assert_eq!(Length::parse(text), Ok(Length { ms }), "{text}");
        }
        for bad in ["", "s", "30", "30 years", "-1s", "0s", "1e9d", "1.2.3s", "99999999999999999999d"] {
            assert!(Length::parse(bad).is_err(), "{bad}");
        }
    }
}
