//! Tidy: what the compiler does not check and the house insists on.

mod arrows;
mod places;
mod source;
mod words;

use std::fmt;

use crate::Tree;

/// One thing that is out of order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, from the root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, path: &str, line: usize, what: impl Into<String>) {
        self.0.push(Finding { path: path.to_owned(), line, what: what.into() });
    }
}

/// Checks every rule. Empty where all is well.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Findings::default();
    source::check(tree, &mut findings);
    arrows::check(tree, &mut findings);
    words::check(tree, &mut findings);
    places::check(tree, &mut findings);
    findings.0
}
