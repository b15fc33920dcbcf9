//! The conversation's document: taken from the store for a turn, described on each trip, called, kept with the turn.

mod lending;
mod staged;
mod working;

use std::sync::{Arc, OnceLock};

use gesta_document::{AddedTools, GrantName, GrantSpec, Image, ImageError, Limits, Record, Terms, base_hash};
use gesta_run::{ConversationId, Plan, RunId};
use gesta_sandbox::{Pool, PoolSettings};
use gesta_store::{Secrets, Store};

use crate::error::AgentError;

pub(crate) use lending::Asked;
pub use staged::SceneDocuments;
pub(crate) use working::Working;

/// How long a grant may keep a document waiting: the hook's time, its own, and some for the store between them. The
/// machine's own limits are narrower; this one is only so that nobody waits for ever.
const GRANT_WAIT_MAX_MS: u64 = 60_000;

/// How an agent's document is run.
#[derive(Debug, Clone, Default)]
pub struct DocumentSettings {
    /// What messages call it, its file for instance; "the document" where this is empty.
    pub name: String,
    /// What it may use.
    pub limits: Limits,
    /// Whether tools can be added to it.
    pub added_tools: AddedTools,
    /// The workers it runs in.
    pub pool: PoolSettings,
}

/// An agent's document, from which every conversation has its own.
pub(crate) struct Documents {
    base: Arc<str>,
    name: String,
    terms: Terms,
    settings: PoolSettings,
    /// Made on the first use, because a pool is bound to a runtime.
    pool: OnceLock<Pool>,
    keys: Keys,
}

/// What images are signed with.
enum Keys {
    Secrets(Arc<Secrets>),
    /// Of a store that is memory: nobody else reads its images.
    Process([u8; 32]),
}

impl Documents {
    pub(crate) fn new(
        base: &str,
        settings: DocumentSettings,
        plan: &Plan,
        secrets: Option<Arc<Secrets>>,
        stored: bool,
    ) -> Result<Self, AgentError> {
        let keys = match secrets {
            Some(secrets) => Keys::Secrets(secrets),
            None if stored => {
                let why = "saved documents are signed: give the agent secrets (`AgentBuilder::secrets`)";
                return Err(AgentError::Incomplete(why.to_owned()));
            }
            None => Keys::Process(process_key()?),
        };
        let grants = plan.spec.grants.iter().map(|grant| GrantSpec {
            name: GrantName { library: grant.library.clone(), name: grant.name.clone() },
            params: grant.params.clone(),
        });
        let terms = Terms {
            grants: grants.collect(),
            limits: Limits { grants_max: plan.spec.limits.grants_max, ..settings.limits },
            added_tools: settings.added_tools,
            names_taken: plan.spec.tools.iter().map(|tool| tool.name.clone()).collect(),
        };
        let DocumentSettings { name, pool, .. } = settings;
        let settings = PoolSettings { grant_time_max_ms: pool.grant_time_max_ms.max(GRANT_WAIT_MAX_MS), ..pool };
        let name = if name.is_empty() { "the document".to_owned() } else { name };
        Ok(Self { base: base.into(), name, terms, settings, pool: OnceLock::new(), keys })
    }

    fn pool(&self) -> &Pool {
        self.pool.get_or_init(|| Pool::new(self.settings.clone()))
    }

    /// The working copy for a turn: the run's own where it has one, else the conversation's, else the base alone.
    pub(crate) async fn open(
        self: &Arc<Self>,
        store: &dyn Store,
        run: &RunId,
        conversation: Option<&ConversationId>,
        resumed: bool,
    ) -> Result<Working, AgentError> {
        let stored = match conversation {
            Some(conversation) => store.document(conversation).await?,
            None => None,
        };
        let from = stored.as_ref().map_or(0, |document| document.version);
        let working = if resumed { store.working(run).await? } else { None };
        let record = match (working, stored) {
            (Some(image), _) => self.read(&image).map_err(|why| AgentError::WorkingCopy { run: run.clone(), why })?,
            (None, Some(document)) => self.read(&document.image)?,
            (None, None) => Record { base: self.base.to_string(), ..Record::default() },
        };
        let whose = match conversation {
            Some(conversation) => format!("conversation/{conversation}"),
            None => format!("run/{run}"),
        };
        let session = self.pool().session(&whose, record, self.terms.clone());
        Ok(Working::new(self.clone(), session, run.clone(), from))
    }

    fn read(&self, image: &[u8]) -> Result<Record, ImageError> {
        Ok(Image::decode(image, &self.keys())?.record(&self.base))
    }

    fn write(&self, record: &Record) -> Result<Vec<u8>, ImageError> {
        Image::of(record).encode(&self.keys())
    }

    fn keys(&self) -> Vec<&[u8]> {
        match &self.keys {
            Keys::Secrets(secrets) => secrets.keys().collect(),
            Keys::Process(key) => vec![key],
        }
    }
}

/// What of a document is part of an agent's configuration: its base, by hash.
pub(crate) fn hash_of(base: &str) -> String {
    base_hash(base)
}

fn process_key() -> Result<[u8; 32], AgentError> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|why| AgentError::Incomplete(format!("there is no randomness: {why}")))?;
    Ok(key)
}
