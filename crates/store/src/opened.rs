//! Opening a store by the name of its place: a data folder, or the address of a server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::StoreError;
use crate::front::Tenants;
use crate::postgres::{Postgres, PostgresOptions};
use crate::sqlite::{FILE_NAME, Sqlite, StoreOptions};
use crate::traits::Store;

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// A data folder: SQLite.
    Folder(PathBuf),
    /// An address that begins with `postgres:` or `postgresql:`, as in [`Postgres::open`]. A password may stand in it.
    Server(String),
}

impl Target {
    /// Reads an address: `postgres://…`, or `sqlite:FOLDER/gesta.db`. None where it is neither.
    pub fn of_url(url: &str) -> Option<Self> {
        let url = url.trim();
        if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            return Some(Self::Server(url.to_owned()));
        }
        let path = url.strip_prefix("sqlite:").map(|rest| rest.strip_prefix("//").unwrap_or(rest))?;
        let file = Some(Path::new(path)).filter(|path| path.file_name().is_some_and(|name| name == FILE_NAME))?;
        match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => Some(Self::Folder(folder.to_owned())),
            _ => Some(Self::Folder(PathBuf::from("."))),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => f.debug_tuple("Folder").field(folder).finish(),
            Self::Server(_) => f.write_str("Server"),
        }
    }
}

impl From<&Path> for Target {
    fn from(folder: &Path) -> Self {
        Self::Folder(folder.to_owned())
    }
}

/// A store that was opened by its place.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Opened {
    /// In a data folder.
    Sqlite(Sqlite),
    /// On a server.
    Postgres(Postgres),
}

/// Opens the store of a place.
///
/// # Errors
/// As [`Sqlite::open`] and [`Postgres::open`].
pub async fn open(target: &Target, options: StoreOptions) -> Result<Opened, StoreError> {
    Ok(match target {
        Target::Folder(folder) => Opened::Sqlite(Sqlite::open(folder, options).await?),
        Target::Server(address) => Opened::Postgres(Postgres::open(address, PostgresOptions::from(options)).await?),
    })
}

impl Opened {
    /// The store, as agents take it.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres(store) => Arc::new(store.clone()),
        }
    }

    /// The same, and what a server keeps beside runs, of every tenant.
    pub fn tenants(&self) -> Arc<dyn Tenants> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres(store) => Arc::new(store.clone()),
        }
    }

    /// Whether it is sound: a file from beginning to end, a server's tables by their form.
    ///
    /// # Errors
    /// What is wrong first.
    pub async fn check(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(store) => store.check().await,
            Self::Postgres(store) => store.check().await,
        }
    }

    /// Closes it, when all that was handed to it is done.
    pub async fn close(&self) {
        match self {
            Self::Sqlite(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
        }
    }
}

impl fmt::Display for Opened {
    /// What it is and where, without a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(store) => write!(f, "SQLite in {}", store.path().display()),
            Self::Postgres(store) => write!(f, "PostgreSQL at {}", store.server()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_folder_or_a_server_or_nothing() {
        let folder = |path: &str| Some(Target::Folder(PathBuf::from(path)));
        let server = |url: &str| Some(Target::Server(url.to_owned()));
        for (url, target) in [
            ("sqlite:gesta.db", folder(".")),
            ("sqlite:///var/x/gesta.db", folder("/var/x")),
            ("postgres://a/b", server("postgres://a/b")),
            (" postgresql://a/b\n", server("postgresql://a/b")),
            ("sqlite:other.db", None),
            ("mysql://a/b", None),
            ("", None),
        ] {
            assert_eq!(Target::of_url(url), target, "{url}");
        }
        let shown = format!("{:?}", Target::of_url("postgres://maria:s3cret@db/shop"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
