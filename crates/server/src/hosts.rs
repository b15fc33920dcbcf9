//! For whom a request was meant: a page that somebody visits must not reach a server behind his back, neither by another
//! name for this machine (DNS rebinding) nor from another origin.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri, header};

use crate::app::App;
use crate::problem::Problem;

/// By which names the server may be called.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    /// Only by `localhost` and this machine's own addresses, and by those of [`Self::names`]. For a server that listens
    /// on loopback.
    pub local: bool,
    /// Names without a port, for instance `desk.example.com`. Where there are none, and the server is not local, every
    /// name is good.
    pub names: Vec<String>,
    /// Origins of pages that may ask beside the server's own, for instance `https://app.example.com`.
    pub origins: Vec<String>,
}

impl Hosts {
    fn is_known(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let local = host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
        let named = self.names.iter().any(|name| name.eq_ignore_ascii_case(host));
        named || (self.local && local) || (!self.local && self.names.is_empty())
    }

    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let text = |name| headers.get(name).map(|it| it.to_str().unwrap_or_default().to_owned());
        let host = uri.authority().map(ToString::to_string).or_else(|| text(header::HOST)).unwrap_or_default();
        let authority: Option<Authority> = host.parse().ok();
        if headers.get_all(header::HOST).iter().count() > 1
            || !authority.as_ref().is_some_and(|it| self.is_known(it.host()))
        {
            let help = "ask for it by its own name; `gesta serve --host NAME` adds one";
            let detail = "this server is not called by the name in `Host`";
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "host_unknown", detail, help));
        }
        let Some(origin) = text(header::ORIGIN) else { return Ok(()) };
        let own = origin.split_once("://").is_some_and(|(_, of)| of.eq_ignore_ascii_case(&host));
        if own || self.origins.iter().any(|it| it.eq_ignore_ascii_case(&origin)) {
            return Ok(());
        }
        let help = "ask from a program, or add the page's origin with `gesta serve --origin ORIGIN`";
        let detail = "pages of another origin may not ask this server";
        Err(Problem::new(StatusCode::FORBIDDEN, "origin_unknown", detail, help))
    }
}

/// Refuses what was meant for another server, or comes from a page of another.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Result<Response, Problem> {
    // Whoever watches over processes calls them by their addresses, and learns nothing more than that they live.
    if !["/healthz", "/readyz"].contains(&request.uri().path()) {
        app.hosts.check(request.uri(), request.headers())?;
    }
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_is_taken_by_the_names_the_server_has_and_from_its_own_pages() {
        let local = Hosts { local: true, names: vec!["desk.test".to_owned()], ..Hosts::default() };
        let open = Hosts { origins: vec!["https://app.test".to_owned()], ..Hosts::default() };
        let named = Hosts { names: vec!["desk.test".to_owned()], ..Hosts::default() };
        let cases = [
            (&local, "127.0.0.1:7450", "", true),
            (&local, "127.9.9.9", "", true),
            (&local, "LOCALHOST:1", "", true),
            (&local, "[::1]:7450", "http://[::1]:7450", true),
            (&local, "desk.test", "", true),
            (&local, "evil.test", "", false),
            (&local, "localhost.evil.test", "", false),
            (&local, "127.0.0.1.evil.test", "", false),
            (&local, "localhost@evil.test", "", false),
            (&local, "", "", false),
            (&local, "localhost:7450", "http://localhost:7450", true),
            (&local, "localhost:7450", "http://localhost:80", false),
            (&local, "localhost:7450", "http://evil.test", false),
            (&local, "localhost:7450", "null", false),
            (&open, "any.test", "", true),
            (&open, "any.test", "https://app.test", true),
            (&open, "any.test", "https://app.test.evil.test", false),
            (&named, "desk.test:443", "", true),
            (&named, "localhost", "", false),
        ];
        for (hosts, host, origin, good) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
            if !origin.is_empty() {
                headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            assert_eq!(hosts.check(&Uri::from_static("/"), &headers).is_ok(), good, "{host} {origin}");
        }
    }
}
