//! Where things are: the data folder, the store in it, and agents' folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gesta_runtime::folder::{AGENT_FILE, Folder};
use gesta_store::{
    FILE_NAME, Front, Opened, SecretError, Secrets, Sqlite, Store, StoreOptions, TENANT_LOCAL, Target, Tenants,
};

use crate::commands::Globals;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::shell::quoted;
use crate::terminal::{Look, Screen};

/// An opened store, and the folder of everything else.
#[derive(Clone)]
pub(crate) struct Place {
    /// The data folder.
    pub(crate) data: PathBuf,
    /// What a later command needs to find it again: ` --data FOLDER`, or nothing.
    pub(crate) flag: String,
    opened: Opened,
}

impl Place {
    /// Opens the store: the server of `DATABASE_URL`, or that of the data folder: `--data`, else what the environment or
    /// the agent's folder names, else the user's own.
    ///
    /// # Errors
    /// The server, or the folder or the file in it, cannot be used.
    pub(crate) async fn open(globals: &Globals, agent: Option<&Folder>) -> Result<Self, Failure> {
        let Named { folder, server } = named(globals, agent)?;
        let data = gesta_store::data_folder(folder.as_deref())?;
        let is_server = server.is_some();
        let target = server.map_or_else(|| Target::Folder(data.clone()), Target::Server);
        let opened = gesta_store::open(&target, StoreOptions::default()).await?;
        let elsewhere = named(globals, None)?.folder.as_ref() != Some(&data);
        let of_agent = elsewhere && !is_server && agent.is_some_and(|agent| agent.storage.data.is_some());
        let flag = globals.data.is_some() || of_agent;
        let flag = flag_of(flag, &data);
        Ok(Self { data, flag, opened })
    }

    /// As [`Place::open_to_read`]; nothing where nothing is kept yet. Nothing is made.
    ///
    /// # Errors
    /// As [`Place::open_to_read`], and where a data folder is named that is not there.
    pub(crate) async fn open_if_there(globals: &Globals) -> Result<Option<Self>, Failure> {
        let Named { folder, server } = named(globals, None)?;
        let is_named = folder.is_some();
        let Some(data) = folder.or_else(gesta_store::default_folder).filter(|_| server.is_none()) else {
            return Self::open_to_read(globals).await.map(Some);
        };
        match data.join(FILE_NAME).try_exists() {
            Ok(false) if is_named && !data.exists() => {
                let message = format!("the data folder {} is not there", data.display());
                Err(Failure::usage(message, "name one that is; a run makes it where it is not"))
            }
            Ok(false) if !data.exists() || data.is_dir() => Ok(None),
            _ => Self::open_to_read(globals).await.map(Some),
        }
    }

    /// Opens the store to look at it: one that cannot be written is read all the same.
    ///
    /// # Errors
    /// As [`Place::open`].
    pub(crate) async fn open_to_read(globals: &Globals) -> Result<Self, Failure> {
        match Self::open(globals, None).await {
            Err(failure) if UNWRITABLE.contains(&failure.code) => {
                let Named { folder, server: None } = named(globals, None)? else { return Err(failure) };
                let Some(data) = folder.or_else(gesta_store::default_folder) else { return Err(failure) };
                // What keeps it from being read, too, is less to the point than why it cannot be written.
                let Ok(sqlite) = Sqlite::open_to_read(&data, StoreOptions::default()) else { return Err(failure) };
                let mut screen = Screen::stderr();
                screen.line(Look::Warn, &format!("only read: {}", failure.message));
                let flag = flag_of(globals.data.is_some(), &data);
                Ok(Self { data, flag, opened: Opened::Sqlite(sqlite) })
            }
            other => other,
        }
    }

    /// Whether the store is sound. Reads all of a file.
    ///
    /// # Errors
    /// It is damaged.
    pub(crate) async fn check(&self) -> Result<(), Failure> {
        Ok(self.opened.check().await?)
    }

