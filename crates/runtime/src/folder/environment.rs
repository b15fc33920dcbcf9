//! What differs per deployment: the process's variables over those of the folder's `.env`.

use std::collections::BTreeMap;
use std::path::Path;

use super::files::{self, FileError};
use super::problem::{Place, Problem};

/// The file of what differs per deployment.
const ENV_FILE: &str = ".env";

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
        let text = match files::read(dir, ENV_FILE) {
            Ok(text) => text,
            Err(FileError::Missing(_)) => return found,
            Err(why) => {
                problems.push(Problem::new(ENV_FILE, why.to_string()));
                return found;
            }
        };
        for line in dotenvy::from_read_iter(text.as_bytes()) {
            match line {
                Ok((name, value)) => drop(found.file.insert(name, value)),
                Err(why) => {
                    let place = place_of(&text, &why);
                    let fix = "write NAME=value, with quotes around a value that has spaces";
                    problems.push(Problem::new(ENV_FILE, "the line cannot be read").at(place).fixed_by(fix));
                }
            }
        }
        found
    }

    /// The variable's value; a blank one counts as unset.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let value = (self.process)(name).or_else(|| self.file.get(name).cloned());
        value.filter(|value| !value.trim().is_empty())
    }
}

/// The line that cannot be read. The error holds the rest of its text, which may be a secret, and not its number.
fn place_of(text: &str, why: &dotenvy::Error) -> Option<Place> {
    let dotenvy::Error::LineParse(line, _) = why else { return None };
    let first = line.lines().next()?.trim();
    let at = text.lines().position(|line| line.trim().ends_with(first))?;
    Some(Place { line: at + 1, column: 1 })
}
