//! The files of a folder: named relative to it, inside of it, of limited size, as text.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read as _};
use std::path::{Component, Path};

use super::source::FILE_BYTES_MAX;

/// Why a file of the folder cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileError {
    /// It is not there.
    #[error("`{0}` is not there")]
    Missing(String),
    /// It would be outside of the folder.
    #[error("`{0}` must be a file of the folder, without `..` and without a leading slash")]
    Outside(String),
    /// A link leads out of the folder.
    #[error("`{0}` leads out of the folder, to {1}; put the file itself into the folder")]
    Elsewhere(String, String),
    /// It is a folder, a pipe, a socket or a device: what is no file may never end.
    #[error("`{0}` is {1}, and no file")]
    NoFile(String, &'static str),
    /// It cannot be read.
    #[error("`{0}` cannot be read: {1}")]
    Unreadable(String, String),
}

/// Reads a text file of the folder. A byte order mark at its beginning is no part of the text. Links may lead from one
/// file of the folder to another, and not out of it.
pub(crate) fn read(dir: &Path, name: &str) -> Result<String, FileError> {
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside || name.is_empty() {
        return Err(FileError::Outside(name.to_owned()));
    }
    let unreadable = |why: String| FileError::Unreadable(name.to_owned(), why);
    let failed = |why: std::io::Error| match why.kind() {
        ErrorKind::NotFound => FileError::Missing(name.to_owned()),
        _ => unreadable(why.to_string()),
    };
    let path = dir.join(name).canonicalize().map_err(failed)?;
    if !path.starts_with(dir.canonicalize().map_err(failed)?) {
        return Err(FileError::Elsewhere(name.to_owned(), path.display().to_string()));
    }
    // Looked at before it is opened: opening a pipe waits for whoever writes into it.
    if let Some(kind) = special(&path.metadata().map_err(failed)?) {
        return Err(FileError::NoFile(name.to_owned(), kind));
    }
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|why| unreadable(why.to_string()))?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(unreadable(format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".to_owned()))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// What it is, where it is no plain file.
fn special(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    if kind.is_file() {
        return None;
    }
    if kind.is_dir() {
        return Some("a folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        if kind.is_fifo() {
            return Some("a pipe");
        }
        if kind.is_socket() {
            return Some("a socket");
        }
    }
    Some("a device")
}
