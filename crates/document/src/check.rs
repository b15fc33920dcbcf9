//! What a person wants to know of a base: whether it opens, which tools it has, which grants it needs.

use gesta_run::ToolSpec;
use serde::{Deserialize, Serialize};

use crate::guard::{calls_of_libraries, tagged_tools};
use crate::{Document as _, GrantName, OpenError, Record, Terms};

/// What a base holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its tools, as a model is told of them.
    pub tools: Vec<ToolSpec>,
    /// The grants that each tool calls in its own source, tools without any left out.
    pub needs: Vec<Needs>,
    /// Grants that it calls and that it was not given; a root of the same name stands in for them in the file alone.
    pub grants_missing: Vec<GrantName>,
    /// Grants that were given and that it never calls by name.
    pub grants_unused: Vec<GrantName>,
    /// What is allowed and yet probably a mistake.
    pub warnings: Vec<String>,
    /// Whether tools can be added.
    pub adds_tools: bool,
    /// Bytes of its data as it would be saved.
    pub data_bytes: usize,
}

/// What a tool needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// The tool.
    pub tool: String,
    /// Grants that its source calls by name.
    pub grants: Vec<GrantName>,
}

/// Opens a base and says what it holds. Its field values are computed and its `#[init]` functions run, so this belongs
/// into a worker like everything else.
///
/// # Errors
/// It does not open: where and why, with the line and a caret.
pub fn check(base: &str, terms: &Terms) -> Result<Report, OpenError> {
    let record = Record { base: base.to_owned(), ..Record::default() };
    let mut document = crate::engine::Engine::open(&record, terms)?;
    let stand_in = |warning: &&String| !warning.contains("shadows the");
    let mut warnings: Vec<String> = document.warnings().iter().filter(stand_in).cloned().collect();
    let tools = document.specs().unwrap_or_else(|error| {
        warnings.push(format!("its tools cannot be described: {error}"));
        Vec::new()
    });
    if tools.is_empty() {
        warnings.push("it has no tools: tag functions below `tools` with #[tool('what it does')]".to_owned());
    }
    for tool in &tools {
        if tool.description.trim().is_empty() {
            warnings.push(format!("the tool `{}` has no description", tool.name));
        }
        if !is_legal(&tool.name) {
            warnings.push(format!("the name `{}` is not legal for every provider ([a-zA-Z0-9_-]{{1,64}})", tool.name));
        }
    }
    warnings.extend(twice(base));
    warnings.extend(document.parameters_twice().into_iter().map(|(tool, parameter)| {
        format!("the tool `{tool}` has two parameters named `{parameter}`: only one of them can be given")
    }));
    let libraries: Vec<String> = terms.grants.iter().map(|grant| grant.name.library.clone()).collect();
    let called = grants_called(base, &libraries);
    let given = |name: &GrantName| terms.grants.iter().any(|grant| grant.name == *name);
    // The parser knows no grants: what it says of a library that is called is said better by those that are missing.
    let of_grants =
        |warning: &String| called.iter().any(|it| warning.contains(&format!("unknown name '{}'", it.library)));
    warnings.retain(|warning| !of_grants(warning));
    let needs =
        document.sources().into_iter().map(|(tool, source)| Needs { tool, grants: grants_called(&source, &libraries) });
    Ok(Report {
        needs: needs.filter(|needs| !needs.grants.is_empty()).collect(),
        grants_missing: called.iter().filter(|name| !given(name)).cloned().collect(),
        grants_unused: terms
            .grants
            .iter()
            .map(|grant| &grant.name)
            .filter(|name| !called.contains(name))
            .cloned()
            .collect(),
        adds_tools: tools.iter().any(|tool| tool.name == "add_tool"),
        data_bytes: document.save().map_or(0, |data| data.len()),
        tools,
        warnings,
    })
}

/// Tools of one name: a model knows one of them.
fn twice(base: &str) -> Vec<String> {
    let tools = tagged_tools(base);
    let mut found = Vec::new();
    for (at, (name, place)) in tools.iter().enumerate() {
        if let Some((_, first)) = tools[..at].iter().rfind(|(earlier, _)| earlier == name) {
            let (first, line) = (first.line, place.line);
            found.push(format!("two tools are named `{name}` (lines {first} and {line}): only one of them is offered"));
        }
    }
    found
}

/// The functions outside the engine's libraries that a source calls.
fn grants_called(source: &str, libraries: &[String]) -> Vec<GrantName> {
    let calls = calls_of_libraries(source, libraries).into_iter().map(|(library, name)| GrantName { library, name });
    calls.filter(|name| !crate::engine::is_engines_library(&name.library)).collect()
}

fn is_legal(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
