//! Keys: list, make, take back. No key makes, sees or takes back one that may do more than itself.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use gesta_run::Timestamp;
use gesta_store::ApiKey;
use hmac::{Hmac, KeyInit, Mac};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use sha2::Sha512;
use utoipa::ToSchema;

use super::json;
use crate::app::App;
use crate::apps::{Apps, Mine};
use crate::ask::Asker;
use crate::extract::{Json, Named};
use crate::keys::{NewKey, Scope, key_of};
use crate::problem::{Problem, ProblemBody};
use crate::repeat::{ItsRun, NotKept};
use crate::wire::Page;

/// How many agents a key may name.
const AGENTS_MAX: usize = 100;

#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ScopeWord {
    Run,
    Read,
    Answer,
    Admin,
}

impl From<ScopeWord> for Scope {
    fn from(word: ScopeWord) -> Self {
        match word {
            ScopeWord::Run => Self::Run,
            ScopeWord::Read => Self::Read,
            ScopeWord::Answer => Self::Answer,
            ScopeWord::Admin => Self::Admin,
        }
    }
}

/// A key, without what opens the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyBody {
    /// Its id: who did something, in the audit.
    id: String,
    /// What somebody called it.
    name: String,
    /// What it is good for.
    #[schema(value_type = Vec<ScopeWord>)]
    scopes: Vec<String>,
    /// For which agents; for all where it is null.
    agents: Option<Vec<String>>,
    /// When it was made, in milliseconds since 1970.
    #[schema(value_type = i64)]
    created_at: Timestamp,
    /// When it was taken back, where it was.
    #[schema(value_type = Option<i64>)]
    revoked_at: Option<Timestamp>,
}

impl From<ApiKey> for KeyBody {
    fn from(key: ApiKey) -> Self {
        let ApiKey { id, name, scopes, agents, created_at, revoked_at, .. } = key;
        Self { id, name, scopes, agents, created_at, revoked_at }
    }
}

/// A key that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewKeyPage {
    #[serde(flatten)]
    #[schema(inline)]
    kept: KeyBody,
    /// What opens the server: `Authorization: Bearer …`. It is shown here and never again.
    key: String,
}

/// What a key is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKeyBody {
    /// What it is called.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// What it is good for.
    #[schema(min_items = 1, max_items = 4)]
    scopes: Vec<ScopeWord>,
    /// For which agents; without them for all that the key is for with which it is made.
    #[serde(default)]
    #[schema(max_items = 100)]
    agents: Option<Vec<String>>,
}

/// The keys of whoever asks, those that may do no more than itself.
async fn own(app: &App, asker: &Asker) -> Result<Vec<ApiKey>, Problem> {
    let is_own =
        |key: &ApiKey| key.link_to.is_none() && key.tenant == asker.tenant && asker.knows_all(key.agents.as_deref());
    Ok(app.ring.keys().await?.into_iter().filter(is_own).collect())
}

