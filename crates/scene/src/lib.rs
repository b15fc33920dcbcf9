//! Runs written as conversations, and models written as scripts: read, play, print. No I/O.
//!
//! A scene that holds is a test:
//!
//! ```
//! let scene = "user: Hello\n    asks the model\nmodel: Hi.\n    says: Hi.\nclient: delivered\n    ends: completed\n";
//! gesta_scene::check(scene)?;
//! # Ok::<(), gesta_scene::SceneError>(())
//! ```
//!
//! Reading order: [`vocabulary`] (every line there is), [`scene`] (read and print), [`play`], [`script`].

mod answer;
pub mod check;
pub mod deltas;
mod did;
mod document;
pub mod error;
mod from_log;
mod functions;
mod grants;
mod inputs;
mod patterns;
mod plan_of;
mod plan_print;
mod plan_read;
pub mod play;
pub mod scene;
pub mod script;
mod show;
mod stage;
mod text;
pub mod vocabulary;
mod world;
mod world_print;
mod world_read;

pub use answer::{ModelAnswer, ServerFaults};
pub use check::{Difference, SceneError, check, check_for, check_with};
pub use document::{Carried, Document, Documents, Fault, Turn};
pub use error::{ReadError, ReadReason};
pub use from_log::from_log;
pub use play::{Played, Way};
pub use scene::Scene;
pub use script::{Script, ScriptError};

/// Every word that begins a line, a clause or a piece, as the reader knows it: `docs/scenes.md` must have each.
pub fn known_words() -> impl Iterator<Item = &'static str> {
    let lines = world_read::WORDS.into_iter().filter(|word| !matches!(*word, "#" | "plan:"));
    let clauses = plan_read::CLAUSES.into_iter().filter(|word| *word != "#");
    lines.chain(clauses).chain(answer::PIECES)
}
