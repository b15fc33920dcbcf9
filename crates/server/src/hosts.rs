//! For whom a request was meant: a page that somebody visits must not reach a server behind his back, neither by another
//! name for this machine (DNS rebinding) nor from another origin.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};

use crate::apps::Apps;
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
    /// Addresses of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed. From anybody else these headers
    /// mean nothing.
    pub proxies: Vec<IpAddr>,
}

/// How a request came here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// From which address: that of the client, as far as trusted proxies tell.
    pub(crate) from: String,
    /// A trusted proxy says that it came to it over TLS.
    pub(crate) is_safe: bool,
}

impl Hosts {
    fn is_known(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let local = host.eq_ignore_ascii_case("localhost")
            || bare.parse::<IpAddr>().is_ok_and(|it| it.to_canonical().is_loopback());
        let named = self.names.iter().any(|name| name.eq_ignore_ascii_case(host));
        named || (self.local && local) || (!self.local && self.names.is_empty())
    }

    fn check(&self, writes: bool, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
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
        let is_good = match text(header::ORIGIN) {
            Some(origin) => is_own(&origin, &host) || self.origins.iter().any(|it| it.eq_ignore_ascii_case(&origin)),
            // Programs send none. A browser that sends none says all the same when a page of elsewhere changes something.
            None => !(writes && headers.get("sec-fetch-site").is_some_and(|it| it == "cross-site")),
        };
        if is_good {
            return Ok(());
        }
        let help = "ask from a program, or add the page's origin with `gesta serve --origin ORIGIN`";
        let detail = "pages of another origin may not ask this server";
        Err(Problem::new(StatusCode::FORBIDDEN, "origin_unknown", detail, help))
    }
}

impl Hosts {
    fn arrived(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Arrived {
        let Some(peer) = peer.map(|it| it.to_canonical()) else { return Arrived::default() };
        let is_trusted = |it: &IpAddr| self.proxies.iter().any(|proxy| proxy.to_canonical() == *it);
        if !is_trusted(&peer) {
            return Arrived { from: peer.to_string(), is_safe: false };
        }
        let all = |name| headers.get_all(name).iter().rev().filter_map(|it: &HeaderValue| it.to_str().ok());
        let hops = all("x-forwarded-for").flat_map(|it| it.rsplit(','));
        // The last address that none of our proxies has: what stands before it, anybody may have written.
        let mut from = peer;
        for hop in hops {
            let Ok(hop) = hop.trim().parse::<IpAddr>() else { break };
            from = hop.to_canonical();
            if !is_trusted(&from) {
                break;
            }
        }
        let proto = all("x-forwarded-proto").flat_map(|it| it.rsplit(',')).next();
        Arrived { from: from.to_string(), is_safe: proto.is_some_and(|it| it.trim().eq_ignore_ascii_case("https")) }
    }
}

/// Whether a page of this origin is one of the server's own. Ports that a scheme has by itself may be left out.
fn is_own(origin: &str, host: &str) -> bool {
    let Some((scheme, of)) = origin.split_once("://") else { return false };
    let port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    let bare = |it: &str| it.strip_suffix(port).unwrap_or(it).to_ascii_lowercase();
    bare(of) == bare(host)
}

/// Refuses what was meant for another server, or comes from a page of another; says how the rest came here.
pub(crate) async fn check(
    State(apps): State<Arc<Apps>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    // Whoever watches over processes calls them by their addresses, and learns nothing more than that they live.
    if !["/healthz", "/readyz"].contains(&request.uri().path()) {
        let writes = !request.method().is_safe();
        apps.hosts.check(writes, request.uri(), request.headers())?;
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|it| it.0.ip());
    let arrived = apps.hosts.arrived(peer, request.headers());
    request.extensions_mut().insert(arrived);
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
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
            (&named, "desk.test", "https://desk.test:443", true),
            (&named, "desk.test:443", "https://desk.test", true),
            (&named, "desk.test:443", "http://desk.test", false),
            (&named, "desk.test", "https://desk.test:8443", false),
            (&named, "desk.test", "ftp://desk.test", false),
            (&local, "[::1]", "http://[::1]:80", true),
            (&local, "[::1]:7450", "http://[::1]:7451", false),
            (&local, "[::1]:7450", "http://localhost:7450", false),
            (&local, "[::ffff:127.0.0.1]:7450", "", true),
            (&local, "[::2]:7450", "", false),
            (&local, "127.0.0.1:7450", "http://127.0.0.1", false),
            (&local, "0.0.0.0:7450", "", false),
        ];
        for (hosts, host, origin, good) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
            if !origin.is_empty() {
                headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            for writes in [true, false] {
                assert_eq!(hosts.check(writes, &Uri::from_static("/"), &headers).is_ok(), good, "{host} {origin}");
            }
        }
    }

    #[test]
    fn a_browser_that_hides_where_a_form_comes_from_still_says_that_it_is_elsewhere() {
        let hosts = Hosts { local: true, ..Hosts::default() };
        for (site, writes, good) in [
            ("cross-site", true, false),
            ("cross-site", false, true),
            ("same-origin", true, true),
            ("none", true, true),
        ] {
            let headers = [(header::HOST, "localhost"), (http::HeaderName::from_static("sec-fetch-site"), site)];
            let headers = headers.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect();
            assert_eq!(hosts.check(writes, &Uri::from_static("/"), &headers).is_ok(), good, "{site} {writes}");
        }
    }

    #[test]
    fn what_a_proxy_says_of_a_client_is_believed_of_our_own_alone() {
        let ours = Hosts { proxies: vec!["10.0.0.1".parse().unwrap(), "::1".parse().unwrap()], ..Hosts::default() };
        let nobodys = Hosts::default();
        // From whom it comes, what the headers say, and what is made of it.
        for (hosts, peer, forwarded, proto, from, is_safe) in [
            (&ours, "10.0.0.1", "203.0.113.5", "https", "203.0.113.5", true),
            (&ours, "::ffff:10.0.0.1", "203.0.113.5", "http", "203.0.113.5", false),
            (&ours, "::1", "6.6.6.6, 203.0.113.5, 10.0.0.1", "http, https", "203.0.113.5", true),
            (&ours, "10.0.0.1", "6.6.6.6, nonsense", "", "10.0.0.1", false),
            (&ours, "10.0.0.1", "", "https", "10.0.0.1", true),
            (&ours, "10.0.0.2", "203.0.113.5", "https", "10.0.0.2", false),
            (&nobodys, "127.0.0.1", "203.0.113.5", "https", "127.0.0.1", false),
        ] {
            let headers = [("x-forwarded-for", forwarded), ("x-forwarded-proto", proto)];
            let headers = headers
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect();
            let arrived = hosts.arrived(Some(peer.parse().unwrap()), &headers);
            assert_eq!(arrived, Arrived { from: from.to_owned(), is_safe }, "{peer} {forwarded} {proto}");
        }
    }
}
