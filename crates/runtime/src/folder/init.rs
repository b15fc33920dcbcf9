//! The files of a new agent's folder, which runs at once.

/// One file of a new folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Where it belongs, relative to the folder.
    pub path: &'static str,
    /// What it says.
    pub text: String,
}
