//! Who asks. One function says it for every page; what changes anything also shows that it came from a page of ours.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use gesta_run::json::sha256_hex;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use url::form_urlencoded;

use super::door;
use super::failed::Failed;
use crate::app::App;
use crate::ask::Asker;
use crate::extract::body_of;
use crate::hosts::Arrived;
use crate::keys::{self, Scope};
use crate::problem::Problem;

/// The cookie that a page's forms are bound to.
const COOKIE: &str = "gesta_console";
/// Bytes of a form: a result that a person hands in may be long.
const FORM_BYTES_MAX: usize = 4 << 20;
/// Bytes of what somebody sends whom nobody knows yet: a key, and where to go with it.
const STRANGERS_FORM_BYTES_MAX: usize = 16 << 10;
/// Nothing from elsewhere, no script or style within a page, no page of ours within another's.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The cookie of somebody who has shown a key.
const SESSION: &str = "gesta_session";
/// What sessions are signed for.
const PURPOSE: &str = "console session";
/// How long a session lasts.
const SESSION_MS: i64 = 12 * 3_600_000;
/// What a key must be good for to see holds. Here as over the API, whole runs are for those who may read.
const SEES: [Scope; 2] = [Scope::Read, Scope::Answer];

/// Somebody who may use the console.
#[derive(Debug, Clone)]
pub(super) struct Visitor {
    /// Who; nobody yet at the door.
    asker: Option<Asker>,
    /// What forms carry, so that no other site can send one.
    pub(super) token: String,
    /// From which address, and whether over TLS, as far as a trusted proxy tells.
    pub(super) arrived: Arrived,
}

impl Visitor {
    /// Whoever it is must be known.
    pub(super) fn asker(&self) -> Result<&Asker, Problem> {
        self.asker.as_ref().ok_or_else(stranger)
    }

    /// Their key must be good for one of these, and for this agent.
    pub(super) fn may(&self, scopes: &[Scope], agent: &str) -> Result<(), Problem> {
        self.asker()?.may_with(scopes, agent)
    }

    /// Whether their key is good for this scope.
    pub(super) fn has(&self, scope: Scope) -> bool {
        self.asker.as_ref().is_some_and(|it| it.has(&[scope]))
    }

    /// Whether their key is for this agent.
    pub(super) fn knows(&self, agent: &str) -> bool {
        self.asker.as_ref().is_some_and(|it| it.knows(agent))
    }

    /// They must be allowed to look at holds at all.
    pub(super) fn may_look(&self) -> Result<(), Problem> {
        self.asker()?.may(&SEES)
    }

    /// They must be allowed to look at those of this agent.
    pub(super) fn may_see(&self, agent: &str) -> Result<(), Problem> {
        self.may(&SEES, agent)
    }

    /// Whether they may.
    pub(super) fn sees(&self, agent: &str) -> bool {
        self.may_see(agent).is_ok()
    }

    /// The one agent that their key is for, where there is only one.
    pub(super) fn only_agent(&self) -> Option<String> {
        self.asker.as_ref().and_then(Asker::only_agent)
    }

    /// Where they begin: at what waits, or where they may see nothing of it, at what they may try.
    pub(super) fn home(asker: &Asker) -> &'static str {
        if asker.has(&SEES) { "/console" } else { "/console/agents" }
    }

    /// Whether they came in with a key.
    pub(super) fn has_key(&self) -> bool {
        self.asker.as_ref().is_some_and(Asker::has_key)
    }
}

fn stranger() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "this console needs a key", "sign in with one")
}

/// Whether a path is the console's.
pub(crate) fn is_path(path: &str) -> bool {
    path == "/" || path == "/console" || path.starts_with("/console/")
}

/// Whoever has a session. The console's pages are shown to them as to somebody with their key.
pub(crate) async fn session(app: &App, headers: &HeaderMap, from: &str) -> Result<Option<Asker>, Problem> {
    let Some(sealed) = session_of(headers) else { return Ok(None) };
    let secrets = app.sealing().await?;
    let content = secrets.unseal(PURPOSE, sealed).ok().and_then(|it| it.split_once('.'));
    match content {
        Some((id, until)) if until.parse().is_ok_and(|until: i64| until > app.now().0) => {
            keys::of_id(app, id, from).await
        }
        _ => Ok(None),
    }
}

/// What a request shows of a session, whether it is good or not.
pub(crate) fn session_of(headers: &HeaderMap) -> Option<&str> {
    cookie_of(headers, SESSION)
}

