//! API keys, what each is good for, and the links that let somebody in once.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gesta_run::Timestamp;
use gesta_run::json::sha256_hex;
use gesta_store::{ApiKey, TENANT_LOCAL};
use http::StatusCode;

use crate::app::App;
use crate::ask::Asker;
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

/// The beginning of a link's text, which is otherwise made like a key's.
const LINK_PREFIX: &str = "link_";
/// How often is looked whether a key is still good that somebody listens with.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long a link is good for.
const LINK_MS: u64 = 10 * 60_000;
/// How long the names of tenants and keys may be, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// What a new key is to be.
#[derive(Debug, Clone)]
pub struct NewKey<'a> {
    /// What somebody calls it: 1 to 64 bytes, without control characters.
    pub name: &'a str,
    /// What it is good for.
    pub scopes: &'a [Scope],
    /// For which agents; for all where nothing is said.
    pub agents: Option<Vec<String>>,
    /// Whose rows it opens: 1 to 64 letters, digits, `.`, `_` or `-`; those of [`TENANT_LOCAL`] where nothing is said.
    pub tenant: Option<&'a str>,
    /// Now.
    pub at: Timestamp,
}

/// Makes a key. Gives the text that opens the server, which is kept nowhere, and what is to be stored.
///
/// # Errors
/// A name cannot be used, no scope is given, or the system has no randomness.
pub fn new_key(new: NewKey<'_>) -> Result<(String, ApiKey), String> {
    made(PREFIX, new, random()?)
}

/// Makes a link to the console, good once and for ten minutes, for whoever has `key`. Gives the end of its address, which
/// comes behind the server's own and is kept nowhere, and what is to be stored as a key.
///
/// # Errors
/// The system has no randomness.
pub fn new_link(key: &ApiKey, at: Timestamp) -> Result<(String, ApiKey), String> {
    let new = NewKey { name: &key.name, scopes: &[], agents: None, tenant: Some(&key.tenant), at };
    let (text, link) = kept(LINK_PREFIX, new, random()?);
    let link = ApiKey { link_to: Some(key.id.clone()), expires_at: Some(at.plus_ms(LINK_MS)), ..link };
    Ok((format!("{LINK_PATH}/{text}"), link))
}

/// Where links lead.
pub(crate) const LINK_PATH: &str = "/console/link";

type Dice = [u8; ID_BYTES + SECRET_BYTES];

fn random() -> Result<Dice, String> {
    let mut bytes = [0_u8; ID_BYTES + SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|why| format!("the system has no randomness: {why}"))?;
    Ok(bytes)
}

/// The key that a repeated request makes again: of dice that are the same each time.
pub(crate) fn key_of(new: NewKey<'_>, dice: Option<Dice>) -> Result<(String, ApiKey), String> {
    made(PREFIX, new, dice.map_or_else(random, Ok)?)
}

fn made(prefix: &str, new: NewKey<'_>, dice: Dice) -> Result<(String, ApiKey), String> {
    let is_short = |name: &str| (1..=NAME_BYTES_MAX).contains(&name.len());
    if !is_short(new.name) || new.name.chars().any(char::is_control) {
        return Err(format!("a key's name has 1 to {NAME_BYTES_MAX} bytes, and no control characters"));
    }
    let is_plain = |name: &&str| name.bytes().all(|it| it.is_ascii_alphanumeric() || b"._-".contains(&it));
    if new.tenant.is_some_and(|name| !is_short(name) || !is_plain(&name)) {
        return Err(format!("a tenant's name has 1 to {NAME_BYTES_MAX} letters, digits, `.`, `_` or `-`"));
    }
    if new.scopes.is_empty() {
        return Err("a key without a scope is good for nothing".to_owned());
    }
    Ok(kept(prefix, new, dice))
}

fn kept(prefix: &str, new: NewKey<'_>, dice: Dice) -> (String, ApiKey) {
    let (id, secret) = dice.split_at(ID_BYTES);
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let secret = URL_SAFE_NO_PAD.encode(secret);
    let key = ApiKey {
        id: id.clone(),
        name: new.name.to_owned(),
        hash: sha256_hex(secret.as_bytes()),
        scopes: new.scopes.iter().map(ToString::to_string).collect(),
        agents: new.agents,
        tenant: new.tenant.unwrap_or(TENANT_LOCAL).to_owned(),
        link_to: None,
        expires_at: None,
        created_at: new.at,
        revoked_at: None,
    };
    (format!("{prefix}{id}_{secret}"), key)
}

