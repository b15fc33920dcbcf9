//! ManyChat's wire without a wire: what is sent, what an answer means, when the next call may go (`spec/channel.md`, 19).
//! Only one module of the house may put these on a network.

mod answer;
mod limiter;
mod request;

pub use answer::{CallError, Contact, Failure, read, read_contact};
pub use limiter::{FlowKind, FlowRoom, Limiter, Slot, flow_room};
pub use request::{Call, Method, Operation, Request};
