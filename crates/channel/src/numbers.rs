//! Every bound of the channel with the paragraph it comes from. Chosen numbers, not measured ones, unless a line says so.

/// ManyChat waits this long for a response (`spec/channel.md`, 1 and 5). Milliseconds.
pub const MANYCHAT_WAITS_MS: u64 = 10_000;
/// From a request's arrival to the holding line, the wait for the contact's previous turn included (5). Milliseconds.
pub const RACE_DEADLINE_MS: u64 = 8_000;
/// Kept back for rendering, network and store (5). Milliseconds.
pub const RESERVE_MS: u64 = 2_000;
/// Ends the model call; longer than the deadline, or the boot fails (5). Milliseconds, time spent parked left out.
pub const MODEL_ABORT_MS: u64 = 30_000;
/// The longest play time of a flow (5, 8, 15). Seconds.
pub const SETTLE_SECONDS_MAX: u64 = 30;
/// One read of the contact (5, 16). Milliseconds.
pub const READ_MS: u64 = 1_500;
/// Any call of ManyChat (5, 19). Milliseconds.
pub const CALL_MS: u64 = 10_000;
/// How long the text of one turn waits for the actions of the turn before (10, 22). Milliseconds.
pub const ACTION_WAIT_MS: u64 = 30_000;
/// A turn that has not settled this long after its last claim is ended by the sweeper (6). Milliseconds.
pub const TURN_WAIT_MS: u64 = MODEL_ABORT_MS + RACE_DEADLINE_MS;

/// An inbound body (2). Bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// The text of an inbound message (2). Characters.
pub const TEXT_CHARS_MAX: usize = 4096;
/// `ai_token`, `offering`, `message_id` (2). Characters; the contact's id and names are held to the same.
pub const KEY_CHARS_MAX: usize = 256;
/// Each secret of the list (3). Characters.
pub const SECRET_CHARS_MIN: usize = 16;
/// Requests of one address in a minute, authenticated or not, each with a budget of its own (3).
pub const REQUESTS_PER_MINUTE_MAX: u32 = 300;
/// How long a callback is good for (4). Seconds.
pub const CALLBACK_SECONDS: u64 = 86_400;

/// Model calls of a turn: the last offers no tools (7). Chosen 2026-11, to be changed when an evaluation shows the need.
pub const TRIPS_MAX: u32 = 4;
/// Actions of a turn, flows sent during it included (7, 10). Chosen 2026-11, as above.
pub const ACTIONS_MAX: usize = 8;
/// Reads of a turn (7, 16).
pub const READS_MAX: u32 = 2;
/// Bound turns of history before the current message (7).
pub const HISTORY_TURNS_MAX: usize = 10;
/// Messages of a reply as the model writes it (7).
pub const REPLY_MESSAGES_MAX: usize = 3;
/// One message of a reply, and the closing question (7). Characters.
pub const REPLY_CHARS_MAX: usize = 1000;

/// A note's text (8). Characters.
pub const NOTE_CHARS_MAX: u64 = 500;
/// A nudge's delay, and the age of the last inbound message beyond which none is sent (8, 17). Minutes.
pub const NUDGE_MINUTES_MAX: u64 = 1380;
/// How often due nudges are looked for (17). Milliseconds.
pub const NUDGE_POLL_MS: u64 = 15_000;

/// How often due rows are looked for (18). Milliseconds.
pub const OUTBOX_POLL_MS: u64 = 1_000;
/// Rows of one claim (18).
pub const OUTBOX_CLAIM_MAX: u32 = 10;
/// Attempts of a row (18).
pub const OUTBOX_ATTEMPTS_MAX: u32 = 5;
/// The longest wait between two attempts (18). Seconds.
pub const OUTBOX_WAIT_SECONDS_MAX: u64 = 300;
/// Between the messages of a reply, and before the contact's next reply (18). Milliseconds.
pub const REPLY_GAP_MS: u64 = 2_000;
/// The longest gap that may be set (18, 22). Milliseconds.
pub const REPLY_GAP_MS_MAX: u64 = 10_000;

/// Requests to ManyChat in a second, all together (19).
pub const REQUESTS_PER_SECOND: u32 = 10;
/// Requests that may go out at once (19).
pub const REQUESTS_BURST: u32 = 5;
/// `sendFlow` for one contact in 60 minutes, all kinds counted (19).
pub const FLOWS_PER_HOUR_MAX: usize = 100;
/// Of these, kept for replies (19).
pub const FLOWS_KEPT_FOR_REPLIES: usize = 20;
/// The window of the two above (19). Milliseconds.
pub const HOUR_MS: u64 = 3_600_000;

/// Scheduling lag above which the model is not called (21). Milliseconds.
pub const LAG_MS_MAX: u64 = 1_000;
