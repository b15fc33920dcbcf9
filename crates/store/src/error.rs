//! What can go wrong with a store. Each error names the thing and the way out; nothing was changed unless it says so.

use std::path::PathBuf;

use gesta_run::id::{CallId, ConversationId, RunId};
use gesta_run::time::Timestamp;

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another run has the conversation.
    #[error("conversation `{conversation}` is taken by run `{run}`, which {busy}")]
    ConversationBusy {
        /// The conversation.
        conversation: ConversationId,
        /// The run that has it.
        run: RunId,
        /// How it has it.
        busy: Busy,
    },
    /// The store has no such run.
    #[error("no run `{run}` in this store; `gesta runs` lists those there are")]
    NoSuchRun {
        /// What was asked for.
        run: RunId,
    },
    /// The id of a new run was used before.
    #[error("run `{run}` exists already; a new run needs a new id")]
    RunExists {
        /// The id.
        run: RunId,
    },
    /// Someone works on the run.
    #[error("run `{run}` is being worked on by another; try again when it lets go, at the latest at {} ms", .until.0)]
    Leased {
        /// The run.
        run: RunId,
        /// When the lease lapses, unless it is renewed.
        until: Timestamp,
    },
    /// The run was taken by someone else, the lease was given back, or the run was erased.
    #[error("run `{run}` was taken over by another; what was done here is discarded")]
    Fenced {
        /// The run.
        run: RunId,
    },
    /// The run has not as many events as the writer believed.
    #[error("run `{run}` has {found} events, not {at}; load it and look again")]
    Conflict {
        /// The run.
        run: RunId,
        /// How many the writer believed there were.
        at: u64,
        /// How many there are.
        found: u64,
    },
    /// The hold was closed before: the first committed answer wins.
    #[error("hold `{call}` of run `{run}` was answered before; the first answer counts")]
    HoldSettled {
        /// The run.
        run: RunId,
        /// The call.
        call: CallId,
    },
    /// The run was to close a hold that it never opened.
    #[error("run `{run}` has no hold `{call}`")]
    NoSuchHold {
        /// The run.
        run: RunId,
        /// The call.
        call: CallId,
    },
    /// The run's turn is in the history already.
    #[error("run `{run}` has added its turn to the history before")]
    TurnRecorded {
        /// The run.
        run: RunId,
    },
    /// The conversation's document is not the one that the writer began with: another changed it meanwhile.
    #[error("the document of conversation `{conversation}` has version {found}, not {from}; read it and try again")]
    DocumentConflict {
        /// The conversation.
        conversation: ConversationId,
        /// The version the writer began with; 0 stands for none.
        from: u64,
        /// The version there is; 0 stands for none.
        found: u64,
    },
    /// The image of a document is larger than a store takes.
    #[error("the document has {bytes} bytes, at most {max} can be stored; remove tools or data from it")]
    DocumentTooLarge {
        /// How large it is.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// A value can't be written as JSON.
    #[error("run `{run}`: an event can't be written: {reason}")]
    Unwritable {
        /// The run.
        run: RunId,
        /// Why.
        reason: String,
    },
    /// Events of a run can't be read. Other runs are not concerned.
    #[error("run `{run}` is damaged at event {position}: {reason}; restore it from a backup or start a new run")]
    DamagedEvents {
        /// The run.
        run: RunId,
        /// How many events before it are sound.
        position: u64,
        /// What is wrong.
        reason: String,
    },
    /// The run was written by a newer version.
    #[error(
        "run `{run}` has events of log version {found} from event {position} on, this program reads up to {known}; update it"
    )]
    LogNewer {
        /// The run.
        run: RunId,
        /// How many events before it can be read.
        position: u64,
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// A turn of a conversation's history can't be read.
    #[error("conversation `{conversation}` is damaged at turn {turn}: {reason}; erase it or restore it from a backup")]
    DamagedTurn {
        /// The conversation.
        conversation: ConversationId,
        /// Which turn, from 1.
        turn: u64,
        /// What is wrong.
        reason: String,
    },
    /// Something else that was stored can't be read.
    #[error("{what} is damaged: {reason}; restore it from a backup")]
    DamagedRow {
        /// What.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// The file is damaged.
    #[error("{} is damaged ({reason}); nothing was changed: move it away or restore a backup", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// The file is no database of ours.
    #[error("{} is not a Gesta database ({found}); it was left untouched: name another data folder", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// The file was written by a newer version.
    #[error("{} has schema version {found}, this program knows up to {known}; it was left untouched: update the program", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// There is no room. Nothing that was acknowledged is lost; it works again when there is room.
    #[error("no room left to write {}; free some space, or raise the store's limit, and try again", .path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder can't be written.
    #[error("{} can't be written; make it and its folder writable, or name another data folder with --data", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder may not be read.
    #[error("no permission for {}; change its owner or mode, or name another data folder with --data", .path.display())]
    NoPermission {
        /// The file or folder.
        path: PathBuf,
    },
    /// The data folder can't be used.
    #[error("{} can't be used as data folder: {reason}; name another one with --data", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another process kept the file locked for too long. Nothing was written.
    #[error("{} was locked by another process for more than {waited_ms} ms; try again, or end that process", .path.display())]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long was waited.
        waited_ms: u64,
    },
    /// Nobody knows whether the commit took place: read again, never repeat blindly.
    #[error("whether {} took the last write is unknown ({reason}); load the run and look before anything is repeated", .path.display())]
    CommitUnknown {
        /// The file.
        path: PathBuf,
        /// What is known.
        reason: String,
    },
    /// The file system failed in another way. Nothing was written.
    #[error("{} can't be read or written: {reason}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// There is a store already where one was to be put.
    #[error("{} is there already; name another folder, or move it away", .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Other processes have the store open.
    #[error("{} is in use by another process; end it, and try again", .path.display())]
    InUse {
        /// The data folder.
        path: PathBuf,
    },
    /// The store was closed.
    #[error("the store at {} is closed; open it again", .path.display())]
    Closed {
        /// The file.
        path: PathBuf,
    },
}

