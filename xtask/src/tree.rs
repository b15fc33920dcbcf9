//! The text files of the workspace, as they would be committed.

use std::collections::BTreeMap;
use std::path::Path;

/// Text files by their path from the root, with `/` between its parts.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
    /// Folders of the machine it was read on; no file may name them.
    own_places: Vec<String>,
}

impl Tree {
    /// Reads all files that the ignore lists of the repository leave; those that are no text are left out.
    ///
    /// # Errors
    /// A folder cannot be walked.
    pub fn read(root: &Path) -> Result<Self, ignore::Error> {
        let mut files = BTreeMap::new();
        let walk = ignore::WalkBuilder::new(root)
            .hidden(false)
            .parents(false)
            .require_git(false)
            .filter_entry(|it| it.file_name() != ".git")
            .build();
        for entry in walk {
            let entry = entry?;
            let Ok(path) = entry.path().strip_prefix(root) else { continue };
            if let Ok(text) = std::fs::read_to_string(entry.path()) {
                files.insert(path.to_string_lossy().replace('\\', "/"), text);
            }
        }
        let parent = root.parent().filter(|it| *it != std::env::temp_dir()).map(|it| it.display().to_string());
        let own = parent.into_iter().chain(std::env::var("HOME")).filter(|it| it.len() > 1);
        Ok(Self { files, own_places: own.map(|it| format!("{it}/")).collect() })
    }

    /// A tree of these files, for tests.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self { files, own_places: Vec::new() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().filter(|(path, _)| path.ends_with(".rs"))
    }

    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether a file or a folder of that path is there.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let below = format!("{path}/");
        self.files.contains_key(path) || self.files.keys().any(|it| it.starts_with(&below))
    }

    pub(crate) fn own_places(&self) -> impl Iterator<Item = &str> {
        self.own_places.iter().map(String::as_str)
    }
}