/// List the keys, the oldest first; those that were taken back too.
#[utoipa::path(
    get, path = "/v1/keys", operation_id = "list_keys", tag = "keys",
    responses(
        (status = 200, description = "All of them", body = Page<KeyBody>),
        (status = "default", description = "Not listed", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(Mine(app): Mine, asker: Asker) -> Result<Response, Problem> {
    asker.may(&[Scope::Admin])?;
    let items: Vec<KeyBody> = own(&app, &asker).await?.into_iter().map(KeyBody::from).collect();
    Ok(json(&Page { items, next: None }))
}

/// Make a key, and show it this once.
///
/// It belongs to the tenant of the key with which it is made, and may do no more than that: a scope or an agent that the
/// one has not, the other does not get.
#[utoipa::path(
    post, path = "/v1/keys", operation_id = "make_key", tag = "keys",
    request_body = NewKeyBody,
    responses(
        (status = 201, description = "The key", body = NewKeyPage),
        (status = "default", description = "None was made", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn make(
    Mine(app): Mine,
    asker: Asker,
    its: Option<Extension<ItsRun>>,
    State(apps): State<Arc<Apps>>,
    request: Request,
) -> Result<Response, Problem> {
    asker.may(&[Scope::Admin])?;
    let Json(body) = Json::<NewKeyBody>::from_request(request, &apps).await?;
    let mut scopes: Vec<Scope> = body.scopes.into_iter().map(Scope::from).collect();
    scopes.sort_unstable();
    scopes.dedup();
    if let Some(more) = scopes.iter().find(|scope| !asker.has(&[**scope])) {
        return Err(too_much(format!("this key is not good for `{more}` and makes none that is")));
    }
    let agents = body.agents.or_else(|| asker.agents().map(<[String]>::to_vec));
    check(&app, &asker, agents.as_deref())?;
    let new = NewKey { name: &body.name, scopes: &scopes, agents, tenant: Some(&asker.tenant), at: app.now() };
    let dice = match its {
        Some(Extension(ItsRun(run))) => Some(dice(&app, run.as_str()).await?),
        None => None,
    };
    let (shown, key) = key_of(new, dice).map_err(|why| Problem::bad("key_invalid", why, "mend the request"))?;
    let kept = match app.ring.key(&key.id).await? {
        // The same request made it before.
        Some(kept) if kept.hash == key.hash => kept,
        Some(_) => return Err(again()),
        None => {
            app.note(&asker, "key_made", &key.id, None).await?;
            app.ring.put_key(key.clone()).await?;
            key
        }
    };
    let mut response = (StatusCode::CREATED, axum::Json(NewKeyPage { kept: kept.into(), key: shown })).into_response();
    response.extensions_mut().insert(NotKept);
    Ok(response)
}

fn check(app: &App, asker: &Asker, agents: Option<&[String]>) -> Result<(), Problem> {
    let named = agents.unwrap_or_default();
    if agents.is_some_and(<[String]>::is_empty) || named.len() > AGENTS_MAX {
        let detail = format!("`agents` names {} agents, and 1 to {AGENTS_MAX} can be named", named.len());
        return Err(Problem::bad("key_invalid", detail, "leave `agents` out for a key to all"));
    }
    if let Some(more) = named.iter().find(|agent| !asker.knows(agent)) {
        return Err(too_much(format!("this key is not for the agent `{more}` and makes none that is")));
    }
    named.iter().try_for_each(|agent| app.agent(agent).map(drop))
}

fn too_much(detail: String) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "not_permitted", detail, "use a key that may do more, or ask for less")
}

fn again() -> Problem {
    let detail = "the server's own secrets have changed since this request came first";
    Problem::conflict("idempotency_conflict", detail, "take the key back that it made, and ask under a new name")
}

/// What a repeated request throws: the same each time, known to nobody without the server's secrets. So the key can be
/// shown again to whoever lost the answer, and is kept nowhere.
async fn dice(app: &App, request: &str) -> Result<[u8; 40], Problem> {
    let secrets = app.sealing().await?;
    let secret = secrets.keys().next().unwrap_or_default();
    let mut mac = Hmac::<Sha512>::new_from_slice(secret).map_err(|why| Problem::internal(why.to_string()))?;
    mac.update(b"api key\0");
    mac.update(request.as_bytes());
    let whole = mac.finalize().into_bytes();
    whole.first_chunk().copied().ok_or_else(|| Problem::internal("an HMAC is too short"))
}

/// Take a key back, at once and for good.
#[utoipa::path(
    delete, path = "/v1/keys/{key}", operation_id = "revoke_key", tag = "keys",
    params(("key" = String, Path, description = "Its id")),
    responses(
        (status = 204, description = "It opens nothing any more"),
        (status = "default", description = "Not taken back", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn revoke(Mine(app): Mine, asker: Asker, Named(id): Named<String>) -> Result<Response, Problem> {
    asker.may(&[Scope::Admin])?;
    let is_good = |key: &ApiKey| key.id == id && key.revoked_at.is_none();
    if !own(&app, &asker).await?.iter().any(is_good) {
        let detail = format!("there is no key `{id}` that could be taken back");
        return Err(Problem::missing("no_such_key", detail, "GET /v1/keys lists those there are"));
    }
    app.note(&asker, "key_revoked", &id, None).await?;
    app.ring.revoke_key(&id, app.now()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
