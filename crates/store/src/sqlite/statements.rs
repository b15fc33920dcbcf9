//! Every statement that reads or writes rows, in one place, so that a test can hold all of them to
//! `spec/durability.md`, 5.2: `bucket` and `tenant` are always `?1` and `?2` and stand first in every condition.
//!
//! Those under [`ACROSS`] read all buckets of one tenant: finding a run by its id alone, and lists for people. Nothing
//! is decided by them.

macro_rules! run_columns {
    () => {
        "bucket, run_id, agent, conversation, contact, config, status, outcome, closed, events, started_at, \
         updated_at, fence, owner, lease_until"
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
    RUN = concat!("SELECT ", run_columns!(), " FROM runs WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3");

    RUN_OPEN = "INSERT INTO runs (bucket, tenant, run_id, agent, conversation, contact, config, status, closed, \
        events, started_at, updated_at, fence, owner, lease_until) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open', 0, ?8, ?9, ?9, 1, ?10, ?11) \
        ON CONFLICT (bucket, tenant, run_id) DO NOTHING";

    RUN_APPEND = "UPDATE runs SET events = events + ?7, status = ?8, outcome = ?9, closed = ?10, \
        updated_at = COALESCE(?11, updated_at), owner = ?12, lease_until = ?13 \
        WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 AND fence = ?4 AND owner = ?5 AND events = ?6";

    RUN_TURN = "UPDATE runs SET turn = ?4 WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 AND turn IS NULL";

    RUN_CLAIM = "UPDATE runs SET fence = fence + 1, owner = ?4, lease_until = ?5 \
        WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 \
        AND (owner IS NULL OR lease_until <= ?6 OR owner = ?7) RETURNING fence, conversation";

    RUN_RENEW = "UPDATE runs SET lease_until = ?6 \
        WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 AND fence = ?4 AND owner = ?5";

    RUN_RELEASE = "UPDATE runs SET owner = NULL, lease_until = NULL \
        WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 AND fence = ?4 AND owner = ?5";

    EVENTS_APPEND = "INSERT INTO events (bucket, tenant, run_id, position, number, version, body) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

    EVENTS = "SELECT position, number, version, body FROM events \
        WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 ORDER BY position";

    CONVERSATION = "SELECT conversation, agent, contact, turns, run_id, updated_at FROM conversations \
        WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3";

    CONVERSATION_TAKE = "INSERT INTO conversations (bucket, tenant, conversation, agent, contact, turns, run_id, \
        updated_at) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7) \
        ON CONFLICT (bucket, tenant, conversation) DO UPDATE SET agent = excluded.agent, \
        contact = excluded.contact, run_id = excluded.run_id, updated_at = excluded.updated_at";

    CONVERSATION_RETAKE = "UPDATE conversations SET run_id = ?4 \
        WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3 AND run_id IS NULL";

    CONVERSATION_FREE = "UPDATE conversations SET run_id = NULL, updated_at = ?5 \
        WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3 AND run_id = ?4";

    CONVERSATION_TURN = "UPDATE conversations SET turns = turns + 1, updated_at = ?5, \
        run_id = CASE WHEN run_id = ?4 THEN NULL ELSE run_id END \
        WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3 RETURNING turns";

    TURN_ADD = "INSERT INTO turns (bucket, tenant, conversation, seq, run_id, tokens, version, messages) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

    TURNS_LAST = "SELECT seq, tokens, version, messages FROM turns \
        WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3 ORDER BY seq DESC LIMIT ?4";

    DOCUMENT = "SELECT version, changed_at, image FROM documents \
        WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3";

    DOCUMENT_VERSION = "SELECT version FROM documents WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3";

    DOCUMENT_PUT = "INSERT INTO documents (bucket, tenant, conversation, version, changed_at, image) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
        ON CONFLICT (bucket, tenant, conversation) DO UPDATE SET version = excluded.version, \
        changed_at = excluded.changed_at, image = excluded.image";

    WORKING = "SELECT image FROM working_copies WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3";

    WORKING_PUT = "INSERT INTO working_copies (bucket, tenant, run_id, image) VALUES (?1, ?2, ?3, ?4) \
        ON CONFLICT (bucket, tenant, run_id) DO UPDATE SET image = excluded.image";

    WORKING_DROP = "DELETE FROM working_copies WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3";

    HOLD_STATE = "SELECT state FROM holds \
        WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 AND call_id = ?4";

    HOLD_OPEN = "INSERT INTO holds (bucket, tenant, run_id, call_id, agent, conversation, contact, tool, kind, \
        state, opened_at, hold) \
        SELECT bucket, tenant, run_id, ?4, agent, conversation, contact, ?5, ?6, ?7, ?8, ?9 FROM runs \
        WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 \
        ON CONFLICT (bucket, tenant, run_id, call_id) DO UPDATE SET state = excluded.state, hold = excluded.hold, \
        closed_at = NULL";

    HOLD_CLOSE = "UPDATE holds SET state = 'closed', closed_at = ?5, answer = ?6 \
        WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 AND call_id = ?4 AND state <> 'closed'";

    HOLD_CLOSED = "SELECT answer, closed_at FROM holds \
        WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 AND call_id = ?4 AND state = 'closed'";

    CONFIG_PUT = "INSERT INTO configs (bucket, tenant, hash, body) VALUES (?1, ?2, ?3, ?4) \
        ON CONFLICT (bucket, tenant, hash) DO NOTHING";

    CONFIG = "SELECT body FROM configs WHERE bucket = ?1 AND tenant = ?2 AND hash = ?3";

    WIRE_PUT = "INSERT INTO wire (bucket, tenant, run_id, trip, attempt, at, request, response) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
        ON CONFLICT (bucket, tenant, run_id, trip, attempt) DO UPDATE SET at = excluded.at, \
        request = excluded.request, response = excluded.response";

    WIRE = "SELECT trip, attempt, at, request, response FROM wire \
        WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 ORDER BY trip, attempt";

    RUNS_OF = "SELECT run_id FROM runs WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3";

    ERASE_REQUESTS = "DELETE FROM requests WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3";

    /// Something goes on in a conversation, or it was changed at this moment or later.
    CONVERSATION_YOUNG = "SELECT run_id FROM runs \
        WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3 \
        AND (status <> 'ended' OR updated_at >= ?4 OR lease_until >= ?4 OR run_id IN \
        (SELECT run_id FROM holds WHERE bucket = ?1 AND tenant = ?2 AND state <> 'closed')) LIMIT 1";

    RUN_FORGET = "DELETE FROM runs WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3 \
        AND conversation IS NULL AND status = 'ended' AND updated_at < ?4 \
        AND (lease_until IS NULL OR lease_until < ?4) AND run_id NOT IN \
        (SELECT run_id FROM holds WHERE bucket = ?1 AND tenant = ?2 AND state <> 'closed')";

    RUN_FORGET_EVENTS = "DELETE FROM events WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3";

    RUN_FORGET_WIRE = "DELETE FROM wire WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3";

    RUN_FORGET_HOLDS = "DELETE FROM holds WHERE bucket = ?1 AND tenant = ?2 AND run_id = ?3";

    ERASE_EVENTS = "DELETE FROM events WHERE bucket = ?1 AND tenant = ?2 AND run_id IN \
        (SELECT run_id FROM runs WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3)";

    ERASE_WIRE = "DELETE FROM wire WHERE bucket = ?1 AND tenant = ?2 AND run_id IN \
        (SELECT run_id FROM runs WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3)";

    ERASE_HOLDS = "DELETE FROM holds WHERE bucket = ?1 AND tenant = ?2 AND run_id IN \
        (SELECT run_id FROM runs WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3)";

    ERASE_WORKING = "DELETE FROM working_copies WHERE bucket = ?1 AND tenant = ?2 AND run_id IN \
        (SELECT run_id FROM runs WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3)";

    ERASE_DOCUMENT = "DELETE FROM documents WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3";

    ERASE_TURNS = "DELETE FROM turns WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3";

    ERASE_RUNS = "DELETE FROM runs WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3";

    ERASE_CONVERSATION = "DELETE FROM conversations WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3";

    RUNS_OF_CONVERSATION = concat!("SELECT ", run_columns!(), " FROM runs \
        WHERE bucket = ?1 AND tenant = ?2 AND conversation = ?3 \
        AND (?4 IS NULL OR agent = ?4) AND (?5 IS NULL OR status = ?5) AND (?6 IS NULL OR closed = ?6) \
        AND (?7 IS NULL OR contact = ?7) AND (?8 IS NULL OR started_at >= ?8) \
        AND (?9 IS NULL OR started_at < ?9 OR (started_at = ?9 AND run_id < ?10)) \
        AND (?12 IS NULL OR outcome = ?12) \
        ORDER BY started_at DESC, run_id DESC LIMIT ?11");

    REQUEST_PUT = "INSERT INTO requests (bucket, tenant, owner, name, fingerprint, run_id, at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (bucket, tenant, owner, name) DO NOTHING";

    REQUEST = "SELECT fingerprint, run_id, status, content_type, body FROM requests \
        WHERE bucket = ?1 AND tenant = ?2 AND owner = ?3 AND name = ?4";

    REQUEST_SETTLE = "UPDATE requests SET status = ?5, content_type = ?6, body = ?7 \
        WHERE bucket = ?1 AND tenant = ?2 AND owner = ?3 AND name = ?4 AND status IS NULL";

    REQUEST_LET_GO = "DELETE FROM requests \
        WHERE bucket = ?1 AND tenant = ?2 AND owner = ?3 AND name = ?4 AND status IS NULL";

    REQUESTS_FORGET = "DELETE FROM requests WHERE bucket = ?1 AND tenant = ?2 AND at < ?3";

    KEY_PUT = "INSERT INTO api_keys (bucket, tenant, id, body, created_at) VALUES (?1, ?2, ?3, ?4, ?5) \
        ON CONFLICT (bucket, tenant, id) DO NOTHING";

    KEYS = "SELECT body, revoked_at FROM api_keys WHERE bucket = ?1 AND tenant = ?2 ORDER BY created_at, id";

    KEY = "SELECT body, revoked_at FROM api_keys WHERE bucket = ?1 AND tenant = ?2 AND id = ?3";

    KEY_REVOKE = "UPDATE api_keys SET revoked_at = ?4 \
        WHERE bucket = ?1 AND tenant = ?2 AND id = ?3 AND revoked_at IS NULL";

    DISPATCH_PUT = "INSERT INTO dispatches (bucket, tenant, id, kind, run_id, call_id, at, due, attempts) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0) ON CONFLICT (bucket, tenant, id) DO NOTHING";

    DISPATCHES_TAKE = "UPDATE dispatches SET attempts = attempts + 1, due = ?4 \
        WHERE bucket = ?1 AND tenant = ?2 AND due <= ?3 AND id IN (SELECT id FROM dispatches \
        WHERE bucket = ?1 AND tenant = ?2 AND due <= ?3 ORDER BY due, id LIMIT ?5) \
        RETURNING id, kind, run_id, call_id, at, due, attempts";

    DISPATCH_SETTLE = "UPDATE dispatches SET due = ?4 WHERE bucket = ?1 AND tenant = ?2 AND id = ?3";

    DISPATCHES_FORGET = "DELETE FROM dispatches WHERE bucket = ?1 AND tenant = ?2 AND due IS NULL AND at < ?3";

    AUDIT_LAST = "SELECT seq, hash FROM audit WHERE bucket = ?1 AND tenant = ?2 ORDER BY seq DESC LIMIT 1";

    AUDIT_ADD = "INSERT INTO audit (bucket, tenant, seq, hash, body) VALUES (?1, ?2, ?3, ?4, ?5)";

    AUDIT = "SELECT body FROM audit WHERE bucket = ?1 AND tenant = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4";
}

statements! { ACROSS:
    RUN_BUCKET = "SELECT bucket, owner FROM runs WHERE tenant = ?1 AND run_id = ?2";

    RUNS = concat!("SELECT ", run_columns!(), " FROM runs WHERE tenant = ?1 \
        AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR status = ?3) AND (?4 IS NULL OR closed = ?4) \
        AND (?5 IS NULL OR contact = ?5) AND (?6 IS NULL OR started_at >= ?6) \
        AND (?7 IS NULL OR started_at < ?7 OR (started_at = ?7 AND run_id < ?8)) \
        AND (?10 IS NULL OR outcome = ?10) \
        ORDER BY started_at DESC, run_id DESC LIMIT ?9");

    CONVERSATIONS = "SELECT conversation, agent, contact, turns, run_id, updated_at FROM conversations \
        WHERE tenant = ?1 ORDER BY updated_at DESC, conversation LIMIT ?2";

    DOCUMENTS = "SELECT conversation, version, length(image), changed_at FROM documents \
        WHERE tenant = ?1 ORDER BY changed_at DESC, conversation LIMIT ?2";

    OLD_CONVERSATIONS = "SELECT conversation FROM conversations \
        WHERE tenant = ?1 AND agent = ?2 AND updated_at < ?3 AND conversation NOT IN \
        (SELECT conversation FROM runs WHERE tenant = ?1 AND agent = ?2 AND conversation IS NOT NULL \
        AND (status <> 'ended' OR updated_at >= ?3 OR lease_until >= ?3 OR run_id IN \
        (SELECT run_id FROM holds WHERE tenant = ?1 AND state <> 'closed'))) \
        ORDER BY updated_at, conversation LIMIT ?4";

    OLD_RUNS = "SELECT run_id FROM runs WHERE tenant = ?1 AND agent = ?2 AND conversation IS NULL \
        AND status = 'ended' AND updated_at < ?3 AND (lease_until IS NULL OR lease_until < ?3) AND run_id NOT IN \
        (SELECT run_id FROM holds WHERE tenant = ?1 AND state <> 'closed') ORDER BY updated_at, run_id LIMIT ?4";

    HOLDS_OPEN = "SELECT hold, agent, conversation, contact, opened_at, run_id, call_id FROM holds \
        WHERE tenant = ?1 AND state <> 'closed' \
        AND (?2 IS NULL OR agent = ?2) AND (?3 IS NULL OR run_id = ?3) AND (?4 IS NULL OR tool = ?4) \
        AND (?5 IS NULL OR contact = ?5) AND (?6 IS NULL OR kind = ?6) AND (?7 IS NULL OR opened_at < ?7) \
        AND (?8 IS NULL OR opened_at > ?8 OR (opened_at = ?8 AND (run_id > ?9 OR (run_id = ?9 AND call_id > ?10)))) \
        ORDER BY opened_at, run_id, call_id LIMIT ?11";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema::MIGRATIONS;

    fn one_space(sql: &str) -> String {
        sql.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_condition_and_every_insert_begins_with_bucket_and_tenant() {
        for (name, sql) in ONE_BUCKET {
            let sql = one_space(sql);
            let insert = sql.starts_with("INSERT");
            if insert {
                assert!(sql.split_once('(').is_some_and(|(_, it)| it.starts_with("bucket, tenant, ")), "{name}: {sql}");
            }
            // The target of `ON CONFLICT` is the row that was to be inserted: its key leads with the bucket.
            for (n, condition) in sql.split(" WHERE ").enumerate().skip(1) {
                assert!(condition.starts_with("bucket = ?1 AND tenant = ?2"), "{name}, condition {n}: {sql}");
            }
            for target in sql.split("ON CONFLICT ").skip(1) {
                assert!(target.starts_with("(bucket, tenant, "), "{name}: {sql}");
            }
            assert!(insert || sql.contains(" WHERE "), "{name}: {sql}");
        }
    }

    #[test]
    fn what_reads_across_buckets_only_reads_and_keeps_to_its_tenant() {
        for (name, sql) in ACROSS {
            let sql = one_space(sql);
            assert!(sql.starts_with("SELECT"), "{name}: {sql}");
            assert!(sql.contains(" WHERE tenant = ?"), "{name}: {sql}");
        }
    }

    #[test]
    fn no_statement_uses_what_does_not_carry_over() {
        let banned = [
            "AUTOINCREMENT",
            "TRIGGER",
            "REFERENCES",
            "FOREIGN",
            "DEFERRABLE",
            "TEMP ",
            "INSERT OR ",
            "REPLACE",
            " IFNULL",
            " INCLUDE",
            "rowid =",
            "JOIN",
            "GLOB",
            "strftime",
            "datetime(",
            "PRAGMA",
            ";",
        ];
        for (name, sql) in ONE_BUCKET.iter().chain(ACROSS) {
            for word in banned {
                assert!(!sql.contains(word), "{name} contains {word}");
            }
        }
    }

    #[test]
    fn every_primary_key_leads_with_bucket_and_tenant() {
        for step in MIGRATIONS {
            assert!(!step.contains("UNIQUE") && !step.contains("TRIGGER") && !step.contains("REFERENCES"));
            let tables = step.matches("CREATE TABLE").count();
            assert_eq!(step.matches("PRIMARY KEY (bucket, tenant, ").count(), tables, "{step}");
        }
    }
}
