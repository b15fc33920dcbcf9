//! Secrets: referred to in files as `env:NAME`, held in memory by a type that neither prints nor writes them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Said where a secret stands in a file by its own text.
pub(crate) const NO_SECRET: &str = "a secret does not stand in this file";

/// A secret's text. Overwritten when it is dropped; it has no `Display` and no `Serialize`.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a text as a secret.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The secrets that a folder refers to, by the name of their variable.
#[derive(Debug, Clone, Default)]
pub struct Secrets(BTreeMap<String, Secret>);

impl Secrets {
    /// Remembers a secret.
    pub fn insert(&mut self, name: impl Into<String>, secret: Secret) {
        self.0.insert(name.into(), secret);
    }

    /// The secret of this name.
    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.0.get(name)
    }
}

/// A text that may end with a reference to a secret: `env:NAME`, or `Bearer env:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// What stands before the secret, or the whole text.
    pub text: String,
    /// The variable whose value follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
}

impl Template {
    /// Reads a value as it stands in the file.
    ///
    /// # Errors
    /// `env:` without the name of a variable.
    pub fn parse(value: &str) -> Result<Self, String> {
        let at = match value.strip_prefix("env:") {
            Some(_) => Some(0),
            None => value.rfind(" env:").map(|at| at + 1),
        };
        let Some(at) = at else { return Ok(Self { text: value.to_owned(), env: None }) };
        let name = &value[at + "env:".len()..];
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(legal) {
            return Err(format!("`{value}`: `env:` must be followed by the name of a variable"));
        }
        Ok(Self { text: value[..at].to_owned(), env: Some(name.to_owned()) })
    }

    /// Whether it is a reference and nothing else.
    pub fn is_reference(&self) -> bool {
        self.text.is_empty() && self.env.is_some()
    }

    /// The whole text, with the secret in its place; `None` where the secret is missing.
    pub fn fill(&self, secrets: &Secrets) -> Option<Secret> {
        let secret = match &self.env {
            Some(name) => secrets.get(name)?.expose(),
            None => "",
        };
        Some(Secret::new(format!("{}{secret}", self.text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_stands_alone_or_at_the_end() {
        let mut secrets = Secrets::default();
        secrets.insert("KEY", Secret::new("s3cret".to_owned()));
        let cases = [("plain", Some("plain")), ("env:KEY", Some("s3cret")), ("Bearer env:KEY", Some("Bearer s3cret"))];
        for (value, filled) in cases {
            let template = Template::parse(value).unwrap();
            assert_eq!(template.fill(&secrets).as_ref().map(Secret::expose), filled);
        }
        assert!(Template::parse("env:OTHER").unwrap().fill(&secrets).is_none());
        assert!(Template::parse("env:").is_err());
        assert!(Template::parse("Bearer env:a-b").is_err());
    }

    #[test]
    fn a_secret_is_not_shown() {
        let mut secrets = Secrets::default();
        secrets.insert("KEY", Secret::new("s3cret".to_owned()));
        assert!(!format!("{secrets:?}").contains("s3cret"));
    }
}
