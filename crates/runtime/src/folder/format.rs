//! Texts of a certain form: what the schema's `format` means.

use super::duration::Length;
use super::secret;

/// The most digits of a port.
const PORT_DIGITS_MAX: usize = 5;

/// Checks a text against a format; unknown formats hold.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(format: &str, text: &str) -> Result<(), String> {
    match format {
        "length" => Length::parse(text).map(drop),
        "timezone" => timezone(text),
        "http_url" => http_url(text),
        "host_port" => host_port(text).map(drop),
        "secret" => secret_only(text),
        _ => Ok(()),
    }
}

fn timezone(name: &str) -> Result<(), String> {
    jiff::tz::TimeZone::get(name)
        .map(drop)
        .map_err(|_| format!("`{name}` is no time zone; write its IANA name, for instance \"Europe/Vienna\""))
}

fn http_url(text: &str) -> Result<(), String> {
    let url = url::Url::parse(text).map_err(|why| format!("`{text}` is no address: {why}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("`{text}` must begin with `https://` (or `http://`, for a host that `[network]` allows)"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user or a password in the address; send them in `headers`, as `env:NAME`".to_owned());
    }
    Ok(())
}

fn secret_only(text: &str) -> Result<(), String> {
    match secret::Template::parse(text) {
        Ok(template) if template.is_reference() => Ok(()),
        _ => Err("a secret does not stand in this file; write `env:NAME` and set NAME in the environment or in `.env`"
            .to_owned()),
    }
}

/// Reads `host:port`, `[v6]:port` too. The host is in the form in which addresses have it.
///
/// # Errors
/// It has another form.
pub(crate) fn host_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("`{text}` must be `host:port`, for instance \"localhost:8080\"");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    if port.len() > PORT_DIGITS_MAX || !port.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(wrong());
    }
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let host = url::Host::parse(host).map_err(|_| wrong())?;
    Ok((host.to_string(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_checked_as_tables_say() {
        let good = [
            ("timezone", "Europe/Vienna"),
            ("timezone", "UTC"),
            ("http_url", "http://localhost:1/x"),
            ("host_port", "LOCALHOST:8080"),
            ("host_port", "[::1]:80"),
            ("secret", "env:KEY"),
            ("other", "anything"),
        ];
        for (format, text) in good {
            assert_eq!(check(format, text), Ok(()), "{text}");
        }
        let bad = [
            ("timezone", "Vienna"),
            ("http_url", "ftp://x/"),
            ("http_url", "https://"),
            ("http_url", "https://me:pw@x/"),
            ("host_port", "localhost"),
            ("host_port", "a b:1"),
            ("host_port", "x:99999"),
            ("host_port", "::1"),
            ("secret", "sk-123"),
            ("secret", "Bearer env:KEY"),
        ];
        for (format, text) in bad {
            assert!(check(format, text).is_err(), "{text}");
        }
    }
}
