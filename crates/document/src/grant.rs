//! Grants as a document knows them: a name in a library and an order of parameters; never a body.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name under which a document calls a grant, for instance `App.refund`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GrantName {
    /// The library, `App` in most documents.
    pub library: String,
    /// The function in it.
    pub name: String,
}

impl fmt::Display for GrantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.library, self.name)
    }
}

/// A function that the host lends to a document (`spec/documents.md`, 3.14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantSpec {
    /// Its name.
    #[serde(flatten)]
    pub name: GrantName,
    /// Its parameters in order. Surplus positional arguments are dropped.
    pub params: Vec<String>,
}
