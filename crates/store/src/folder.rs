//! The data folder: where it is, and that nobody else reads it (`spec/durability.md`, 5.1 and 6.3).

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::sqlite::of_io;

/// Finds the data folder and makes it where it is not there, readable by its owner alone: `given` (`--data`), else
/// `gesta` in `$XDG_DATA_HOME`, else in `.local/share` of the home folder. Reads the environment and the disk, once, at
/// the start of a program.
///
/// # Errors
/// [`StoreError::Folder`] when no folder is named anywhere or the place is taken by a file; [`StoreError::NoPermission`]
/// and [`StoreError::ReadOnly`] when it can't be made.
pub fn data_folder(given: Option<&Path>) -> Result<PathBuf, StoreError> {
    let folder = given.map(Path::to_owned).or_else(default_folder).ok_or_else(|| StoreError::Folder {
        path: PathBuf::from("gesta"),
        reason: "neither XDG_DATA_HOME nor HOME names an absolute path".to_owned(),
    })?;
    make_private(&folder)?;
    Ok(folder)
}

/// The data folder where none is named, whether it is there or not: see [`data_folder`].
pub fn default_folder() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").or_else(|| absolute("USERPROFILE"));
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(home()?.join(".local").join("share")));
    data.map(|data| data.join("gesta"))
}

/// Makes a folder, and those above it, for its owner alone. One that is there stays as it is.
pub(crate) fn make_private(folder: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|cause| of_io(folder, &cause))
}

/// Whether the data folder takes what is written to it: writes a small file, and takes it away again. Blocks.
///
/// # Errors
/// [`StoreError::DiskFull`], [`StoreError::ReadOnly`] or [`StoreError::NoPermission`], and else what the system says.
pub fn writable(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(format!(".gesta-{}", uuid::Uuid::now_v7()));
    let written = new_private_file(&path).and_then(|mut file| {
        file.write_all(&[1; PROBE_BYTES])?;
        file.sync_data()
    });
    // Where it was not made there is nothing to take away.
    let _ = fs::remove_file(&path);
    written.map_err(|cause| of_io(folder, &cause))
}

/// As much as SQLite needs beside its file before it writes anything, in bytes.
const PROBE_BYTES: usize = 32 * 1024;

/// Makes a new file that its owner alone may read. Fails where there is one.
pub(crate) fn new_private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_named_is_made_for_its_owner_alone() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("a").join("b");
        assert_eq!(data_folder(Some(&folder)).unwrap(), folder);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_file_in_the_place_of_the_folder_is_said_by_name() {
        let outer = tempfile::tempdir().unwrap();
        let place = outer.path().join("taken");
        fs::write(&place, "").unwrap();
        for folder in [place.clone(), place.join("inner")] {
            let refused = data_folder(Some(&folder)).unwrap_err();
            assert!(matches!(&refused, StoreError::Folder { path, .. } if *path == folder), "{refused:?}");
            assert!(refused.to_string().contains("taken") && refused.to_string().contains("--data"), "{refused}");
        }
    }
}