    /// The store, as agents take it.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.opened.store()
    }

    /// What a server keeps beside runs: keys, the audit, answers to repeated requests.
    pub(crate) fn front(&self) -> Arc<dyn Front> {
        self.tenants().front_of(TENANT_LOCAL)
    }

    /// The same of every tenant, and their runs.
    pub(crate) fn tenants(&self) -> Arc<dyn Tenants> {
        self.opened.tenants()
    }

    /// Where talks are kept, for people.
    pub(crate) fn shown(&self) -> String {
        match &self.opened {
            Opened::Postgres(store) => store.server().to_owned(),
            _ => self.data.display().to_string(),
        }
    }

    /// What kind of store it is, once it was found to be sound.
    pub(crate) fn what(&self) -> String {
        match &self.opened {
            Opened::Postgres(store) => format!("PostgreSQL at {}, reachable", store.server()),
            _ => "SQLite, sound".to_owned(),
        }
    }

    /// The keys that sign documents: those of `GESTA_SECRET`, or the one in the data folder, which is made at first
    /// need. What lies on a server is for others too, who do not see this folder.
    ///
    /// # Errors
    /// They cannot be used, are not set where they must be, or the key in the data folder cannot be read or made.
    pub(crate) fn secrets(&self) -> Result<Secrets, SecretError> {
        let given = Environment::default().get("GESTA_SECRET");
        match (&self.opened, &given) {
            (Opened::Postgres(_), None) => Err(SecretError::Missing),
            _ => Secrets::load(given.as_deref(), &self.data),
        }
    }

    /// Writes down what is still on its way, and closes the store.
    pub(crate) async fn close(self) {
        // Captured exchanges are handed to the store by tasks of their own: let them begin.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        self.opened.close().await;
    }
}

/// Why a store cannot be opened that could perhaps be read.
const UNWRITABLE: [&str; 3] = ["store_full", "store_read_only", "store_permission"];

fn flag_of(named: bool, data: &Path) -> String {
    if named { format!(" --data {}", quoted(data)) } else { String::new() }
}

/// What names the place of a store.
pub(crate) struct Named {
    /// The data folder, where something names one.
    pub(crate) folder: Option<PathBuf>,
    /// The server that runs are kept on, where they are kept on one.
    pub(crate) server: Option<String>,
}

/// The place that something names, where something does.
///
/// # Errors
/// `DATABASE_URL` names a database that this program cannot keep runs in.
pub(crate) fn named(globals: &Globals, agent: Option<&Folder>) -> Result<Named, Failure> {
    if let Some(data) = &globals.data {
        return Ok(Named { folder: Some(data.clone()), server: None });
    }
    let own = Environment::default();
    let url = agent.and_then(|agent| agent.storage.database_url.clone()).or_else(|| own.get("DATABASE_URL"));
    let of_agent = agent.and_then(|agent| agent.storage.data.clone());
    let of_env = own.get("GESTA_DATA").filter(|path| !path.trim().is_empty()).map(PathBuf::from);
    let folder = of_env.or(of_agent);
    let Some(url) = url.filter(|url| !url.trim().is_empty()) else { return Ok(Named { folder, server: None }) };
    match Target::of_url(&url) {
        Some(Target::Server(address)) => Ok(Named { folder, server: Some(address) }),
        Some(Target::Folder(folder)) => Ok(Named { folder: Some(folder), server: None }),
        None => Err(Failure::usage(
            "DATABASE_URL names a database that runs cannot be kept in",
            format!(
                "write `postgres://USER:PASSWORD@HOST:PORT/DATABASE` or `sqlite:FOLDER/{FILE_NAME}`, unset it, or name \
                 a data folder with --data"
            ),
        )),
    }
}

/// Where a model stands that is not the folder's.
const OVERRIDDEN: &str = "--model or GESTA_MODEL";

/// Reads an agent's folder.
///
/// # Errors
/// It is no agent's folder, with those that are near; or it has mistakes.
pub(crate) fn agent_folder(dir: &Path, environment: &Environment) -> Result<Folder, Failure> {
    is_agent(dir)?;
    Folder::load(dir, &|name| environment.get(name)).map_err(|why| {
        if why.0.iter().all(|problem| problem.file == OVERRIDDEN) {
            let message = why.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let help = "`gesta doctor` tells which keys are set; `--model script` needs none";
            return Failure::usage(message, help).coded("provider_unusable");
        }
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
    let file = dir.join(AGENT_FILE);
    // What is there and is no file is told by whoever reads it.
    let what = if file.symlink_metadata().is_ok() {
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
