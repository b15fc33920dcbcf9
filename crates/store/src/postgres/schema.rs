//! The tables in the schema `gesta` of a Postgres database, one step for each version, and how they are recognised.

/// Whose tables they are, in `gesta.form`.
pub(super) const APPLICATION: &str = "gesta";

/// The steps from an empty database to the newest form. Step `n` leads to version `n + 1`; a step that was ever released
/// is never changed, only followed by another.
pub(crate) const MIGRATIONS: &[&[&str]] = &[V1, V2];

/// The version this program writes.
pub(super) fn version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Held, until the transaction ends, by whoever changes the form: `Gest`, as in the header of a SQLite file.
pub(super) const LOCK: i64 = 0x4765_7374;

/// Where the form is written down: one row, made before any table.
pub(super) const FORM: &[&str] = &[
    "CREATE SCHEMA IF NOT EXISTS gesta",
    "CREATE TABLE gesta.form (application TEXT PRIMARY KEY, version INTEGER NOT NULL)",
];

/// The same rows as in SQLite. Names sort by their bytes, whatever the database's language; texts that may hold any
/// character, and images, are bytes. Small rows that are changed often leave room on their page, and are swept often.
const V1: &[&str] = &[
    "CREATE TABLE gesta.runs (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        run_id TEXT COLLATE \"C\" NOT NULL,
        agent TEXT NOT NULL,
        conversation TEXT COLLATE \"C\",
        contact TEXT,
        config TEXT NOT NULL,
        status TEXT NOT NULL,
        outcome TEXT,
        closed BOOLEAN NOT NULL,
        events BIGINT NOT NULL,
        turn BIGINT,
        started_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        fence BIGINT NOT NULL,
        owner TEXT,
        lease_until BIGINT,
        PRIMARY KEY (bucket, tenant, run_id)
    ) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02)",
    "CREATE INDEX runs_by_id ON gesta.runs (tenant, run_id)",
    "CREATE INDEX runs_by_start ON gesta.runs (tenant, started_at, run_id)",
    "CREATE TABLE gesta.events (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        run_id TEXT COLLATE \"C\" NOT NULL,
        position BIGINT NOT NULL,
        number BIGINT NOT NULL,
        version BIGINT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (bucket, tenant, run_id, position)
    )",
    "CREATE TABLE gesta.conversations (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        conversation TEXT COLLATE \"C\" NOT NULL,
        agent TEXT NOT NULL,
        contact TEXT,
        turns BIGINT NOT NULL,
        run_id TEXT COLLATE \"C\",
        updated_at BIGINT NOT NULL,
        PRIMARY KEY (bucket, tenant, conversation)
    ) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02)",
    "CREATE TABLE gesta.turns (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        conversation TEXT COLLATE \"C\" NOT NULL,
        seq BIGINT NOT NULL,
        run_id TEXT COLLATE \"C\" NOT NULL,
        tokens BIGINT NOT NULL,
        version BIGINT NOT NULL,
        messages TEXT NOT NULL,
        PRIMARY KEY (bucket, tenant, conversation, seq)
    )",
    "CREATE TABLE gesta.holds (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        run_id TEXT COLLATE \"C\" NOT NULL,
        call_id TEXT COLLATE \"C\" NOT NULL,
        agent TEXT NOT NULL,
        conversation TEXT COLLATE \"C\",
        contact TEXT,
        tool TEXT NOT NULL,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        opened_at BIGINT NOT NULL,
        closed_at BIGINT,
        hold TEXT NOT NULL,
        answer TEXT,
        PRIMARY KEY (bucket, tenant, run_id, call_id)
    ) WITH (fillfactor = 75)",
    "CREATE INDEX holds_that_wait ON gesta.holds (tenant, opened_at, run_id, call_id) WHERE state <> 'closed'",
    "CREATE TABLE gesta.configs (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        hash TEXT COLLATE \"C\" NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (bucket, tenant, hash)
    )",
    "CREATE TABLE gesta.wire (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        run_id TEXT COLLATE \"C\" NOT NULL,
        trip BIGINT NOT NULL,
        attempt BIGINT NOT NULL,
        at BIGINT NOT NULL,
        request BYTEA NOT NULL,
        response BYTEA NOT NULL,
        PRIMARY KEY (bucket, tenant, run_id, trip, attempt)
    )",
    "CREATE TABLE gesta.documents (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        conversation TEXT COLLATE \"C\" NOT NULL,
        version BIGINT NOT NULL,
        changed_at BIGINT NOT NULL,
        image BYTEA NOT NULL,
        PRIMARY KEY (bucket, tenant, conversation)
    )",
    "CREATE TABLE gesta.working_copies (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        run_id TEXT COLLATE \"C\" NOT NULL,
        image BYTEA NOT NULL,
        PRIMARY KEY (bucket, tenant, run_id)
    )",
];

/// What a server keeps beside runs.
const V2: &[&str] = &[
    "CREATE TABLE gesta.requests (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        owner TEXT COLLATE \"C\" NOT NULL,
        name TEXT COLLATE \"C\" NOT NULL,
        fingerprint TEXT NOT NULL,
        run_id TEXT COLLATE \"C\" NOT NULL,
        at BIGINT NOT NULL,
        status BIGINT,
        content_type TEXT,
        body BYTEA,
        PRIMARY KEY (bucket, tenant, owner, name)
    )",
    "CREATE INDEX requests_by_run ON gesta.requests (bucket, tenant, run_id)",
    "CREATE INDEX requests_by_age ON gesta.requests (bucket, tenant, at)",
    "CREATE TABLE gesta.api_keys (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        id TEXT COLLATE \"C\" NOT NULL,
        body TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        revoked_at BIGINT,
        PRIMARY KEY (bucket, tenant, id)
    )",
    "CREATE TABLE gesta.dispatches (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        id TEXT COLLATE \"C\" NOT NULL,
        kind TEXT NOT NULL,
        run_id TEXT COLLATE \"C\" NOT NULL,
        call_id TEXT COLLATE \"C\",
        at BIGINT NOT NULL,
        due BIGINT,
        attempts BIGINT NOT NULL,
        PRIMARY KEY (bucket, tenant, id)
    ) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02)",
    "CREATE INDEX dispatches_due ON gesta.dispatches (bucket, tenant, due) WHERE due IS NOT NULL",
    "CREATE TABLE gesta.audit (
        bucket SMALLINT NOT NULL,
        tenant TEXT COLLATE \"C\" NOT NULL,
        seq BIGINT NOT NULL,
        hash TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (bucket, tenant, seq)
    )",
];
