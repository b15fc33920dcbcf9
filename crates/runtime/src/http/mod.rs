//! HTTP out of a run: tools and backstops that are endpoints, and what may be reached.

mod caller;
pub(crate) mod headers;
pub mod policy;

pub use caller::HttpCaller;
pub use policy::{Policy, PolicyError};
