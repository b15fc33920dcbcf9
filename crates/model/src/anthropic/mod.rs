//! Anthropic Messages. Pure: bytes in, our types out.

mod block;
mod request;
mod stream;

pub use request::request;
pub use stream::{Stream, reply};
