//! Hands a source to the engine's parser and keeps it from printing.

use stof::model::{DataRef, Graph, NodeRef, Profile};
use stof::parser::context::ParseContext;
use stof::parser::doc::document;
use stof::runtime::Error;

use super::errors;

/// Warnings of one source that are kept.
const WARNINGS_MAX: usize = 16;

/// How sources are parsed: with the places of statements, for errors; without tests.
fn profile() -> Profile {
    Profile {
        name: "gesta".to_owned(),
        debug_info: true,
        docs: false,
        exclude_attributes: Profile::prod().exclude_attributes,
    }
}

/// What came of a source beside what it put into the graph.
pub(crate) struct Parsed {
    /// What the parser found odd.
    pub(crate) warnings: Vec<String>,
    /// The functions tagged `#[init]`, which have not run: the engine's own way swallows what they throw.
    pub(crate) init: Vec<DataRef>,
}

/// Parses a source into an object, the main root where none is named.
pub(crate) fn into(graph: &mut Graph, source: &str, node: Option<&NodeRef>) -> Result<Parsed, Error> {
    let mut context = ParseContext::new(graph, profile());
    if let Some(node) = node {
        context.push_self_node(node.clone());
    }
    if !source.is_empty() {
        document(source, &mut context)?;
    }
    let warnings = context.take_warnings();
    let warnings = warnings.iter().take(WARNINGS_MAX).map(|warning| errors::plain(warning)).collect();
    Ok(Parsed { warnings, init: std::mem::take(&mut context.init_funcs) })
}
