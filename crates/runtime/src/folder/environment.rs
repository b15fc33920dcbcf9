//! What differs per deployment: the process's variables over those of the folder's `.env`.

use std::collections::BTreeMap;
use std::path::Path;

use super::problem::Problem;

/// Variables by name: the process's own win over the file's. The process's environment is never changed.
pub(crate) struct Environment<'a> {
    file: BTreeMap<String, String>,
    process: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Environment<'a> {
    /// Only the process's variables.
    pub(crate) fn process(process: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { file: BTreeMap::new(), process }
    }

    /// Reads `.env` of a folder, where there is one. A line that cannot be read is a problem, told without its text.
    pub(crate) fn of_folder(
        dir: &Path,
        process: &'a dyn Fn(&str) -> Option<String>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut found = Self::process(process);
        let path = dir.join(".env");
        if !path.exists() {
            return found;
        }
        let wrong = |why: &str| Problem::new(".env", why);
        match dotenvy::from_path_iter(&path) {
            Ok(lines) => {
                for line in lines {
                    match line {
                        Ok((name, value)) => drop(found.file.insert(name, value)),
                        Err(dotenvy::Error::LineParse(..)) => {
                            let fix = "write NAME=value, with quotes around a value that has spaces";
                            problems.push(wrong("a line cannot be read").fixed_by(fix));
                        }
                        Err(_) => {
                            problems.push(wrong("cannot be read"));
                            break;
                        }
                    }
                }
            }
            Err(_) => problems.push(wrong("cannot be read")),
        }
        found
    }

    /// The variable's value; a blank one counts as unset.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let value = (self.process)(name).or_else(|| self.file.get(name).cloned());
        value.filter(|value| !value.trim().is_empty())
    }
}