/// The header that begins a session, or, without anybody, ends it.
pub(super) async fn session_header(app: &App, asker: Option<&Asker>, safe: bool) -> Result<HeaderValue, Problem> {
    let (value, age) = match asker {
        Some(asker) => {
            let content = format!("{}.{}", asker.id, app.now().0 + SESSION_MS);
            (app.sealing().await?.seal(PURPOSE, &content), SESSION_MS / 1000)
        }
        None => (String::new(), 0),
    };
    let safe = if safe { "; Secure" } else { "" };
    let text = format!("{SESSION}={value}; Path=/console; Max-Age={age}; HttpOnly; SameSite=Lax{safe}");
    text.parse().map_err(|_| Problem::internal("a session cannot be written"))
}

/// Says who asks: whoever the server's keys know, and what their forms carry.
fn who(asker: Option<Asker>, arrived: Arrived, headers: &HeaderMap) -> Result<(Visitor, Option<String>), Problem> {
    let (cookie, new) = match cookie(headers) {
        Some(cookie) => (cookie, None),
        None => {
            let cookie = random()?;
            (cookie.clone(), Some(cookie))
        }
    };
    Ok((Visitor { asker, token: sha256_hex(format!("form of {cookie}").as_bytes()), arrived }, new))
}

fn cookie_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(';'));
    all.filter_map(|it| it.trim().strip_prefix(name)?.strip_prefix('=')).next()
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let usable = |value: &&str| value.len() == 64 && value.bytes().all(|it| it.is_ascii_hexdigit());
    cookie_of(headers, COOKIE).filter(usable).map(str::to_owned)
}

fn random() -> Result<String, Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| Problem::internal("the system gives no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Stands before all pages.
pub(super) async fn guard(mut request: Request, next: Next) -> Response {
    let asker = request.extensions().get::<Asker>().cloned();
    let arrived = request.extensions().get::<Arrived>().cloned().unwrap_or_default();
    let is_safe = arrived.is_safe;
    let (mut response, new) = match who(asker, arrived, request.headers()) {
        Ok((visitor, new)) if visitor.asker.is_none() && !door::is_open(request.uri().path()) => {
            (door::closed(&request), new)
        }
        Ok((visitor, new)) => {
            request.extensions_mut().insert(visitor);
            (next.run(request).await, new)
        }
        Err(why) => (Failed(why).into_response(), None),
    };
    let headers = response.headers_mut();
    // Without a referrer browsers would send forms as if from nowhere, and they would be refused as foreign.
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What contacts said is for nobody's cache.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let safe = if is_safe { "; Secure" } else { "" };
    let set = new.and_then(|it| format!("{COOKIE}={it}; Path=/console; HttpOnly; SameSite=Lax{safe}").parse().ok());
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
    /// It came over TLS, as far as the browser or a trusted proxy knows.
    pub(super) is_safe: bool,
}

impl Posted {
    #[cfg(test)]
    pub(super) fn of(fields: Vec<(String, String)>) -> Self {
        Self { fields, by_script: false, is_safe: false }
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
        let by_tls = parts.headers.get(header::ORIGIN).is_some_and(|it| it.as_bytes().starts_with(b"https://"));
        let is_safe = by_tls || visitor.arrived.is_safe;
        let bytes_max = if visitor.asker.is_some() { FORM_BYTES_MAX } else { STRANGERS_FORM_BYTES_MAX };
        let body = body_of(body, bytes_max).await.map_err(Failed)?;
        let fields: Vec<(String, String)> = form_urlencoded::parse(&body).into_owned().collect();
        let posted = Self { fields, by_script, is_safe };
        if posted.get("token") == Some(visitor.token.as_str()) { Ok(posted) } else { Err(Failed(foreign())) }
    }
}

/// Whether the page's script asks, which wants a piece of a page and no whole one.
pub(super) fn is_by_script(headers: &HeaderMap) -> bool {
    headers.contains_key("x-gesta-part")
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
        let (first, new) = who(None, Arrived::default(), &headers(&[])).unwrap();
        let cookie = format!("a=b; {COOKIE}={}; c=d", new.unwrap());
        let (again, new) = who(None, Arrived::default(), &headers(&[("cookie", &cookie)])).unwrap();
        assert_eq!((again.token, new), (first.token.clone(), None));
        for other in ["gesta_console=", "gesta_console=abc", "xgesta_console=1", "gesta_console", ""] {
            let (it, new) = who(None, Arrived::default(), &headers(&[("cookie", other)])).unwrap();
            assert!(new.is_some() && it.token != first.token, "{other}");
        }
    }
}
