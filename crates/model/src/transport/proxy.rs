//! Proxies from the environment: which one stands between us and a host, and the way through it.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::LookupRef;

/// The longest answer of a proxy to CONNECT, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Which proxy stands between us and a host.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    matcher: Option<Matcher>,
    /// A variable that names no proxy we could use. Nothing is sent then: whoever wanted a proxy did not want it left out.
    wrong: Option<&'static str>,
}

impl Proxies {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Reads `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in small or capital letters. `HTTP_PROXY` is
    /// left out in a CGI process, where a client could set it by a header.
    pub(crate) fn from_lookup(lookup: LookupRef<'_>) -> Self {
        let get = |small: &str, capital: &str| lookup(small).or_else(|| lookup(capital)).unwrap_or_default();
        let in_cgi = lookup("REQUEST_METHOD").is_some();
        let http = if in_cgi { lookup("http_proxy").unwrap_or_default() } else { get("http_proxy", "HTTP_PROXY") };
        let https = get("https_proxy", "HTTPS_PROXY");
        let all = get("all_proxy", "ALL_PROXY");
        if http.is_empty() && https.is_empty() && all.is_empty() {
            return Self::none();
        }
        let named = [("HTTP_PROXY", &http), ("HTTPS_PROXY", &https), ("ALL_PROXY", &all)];
        let wrong = named.into_iter().find(|(_, address)| !address.is_empty() && !is_address(address));
        let wrong = wrong.map(|(name, _)| name);
        let no = get("no_proxy", "NO_PROXY");
        Self { matcher: Some(Matcher::builder().all(all).http(http).https(https).no(no).build()), wrong }
    }

    /// The variable, in capital letters, that holds no address of a proxy.
    pub(crate) fn wrong(&self) -> Option<&'static str> {
        self.wrong
    }

    /// # Errors
    /// The variable that holds no address.
    pub(crate) fn of(&self, uri: &Uri) -> Result<Option<Intercept>, &'static str> {
        match self.wrong {
            Some(name) => Err(name),
            None => Ok(self.matcher.as_ref().and_then(|matcher| matcher.intercept(uri))),
        }
    }
}

/// What every proxy's address must be, with or without `http://` before it.
fn is_address(text: &str) -> bool {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let Ok(uri) = whole.parse::<Uri>() else { return false };
    let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    // A port that is none is left out by the parser, and another would be taken in its place.
    let port = place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map(|(_, port)| port);
    let host = uri.host().is_some_and(|host| !host.is_empty());
    let known = matches!(uri.scheme_str(), Some("http" | "https" | "socks4" | "socks4a" | "socks5" | "socks5h"));
    known && host && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// Asks the proxy for a tunnel.
///
/// # Errors
/// A sentence that says what the proxy answered.
pub(crate) async fn connect<T>(stream: &mut T, target: &str, auth: Option<&str>) -> Result<(), String>
where
    T: AsyncReadExt + AsyncWriteExt + Unpin,
{
    let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(auth) = auth {
        head.push_str(&format!("Proxy-Authorization: {auth}\r\n"));
    }
    head.push_str("\r\n");
    let broke = |why: io::Error| format!("the connection broke: {why}");
    stream.write_all(head.as_bytes()).await.map_err(broke)?;
    stream.flush().await.map_err(broke)?;
    let mut answer = Vec::with_capacity(256);
    // Byte by byte: what follows the head belongs to the tunnel.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() > HEAD_BYTES_MAX {
            return Err("its answer is too long".to_owned());
        }
        match stream.read_u8().await {
            Ok(byte) => answer.push(byte),
            Err(why) => return Err(broke(why)),
        }
    }
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    match line.split(' ').nth(1) {
        Some(status) if status.len() == 3 && status.starts_with('2') => Ok(()),
        Some("407") => Err("it wants a name and a password in its address".to_owned()),
        Some(status) => Err(format!("it answered {}", status.escape_default())),
        None => Err("it speaks no HTTP".to_owned()),
    }
}

/// The header that a name and password in the proxy's address lead to.
pub(crate) fn auth_of(proxy: &Intercept) -> Option<String> {
    if let Some(basic) = proxy.basic_auth() {
        return basic.to_str().ok().map(str::to_owned);
    }
    proxy.raw_auth().map(|(user, password)| format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_proxy_keeps_everything_back() {
        for text in
            ["::bad", "not a url", "htp://127.0.0.1:1", "http://", "http://127.0.0.1:99999", "127.0.0.1:0", ":80"]
        {
            let lookup = |name: &str| (name == "https_proxy").then(|| text.to_owned());
            let proxies = Proxies::from_lookup(&lookup);
            let way = proxies.of(&Uri::from_static("http://model.invalid/"));
            assert_eq!(way.err(), Some("HTTPS_PROXY"), "{text}");
        }
    }

    #[test]
    fn what_names_a_proxy_is_used() {
        for text in
            ["http://127.0.0.1:8080", "127.0.0.1:8080", "http://me:p:w@proxy", "http://[::1]:3128", "http://[::1]"]
        {
            let lookup = |name: &str| (name == "HTTP_PROXY").then(|| text.to_owned());
            let proxies = Proxies::from_lookup(&lookup);
            assert!(proxies.of(&Uri::from_static("http://model.invalid/")).unwrap().is_some(), "{text}");
        }
    }
}
