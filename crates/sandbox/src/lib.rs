//! Workers in which documents run: processes with walls, a pool of them, deadlines from outside.
//!
//! A document is code that a model wrote. It runs in a child process ([`worker_main`]) that has no environment, no
//! files, no network and no more memory than it needs ([`Walls`]), and that never sees a second conversation. The
//! parent asks it through a [`Session`], which has it from a [`Pool`]; what the document may do in the world, it asks
//! its parent for ([`Grants`]).

mod check;
mod failure;
mod grants;
mod inside;
mod pool;
mod process;
mod protocol;
mod queue;
mod session;
mod talk;
mod walls;
mod worker;

pub use failure::{Cause, Failure, StartError};
pub use grants::{GrantCall, GrantFuture, GrantOutcome, Grants, NoGrants};
pub use inside::{Open, WORKER_ARGUMENT, worker_main, worker_main_with};
pub use pool::{Counts, Isolation, Pool, PoolSettings};
pub use process::{WorkerCommand, peak_bytes_of_ended};
pub use session::{Call, Session};
pub use walls::{Demand, Usage, Wall, Walls};
