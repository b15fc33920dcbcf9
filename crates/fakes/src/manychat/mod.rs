//! ManyChat as a server: its API with real envelopes and limits, contacts who write, a phone that shows what they would
//! see, faults to be asked for, and a ledger of every request (`spec/channel.md`, 24).
//!
//! - `/fb/…` is the API. Parameters are strict, and a fault never hides that a request was wrong.
//! - `/phone?contact=ID` is a page that shows a contact's phone, with a line to type into and the fault switches.
//! - `/__fake/…` is for tests in other processes: `inbound`, `timeline`, `ledger`, `faults`, `clock`.
//!
//! ```
//! use gesta_fakes::manychat::{FakeManychat, Setup};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let setup = Setup::read(r#"{"key": "PAGE:KEY", "contacts": [{"id": "1"}], "tags": ["vip"]}"#)?;
//! let fake = FakeManychat::start(setup, None).await?;
//! assert!(fake.timeline("1").is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod api;
mod caller;
mod faults;
mod ledger;
mod page;
mod serve;
mod setup;
mod state;

pub use caller::InboundError;
pub use faults::{Fault, Switch};
pub use ledger::Entry;
pub use serve::FakeManychat;
pub use setup::{ContactSetup, FlowSetup, FlowStep, Setup, Webhook};
pub use state::{Seen, SeenBy};
