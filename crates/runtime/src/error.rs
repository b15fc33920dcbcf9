//! What can go wrong around a run. How a run itself ends is in its result, never here.

use gesta_run::{AnswerError, CallId, ConversationId, FeedError, PlanError, RunId};
use gesta_store::StoreError;

use crate::saved::StateError;

/// Why there is no result. A model that failed, a hook that failed or a limit that was met is an outcome of the
/// result instead (`spec/contract.md`, 2.1).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The agent is not put together well.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Something the builder was not given.
    #[error("agent: {0}")]
    Incomplete(String),
    /// The input cannot be used.
    #[error("input: {0}")]
    Input(FeedError),
    /// The conversation has a run going on.
    #[error("conversation is busy: run `{run}` is going on; wait for it or cancel it")]
    Busy {
        /// The run.
        run: RunId,
    },
    /// The conversation waits for answers, and the agent refuses messages meanwhile.
    #[error("run `{run}` waits for answers to {}; answer them first", list(.open))]
    Waiting {
        /// The run.
        run: RunId,
        /// Its open holds.
        open: Vec<CallId>,
    },
    /// The conversation was begun with another agent.
    #[error("conversation `{conversation}` is one of agent `{agent}`; name another conversation")]
    OfAnother {
        /// The conversation.
        conversation: ConversationId,
        /// Whose it is.
        agent: String,
    },
    /// Answers to holds were refused; nothing was recorded and nothing ran.
    #[error(transparent)]
    Answers(#[from] AnswerError),
    /// The run cannot go on.
    #[error("run `{run}`: {reason}")]
    CannotGoOn {
        /// The run.
        run: RunId,
        /// Why not.
        reason: String,
    },
    /// The configuration the run was begun under is not there, and the present one differs in more than its prompt.
    #[error(
        "run `{run}` was begun under another configuration ({config}), which is not in the store, and the present one \
         differs in more than its prompt"
    )]
    ConfigChanged {
        /// The run.
        run: RunId,
        /// The hash of its configuration.
        config: String,
    },
    /// The conversation's document cannot be read.
    #[error("document: {0}")]
    Document(#[from] gesta_document::ImageError),
    /// The document cannot be opened: a fault of whoever wrote it, or of the machine. Nothing of the run has happened.
    #[error("{document}: {why}")]
    Unopened {
        /// What messages call it: its file, where it has one.
        document: String,
        /// Why.
        why: Box<gesta_sandbox::Failure>,
    },
    /// A run cannot go on, because what its turn had made of the document cannot be read. A new message of its
    /// conversation closes it.
    #[error("run `{run}` cannot go on: what it had made of the document cannot be read: {why}")]
    WorkingCopy {
        /// The run.
        run: RunId,
        /// Why.
        why: gesta_document::ImageError,
    },
    /// A saved run was not taken.
    #[error(transparent)]
    State(#[from] StateError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn list(ids: &[CallId]) -> String {
    ids.iter().map(CallId::as_str).collect::<Vec<_>>().join(", ")
}
