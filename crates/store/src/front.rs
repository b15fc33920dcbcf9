//! What a server keeps beside runs: answers to requests that may come again, keys of those who may ask, and who answered
//! what.

use std::sync::Arc;

use gesta_run::id::{CallId, RunId};
use gesta_run::json::{canonical, sha256_hex};
use gesta_run::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::StoreError;
use crate::place::TENANT_LOCAL;
use crate::traits::{Pending, Store};

/// A request that its client may repeat: whose it is, and the name that the client gave it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestName {
    /// Who asked: two clients may use one name.
    pub owner: String,
    /// The name.
    pub name: String,
}

/// What became of a request that came before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// Nobody asked so before: it is to be done, and if it begins a run, that one.
    New {
        /// The name that its run gets.
        run: RunId,
    },
    /// It came before, and is being done or was cut off. Its run, if it began one, has this name.
    Begun {
        /// The name of its run.
        run: RunId,
    },
    /// It was answered.
    Answered(StoredAnswer),
    /// Another request came under this name.
    Other,
}

/// An answer to a request, as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The content type.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// Requests that may come again, each done once. A request is told from another of the same name by its fingerprint.
pub trait Requests: Send + Sync {
    /// Notes that a request is going to be done, or says what became of it. `run` is the name that its run would get.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn reserve<'a>(
        &'a self,
        request: &'a RequestName,
        fingerprint: &'a str,
        run: &'a RunId,
        at: Timestamp,
    ) -> Pending<'a, Reserved>;

    /// Keeps the answer. The first one counts.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn settle<'a>(&'a self, request: &'a RequestName, answer: StoredAnswer) -> Pending<'a, ()>;

    /// Forgets a request that was not done and has no answer, so that it can come again.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn let_go<'a>(&'a self, request: &'a RequestName) -> Pending<'a, ()>;

    /// Forgets all requests that came before this moment. Gives how many.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn forget_requests(&self, before: Timestamp) -> Pending<'_, u64>;
}

/// A key to the server. What opens it is not kept: only its hash is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Its public part.
    pub id: String,
    /// What somebody called it.
    pub name: String,
    /// SHA-256 of its secret part, in lower-case hexadecimal.
    pub hash: String,
    /// What it is good for.
    pub scopes: Vec<String>,
    /// For which agents; for all where nothing is said.
    pub agents: Option<Vec<String>>,
    /// Whose rows it opens; those of [`TENANT_LOCAL`] for a key that was made before there were tenants.
    #[serde(default = "local")]
    pub tenant: String,
    /// The id of the key as which it lets somebody in, once: then it is a link and good for nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_to: Option<String>,
    /// From when on it opens nothing any more, where that is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was taken back, where it was.
    pub revoked_at: Option<Timestamp>,
}

fn local() -> String {
    TENANT_LOCAL.to_owned()
}

impl ApiKey {
    /// Whether it opens anything at this moment.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|until| now < until)
    }
}

/// Keys to the server. They lie with the tenant of the store itself, whosever rows they open: who asks is not known
/// before the key is.
pub trait Keys: Send + Sync {
    /// Keeps a new key. One of the same id is left as it is.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn put_key(&self, key: ApiKey) -> Pending<'_, ()>;

    /// All keys, those taken back too, the oldest first.
    ///
    /// # Errors
    /// [`crate::StoreError::DamagedRow`] when one can't be read.
    fn keys(&self) -> Pending<'_, Vec<ApiKey>>;

    /// One key.
    ///
    /// # Errors
    /// As [`Self::keys`].
    fn key<'a>(&'a self, id: &'a str) -> Pending<'a, Option<ApiKey>>;

    /// Takes a key back. Says whether there was one that was good until then.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn revoke_key<'a>(&'a self, id: &'a str, at: Timestamp) -> Pending<'a, bool>;
}

/// Something that somebody outside did about a run. It holds no content: of arguments only the fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// When.
    pub at: Timestamp,
    /// Who: the id of a key, or `local` where none is needed.
    pub who: String,
    /// From which address.
    pub from: String,
    /// What: `approve`, `approve_edited`, `deny`, `result`, `error`, `outcome_unknown`, `cancel`, `erase`,
    /// `key_made`, `key_revoked`, `sign_in`.
    pub what: String,
    /// About which run, conversation or key.
    pub subject: String,
    /// With which agent, where it is about one. Records from before this was kept have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The call, where it is about one.
    pub call: Option<String>,
    /// The tool, where it is about a call.
    pub tool: Option<String>,
    /// The fingerprint of tool and arguments that the answer was bound to; of the edited ones where they were edited.
    pub fingerprint: Option<String>,
    /// The configuration that the answer was bound to.
    pub config: Option<String>,
}

