//! Where things are: the data folder, the store in it, and agents' folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gesta_runtime::folder::{AGENT_FILE, Folder};
use gesta_store::{FILE_NAME, Front, SecretError, Secrets, Sqlite, Store, StoreOptions};

use crate::commands::Globals;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::shell::quoted;
use crate::terminal::{Look, Screen};

/// An opened store, and the folder it lies in.
pub(crate) struct Place {
    /// The data folder.
    pub(crate) data: PathBuf,
    /// What a later command needs to find it again: ` --data FOLDER`, or nothing.
    pub(crate) flag: String,
    sqlite: Sqlite,
}

impl Place {
    /// Opens the store of the data folder: `--data`, else what the environment or the agent's folder names, else the
    /// user's own.
    ///
    /// # Errors
    /// The folder or the file in it cannot be used.
    pub(crate) fn open(globals: &Globals, agent: Option<&Folder>) -> Result<Self, Failure> {
        let data = gesta_store::data_folder(named(globals, agent)?.as_deref())?;
        let sqlite = Sqlite::open_blocking(&data, StoreOptions::default())?;
        let elsewhere = named(globals, None)?.as_ref() != Some(&data);
        let of_agent = elsewhere && agent.is_some_and(|agent| agent.storage.data.is_some());
        let flag = globals.data.is_some() || of_agent;
        let flag = flag_of(flag, &data);
        Ok(Self { data, flag, sqlite })
    }

    /// Opens the store to look at it: one that cannot be written is read all the same.
    ///
    /// # Errors
    /// As [`Place::open`].
    pub(crate) fn open_to_read(globals: &Globals) -> Result<Self, Failure> {
        match Self::open(globals, None) {
            Err(failure) if UNWRITABLE.contains(&failure.code) => {
                let Some(data) = named(globals, None)?.or_else(gesta_store::default_folder) else {
                    return Err(failure);
                };
                // What keeps it from being read, too, is less to the point than why it cannot be written.
                let Ok(sqlite) = Sqlite::open_to_read(&data, StoreOptions::default()) else { return Err(failure) };
                let mut screen = Screen::stderr();
                screen.line(Look::Warn, &format!("only read: {}", failure.message));
                let flag = flag_of(globals.data.is_some(), &data);
                Ok(Self { data, flag, sqlite })
            }
            other => other,
        }
    }

    /// Whether the store is sound. Reads all of it.
    ///
    /// # Errors
    /// It is damaged.
    pub(crate) async fn check(&self) -> Result<(), Failure> {
        Ok(self.sqlite.check().await?)
    }

    /// The store, as agents take it.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.sqlite.clone())
    }

    /// What a server keeps beside runs: keys, the audit, answers to repeated requests.
    pub(crate) fn front(&self) -> Arc<dyn Front> {
        Arc::new(self.sqlite.clone())
    }

    /// Writes down what is still on its way, and closes the file.
    pub(crate) async fn close(self) {
        // Captured exchanges are handed to the store by tasks of their own: let them begin.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        self.sqlite.close().await;
    }
}

/// The keys that sign documents: those of `GESTA_SECRET`, or the one in the data folder, which is made at first need.
///
/// # Errors
/// They cannot be used, or the key in the data folder cannot be read or made.
pub(crate) fn secrets_of(data: &Path) -> Result<Secrets, SecretError> {
    Secrets::load(Environment::default().get("GESTA_SECRET").as_deref(), data)
}

/// Why a store cannot be opened that could perhaps be read.
const UNWRITABLE: [&str; 3] = ["store_full", "store_read_only", "store_permission"];

fn flag_of(named: bool, data: &Path) -> String {
    if named { format!(" --data {}", quoted(data)) } else { String::new() }
}

