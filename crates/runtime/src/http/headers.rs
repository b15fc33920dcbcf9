//! Headers that a folder may add to its requests; the host's own are not to be had.

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

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

/// Whether a header of this name carries a secret, so that its value does not stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carries {
    /// It is there for nothing else.
    Secret,
    /// Its name sounds like it.
    PerhapsSecret,
    /// Anything else.
    Plain,
}

/// What a header carries, by its name.
pub(crate) fn carries(name: &str) -> Carries {
    const SECRET: [&str; 6] =
        ["api-key", "authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token"];
    const WORDS: [&str; 8] = ["apikey", "auth", "credential", "key", "passwd", "password", "secret", "token"];
    let name = name.to_ascii_lowercase();
    if SECRET.contains(&name.as_str()) {
        Carries::Secret
    } else if name.split(['-', '_']).any(|word| WORDS.contains(&word)) {
        Carries::PerhapsSecret
    } else {
        Carries::Plain
    }
}

/// Whose request it is: the host's own words, which nothing that a folder or a model says can change.
pub(crate) struct Scoped<'a> {
    pub(crate) idempotency_key: String,
    pub(crate) run: &'a str,
    pub(crate) conversation: Option<&'a str>,
    pub(crate) contact: Option<&'a str>,
}

impl Scoped<'_> {
    /// Sets the host's headers, over whatever stands there.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json.clone());
        headers.entry(ACCEPT).or_insert(json);
        let agent = HeaderValue::from_static(concat!("gesta/", env!("CARGO_PKG_VERSION")));
        headers.entry(USER_AGENT).or_insert(agent);
        let own = [
            ("idempotency-key", Some(self.idempotency_key.as_str())),
            ("gesta-run", Some(self.run)),
            ("gesta-conversation", self.conversation),
            ("gesta-contact", self.contact),
        ];
        for (name, value) in own {
            headers.remove(name);
            if let Some(value) = value {
                headers.insert(HeaderName::from_static(name), legal(value));
            }
        }
    }
}

/// A text as a header's value: whatever is no visible ASCII character, and `%` itself, is percent-encoded.
fn legal(text: &str) -> HeaderValue {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' => out.push_str("%25"),
            0x21..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::from_str(&out).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whether_a_secret_is_carried() {
        for (name, carried) in [
            ("Authorization", Carries::Secret),
            ("x-API-key", Carries::Secret),
            ("X-Shop-Token", Carries::PerhapsSecret),
            ("X-Kind", Carries::Plain),
            ("X-Keyboard", Carries::Plain),
        ] {
            assert_eq!(carries(name), carried, "{name}");
        }
    }

    #[test]
    fn the_hosts_own_headers_are_not_to_be_had() {
        assert_eq!(check("Authorization", "Bearer env:KEY"), Ok(()));
        for bad in ["Idempotency-Key", "gesta-run", "GESTA-CONTACT", "Host", "Content-Length", "a b", ""] {
            assert!(check(bad, "x").is_err(), "{bad}");
        }
        assert!(check("X-A", "a\r\nGesta-Run: b").is_err());
    }
}
