//! Attributes, ids and words of spans. What a model or a provider chose is let through only where it can be no text.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// How long a word may be that a model or a provider chose.
const WORD_BYTES_MAX: usize = 64;

pub(crate) fn text(key: &str, value: impl Into<String>) -> KeyValue {
    of(key, Value::StringValue(value.into()))
}

pub(crate) fn number(key: &str, value: u64) -> KeyValue {
    of(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

pub(crate) fn texts<T: Into<String>>(key: &str, values: impl IntoIterator<Item = T>) -> KeyValue {
    let values = values.into_iter().map(|it| AnyValue { value: Some(Value::StringValue(it.into())) }).collect();
    of(key, Value::ArrayValue(ArrayValue { values }))
}

fn of(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// The word of a value that is one on the wire.
pub(crate) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "other".to_owned(),
    }
}

/// An id or name that somebody outside chose: as it stands where it looks like one, else a digest of it.
pub(crate) fn opaque(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    if !id.is_empty() && id.len() <= WORD_BYTES_MAX && id.bytes().all(plain) {
        return id.to_owned();
    }
    let digest: String = digest(&[id]).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digest}")
}

/// The id of a span: the same whoever makes it of the same things.
pub(crate) fn span_id(parts: &[&str]) -> Vec<u8> {
    digest(parts)[..8].to_vec()
}

/// The trace of a run that nobody else's trace holds: its own name where that is a UUID, so that one is found by the other.
pub(crate) fn trace_of(run: &str) -> [u8; 16] {
    let digits: String = run.chars().filter(|it| *it != '-').collect();
    let plain = digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit());
    match u128::from_str_radix(&digits, 16) {
        Ok(id) if plain && id != 0 => id.to_be_bytes(),
        _ => {
            let mut id = [0; 16];
            id.copy_from_slice(&digest(&["trace", run])[..16]);
            id
        }
    }
}

fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_text_is_digested_and_a_uuid_is_the_trace_of_its_run() {
        assert_eq!(opaque("call_1-a.b"), "call_1-a.b");
        for said in ["", "call maria", "rufe Jörg", &"a".repeat(65)] {
            assert!(opaque(said).starts_with("sha256:"), "{said}");
        }
        let run = "0190f5c0-7c00-7000-8000-0000000000ff";
        let hex: String = trace_of(run).iter().map(|it| format!("{it:02x}")).collect();
        assert_eq!(hex, run.replace('-', ""));
        assert_ne!(trace_of("r1"), trace_of("r2"));
    }
}
