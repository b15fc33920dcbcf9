//! JSON as the contract wants it: strict in reading, canonical in writing, fingerprinted.

use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// A JSON object.
pub type Object = Map<String, Value>;

/// Lists and objects within one another that a value from outside may have; what is in the innermost is the 128th level
/// (`spec/durability.md`, 6.3). A deeper one is refused wherever it would get into the log.
pub const DEPTH_MAX: usize = 127;

/// The same of a schema, which is checked level by level, and of a model's options.
pub const SCHEMA_DEPTH_MAX: usize = 64;

/// What is deeper is neither stored nor read again: values of [`DEPTH_MAX`] stand in events, events in logs.
pub const STORED_DEPTH_MAX: usize = 192;

/// Whether a value has more than `depth_max` lists and objects within one another.
pub fn is_deeper(value: &Value, depth_max: usize) -> bool {
    let inner = |value: &Value| is_deeper(value, depth_max - 1);
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(_) | Value::Object(_) if depth_max == 0 => true,
        Value::Array(list) => list.iter().any(inner),
        Value::Object(object) => object.values().any(inner),
    }
}

/// The same of arguments, which are an object.
pub(crate) fn are_deep(arguments: &Object) -> bool {
    arguments.values().any(|value| is_deeper(value, DEPTH_MAX - 1))
}

/// Takes a value apart level by level: letting go of one that is very deep as a whole could exhaust the stack.
pub(crate) fn discard(value: Value) {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(list) => rest.extend(list),
            Value::Object(object) => rest.extend(object.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Reads one JSON value of our own writing. Deeper than what the machine admits it may not be, so that the stack is safe.
///
/// # Errors
/// A sentence that says what is wrong and where.
pub fn read_stored<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    let depth = depth(json);
    if depth > STORED_DEPTH_MAX {
        return Err(format!("it is {depth} levels deep"));
    }
    let mut source = serde_json::Deserializer::from_slice(json);
    // The depth was measured. The reader's own limit is met by values that stand in events.
    source.disable_recursion_limit();
    let value = T::deserialize(&mut source).map_err(|why| why.to_string())?;
    source.end().map_err(|why| why.to_string())?;
    Ok(value)
}

/// How deep brackets are nested, those in texts left out. Reading broken JSON stops at the first error, and up to there
/// the count is right.
pub fn depth(json: &[u8]) -> usize {
    let (mut now, mut most, mut in_text) = (0_usize, 0, false);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_text = !in_text,
            b'\\' if in_text => drop(bytes.next()),
            b'[' | b'{' if !in_text => {
                now += 1;
                most = most.max(now);
            }
            b']' | b'}' if !in_text => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Reads one JSON value. Refused: duplicate keys, numbers that are not finite, integers beyond 64 bits, which could not
/// be kept as they are, more than [`DEPTH_MAX`] levels (`spec/durability.md`, 6.3).
///
/// # Errors
/// A sentence that says what is wrong and where.
pub fn read_strict(text: &str) -> Result<Value, serde_json::Error> {
    if let Some(wide) = wide_integer(text) {
        let digits = cut(wide, 40);
        return Err(serde_json::Error::custom(format!(
            "the integer {digits} does not fit 64 bits; write it as a text"
        )));
    }
    let mut source = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut source)?;
    source.end()?;
    Ok(value)
}

/// The fewest digits of an integer that may not fit 64 bits.
const WIDE_DIGITS: usize = 19;

/// The first integer that fits neither signed nor unsigned 64 bits, those in texts left out.
fn wide_integer(text: &str) -> Option<&str> {
    if text.len() < WIDE_DIGITS {
        return None;
    }
    let bytes = text.as_bytes();
    let of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    let (mut at, mut in_text) = (0, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => in_text = !in_text,
            b'\\' if in_text => at += 1,
            b'-' | b'0'..=b'9' if !in_text => {
                let length = bytes[at..].iter().take_while(|byte| of_number(byte)).count();
                let number = &text[at..at + length];
                let fits = length < WIDE_DIGITS || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
                if !fits && number.bytes().skip(1).all(|byte| byte.is_ascii_digit()) {
                    return Some(number);
                }
                at += length - 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
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
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn strict_reading_refuses_what_the_contract_refuses() {
        for bad in ["{\"a\":1,\"a\":2}", "1e999", "NaN", "", "{} {}", &"[".repeat(200)] {
            assert!(read_strict(bad).is_err(), "{bad}");
        }
        for wide in ["{\"n\":12345678901234567890123}", "-9223372036854775809", "[1, 18446744073709551616]"] {
            assert!(read_strict(wide).unwrap_err().to_string().contains("does not fit 64 bits"), "{wide}");
        }
        for kept in
            ["18446744073709551615", "-9223372036854775808", "[\"12345678901234567890123\\\"99999999999999999999\"]"]
        {
            assert_eq!(read_strict(kept).unwrap().to_string(), kept);
        }
        assert!(read_strict("1234567890123456789012e2").is_ok() && read_strict("0.12345678901234567890123").is_ok());
        assert_eq!(read_strict("{\"a\":[1,2.5,null]}").unwrap().to_string(), "{\"a\":[1,2.5,null]}");
    }

    fn nested(levels: usize) -> Value {
        (0..levels)
            .fold(Value::Null, |inner, n| if n % 2 == 0 { Value::from(vec![inner]) } else { json!({"a": inner}) })
    }

    #[test]
    fn depth_is_counted_alike_in_values_and_in_texts() {
        for levels in [0, 1, DEPTH_MAX - 1, DEPTH_MAX, DEPTH_MAX + 1, 500] {
            let value = nested(levels);
            let fits = levels <= DEPTH_MAX;
            assert_eq!(!is_deeper(&value, DEPTH_MAX), fits, "{levels}");
            assert_eq!(read_strict(&value.to_string()).is_ok(), fits, "{levels}");
            assert_eq!(depth(value.to_string().as_bytes()), levels);
        }
        let (fits, deep) = (nested(STORED_DEPTH_MAX).to_string(), nested(STORED_DEPTH_MAX + 1).to_string());
        assert!(read_stored::<Value>(fits.as_bytes()).is_ok());
        assert_eq!(read_stored::<Value>(deep.as_bytes()).unwrap_err(), "it is 193 levels deep");
        discard((0..200_000).fold(Value::Null, |inner, _| Value::from(vec![inner])));
    }

    #[test]
    fn equal_objects_have_one_canonical_form() {
        let a: Value = serde_json::from_str("{\"b\":1,\"a\":{\"d\":[1, 2],\"c\":\"é\"}}").unwrap();
        assert_eq!(canonical(&a), "{\"a\":{\"c\":\"é\",\"d\":[1,2]},\"b\":1}");
    }
}
