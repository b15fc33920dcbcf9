//! A text that is used but never shown.

use std::fmt;

/// A key or a token. It is never printed, never serialised, and leaves the process in a request's header alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the text; white space around it, such as the line end of a file, is left out.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().to_owned())
    }

    /// The text itself, for the one place that sends it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Replaces the text by `***` wherever it stands in another.
    pub fn hide_in(&self, text: &str) -> String {
        if self.0.len() < 4 { text.to_owned() } else { text.replace(&self.0, "***") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let key = Secret::new("sk-12345\n");
        assert_eq!(format!("{key:?}"), "Secret(***)");
        assert_eq!(key.hide_in("bad key sk-12345!"), "bad key ***!");
    }
}
