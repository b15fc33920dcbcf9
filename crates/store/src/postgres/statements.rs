//! Every statement that reads or writes rows, in one place, so that a test can hold all of them to
//! `spec/durability.md`, 5.2: `bucket` and `tenant` are always `$1` and `$2` and stand first in every condition.
//!
//! Those under [`ACROSS`] read all buckets of one tenant: finding a run by its id alone, and lists for people. Nothing
//! is decided by them.
//!
//! Each is right beside any other that runs at the same time: what it depends on stands in its own condition, or in a
//! row that its transaction has changed or locked before.

macro_rules! run_columns {
    () => {
        "bucket, run_id, agent, conversation, contact, config, status, outcome, closed, events, started_at, \
         updated_at, fence, owner, lease_until"
    };
}

/// The time that leases go by, in milliseconds: the server's, unless the parameter tells another.
macro_rules! now {
    ($told:literal) => {
        concat!("COALESCE(", $told, ", CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))")
    };
}

macro_rules! append_head {
    () => {
        concat!(
            "UPDATE gesta.runs SET events = events + $7, status = $8, outcome = $9, closed = $10, \
             updated_at = COALESCE($11, updated_at), owner = $12, \
             lease_until = CASE WHEN $12 IS NULL THEN NULL ELSE ",
            now!("$13"),
            " + $14 END WHERE bucket = $1 AND tenant = $2 AND run_id = $3 AND fence = $4 AND owner = $5 AND events = $6"
        )
    };
}