/// How a run has its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// Someone works on it.
    Open,
    /// It is open, and whoever worked on it is gone or let go: claim it, let it recover.
    Left,
    /// It waits for answers: supersede it or refuse the message (`spec/contract.md`, 7.7).
    Parked,
    /// It failed and can still go on: go on with it, or settle it before the next turn (`spec/contract.md`, 2.4).
    CanGoOn,
}

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Open => "is going on",
            Self::Left => "was left unfinished",
            Self::Parked => "waits for answers to its holds",
            Self::CanGoOn => "failed and can still go on",
        })
    }
}

impl StoreError {
    /// A stable word for programs; the docs list them.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ConversationBusy { .. } => "conversation_busy",
            Self::NoSuchRun { .. } => "no_such_run",
            Self::RunExists { .. } => "run_exists",
            Self::Leased { .. } => "run_leased",
            Self::Fenced { .. } => "run_fenced",
            Self::Conflict { .. } => "run_conflict",
            Self::HoldSettled { .. } => "hold_settled",
            Self::NoSuchHold { .. } => "no_such_hold",
            Self::TurnRecorded { .. } => "turn_recorded",
            Self::DocumentConflict { .. } => "document_conflict",
            Self::DocumentTooLarge { .. } => "document_too_large",
            Self::Unwritable { .. } => "event_unwritable",
            Self::DamagedEvents { .. } | Self::DamagedTurn { .. } | Self::DamagedRow { .. } => "record_damaged",
            Self::LogNewer { .. } => "log_newer",
            Self::Damaged { .. } => "store_damaged",
            Self::Foreign { .. } => "store_foreign",
            Self::Newer { .. } => "store_newer",
            Self::DiskFull { .. } => "store_full",
            Self::ReadOnly { .. } => "store_read_only",
            Self::NoPermission { .. } => "store_permission",
            Self::Folder { .. } => "store_folder",
            Self::Locked { .. } => "store_locked",
            Self::CommitUnknown { .. } => "commit_unknown",
            Self::Io { .. } => "store_io",
            Self::Exists { .. } => "store_exists",
            Self::InUse { .. } => "store_in_use",
            Self::Closed { .. } => "store_closed",
        }
    }

    /// Whether the same request may succeed later without anyone changing it: the store was busy or full.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Leased { .. } | Self::Locked { .. } | Self::DiskFull { .. })
    }
}