/// Whether two texts are equal, in a time that says nothing about where they differ.
fn are_equal(one: &str, other: &str) -> bool {
    let differs = one.bytes().zip(other.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}

/// A refusal of somebody who is not known.
pub(crate) fn stranger(detail: &str) -> Problem {
    let help = "send `Authorization: Bearer gesta_…`; `gesta keys new` makes a key";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail, help)
}

/// What is kept of a key or a link, where this is its text.
async fn known(app: &App, prefix: &str, text: &str) -> Result<Option<ApiKey>, Problem> {
    let parts = text.strip_prefix(prefix).and_then(|text| text.split_once('_'));
    let Some((id, secret)) = parts else { return Ok(None) };
    let known = app.ring.key(id).await?;
    // One that is not known takes as long as one that is.
    let hash = known.as_ref().map_or("", |key| key.hash.as_str());
    let fits = are_equal(&sha256_hex(secret.as_bytes()), hash);
    Ok(known.filter(|key| fits && key.link_to.is_some() == (prefix == LINK_PREFIX)))
}

/// Whoever has this key.
pub(crate) async fn of_key(app: &App, text: &str, from: String) -> Result<Asker, Problem> {
    if !text.starts_with(PREFIX) {
        return Err(stranger("the key has not the form of one"));
    }
    match known(app, PREFIX, text).await? {
        Some(key) if key.is_good(app.now()) => Ok(Asker::of(key, from)),
        _ => {
            let is_id = |id: &&str| id.bytes().all(|byte| byte.is_ascii_hexdigit());
            let key = text.get(PREFIX.len()..PREFIX.len() + 2 * ID_BYTES).filter(is_id);
            tracing::warn!(key, %from, security = true, "a key that is none was used");
            Err(stranger("the key is not known, or was taken back"))
        }
    }
}

/// Whoever showed the key of this id before, as long as it is good.
pub(crate) async fn of_id(app: &App, id: &str, from: &str) -> Result<Option<Asker>, Problem> {
    let known = app.ring.key(id).await?.filter(|key| key.link_to.is_none() && key.is_good(app.now()));
    Ok(known.map(|key| Asker::of(key, from.to_owned())))
}

/// How a link stands.
pub(crate) enum Link {
    /// It lets somebody in who has the key `to`.
    Good {
        /// Its own id.
        id: String,
        /// The key's.
        to: String,
    },
    /// Somebody has used it.
    Used,
    /// Its time has passed.
    Expired,
    /// There is no such link.
    Unknown,
}

/// How the link of this text stands. Looking uses nothing up.
pub(crate) async fn of_link(app: &App, text: &str) -> Result<Link, Problem> {
    Ok(match known(app, LINK_PREFIX, text).await? {
        Some(ApiKey { revoked_at: Some(_), .. }) => Link::Used,
        Some(link) if !link.is_good(app.now()) => Link::Expired,
        Some(ApiKey { id, link_to: Some(to), .. }) => Link::Good { id, to },
        _ => Link::Unknown,
    })
}

/// Ready when the key of whoever asked opens nothing any more; never for those who need none.
pub(crate) async fn taken_back(app: &App, asker: &Asker) {
    while !asker.has_key() || !matches!(of_id(app, &asker.id, &asker.from).await, Ok(None)) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_once_and_only_its_hash_is_kept() {
        let desk = NewKey { name: "desk", scopes: &[Scope::Run], agents: None, tenant: None, at: Timestamp(1) };
        let (shown, key) = new_key(desk.clone()).unwrap();
        let (id, secret) = shown.strip_prefix(PREFIX).unwrap().split_once('_').unwrap();
        assert_eq!((id, sha256_hex(secret.as_bytes())), (key.id.as_str(), key.hash.clone()));
        assert!(!format!("{key:?}").contains(secret) && secret.len() == 43);
        assert_ne!(new_key(desk.clone()).unwrap().0, shown);
        let (end, link) = new_link(&key, Timestamp(1)).unwrap();
        assert_eq!((link.link_to, link.expires_at, link.scopes.len()), (Some(key.id), Some(Timestamp(600_001)), 0));
        assert!(end.starts_with("/console/link/link_"), "{end}");
        for tenant in ["", "a b", "a/b", &"x".repeat(65)] {
            assert!(new_key(NewKey { tenant: Some(tenant), ..desk.clone() }).is_err(), "{tenant}");
        }
        assert!(new_key(NewKey { name: "a\nb", ..desk.clone() }).is_err());
        assert!(new_key(NewKey { scopes: &[], ..desk }).is_err());
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