/// A deed in its place in the chain. Whoever changes, removes or inserts one breaks all that follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Its place, from 1, without gaps.
    pub seq: u64,
    /// The hash of the record before it; of the first, 64 zeros.
    pub previous: String,
    /// SHA-256 over the canonical JSON of the deed, the place and the hash before, in lower-case hexadecimal.
    pub hash: String,
    /// What was done.
    #[serde(flatten)]
    pub deed: Deed,
}

impl AuditRecord {
    /// The record that follows one; the first where there is none.
    pub fn after(last: Option<(u64, String)>, deed: Deed) -> Self {
        let (seq, previous) = last.map_or_else(|| (1, "0".repeat(64)), |(seq, hash)| (seq + 1, hash));
        let hash = Self::hash_of(seq, &previous, &deed);
        Self { seq, previous, hash, deed }
    }

    /// Whether its own hash is right, and it follows the one before.
    pub fn follows(&self, last: Option<(u64, &str)>) -> bool {
        let (seq, hash) = last.map_or((1, None), |(seq, hash)| (seq + 1, Some(hash)));
        let zero = "0".repeat(64);
        self.seq == seq
            && self.previous == hash.unwrap_or(&zero)
            && self.hash == Self::hash_of(self.seq, &self.previous, &self.deed)
    }

    fn hash_of(seq: u64, previous: &str, deed: &Deed) -> String {
        sha256_hex(canonical(&json!({ "seq": seq, "previous": previous, "deed": deed })).as_bytes())
    }
}

/// Who did what about runs: only ever added to.
pub trait Audit: Send + Sync {
    /// Adds deeds, in order, all or none.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn note(&self, deeds: Vec<Deed>) -> Pending<'_, ()>;

    /// The records behind this place, in order; at most [`crate::PAGE_MAX`], which a `limit` of 0 stands for.
    ///
    /// # Errors
    /// [`crate::StoreError::DamagedRow`] when one can't be read.
    fn audit(&self, after: u64, limit: u32) -> Pending<'_, Vec<AuditRecord>>;
}

/// Something that somebody outside is to be told of. It is written ahead of what it tells of, so that none is lost: who
/// sends it looks whether it has come true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Its name, made of what it tells of: told twice it is the same.
    pub id: String,
    /// What kind of thing: `hold.opened`, `hold.expiring`, `run.ended`.
    pub kind: String,
    /// The run.
    pub run: RunId,
    /// The call, where it is about one.
    pub call: Option<CallId>,
    /// When it was written.
    pub at: Timestamp,
    /// When it is to be sent.
    pub due: Timestamp,
    /// How often that was tried.
    pub attempts: u32,
}

/// Dispatches that wait to be sent. One that was taken and not settled is due again.
pub trait Dispatches: Send + Sync {
    /// Keeps dispatches, all or none. Those that were kept before, sent or not, are left as they are.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn put_dispatches(&self, dispatches: Vec<Dispatch>) -> Pending<'_, ()>;

    /// Takes dispatches that are due, the longest due first, and counts the attempt. Nobody else gets them before `until`.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn take_dispatches(&self, now: Timestamp, until: Timestamp, limit: u32) -> Pending<'_, Vec<Dispatch>>;

    /// A dispatch is due again at this moment, or is done with.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn settle_dispatch<'a>(&'a self, id: &'a str, due: Option<Timestamp>) -> Pending<'a, ()>;

    /// Forgets dispatches that are done with and were written before this moment. Gives how many.
    ///
    /// # Errors
    /// Only those of the storage itself.
    fn forget_dispatches(&self, before: Timestamp) -> Pending<'_, u64>;
}

/// All that a server keeps beside runs.
pub trait Front: Requests + Keys + Audit + Dispatches {}

impl<T: Requests + Keys + Audit + Dispatches + ?Sized> Front for T {}

/// A place where several tenants' rows lie, each apart from the others.
pub trait Tenants: Send + Sync {
    /// One tenant's runs and conversations.
    fn store_of(&self, tenant: &str) -> Arc<dyn Store>;

    /// What a server keeps beside one tenant's runs.
    fn front_of(&self, tenant: &str) -> Arc<dyn Front>;
}

/// A value as it is kept.
pub(crate) fn written(what: &str, value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|cause| StoreError::DamagedRow { what: what.to_owned(), reason: cause.to_string() })
}
