//! The guard: reads a source from outside before the engine does (`spec/documents.md`, 3.5 and 3.6).
//!
//! The engine's parser runs code and obeys whatever a text defines, so what it may be given is decided here, on the
//! tokens alone. Two questions are asked of a text: is it *a tool* ([`check_tool`]), which may join the document, or is
//! it *harmless* ([`check_fragment`]), which may be read into an object that a call made for itself.

mod data;
mod function;
mod tokens;

use std::collections::BTreeSet;

pub(crate) use function::{Function, calls_of_libraries, tagged_tools};
pub(crate) use tokens::is_hidden;

use crate::{Limits, Refused};

/// Names that an added tool must not take.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// Of the base and of the host.
    pub(crate) taken: BTreeSet<String>,
    /// Of tools added before, which may be replaced.
    pub(crate) added: BTreeSet<String>,
}

/// Names that mean something to the host.
pub(crate) const RESERVED: [&str; 3] = ["add_tool", "call_tool", "tool_specs"];

/// Checks that the source is one tool and nothing else.
///
/// # Errors
/// The first thing that is wrong, where, and what to write instead.
pub(crate) fn check_tool(source: &str, names: &Names, limits: &Limits) -> Result<Function, Refused> {
    size(source, limits)?;
    let tokens = tokens::tokens(source)?;
    let function = function::only_tool(source, &tokens)?;
    if RESERVED.contains(&function.name.as_str()) || names.taken.contains(&function.name) {
        return Err(Refused::at(
            source,
            function.name_at,
            format!("the name `{}` is taken; choose another", function.name),
        ));
    }
    if !names.added.contains(&function.name) && names.added.len() >= limits.added_tools_max {
        return Err(Refused::whole(format!(
            "{} tools have been added, which is the limit; replace one by giving its name again",
            limits.added_tools_max
        )));
    }
    Ok(function)
}

/// Checks that the text holds plain values and functions alone: nothing that runs while it is parsed.
///
/// # Errors
/// The first thing that is wrong, and where.
pub(crate) fn check_fragment(source: &str, limits: &Limits) -> Result<(), Refused> {
    size(source, limits)?;
    data::check(source, &tokens::tokens(source)?)
}

/// Checks the nesting of a JSON text before the engine reads it.
///
/// # Errors
/// It is too long or too deep.
pub(crate) fn check_json(source: &str, limits: &Limits) -> Result<(), Refused> {
    if source.len() > limits.value_bytes_max {
        return Err(Refused::whole(format!("the text is longer than {} bytes", limits.value_bytes_max)));
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in source.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limits.value_depth_max {
            return Err(Refused::whole(format!("the text has more than {} levels", limits.value_depth_max)));
        }
    }
    Ok(())
}

fn size(source: &str, limits: &Limits) -> Result<(), Refused> {
    if source.len() <= limits.source_bytes_max {
        return Ok(());
    }
    Err(Refused::whole(format!(
        "the source has {} bytes; at most {} are allowed",
        source.len(),
        limits.source_bytes_max
    )))
}
