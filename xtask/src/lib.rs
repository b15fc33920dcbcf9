//! The rules of the house, as a library so that an ordinary `cargo test` can check them too, and a server for tests.

pub mod postgres;
pub mod tidy;
mod tree;

use std::path::PathBuf;

pub use tree::Tree;

/// The root of the workspace.
///
/// # Panics
/// Never: this crate lies one folder below the root.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the workspace's root").to_path_buf()
}
