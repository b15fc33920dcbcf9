//! Who may do what: API keys, their scopes, and whoever asks with one.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gesta_run::Timestamp;
use gesta_run::json::sha256_hex;
use gesta_store::{ApiKey, TENANT_LOCAL};
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use std::sync::Arc;

use crate::app::App;
use crate::console;
use crate::problem::Problem;

/// What a key is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Beginning and cancelling runs, following them, and handing in results of the caller's own tools.
    Run,
    /// Reading runs, holds and conversations.
    Read,
    /// Reading and answering holds.
    Answer,
    /// Everything, the audit and erasing among it.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Run, Self::Read, Self::Answer, Self::Admin];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Read => "read",
            Self::Answer => "answer",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let words = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL.into_iter().find(|it| it.as_str() == word).ok_or_else(|| format!("a scope is one of: {}", words()))
    }
}

/// The beginning of every key, by which scanners find one that was lost.
const PREFIX: &str = "gesta_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// Makes a key. Gives the text that opens the server, which is kept nowhere, and what is to be stored.
///
/// # Errors
/// The system has no randomness.
pub fn new_key(
    name: &str,
    scopes: &[Scope],
    agents: Option<Vec<String>>,
    at: Timestamp,
) -> Result<(String, ApiKey), String> {
    let mut bytes = [0_u8; ID_BYTES + SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|why| format!("the system has no randomness: {why}"))?;
    let (id, secret) = bytes.split_at(ID_BYTES);
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let secret = URL_SAFE_NO_PAD.encode(secret);
    let key = ApiKey {
        id: id.clone(),
        name: name.to_owned(),
        hash: sha256_hex(secret.as_bytes()),
        scopes: scopes.iter().map(ToString::to_string).collect(),
        agents,
        tenant: TENANT_LOCAL.to_owned(),
        link_to: None,
        expires_at: None,
        created_at: at,
        revoked_at: None,
    };
    Ok((format!("{PREFIX}{id}_{secret}"), key))
}

/// Whether two texts are equal, in a time that says nothing about where they differ.
fn are_equal(one: &str, other: &str) -> bool {
    let differs = one.bytes().zip(other.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}

/// Whoever asks a server that needs no key.
const LOCAL: &str = "local";

/// Whoever asks.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    /// The id of the key, or `local` where the server needs none.
    pub(crate) id: String,
    /// From which address.
    pub(crate) from: String,
    scopes: Vec<Scope>,
    agents: Option<Vec<String>>,
}

impl Asker {
    /// Whether it has a key.
    pub(crate) fn has_key(&self) -> bool {
        self.id != LOCAL
    }

    /// Whether its key is good for one of these.
    pub(crate) fn has(&self, scopes: &[Scope]) -> bool {
        self.scopes.iter().any(|it| *it == Scope::Admin || scopes.contains(it))
    }

    /// Its key must be good for one of these.
    pub(crate) fn may(&self, scopes: &[Scope]) -> Result<(), Problem> {
        if self.has(scopes) {
            return Ok(());
        }
        let words: Vec<&str> = scopes.iter().map(|it| it.as_str()).chain(["admin"]).collect();
        let detail = format!("this needs a key with the scope {}", words.join(" or "));
        Err(Problem::new(StatusCode::FORBIDDEN, "not_permitted", detail, "make one with `gesta keys new --scope …`"))
    }

    /// The same, for this agent.
    pub(crate) fn may_with(&self, scopes: &[Scope], agent: &str) -> Result<(), Problem> {
        self.may(scopes)?;
        if self.knows(agent) {
            return Ok(());
        }
        let detail = format!("this key is not for the agent `{agent}`");
        Err(Problem::new(StatusCode::FORBIDDEN, "not_permitted", detail, "use a key that is"))
    }

    /// The one agent its key is for, where there is only one.
    pub(crate) fn only_agent(&self) -> Option<String> {
        self.agents.as_ref().filter(|agents| agents.len() == 1).and_then(|agents| agents.first().cloned())
    }

