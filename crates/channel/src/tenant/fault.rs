//! What is wrong with a tenant's file: where, what, and the way out.

use std::fmt;

/// One fault of one file. Its text names keys and ids of the tenant's own and goes to operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file's name.
    pub file: &'static str,
    /// JSON pointer to the value, as the file spells its keys; blank for the whole file.
    pub pointer: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub way_out: String,
}

impl Fault {
    pub(crate) fn new(
        file: &'static str,
        pointer: impl Into<String>,
        what: impl Into<String>,
        way_out: impl Into<String>,
    ) -> Self {
        Self { file, pointer: pointer.into(), what: what.into(), way_out: way_out.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.pointer.is_empty() { "" } else { "#" };
        write!(f, "{}{mark}{} {}; {}", self.file, self.pointer, self.what, self.way_out)
    }
}
