//! JSON as the contract wants it: strict in reading, canonical in writing, fingerprinted.

use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// A JSON object.
pub type Object = Map<String, Value>;

/// Reads one JSON value. Refused: duplicate keys, numbers that are not finite, more than 128 levels
/// (`spec/durability.md`, 6.3).
///
/// # Errors
/// A sentence that says what is wrong and where.
pub fn read_strict(text: &str) -> Result<Value, serde_json::Error> {
    let mut source = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut source)?;
    source.end()?;
    Ok(value)
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(Value::Bool(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_f64<E: serde::de::Error>(self, it: f64) -> Result<Value, E> {
        Number::from_f64(it).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(Value::String(it.to_owned()))
    }

    fn visit_string<E>(self, it: String) -> Result<Value, E> {
        Ok(Value::String(it))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = source.next_element_seed(Strict)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let mut object = Object::new();
        while let Some(key) = source.next_key::<String>()? {
            let value = source.next_value_seed(Strict)?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("key `{key}` stands twice")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// Reads a value that stands there: `null` too is one, and only a missing key is none.
pub(crate) fn present<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Option<Value>, D::Error> {
    serde::Deserialize::deserialize(source).map(Some)
}

/// Writes a value with its keys sorted and without white space, so that equal values give equal text.
pub fn canonical(value: &Value) -> String {
    let mut out = Vec::new();
    write_canonical(value, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort();
            out.push(b'{');
            for (n, key) in keys.into_iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                // Writing into a vector cannot fail, here and below.
                let _ = serde_json::to_writer(&mut *out, key);
                out.push(b':');
                write_canonical(&object[key], out);
            }
            out.push(b'}');
        }
        Value::Array(list) => {
            out.push(b'[');
            for (n, item) in list.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        plain => {
            let _ = serde_json::to_writer(&mut *out, plain);
        }
    }
}

/// SHA-256 of a text, in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The fingerprint of a call: SHA-256 over the tool's name, a zero byte and the exact arguments in canonical JSON
/// (`spec/contract.md`, 7.4).
pub fn fingerprint(tool: &str, arguments: &Object) -> String {
    let mut digest = Sha256::new();
    digest.update(tool.as_bytes());
    digest.update([0]);
    digest.update(canonical(&Value::Object(arguments.clone())).as_bytes());
    hex(&digest.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Cuts a text to at most `bytes_max` bytes, at a character's boundary.
pub fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_reading_refuses_what_the_contract_refuses() {
        for bad in ["{\"a\":1,\"a\":2}", "1e999", "NaN", "", "{} {}", &"[".repeat(200)] {
            assert!(read_strict(bad).is_err(), "{bad}");
        }
        assert_eq!(read_strict("{\"a\":[1,2.5,null]}").unwrap().to_string(), "{\"a\":[1,2.5,null]}");
    }

    #[test]
    fn equal_objects_have_one_canonical_form() {
        let a: Value = serde_json::from_str("{\"b\":1,\"a\":{\"d\":[1, 2],\"c\":\"é\"}}").unwrap();
        assert_eq!(canonical(&a), "{\"a\":{\"c\":\"é\",\"d\":[1,2]},\"b\":1}");
    }
}