    /// Whether its key is for this agent.
    pub(crate) fn knows(&self, agent: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.iter().any(|it| it == agent))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| Problem::internal("nobody asked who asks"))
    }
}

/// Paths that anybody may ask for.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];

/// Finds out who asks, and refuses strangers.
pub(crate) async fn ask(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Result<Response, Problem> {
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|it| it.0.ip().to_string());
    let from = from.unwrap_or_default();
    let asker = if app.needs_keys {
        if OPEN.contains(&request.uri().path()) {
            return Ok(next.run(request).await);
        }
        let is_console =
            console::is_path(request.uri().path()) && !request.headers().contains_key(header::AUTHORIZATION);
        if is_console {
            match console::session(&app, request.headers(), &from).await? {
                Some(asker) => asker,
                // The console shows strangers its door, and nothing else.
                None => return Ok(next.run(request).await),
            }
        } else {
            by_key(&app, request.headers(), from).await?
        }
    } else {
        Asker { id: LOCAL.to_owned(), from, scopes: vec![Scope::Admin], agents: None }
    };
    app.rates.check(&asker)?;
    request.extensions_mut().insert(asker);
    Ok(next.run(request).await)
}

async fn by_key(app: &App, headers: &HeaderMap, from: String) -> Result<Asker, Problem> {
    let Some(given) = headers.get(header::AUTHORIZATION) else { return Err(stranger("this server needs a key")) };
    let given = given.to_str().ok().and_then(|it| it.split_once(' '));
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, key)| key.trim());
    of_key(app, given.unwrap_or_default(), from).await
}

fn stranger(detail: &str) -> Problem {
    let help = "send `Authorization: Bearer gesta_…`; `gesta keys new` makes a key";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail, help)
}

/// Whoever has this key.
pub(crate) async fn of_key(app: &App, key: &str, from: String) -> Result<Asker, Problem> {
    let parts = key.strip_prefix(PREFIX).and_then(|key| key.split_once('_'));
    let Some((id, secret)) = parts else { return Err(stranger("the key has not the form of one")) };
    let known = app.front.key(id).await?;
    // One that is not known takes as long as one that is.
    let hash = known.as_ref().map_or("", |key| key.hash.as_str());
    let fits = are_equal(&sha256_hex(secret.as_bytes()), hash);
    match known {
        Some(key) if fits && key.revoked_at.is_none() => Ok(asker(key, from)),
        _ => {
            tracing::warn!(key = id.get(..2 * ID_BYTES), %from, security = true, "a key that is none was used");
            Err(stranger("the key is not known, or was taken back"))
        }
    }
}

/// Whoever showed the key of this id before, as long as it was not taken back.
pub(crate) async fn of_id(app: &App, id: &str, from: &str) -> Result<Option<Asker>, Problem> {
    let known = app.front.key(id).await?.filter(|key| key.revoked_at.is_none());
    Ok(known.map(|key| asker(key, from.to_owned())))
}

fn asker(key: ApiKey, from: String) -> Asker {
    let scopes = key.scopes.iter().filter_map(|word| word.parse().ok()).collect();
    Asker { id: key.id, from, scopes, agents: key.agents }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_once_and_only_its_hash_is_kept() {
        let (shown, key) = new_key("desk", &[Scope::Run], None, Timestamp(1)).unwrap();
        let (id, secret) = shown.strip_prefix(PREFIX).unwrap().split_once('_').unwrap();
        assert_eq!((id, sha256_hex(secret.as_bytes())), (key.id.as_str(), key.hash.clone()));
        assert!(!format!("{key:?}").contains(secret) && secret.len() == 43);
        assert_ne!(new_key("desk", &[Scope::Run], None, Timestamp(1)).unwrap().0, shown);
    }

    #[test]
    fn equal_is_what_is_equal() {
        for (one, other, equal) in
            [("", "", true), ("ab", "ab", true), ("ab", "ac", false), ("ab", "", false), ("a", "ab", false)]
        {
            assert_eq!(are_equal(one, other), equal, "{one} {other}");
        }
    }
}
