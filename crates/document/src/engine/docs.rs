//! Documentation comments above a function, as descriptions of its parameters. The engine's parser joins their lines, so
//! they are read from the source.

use stof::model::{DataRef, Func, Graph};

use super::tools;
use crate::AddedTool;

/// What the comment above a line says of each parameter. `line` counts from 1 and is where the function begins.
///
/// A description stands in a line of its own: `name: text`, `name - text`, also behind `@param` or a dash.
pub(crate) fn of_parameters(source: &str, line: usize, names: &[&str]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut continues = false;
    for text in comment_above(source, line) {
        match described(&text, names) {
            Some((name, text)) => {
                found.push((name.to_owned(), text.to_owned()));
                continues = true;
            }
            None if text.is_empty() => continues = false,
            None if continues => {
                if let Some((_, description)) = found.last_mut() {
                    description.push(' ');
                    description.push_str(&text);
                }
            }
            None => {}
        }
    }
    found
}

/// Puts the comments back above the functions of a graph that is to be written as text.
pub(crate) fn put_back(graph: &mut Graph, base: &str, added: &[AddedTool]) {
    let tools = tools::all(graph);
    let functions: Vec<DataRef> = graph.data.keys().cloned().collect();
    for id in functions {
        let tool = tools.iter().find(|tool| tool.function == id);
        let source = tool.and_then(|tool| added.iter().rfind(|added| added.name == tool.name));
        let source = source.map_or(base, |added| &added.source);
        let Some(function) = graph.get_mut_stof_data::<Func>(&id) else { continue };
        let (Some(place), Some(text)) = (&function.src, &function.source) else { continue };
        let lines = comment_above(source, place.line as usize);
        if !lines.is_empty() {
            let comment: String = lines.iter().map(|line| format!("/// {line}\n")).collect();
            function.source = Some(format!("{comment}{text}").into());
        }
    }
}

/// The lines of the comment that ends above a line, tags left out, without their signs.
fn comment_above(source: &str, line: usize) -> Vec<String> {
    let before: Vec<&str> = source.lines().take(line.saturating_sub(1)).collect();
    let mut found = Vec::new();
    let mut in_block = false;
    for text in before.into_iter().rev() {
        let text = text.trim();
        if in_block || text.ends_with("*/") {
            in_block = !text.contains("/**");
            let text = text.trim_start_matches("/**").trim_end_matches("*/").trim();
            found.push(text.trim_start_matches('*').trim().to_owned());
        } else if let Some(text) = text.strip_prefix("///") {
            found.push(text.trim().to_owned());
        } else if !(text.starts_with("#[") || text.is_empty() && found.is_empty()) {
            break;
        }
        if found.len() > 64 {
            break;
        }
    }
    found.reverse();
    found
}

/// The parameter that a line describes, and how.
fn described<'a>(text: &'a str, names: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let text = text.trim_start_matches(['-', '*', ' ']);
    let text = text.strip_prefix("@param").unwrap_or(text).trim_start();
    let (name, rest) = names.iter().find_map(|name| {
        let rest = text.trim_start_matches('`').strip_prefix(name)?.trim_start_matches('`');
        (!rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')).then_some((*name, rest))
    })?;
    let rest = rest.trim_start();
    let described = rest.strip_prefix(':').or_else(|| rest.strip_prefix('-')).or_else(|| rest.strip_prefix('–'))?;
    let described = described.trim();
    (!described.is_empty()).then_some((name, described))
}

#[cfg(test)]
mod tests {
    use super::of_parameters;

    #[test]
    fn a_line_that_begins_with_a_parameter_describes_it() {
        let source =
            "/// Refunds an order.\n/// order_id: which one,\n///   as the list has it\n#[tool('x')]\nfn f() {}\n";
        let found = of_parameters(source, 5, &["order_id", "amount"]);
        assert_eq!(found, [("order_id".to_owned(), "which one, as the list has it".to_owned())]);
        let source = "/**\n * @param amount - in dollars\n */\n#[tool('x')]\nfn f() {}\n";
        let found = of_parameters(source, 5, &["order_id", "amount"]);
        assert_eq!(found, [("amount".to_owned(), "in dollars".to_owned())]);
    }
}