/// The data folder that something names, where something does.
///
/// # Errors
/// `DATABASE_URL` names a database that this program cannot keep runs in.
pub(crate) fn named(globals: &Globals, agent: Option<&Folder>) -> Result<Option<PathBuf>, Failure> {
    if let Some(data) = &globals.data {
        return Ok(Some(data.clone()));
    }
    let own = Environment::default();
    let url = agent.and_then(|agent| agent.storage.database_url.clone()).or_else(|| own.get("DATABASE_URL"));
    if let Some(url) = url.filter(|url| !url.trim().is_empty()) {
        return of_url(&url).map(Some);
    }
    let of_agent = agent.and_then(|agent| agent.storage.data.clone());
    let of_env = own.get("GESTA_DATA").filter(|path| !path.trim().is_empty()).map(PathBuf::from);
    Ok(of_env.or(of_agent))
}

/// The data folder of `sqlite:FOLDER/gesta.db`.
fn of_url(url: &str) -> Result<PathBuf, Failure> {
    let path = url.strip_prefix("sqlite:").map(|rest| rest.strip_prefix("//").unwrap_or(rest));
    let file = path.map(Path::new).filter(|path| path.file_name().is_some_and(|name| name == FILE_NAME));
    match file.and_then(Path::parent) {
        Some(folder) if folder.as_os_str().is_empty() => Ok(PathBuf::from(".")),
        Some(folder) => Ok(folder.to_owned()),
        None => Err(Failure::usage(
            "DATABASE_URL names a database that runs cannot be kept in",
            format!("write `sqlite:FOLDER/{FILE_NAME}`, unset it, or name a data folder with --data"),
        )),
    }
}

/// Reads an agent's folder.
///
/// # Errors
/// It is no agent's folder, with those that are near; or it has mistakes.
pub(crate) fn agent_folder(dir: &Path, environment: &Environment) -> Result<Folder, Failure> {
    is_agent(dir)?;
    Folder::load(dir, &|name| environment.get(name)).map_err(|why| {
        let mut failure = Failure::from(why);
        failure.message = format!("{} cannot be used", dir.display());
        failure.help = format!("mend it, and look again with `gesta check {}`", quoted(dir));
        failure
    })
}

/// Whether a path is an agent's folder.
///
/// # Errors
/// It is not there, is no folder, or has no `agent.toml`; the agents that are near are named.
pub(crate) fn is_agent(dir: &Path) -> Result<(), Failure> {
    let what = if dir.join(AGENT_FILE).is_file() {
        return Ok(());
    } else if !dir.exists() {
        "is not there"
    } else if !dir.is_dir() {
        "is no folder"
    } else {
        "has no agent.toml"
    };
    let near = near(dir);
    let help = if near.is_empty() {
        format!("make an agent there with `gesta init {}`", quoted(dir))
    } else {
        format!("agents near it: {}", near.join(", "))
    };
    Err(Failure::usage(format!("{} {what}", dir.display()), help))
}

/// How many agents are named at most.
const NEAR_MAX: usize = 8;

/// Folders with an `agent.toml`: in and beside what was named, in the present folder, and among its examples.
fn near(dir: &Path) -> Vec<String> {
    let mut found: Vec<PathBuf> = Vec::new();
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
    let places = [Some(dir), above, Some(Path::new(".")), Some(Path::new("examples"))];
    for place in places.into_iter().flatten() {
        let inner = std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut agents: Vec<PathBuf> =
            std::iter::once(place.to_owned()).chain(inner).filter(|it| it.join(AGENT_FILE).is_file()).collect();
        agents.sort();
        found.extend(agents.into_iter().map(|path| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)));
    }
    let mut names: Vec<String> = Vec::new();
    for path in found {
        let name = if path.as_os_str().is_empty() { ".".to_owned() } else { path.display().to_string() };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.truncate(NEAR_MAX);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_our_own_file_names_its_folder() {
        for (url, folder) in
            [("sqlite:gesta.db", Some(".")), ("sqlite:///var/x/gesta.db", Some("/var/x")), ("postgres://a/b", None)]
        {
            assert_eq!(of_url(url).ok(), folder.map(PathBuf::from), "{url}");
        }
    }
}
