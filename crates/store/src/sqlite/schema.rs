//! The tables of the SQLite file, one step for each version, and how a file is recognised.

/// Marks a file as ours: `Gest`, in the header of the database.
pub(super) const APPLICATION_ID: i32 = 0x4765_7374;

/// The steps from an empty file to the newest form. Step `n` leads to version `n + 1`; a step that was ever released is
/// never changed, only followed by another.
pub(crate) const MIGRATIONS: &[&str] = &[V1, V2, V3, V4];

/// The version this program writes, kept in `PRAGMA user_version`.
pub(super) fn version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// An event row holds the events of one append, as a JSON list: one row, one key, whatever their number. Measured against
/// a row for each event, that writes a quarter less to the log and takes a third less time. Tables whose rows hold whole
/// texts keep them out of the key's tree (a quarter less time from 900 bytes on); the others are trees of their key.
const V1: &str = "
CREATE TABLE runs (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    conversation TEXT,
    contact TEXT,
    config TEXT NOT NULL,
    status TEXT NOT NULL,
    outcome TEXT,
    closed INTEGER NOT NULL,
    events INTEGER NOT NULL,
    turn INTEGER,
    started_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    owner TEXT,
    lease_until INTEGER,
    PRIMARY KEY (bucket, tenant, run_id)
) WITHOUT ROWID;
CREATE INDEX runs_by_id ON runs (tenant, run_id);
CREATE INDEX runs_by_start ON runs (tenant, started_at, run_id);

CREATE TABLE events (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    number INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (bucket, tenant, run_id, position)
);

CREATE TABLE conversations (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    conversation TEXT NOT NULL,
    agent TEXT NOT NULL,
    contact TEXT,
    turns INTEGER NOT NULL,
    run_id TEXT,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (bucket, tenant, conversation)
) WITHOUT ROWID;

CREATE TABLE turns (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    conversation TEXT NOT NULL,
    seq INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    version INTEGER NOT NULL,
    messages TEXT NOT NULL,
    PRIMARY KEY (bucket, tenant, conversation, seq)
);

CREATE TABLE holds (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    conversation TEXT,
    contact TEXT,
    tool TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    hold TEXT NOT NULL,
    answer TEXT,
    PRIMARY KEY (bucket, tenant, run_id, call_id)
) WITHOUT ROWID;
CREATE INDEX holds_that_wait ON holds (tenant, opened_at, run_id, call_id) WHERE state <> 'closed';

CREATE TABLE configs (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    hash TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (bucket, tenant, hash)
);

CREATE TABLE wire (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    trip INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    request TEXT NOT NULL,
    response TEXT NOT NULL,
    PRIMARY KEY (bucket, tenant, run_id, trip, attempt)
);
";

/// The documents of conversations, and those that runs work on. Images are whole blobs, so they stay out of the key's
/// tree as well.
const V2: &str = "
CREATE TABLE documents (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    conversation TEXT NOT NULL,
    version INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    image BLOB NOT NULL,
    PRIMARY KEY (bucket, tenant, conversation)
);

CREATE TABLE working_copies (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    run_id TEXT NOT NULL,
    image BLOB NOT NULL,
    PRIMARY KEY (bucket, tenant, run_id)
);
";

/// What a server keeps beside runs. A request's row holds a whole answer, so it stays out of the key's tree; the records of
/// the audit are texts with their hashes.
const V3: &str = "
CREATE TABLE requests (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    run_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    status INTEGER,
    content_type TEXT,
    body BLOB,
    PRIMARY KEY (bucket, tenant, owner, name)
);

CREATE TABLE api_keys (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    PRIMARY KEY (bucket, tenant, id)
);

CREATE TABLE dispatches (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    run_id TEXT NOT NULL,
    call_id TEXT,
    at INTEGER NOT NULL,
    due INTEGER,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (bucket, tenant, id)
) WITHOUT ROWID;
CREATE INDEX dispatches_due ON dispatches (bucket, tenant, due) WHERE due IS NOT NULL;

CREATE TABLE audit (
    bucket INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (bucket, tenant, seq)
);
";

/// The answers that a run leaves behind are found by it, to be erased with it, and old ones by their age.
const V4: &str = "
CREATE INDEX requests_by_run ON requests (bucket, tenant, run_id);
CREATE INDEX requests_by_age ON requests (bucket, tenant, at);
";
