//! Where runs are kept: the log of events, conversations, documents, holds and configuration snapshots, behind small traits.
//!
//! ```text
//! traits     what every backend promises        types, error   what goes in and comes out
//! sqlite     one file, the embedded default     memory         nothing on disk
//! postgres   a server, for several processes    server         what can go wrong with one
//! document   images of documents                secret         keys, signed states
//! folder     where the data lives                opened         a store by the name of its place
//! ```
//!
//! The events of one step are one append, and an append is all or nothing. Whoever appends holds the run's lease; a
//! lease that was taken over is refused by its fence. This is the only crate with SQL.
//!
//! ```
//! use gesta_run::{outcome::{Outcome, Status}, time::Timestamp};
//! use gesta_store::{HeadChange, Memory, NewRun, RunLog, StoreError, new_run_id};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = Memory::default();
//! let new = NewRun {
//!     run: new_run_id(),
//!     agent: "coach".to_owned(),
//!     conversation: Some("talk".into()),
//!     contact: None,
//!     config: "hash of the plan".to_owned(),
//!     at: Timestamp(0),
//! };
//! let lease = store.open(new, &[]).await?;
//! store.append(&lease, 0, &[], HeadChange::ended(Outcome::Completed)).await?;
//! assert_eq!(store.head(lease.run()).await?.status, Status::Ended);
//! # Ok::<(), StoreError>(())
//! # }).unwrap();
//! ```

mod clock;
mod codec;
mod document;
mod error;
mod folder;
mod front;
mod memory;
mod opened;
mod place;
#[cfg(test)]
mod portability;
mod postgres;
mod prepared;
mod secret;
mod server;
mod sqlite;
mod traits;
mod types;

pub use clock::Clock;
pub use document::{DOCUMENT_BYTES_MAX, DocumentChange, DocumentHead, StoredDocument};
pub use error::{Busy, StoreError};
pub use folder::{data_folder, default_folder, writable};
pub use front::{
    ApiKey, Audit, AuditRecord, Deed, Dispatch, Dispatches, Front, Keys, RequestName, Requests, Reserved, StoredAnswer,
    Tenants,
};
pub use memory::{Memory, RUNS_KEPT_MAX};
pub use opened::{Opened, Target, open};
pub use place::TENANT_LOCAL;
pub use postgres::{Postgres, PostgresOptions};
pub use secret::{KEY_BYTES_MIN, SecretError, Secrets};
pub use server::ServerFault;
pub use sqlite::{Copied, FILE_NAME, Sqlite, StoreOptions, backup, restore};
pub use traits::{Configs, Conversations, Documents, Holds, Old, Pending, Retention, RunLog, Store, Wire};
pub use types::{
    ConversationHead, HeadChange, HoldClosed, HoldCursor, HoldFilter, Lease, LeaseHolder, NewRun, OpenHold, PAGE_MAX,
    RunCursor, RunFilter, RunHead, StoredRun, Turn, WireRecord,
};

/// A fresh id for a run: a time-ordered UUID.
pub fn new_run_id() -> gesta_run::id::RunId {
    gesta_run::id::RunId::new(uuid::Uuid::now_v7().to_string())
}
