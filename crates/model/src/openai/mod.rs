//! OpenAI Chat Completions, which is also what every compatible server speaks. Pure: bytes in, our types out.

mod calls;
mod request;
mod stream;

pub use request::request;
pub use stream::{Stream, reply};
