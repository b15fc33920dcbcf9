//! The variables that agents are given: the process's own, what the command line overrides, and a `.env` file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gesta_model::Lookup;

use crate::exit::Failure;

/// Looks variables up: what is overridden, then the process's own, then those of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    overridden: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
    placeholders: bool,
}

impl Environment {
    /// The process's variables, with the model of `--model` in the place of `GESTA_MODEL`.
    pub(crate) fn with_model(model: Option<&str>) -> Self {
        let overridden = model.map(|model| ("GESTA_MODEL".to_owned(), model.to_owned()));
        Self { overridden: overridden.into_iter().collect(), ..Self::default() }
    }

    /// With the variables of a `.env` file behind those of the process.
    ///
    /// # Errors
    /// The file cannot be read. Its text is not shown.
    pub(crate) fn and_file(mut self, path: &Path) -> Result<Self, Failure> {
        let wrong = |_| Failure::usage(format!("{} cannot be read", path.display()), "write one NAME=value a line");
        for line in dotenvy::from_path_iter(path).map_err(wrong)? {
            let (name, value) = line.map_err(wrong)?;
            self.file.insert(name, value);
        }
        Ok(self)
    }

    /// With a placeholder for every secret that is not set, for commands that reach nobody.
    pub(crate) fn with_placeholders(mut self) -> Self {
        self.placeholders = true;
        self
    }

    /// The value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let known = self.overridden.get(name).cloned().or_else(|| std::env::var(name).ok());
        let placeholder = || (self.placeholders && is_secret(name)).then(|| "placeholder".to_owned());
        known.or_else(|| self.file.get(name).cloned()).or_else(placeholder)
    }

    /// As the runtime takes it.
    pub(crate) fn lookup(&self) -> Lookup {
        let own = self.clone();
        Arc::new(move |name| own.get(name))
    }
}

/// Names that stand for something to be read as it is, and not for a secret.
fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let plain = ["DATABASE_URL", "SSL_CERT_FILE", "SSL_CERT_DIR"].contains(&upper.as_str())
        || upper.starts_with("GESTA_")
        || upper.ends_with("_BASE_URL")
        || upper.ends_with("_PROXY");
    !plain
}
