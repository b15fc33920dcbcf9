//! Headers that a folder may add to its requests; the host's own are not to be had.

use http::{HeaderName, HeaderValue};

/// Set by the host or by the connection, and by nothing else (`spec/contract.md`, 2.11).
const RESERVED: [&str; 10] = [
    "connection",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The prefix of the host's own headers.
const OWN_PREFIX: &str = "gesta-";

/// Checks a header as it is written down.
///
/// # Errors
/// It is not legal, or the host sets it.
pub(crate) fn check(name: &str, value: &str) -> Result<(), String> {
    let legal = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no name of a header"))?;
    if RESERVED.contains(&legal.as_str()) || legal.as_str().starts_with(OWN_PREFIX) {
        return Err(format!("the header `{name}` is set by the host, and nothing overrides it"));
    }
    HeaderValue::from_str(value)
        .map(drop)
        .map_err(|_| format!("the value of `{name}` has characters that no header may"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_own_headers_are_not_to_be_had() {
        assert_eq!(check("Authorization", "Bearer env:KEY"), Ok(()));
        for bad in ["Idempotency-Key", "gesta-run", "GESTA-CONTACT", "Host", "Content-Length", "a b", ""] {
            assert!(check(bad, "x").is_err(), "{bad}");
        }
        assert!(check("X-A", "a\r\nGesta-Run: b").is_err());
    }
}
