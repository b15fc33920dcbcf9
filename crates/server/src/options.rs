//! What a server is made from, and its limits.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use gesta_model::Lookup;
use gesta_runtime::folder::Folder;
use gesta_store::{SecretError, Secrets, Tenants};
use gesta_telemetry::Traces;

use crate::hosts::Hosts;
use crate::webhook::Webhook;

/// An agent to be served: its folder, and where its variables come from.
pub struct Served {
    /// The folder, read and checked.
    pub folder: Folder,
    /// Where keys and secrets come from: for new runs, and for runs that began under an earlier state of the folder.
    pub env: Lookup,
}

/// Where the keys come from that sign documents; asked when an agent needs them.
pub type SecretsOf = Arc<dyn Fn() -> Result<Secrets, SecretError> + Send + Sync>;

/// What a server is made from.
pub struct Setup {
    /// The agents. Their names differ.
    pub agents: Vec<Served>,
    /// Where runs, conversations, keys, the audit and answers to repeated requests are kept, each tenant's apart.
    pub store: Arc<dyn Tenants>,
    /// The keys that sign documents.
    pub secrets: SecretsOf,
    /// Who asks needs an API key even where there is none yet. As soon as there was one, one is needed anyway; until then,
    /// and without this, everybody who reaches the server may do everything.
    pub needs_keys: bool,
    /// By which names the server may be called.
    pub hosts: Hosts,
    /// Who is told of holds and of runs that have ended.
    pub webhook: Option<Webhook>,
    /// Where spans of runs go.
    pub traces: Option<Traces>,
    /// Limits.
    pub limits: Limits,
}

/// What the server allows. Beyond each of these a request is refused, and nothing of it has run.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's body. 32 MiB by default: pictures and files come in base64.
    pub body_bytes_max: usize,
    /// How deep the JSON of a body may be nested. 64 by default.
    pub depth_max: usize,
    /// Runs that go on at the same time; one more is shed with 503. 1,000 by default.
    pub runs_max: usize,
    /// Requests a second that one client, which is a key or an address, may make on the average; it may be four times as
    /// many in one second. Beyond that it is told 429. 500 by default.
    pub rate_max: NonZeroU32,
    /// The same for each address from which somebody asks whose key is not known to be good: it counts before the key is
    /// looked at. 25 by default.
    pub strangers_max: NonZeroU32,
    /// Attempts a minute to sign in at the console that one address may make. 10 by default.
    pub sign_ins_max: NonZeroU32,
    /// How long a stopping server waits for what is running. 30 s by default.
    pub stop_wait: Duration,
}

const RATE_MAX: NonZeroU32 = NonZeroU32::new(500).expect("500 is not 0");
const STRANGERS_MAX: NonZeroU32 = NonZeroU32::new(25).expect("25 is not 0");
const SIGN_INS_MAX: NonZeroU32 = NonZeroU32::new(10).expect("10 is not 0");

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 32 << 20,
            depth_max: 64,
            runs_max: 1_000,
            rate_max: RATE_MAX,
            strangers_max: STRANGERS_MAX,
            sign_ins_max: SIGN_INS_MAX,
            stop_wait: Duration::from_secs(30),
        }
    }
}
