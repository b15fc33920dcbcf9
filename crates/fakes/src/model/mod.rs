//! A model service that speaks Chat Completions and Messages from a script, and refuses what the real ones refuse.
//!
//! ```
//! use gesta_fakes::model::{Options, serve};
//! use gesta_scene::Script;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let script = Script::parse("model: calls c1 find {\"q\":\"shoes\"}\nmodel: There are two pairs.\n")?;
//! let model = serve(script, Options::default()).await?;
//! assert!(model.url().starts_with("http://127.0.0.1:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Paths
//!
//! - `POST …/chat/completions` and `POST …/messages`, whatever stands ahead of them, plain and streaming. A path with
//!   `/openai/deployments/NAME/` is Azure's: the model is that name, the key comes in `api-key`, and the query must
//!   have an `api-version`.
//! - `GET …/models`, `GET /healthz`, `GET /__journal` (what was asked and what was done, keys hidden).
//!
//! # Which answer
//!
//! The server keeps no memory: which answer of the script is due follows from the request alone.
//!
//! 1. A **turn** begins at the first text in the user's role that begins with `NOW: `, the notice with which Gesta opens
//!    the current turn. What the user said is the first text behind it. Hints and other prompts of the runtime, which
//!    also come in the user's role, change nothing.
//! 2. Without such a notice the whole request counts as the turn, and what the user said is the text of its last
//!    message in the user's role that has any.
//! 3. The number of answers given is the number of messages in the assistant's role within the turn.
//!
//! # Strictness
//!
//! A request is checked before anything else, and no fault hides a refusal. Where the real services differ from each
//! other the stricter is kept: arguments must be JSON objects also in Chat Completions. Messages with one role in a row
//! are joined as Anthropic joins them. Thinking is signed, and refused when it comes back changed; where a request to
//! Anthropic's protocol switches thinking on, a model whose script has no thoughts thinks a few words.
//!
//! # Faults
//!
//! [`Faults`] come from the options of the server, from the answer in the script (`served with …`), from the request's
//! header `x-fake-fault` and from its query (`?fault=cut,split`), the later ones ahead. `seed` counts in the options
//! alone.

mod anthropic;
mod deliver;
mod faults;
mod fields;
mod openai;
mod pieces;
mod place;
mod refusal;
mod serve;

pub use faults::{Cut, FaultError, Faults};
pub use refusal::Protocol;
pub use serve::{ModelServer, Options, serve};
