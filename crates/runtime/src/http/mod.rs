//! HTTP out of a run: tools and backstops that are endpoints, and what may be reached.

mod backstop;
mod caller;
pub(crate) mod headers;
pub mod policy;
mod tool;

pub use backstop::BackstopDeed;
pub use caller::HttpCaller;
pub use policy::{Policy, PolicyError};
pub use tool::{BODY_BYTES_MAX, HttpTool};
