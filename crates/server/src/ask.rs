//! Whoever asks: by a key, by a session of the console, or without either where the server has no keys.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use gesta_run::json::sha256_hex;
use gesta_store::{ApiKey, TENANT_LOCAL};
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};

use crate::apps::Apps;
use crate::console;
use crate::hosts::Arrived;
use crate::keys::{Scope, of_key, stranger};
use crate::problem::Problem;
use crate::requests;

/// Whoever asks a server that needs no key.
const LOCAL: &str = "local";

/// Whoever asks.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    /// The id of the key, or `local` where the server needs none.
    pub(crate) id: String,
    /// From which address.
    pub(crate) from: String,
    /// Whose rows they reach.
    pub(crate) tenant: String,
    scopes: Vec<Scope>,
    agents: Option<Vec<String>>,
}

impl Asker {
    /// Whoever has this key.
    pub(crate) fn of(key: ApiKey, from: String) -> Self {
        let scopes = key.scopes.iter().filter_map(|word| word.parse().ok()).collect();
        Self { id: key.id, from, tenant: key.tenant, scopes, agents: key.agents }
    }

    fn local(from: String) -> Self {
        let (id, tenant) = (LOCAL.to_owned(), TENANT_LOCAL.to_owned());
        Self { id, from, tenant, scopes: vec![Scope::Admin], agents: None }
    }

    /// Whether it has a key.
    pub(crate) fn has_key(&self) -> bool {
        self.id != LOCAL
    }

    /// Whether its key is good for one of these.
    pub(crate) fn has(&self, scopes: &[Scope]) -> bool {
        self.scopes.iter().any(|it| *it == Scope::Admin || scopes.contains(it))
    }

    /// Whether its key is good for anything that changes something.
    pub(crate) fn writes(&self) -> bool {
        self.has(&[Scope::Run, Scope::Answer])
    }

    /// Its key must be good for one of these.
    pub(crate) fn may(&self, scopes: &[Scope]) -> Result<(), Problem> {
        if self.has(scopes) {
            return Ok(());
        }
        let mut words: Vec<&str> = scopes.iter().map(|it| it.as_str()).collect();
        if !words.contains(&Scope::Admin.as_str()) {
            words.push(Scope::Admin.as_str());
        }
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

    /// Its key must be good for all agents of the server's own tenant: what it asks for is about all of the server.
    pub(crate) fn may_with_all(&self, scopes: &[Scope]) -> Result<(), Problem> {
        self.may(scopes)?;
        if self.agents.is_none() && self.tenant == TENANT_LOCAL {
            return Ok(());
        }
        let detail = "this is about all agents and tenants of the server, and the key is for some";
        Err(Problem::new(StatusCode::FORBIDDEN, "not_permitted", detail, "use a key without `--agent` and `--tenant`"))
    }

    /// The one agent its key is for, where there is only one.
    pub(crate) fn only_agent(&self) -> Option<String> {
        self.agents.as_ref().filter(|agents| agents.len() == 1).and_then(|agents| agents.first().cloned())
    }

    /// The agents its key is for, where it is not for all.
    pub(crate) fn agents(&self) -> Option<&[String]> {
        self.agents.as_deref()
    }

    /// Whether its key is for this agent.
    pub(crate) fn knows(&self, agent: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.iter().any(|it| it == agent))
    }

    /// Whether its key is for all of these agents; for all there are, where there is no list.
    pub(crate) fn knows_all(&self, agents: Option<&[String]>) -> bool {
        match agents {
            Some(agents) => agents.iter().all(|agent| self.knows(agent)),
            None => self.agents.is_none(),
        }
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

/// Finds out who asks, and refuses strangers. Nothing of a body is read before that.
pub(crate) async fn ask(State(apps): State<Arc<Apps>>, mut request: Request, next: Next) -> Result<Response, Problem> {
    let from = request.extensions().get::<Arrived>().map(|it| it.from.clone()).unwrap_or_default();
    let asker = match apps.needs_keys().await? {
        true => known(&apps, request.uri().path(), request.headers(), &from).await?,
        false => Some(Asker::local(from)),
    };
    let app = match &asker {
        Some(asker) => {
            apps.rates.check(asker)?;
            apps.of(&asker.tenant).await?
        }
        None => apps.first.clone(),
    };
    request.extensions_mut().insert(app);
    if let Some(asker) = asker {
        requests::has_key(&asker.id);
        request.extensions_mut().insert(asker);
    }
    Ok(next.run(request).await)
}

/// Whoever asks a server that needs keys. Nobody, where they ask for what is for everybody: the server's health and
/// description, and the door of the console, which shows itself and nothing else.
async fn known(apps: &Apps, path: &str, headers: &HeaderMap, from: &str) -> Result<Option<Asker>, Problem> {
    if path == "/healthz" {
        return Ok(None);
    }
    let is_console = console::is_path(path) && !headers.contains_key(header::AUTHORIZATION);
    let shown = if is_console { console::session_of(headers) } else { bearer(headers) };
    let shown = shown.map(|it| sha256_hex(it.as_bytes()));
    apps.rates.check_stranger(from, shown.as_ref())?;
    if OPEN.contains(&path) {
        return Ok(None);
    }
    let found = if is_console {
        console::session(&apps.first, headers, from).await
    } else {
        by_key(apps, headers, from).await.map(Some)
    };
    if let Some(shown) = shown {
        apps.rates.looked_at(shown, matches!(found, Ok(Some(_))));
    }
    found
}

async fn by_key(apps: &Apps, headers: &HeaderMap, from: &str) -> Result<Asker, Problem> {
    if !headers.contains_key(header::AUTHORIZATION) {
        return Err(stranger("this server needs a key"));
    }
    of_key(&apps.first, bearer(headers).unwrap_or_default(), from.to_owned()).await
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ');
    given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, key)| key.trim())
}