macro_rules! statements {
    ($list:ident: $($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        $($(#[$doc])* pub(super) const $name: &str = $sql;)*

        /// The statements of this group, for the test.
        #[cfg(test)]
        pub(crate) const $list: &[(&str, &str)] = &[$((stringify!($name), $name),)*];
    };
}

statements! { ONE_BUCKET:
    RUN = concat!("SELECT ", run_columns!(), ", ", now!("$4"),
        " FROM gesta.runs WHERE bucket = $1 AND tenant = $2 AND run_id = $3");

    RUN_OPEN = concat!("INSERT INTO gesta.runs (bucket, tenant, run_id, agent, conversation, contact, config, status, \
        closed, events, started_at, updated_at, fence, owner, lease_until) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'open', FALSE, $8, $9, $9, 1, $10, ", now!("$11"), " + $12) \
        ON CONFLICT (bucket, tenant, run_id) DO NOTHING RETURNING lease_until");

    /// Gives the time.
    RUN_APPEND = concat!(append_head!(), " RETURNING ", now!("$13"));

    /// The append that changes nothing but the head and the events, as most do: one statement, one way to the server
    /// and back. The run must have its conversation, where it belongs to one.
    RUN_APPEND_PLAIN = concat!("WITH head AS (", append_head!(), " AND (conversation IS NULL OR EXISTS \
        (SELECT 1 FROM gesta.conversations AS talk WHERE talk.bucket = $1 AND talk.tenant = $2 \
        AND talk.conversation = runs.conversation AND talk.run_id = runs.run_id)) RETURNING run_id) \
        INSERT INTO gesta.events (bucket, tenant, run_id, position, number, version, body) \
        SELECT $1, $2, run_id, $6, $7, $15, $16 FROM head");

    RUN_TURN = "UPDATE gesta.runs SET turn = $4 \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 AND turn IS NULL";

    RUN_CLAIM = concat!("UPDATE gesta.runs SET fence = fence + 1, owner = $4, lease_until = ", now!("$5"), " + $6 \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 AND (owner IS NULL OR lease_until <= ", now!("$5"), ") \
        RETURNING fence, conversation, lease_until");

    /// As [`RUN_CLAIM`], but a run that someone is writing to is left to them at once.
    RUN_CLAIM_UNLOCKED = concat!("UPDATE gesta.runs SET fence = fence + 1, owner = $4, lease_until = ", now!("$5"),
        " + $6 WHERE bucket = $1 AND tenant = $2 AND run_id IN (SELECT run_id FROM gesta.runs \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 AND (owner IS NULL OR lease_until <= ", now!("$5"), ") \
        FOR UPDATE SKIP LOCKED) RETURNING fence, conversation, lease_until");

    RUN_RENEW = concat!("UPDATE gesta.runs SET lease_until = ", now!("$6"), " + $7 \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 AND fence = $4 AND owner = $5");

    RUN_RELEASE = "UPDATE gesta.runs SET owner = NULL, lease_until = NULL \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 AND fence = $4 AND owner = $5";

    RUNS_LOCK = "SELECT run_id FROM gesta.runs \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 ORDER BY run_id FOR UPDATE";

    EVENTS_APPEND = "INSERT INTO gesta.events (bucket, tenant, run_id, position, number, version, body) \
        VALUES ($1, $2, $3, $4, $5, $6, $7)";

    /// Those that the head counted when it was read, whatever was appended since.
    EVENTS = "SELECT position, number, version, body FROM gesta.events \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 AND position < $4 ORDER BY position";

    CONVERSATION = "SELECT conversation, agent, contact, turns, run_id, updated_at FROM gesta.conversations \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3";

    /// Takes it where nobody has it.
    CONVERSATION_TAKE = "INSERT INTO gesta.conversations (bucket, tenant, conversation, agent, contact, turns, run_id, \
        updated_at) VALUES ($1, $2, $3, $4, $5, 0, $6, $7) \
        ON CONFLICT (bucket, tenant, conversation) DO UPDATE SET agent = excluded.agent, \
        contact = excluded.contact, run_id = excluded.run_id, updated_at = excluded.updated_at \
        WHERE conversations.bucket = $1 AND conversations.tenant = $2 AND conversations.run_id IS NULL";

    /// Takes it from a run that is not there any more.
    CONVERSATION_TAKE_LEFT = "UPDATE gesta.conversations SET agent = $4, contact = $5, run_id = $6, updated_at = $7 \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 AND run_id = $8";

    CONVERSATION_RETAKE = "UPDATE gesta.conversations SET run_id = $4 \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 AND run_id IS NULL";

    CONVERSATION_FREE = "UPDATE gesta.conversations SET run_id = NULL, updated_at = $5 \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 AND run_id = $4";

    CONVERSATION_TURN = "UPDATE gesta.conversations SET turns = turns + 1, updated_at = $5, \
        run_id = CASE WHEN run_id = $4 THEN NULL ELSE run_id END \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 RETURNING turns";

    /// Something to lock where nobody has begun the conversation; its transaction takes it away again.
    CONVERSATION_STAND_IN = "INSERT INTO gesta.conversations (bucket, tenant, conversation, agent, turns, updated_at) \
        VALUES ($1, $2, $3, '', 0, 0) ON CONFLICT (bucket, tenant, conversation) DO NOTHING";

    CONVERSATION_LOCK = concat!("SELECT run_id, ", now!("$4"), " FROM gesta.conversations \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 FOR UPDATE");

    TURN_ADD = "INSERT INTO gesta.turns (bucket, tenant, conversation, seq, run_id, tokens, version, messages) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

    TURNS_LAST = "SELECT seq, tokens, version, messages FROM gesta.turns \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 ORDER BY seq DESC LIMIT $4";

    DOCUMENT = "SELECT version, changed_at, image FROM gesta.documents \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3";

    DOCUMENT_VERSION = "SELECT version FROM gesta.documents \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 FOR UPDATE";

    DOCUMENT_FIRST = "INSERT INTO gesta.documents (bucket, tenant, conversation, version, changed_at, image) \
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (bucket, tenant, conversation) DO NOTHING";

    DOCUMENT_NEXT = "UPDATE gesta.documents SET version = $4, changed_at = $5, image = $6 \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 AND version = $7";

    WORKING = "SELECT image FROM gesta.working_copies WHERE bucket = $1 AND tenant = $2 AND run_id = $3";

    WORKING_PUT = "INSERT INTO gesta.working_copies (bucket, tenant, run_id, image) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (bucket, tenant, run_id) DO UPDATE SET image = excluded.image";

    WORKING_DROP = "DELETE FROM gesta.working_copies WHERE bucket = $1 AND tenant = $2 AND run_id = $3";

    HOLD_STATE = "SELECT state FROM gesta.holds \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 AND call_id = $4";

    HOLD_OPEN = "INSERT INTO gesta.holds (bucket, tenant, run_id, call_id, agent, conversation, contact, tool, kind, \
        state, opened_at, hold) \
        SELECT bucket, tenant, run_id, $4, agent, conversation, contact, $5, $6, $7, $8, $9 FROM gesta.runs \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 \
        ON CONFLICT (bucket, tenant, run_id, call_id) DO UPDATE SET state = excluded.state, hold = excluded.hold, \
        closed_at = NULL";

    HOLD_CLOSE = "UPDATE gesta.holds SET state = 'closed', closed_at = $5, answer = $6 \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 AND call_id = $4 AND state <> 'closed'";

    HOLD_CLOSED = "SELECT answer, closed_at FROM gesta.holds \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 AND call_id = $4 AND state = 'closed'";

    CONFIG_PUT = "INSERT INTO gesta.configs (bucket, tenant, hash, body) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (bucket, tenant, hash) DO NOTHING";

    CONFIG = "SELECT body FROM gesta.configs WHERE bucket = $1 AND tenant = $2 AND hash = $3";

    /// The run stays there until it is written, so that nothing of an erased one is left.
    WIRE_PUT = "INSERT INTO gesta.wire (bucket, tenant, run_id, trip, attempt, at, request, response) \
        SELECT bucket, tenant, run_id, $4, $5, $6, $7, $8 FROM gesta.runs \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 FOR SHARE \
        ON CONFLICT (bucket, tenant, run_id, trip, attempt) DO UPDATE SET at = excluded.at, \
        request = excluded.request, response = excluded.response";

    WIRE = "SELECT trip, attempt, at, request, response FROM gesta.wire \
        WHERE bucket = $1 AND tenant = $2 AND run_id = $3 ORDER BY trip, attempt";

    ERASE_REQUESTS = "DELETE FROM gesta.requests WHERE bucket = $1 AND tenant = $2 AND run_id = ANY($3)";

    /// Something goes on in a conversation, or it was changed at this moment or later.
    CONVERSATION_YOUNG = "SELECT run_id FROM gesta.runs \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 \
        AND (status <> 'ended' OR updated_at >= $4 OR lease_until >= $4 OR run_id IN \
        (SELECT run_id FROM gesta.holds WHERE bucket = $1 AND tenant = $2 AND state <> 'closed')) LIMIT 1";

    RUN_FORGET = "DELETE FROM gesta.runs WHERE bucket = $1 AND tenant = $2 AND run_id = $3 \
        AND conversation IS NULL AND status = 'ended' AND updated_at < $4 \
        AND (lease_until IS NULL OR lease_until < $4) AND run_id NOT IN \
        (SELECT run_id FROM gesta.holds WHERE bucket = $1 AND tenant = $2 AND state <> 'closed')";

    RUN_FORGET_EVENTS = "DELETE FROM gesta.events WHERE bucket = $1 AND tenant = $2 AND run_id = $3";

    RUN_FORGET_WIRE = "DELETE FROM gesta.wire WHERE bucket = $1 AND tenant = $2 AND run_id = $3";

    RUN_FORGET_HOLDS = "DELETE FROM gesta.holds WHERE bucket = $1 AND tenant = $2 AND run_id = $3";

    ERASE_EVENTS = "DELETE FROM gesta.events WHERE bucket = $1 AND tenant = $2 AND run_id IN \
        (SELECT run_id FROM gesta.runs WHERE bucket = $1 AND tenant = $2 AND conversation = $3)";

    ERASE_WIRE = "DELETE FROM gesta.wire WHERE bucket = $1 AND tenant = $2 AND run_id IN \
        (SELECT run_id FROM gesta.runs WHERE bucket = $1 AND tenant = $2 AND conversation = $3)";

    ERASE_HOLDS = "DELETE FROM gesta.holds WHERE bucket = $1 AND tenant = $2 AND run_id IN \
        (SELECT run_id FROM gesta.runs WHERE bucket = $1 AND tenant = $2 AND conversation = $3)";

    ERASE_WORKING = "DELETE FROM gesta.working_copies WHERE bucket = $1 AND tenant = $2 AND run_id IN \
        (SELECT run_id FROM gesta.runs WHERE bucket = $1 AND tenant = $2 AND conversation = $3)";

    ERASE_DOCUMENT = "DELETE FROM gesta.documents WHERE bucket = $1 AND tenant = $2 AND conversation = $3";

    ERASE_TURNS = "DELETE FROM gesta.turns WHERE bucket = $1 AND tenant = $2 AND conversation = $3";

    ERASE_RUNS = "DELETE FROM gesta.runs WHERE bucket = $1 AND tenant = $2 AND conversation = $3";

    ERASE_CONVERSATION = "DELETE FROM gesta.conversations WHERE bucket = $1 AND tenant = $2 AND conversation = $3";

    RUNS_OF_CONVERSATION = concat!("SELECT ", run_columns!(), " FROM gesta.runs \
        WHERE bucket = $1 AND tenant = $2 AND conversation = $3 \
        AND ($4 IS NULL OR agent = $4) AND ($5 IS NULL OR status = $5) AND ($6 IS NULL OR closed = $6) \
        AND ($7 IS NULL OR contact = $7) AND ($8 IS NULL OR started_at >= $8) \
        AND ($9 IS NULL OR started_at < $9 OR (started_at = $9 AND run_id < $10)) \
        AND ($12 IS NULL OR outcome = $12) \
        ORDER BY started_at DESC, run_id DESC LIMIT $11");

    REQUEST_PUT = "INSERT INTO gesta.requests (bucket, tenant, owner, name, fingerprint, run_id, at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (bucket, tenant, owner, name) DO NOTHING";

    REQUEST = "SELECT fingerprint, run_id, status, content_type, body FROM gesta.requests \
        WHERE bucket = $1 AND tenant = $2 AND owner = $3 AND name = $4";

    REQUEST_SETTLE = "UPDATE gesta.requests SET status = $5, content_type = $6, body = $7 \
        WHERE bucket = $1 AND tenant = $2 AND owner = $3 AND name = $4 AND status IS NULL";

    REQUEST_LET_GO = "DELETE FROM gesta.requests \
        WHERE bucket = $1 AND tenant = $2 AND owner = $3 AND name = $4 AND status IS NULL";

    REQUESTS_FORGET = "DELETE FROM gesta.requests WHERE bucket = $1 AND tenant = $2 AND at < $3";

    KEY_PUT = "INSERT INTO gesta.api_keys (bucket, tenant, id, body, created_at) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (bucket, tenant, id) DO NOTHING";

    KEYS = "SELECT body, revoked_at FROM gesta.api_keys WHERE bucket = $1 AND tenant = $2 ORDER BY created_at, id";

    KEY = "SELECT body, revoked_at FROM gesta.api_keys WHERE bucket = $1 AND tenant = $2 AND id = $3";

    KEY_REVOKE = "UPDATE gesta.api_keys SET revoked_at = $4 \
        WHERE bucket = $1 AND tenant = $2 AND id = $3 AND revoked_at IS NULL";

    DISPATCH_PUT = "INSERT INTO gesta.dispatches (bucket, tenant, id, kind, run_id, call_id, at, due, attempts) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0) ON CONFLICT (bucket, tenant, id) DO NOTHING";

    /// What another is taking at this moment is left to them. Looked for once, ahead: a plan may look again for each
    /// row, and would take more than so many.
    DISPATCHES_TAKE = "WITH taken AS MATERIALIZED (SELECT id FROM gesta.dispatches \
        WHERE bucket = $1 AND tenant = $2 AND due <= $3 ORDER BY due, id LIMIT $5 FOR UPDATE SKIP LOCKED) \
        UPDATE gesta.dispatches SET attempts = attempts + 1, due = $4 \
        WHERE bucket = $1 AND tenant = $2 AND id IN (SELECT id FROM taken) \
        RETURNING id, kind, run_id, call_id, at, due, attempts";

    DISPATCH_SETTLE = "UPDATE gesta.dispatches SET due = $4 WHERE bucket = $1 AND tenant = $2 AND id = $3";

    DISPATCHES_FORGET = "DELETE FROM gesta.dispatches WHERE bucket = $1 AND tenant = $2 AND due IS NULL AND at < $3";

    AUDIT_LAST = "SELECT seq, hash FROM gesta.audit WHERE bucket = $1 AND tenant = $2 ORDER BY seq DESC LIMIT 1";

    /// Waits for whoever adds at this place, and adds nothing where they do.
    AUDIT_ADD = "INSERT INTO gesta.audit (bucket, tenant, seq, hash, body) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (bucket, tenant, seq) DO NOTHING";

    AUDIT = "SELECT body FROM gesta.audit WHERE bucket = $1 AND tenant = $2 AND seq > $3 ORDER BY seq LIMIT $4";
}

statements! { ACROSS:
    RUN_BY_ID = concat!("SELECT ", run_columns!(), " FROM gesta.runs WHERE tenant = $1 AND run_id = $2");

    RUNS = concat!("SELECT ", run_columns!(), " FROM gesta.runs WHERE tenant = $1 \
        AND ($2 IS NULL OR agent = $2) AND ($3 IS NULL OR status = $3) AND ($4 IS NULL OR closed = $4) \
        AND ($5 IS NULL OR contact = $5) AND ($6 IS NULL OR started_at >= $6) \
        AND ($7 IS NULL OR started_at < $7 OR (started_at = $7 AND run_id < $8)) \
        AND ($10 IS NULL OR outcome = $10) \
        ORDER BY started_at DESC, run_id DESC LIMIT $9");

    CONVERSATIONS = "SELECT conversation, agent, contact, turns, run_id, updated_at FROM gesta.conversations \
        WHERE tenant = $1 ORDER BY updated_at DESC, conversation LIMIT $2";

    DOCUMENTS = "SELECT conversation, version, CAST(length(image) AS BIGINT), changed_at FROM gesta.documents \
        WHERE tenant = $1 ORDER BY changed_at DESC, conversation LIMIT $2";

    OLD_CONVERSATIONS = "SELECT conversation FROM gesta.conversations \
        WHERE tenant = $1 AND agent = $2 AND updated_at < $3 AND conversation NOT IN \
        (SELECT conversation FROM gesta.runs WHERE tenant = $1 AND agent = $2 AND conversation IS NOT NULL \
        AND (status <> 'ended' OR updated_at >= $3 OR lease_until >= $3 OR run_id IN \
        (SELECT run_id FROM gesta.holds WHERE tenant = $1 AND state <> 'closed'))) \
        ORDER BY updated_at, conversation LIMIT $4";

    OLD_RUNS = "SELECT run_id FROM gesta.runs WHERE tenant = $1 AND agent = $2 AND conversation IS NULL \
        AND status = 'ended' AND updated_at < $3 AND (lease_until IS NULL OR lease_until < $3) AND run_id NOT IN \
        (SELECT run_id FROM gesta.holds WHERE tenant = $1 AND state <> 'closed') ORDER BY updated_at, run_id LIMIT $4";

    HOLDS_OPEN = "SELECT hold, agent, conversation, contact, opened_at, run_id, call_id FROM gesta.holds \
        WHERE tenant = $1 AND state <> 'closed' \
        AND ($2 IS NULL OR agent = $2) AND ($3 IS NULL OR run_id = $3) AND ($4 IS NULL OR tool = $4) \
        AND ($5 IS NULL OR contact = $5) AND ($6 IS NULL OR kind = $6) AND ($7 IS NULL OR opened_at < $7) \
        AND ($8 IS NULL OR opened_at > $8 OR (opened_at = $8 AND (run_id > $9 OR (run_id = $9 AND call_id > $10)))) \
        ORDER BY opened_at, run_id, call_id LIMIT $11";
}
