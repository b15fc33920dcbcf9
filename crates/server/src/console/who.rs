//! Who asks. One function says it for every page; what changes anything also shows that it came from a page of ours.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use gesta_run::json::sha256_hex;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use url::form_urlencoded;

use super::failed::Failed;
use crate::extract::body_of;
use crate::problem::Problem;

/// The cookie that a page's forms are bound to.
const COOKIE: &str = "gesta_console";
/// Bytes of a form: a result that a person hands in may be long.
const FORM_BYTES_MAX: usize = 4 << 20;
/// Nothing from elsewhere, no script or style within a page, no page of ours within another's.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Somebody who may use the console.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    /// What forms carry, so that no other site can send one.
    pub(super) token: String,
}

/// Says who asks, or refuses. Without keys the server is reached from its own machine alone, and whoever does is let in.
fn who(headers: &HeaderMap) -> Result<(Visitor, Option<String>), Problem> {
    let (cookie, new) = match cookie(headers) {
        Some(cookie) => (cookie, None),
        None => {
            let cookie = random()?;
            (cookie.clone(), Some(cookie))
        }
    };
    Ok((Visitor { token: sha256_hex(format!("form of {cookie}").as_bytes()) }, new))
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(';'));
    let mut ours = all.filter_map(|it| it.trim().strip_prefix(COOKIE)?.strip_prefix('='));
    ours.find(|value| value.len() == 64 && value.bytes().all(|it| it.is_ascii_hexdigit())).map(str::to_owned)
}

fn random() -> Result<String, Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| Problem::internal("the system gives no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Stands before all pages.
pub(super) async fn guard(mut request: Request, next: Next) -> Response {
    let (mut response, new) = match who(request.headers()) {
        Ok((visitor, new)) => {
            request.extensions_mut().insert(visitor);
            (next.run(request).await, new)
        }
        Err(why) => (Failed(why).into_response(), None),
    };
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What contacts said is for nobody's cache.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let set = new.and_then(|it| format!("{COOKIE}={it}; Path=/console; HttpOnly; SameSite=Lax").parse().ok());
    if let Some(set) = set {
        headers.append(header::SET_COOKIE, set);
    }
    response
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failed> {
        let known = parts.extensions.get::<Self>().cloned();
        known.ok_or_else(|| Failed(Problem::internal("a page was asked for past its guard")))
    }
}

/// A form that came from a page of ours. There is no other way to read one.
pub(super) struct Posted {
    fields: Vec<(String, String)>,
    /// The page's script sent it, and puts what is answered into the page.
    pub(super) by_script: bool,
}

impl Posted {
    #[cfg(test)]
    pub(super) fn of(fields: Vec<(String, String)>) -> Self {
        Self { fields, by_script: false }
    }

    /// A field.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A field that must be there.
    pub(super) fn need(&self, name: &str) -> Result<&str, Problem> {
        let missing = || Problem::bad("form_invalid", format!("the form has no `{name}`"), "load the page again");
        self.get(name).ok_or_else(missing)
    }
}

impl<S: Send + Sync> FromRequest<S> for Posted {
    type Rejection = Failed;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failed> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, state).await?;
        let by_script = is_by_script(&parts.headers);
        if !is_same_origin(&parts.headers) {
            return Err(Failed(foreign()));
        }
        let body = body_of(Request::from_parts(parts, body), FORM_BYTES_MAX).await.map_err(Failed)?;
        let fields: Vec<(String, String)> = form_urlencoded::parse(&body).into_owned().collect();
        let posted = Self { fields, by_script };
        if posted.get("token") == Some(visitor.token.as_str()) { Ok(posted) } else { Err(Failed(foreign())) }
    }
}

/// Whether the page's script asks, which wants a piece of a page and no whole one.
pub(super) fn is_by_script(headers: &HeaderMap) -> bool {
    headers.contains_key("x-gesta-part")
}

/// A browser says where a form comes from; one that does not is left to the token.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN).and_then(|it| it.to_str().ok()) else { return true };
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    origin.split_once("://").map(|(_, rest)| rest) == host
}

fn foreign() -> Problem {
    let detail = "the form did not come from a page of this console, or the page is too old";
    Problem::new(StatusCode::FORBIDDEN, "form_foreign", detail, "load the page again, then send it once more")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_visitor_is_known_again_by_a_cookie_of_ours_alone() {
        let (first, new) = who(&headers(&[])).unwrap();
        let cookie = format!("a=b; {COOKIE}={}; c=d", new.unwrap());
        let (again, new) = who(&headers(&[("cookie", &cookie)])).unwrap();
        assert_eq!((again.token, new), (first.token.clone(), None));
        for other in ["gesta_console=", "gesta_console=abc", "xgesta_console=1", "gesta_console", ""] {
            let (it, new) = who(&headers(&[("cookie", other)])).unwrap();
            assert!(new.is_some() && it.token != first.token, "{other}");
        }
    }

    #[test]
    fn a_form_comes_from_where_it_goes() {
        for (origin, host, fine) in [
            ("http://127.0.0.1:7450", "127.0.0.1:7450", true),
            ("https://desk.example", "desk.example", true),
            ("http://evil.example", "127.0.0.1:7450", false),
            ("http://127.0.0.1:7451", "127.0.0.1:7450", false),
            ("null", "127.0.0.1:7450", false),
        ] {
            assert_eq!(is_same_origin(&headers(&[("origin", origin), ("host", host)])), fine, "{origin}");
        }
        assert!(is_same_origin(&headers(&[("host", "127.0.0.1:7450")])), "no browser, or an old one");
    }
}
