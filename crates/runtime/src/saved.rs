//! A run that its caller keeps: the hash of its plan and its events, signed as a whole (`spec/contract.md`, 7.6).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gesta_run::{ContactId, ConversationId, Event, Run, RunId, Timestamp};
use gesta_store::{NewRun, SecretError, StoreError};
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Parts};
use crate::error::AgentError;
use crate::journal::Journal;
use crate::resume;

/// What the signature is for: one of another kind does not fit.
const PURPOSE: &str = "gesta/run-state";
/// The form of saved runs that this version writes and reads.
const STATE_VERSION: u32 = 1;

/// A saved run without its signature. No key, secret or function stands in it; what was said does.
#[derive(Serialize, Deserialize)]
struct State {
    version: u32,
    log_version: u32,
    run: RunId,
    agent: String,
    conversation: Option<ConversationId>,
    contact: Option<ContactId>,
    config: String,
    started_at: Timestamp,
    events: Vec<Event>,
    /// The working copy of the document, signed by itself, as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    working: Option<String>,
}

/// Why a saved run was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The agent was built without secrets.
    #[error("saved runs are signed: give the agent secrets (`AgentBuilder::secrets`)")]
    NoSecrets,
    /// It is unsigned, was changed, or is signed with another key.
    #[error(transparent)]
    Signature(#[from] SecretError),
    /// It is of another version, or damaged.
    #[error("the saved run cannot be read: {0}")]
    Unreadable(String),
}

impl Agent {
    /// The run as a text that its caller keeps, signed as a whole. To go on, hand it to [`Agent::take_saved`].
    ///
    /// # Errors
    /// The run is not in the store, or the agent has no secrets.
    pub async fn save(&self, run: &RunId) -> Result<String, AgentError> {
        let secrets = self.0.secrets.as_ref().ok_or(StateError::NoSecrets)?;
        let stored = self.0.store.load(run).await?;
        let head = stored.head;
        let working = self.0.store.working(run).await?.map(|image| STANDARD.encode(image));
        let state = State {
            version: STATE_VERSION,
            log_version: gesta_run::LOG_VERSION,
            run: head.run,
            agent: head.agent,
            conversation: head.conversation,
            contact: head.contact,
            config: head.config,
            started_at: head.started_at,
            events: stored.events,
            working,
        };
        let text = serde_json::to_string(&state).map_err(|why| StateError::Unreadable(why.to_string()))?;
        Ok(secrets.seal(PURPOSE, &text))
    }

    /// Takes a saved run into the store, so that it can be resumed by its id. A run that is there already stays as it
    /// is: what was answered once is not answered again.
    ///
    /// # Errors
    /// It was changed or is unsigned, it is of another version, or its conversation is busy; nothing has run.
    pub async fn take_saved(&self, saved: &str) -> Result<RunId, AgentError> {
        let secrets = self.0.secrets.as_ref().ok_or(StateError::NoSecrets)?;
        let text = secrets.unseal(PURPOSE, saved).map_err(StateError::Signature)?;
        let state = read(text)?;
        take(&self.0, state).await
    }
}

fn read(text: &str) -> Result<State, StateError> {
    let unreadable = |why: String| StateError::Unreadable(why);
    let state: State = gesta_run::json::read_stored(text.as_bytes()).map_err(unreadable)?;
    if state.version != STATE_VERSION || state.log_version > gesta_run::LOG_VERSION {
        return Err(unreadable(format!("it is of version {}, this program reads {STATE_VERSION}", state.version)));
    }
    Ok(state)
}

async fn take(parts: &Arc<Parts>, state: State) -> Result<RunId, AgentError> {
    let id = state.run.clone();
    let plan = resume::pinned_plan(parts, &id, &state.config).await?;
    let run = Run::replay(plan, &state.events);
    let new = NewRun {
        run: state.run,
        agent: state.agent,
        conversation: state.conversation,
        contact: state.contact,
        config: state.config,
        at: state.started_at,
    };
    let mut journal = Journal::new(parts.store.clone(), new, false);
    let (first, mut rest) = state.events.split_at(state.events.len().min(1));
    match journal.open(first).await {
        Ok(()) => {}
        Err(StoreError::RunExists { .. }) => {
            // It is here already, or whoever took it died on the way.
            let stored = parts.store.load(&id).await?;
            if stored.events.len() >= state.events.len() || !state.events.starts_with(&stored.events) {
                return Ok(id);
            }
            let lease = parts.store.claim(&id).await?;
            journal = Journal::taken_up(parts.store.clone(), lease, &run, stored.head.events);
            rest = &state.events[stored.events.len()..];
        }
        Err(why) => return Err(why.into()),
    }
    rest.iter().for_each(|event| journal.gather(Arc::new(event.clone())));
    if let Some(working) = state.working {
        journal.keep(STANDARD.decode(working).map_err(|why| StateError::Unreadable(why.to_string()))?);
    }
    journal.leave(&run).await?;
    Ok(id)
}
