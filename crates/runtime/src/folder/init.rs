//! The files of a new agent's folder, which runs at once.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// One file of a new folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Where it belongs, relative to the folder.
    pub path: &'static str,
    /// What it says.
    pub text: String,
}

/// Why a new folder cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// There is an agent already.
    #[error("{} is there already; name a folder without an agent", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: io::Error,
    },
}

/// The files of a new agent of this name.
pub fn new_files(name: &str) -> Vec<NewFile> {
    let named = |text: &str| text.replace("\"NAME\"", &toml::Value::String(name.to_owned()).to_string());
    let file = |path, text: &str| NewFile { path, text: text.to_owned() };
    vec![
        NewFile { path: super::AGENT_FILE, text: named(include_str!("new/agent.toml")) },
        file("prompt.md", include_str!("new/prompt.md")),
        file("model.script", include_str!("new/model.script")),
        file("scenes/saturday.scene", include_str!("new/scenes/saturday.scene")),
        file(".env.example", include_str!("new/env.example")),
        file(".gitignore", include_str!("new/gitignore")),
    ]
}

/// Writes the files of a new agent into a folder, which is made where it is not there. Files that are there already are
/// left as they are. Gives back what was written. Blocks on files.
///
/// # Errors
/// The folder has an agent, or a file cannot be written.
pub fn init(dir: &Path) -> Result<Vec<PathBuf>, InitError> {
    let agent = dir.join(super::AGENT_FILE);
    if agent.exists() {
        return Err(InitError::Exists(agent));
    }
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let name = whole.file_name().map_or_else(|| "agent".into(), |name| name.to_string_lossy());
    let mut written = Vec::new();
    for file in new_files(&name) {
        let path = dir.join(file.path);
        let failed = |reason| InitError::Write { path: path.clone(), reason };
        fs::create_dir_all(path.parent().unwrap_or(dir)).map_err(failed)?;
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut open) => open.write_all(file.text.as_bytes()).map_err(failed)?,
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(why) => return Err(failed(why)),
        }
        written.push(path);
    }
    Ok(written)
}
