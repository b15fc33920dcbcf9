//! The engine's libraries, reduced to what a tool may use (`spec/documents.md`, 3.11).

use std::sync::{Arc, OnceLock};

use stof::model::{Graph, NodeRef, Params, Profile};
use stof::runtime::instruction::Instructions;
use stof::runtime::{Val, Variable};

use super::clock;
use super::native::{install, param, thrown};
use super::shared::Shared;
use super::values::{Bounds, to_text};
use crate::guard::{check_fragment, check_json, check_tool};
use crate::{AddedTool, Refused};

/// Functions taken away: they print to the process, end it, read its clock, throw dice, or take compiled code.
const REMOVED: &[(&str, &[&str])] = &[
    ("Std", &["dbg", "dbg_tracestack", "trace", "peek", "exit", "nanoid", "graph_id", "callstack"]),
    ("Obj", &["dbg_graph", "dbg", "from_id", "id"]),
    ("Data", &["blob", "load_blob", "from_id", "id"]),
    ("Fn", &["id"]),
    ("Time", &["now_ns", "now_rfc2822", "diff", "diff_ns"]),
];
/// Libraries taken away whole.
const REMOVED_LIBRARIES: &[&str] = &["Md", "fs", "Http", "Age", "Image", "Pdf"];
/// Formats that stay.
const FORMATS: [&str; 2] = ["json", "stof"];

/// A graph with nothing in it but the libraries that stay.
pub(crate) fn graph() -> Graph {
    static TEMPLATE: OnceLock<Graph> = OnceLock::new();
    let mut graph = TEMPLATE.get_or_init(reduced).clone();
    graph.id = "gesta".into();
    graph
}

/// A graph without any library, to hold data alone.
pub(crate) fn bare_graph() -> Graph {
    static TEMPLATE: OnceLock<Graph> = OnceLock::new();
    let mut graph = TEMPLATE
        .get_or_init(|| {
            let mut graph = Graph::default();
            graph.libfuncs.clear();
            graph.libdocs.clear();
            graph.formats.clear();
            graph
        })
        .clone();
    graph.id = "gesta".into();
    graph
}

fn reduced() -> Graph {
    let mut graph = Graph::default();
    graph.set_deadpools_enabled(false);
    // For exports as text.
    graph.keep_source(true);
    for (library, names) in REMOVED {
        for name in *names {
            graph.remove_libfunc(&(*library).into(), name);
        }
    }
    for library in REMOVED_LIBRARIES {
        graph.remove_lib(&(*library).into());
    }
    for format in graph.available_formats() {
        if !FORMATS.contains(&format.as_str()) {
            graph.remove_format_id(&format);
        }
    }
    for functions in graph.libfuncs.values_mut() {
        for function in functions.values_mut() {
            function.docs = String::new();
        }
    }
    graph
}

/// Whether the engine has a library of this name of its own.
pub(crate) fn is_engines(library: &str) -> bool {
    static NAMES: OnceLock<std::collections::BTreeSet<String>> = OnceLock::new();
    NAMES.get_or_init(|| Graph::default().libfuncs.keys().map(|name| name.to_string()).collect()).contains(library)
}

/// Installs what the host puts in place of the engine's own.
pub(crate) fn install_natives(graph: &mut Graph, shared: &Shared) {
    for name in ["pln", "err"] {
        let shared = shared.clone();
        let body = move |_: &mut _, graph: &mut Graph, arguments: Vec<Variable>| {
            print(&shared, graph, &arguments);
            Ok(Instructions::default())
        };
        install(graph, "Std", name, Params::from([]), true, Arc::new(body));
    }
    install_dates(graph);
    install_parse(graph, shared);
}

fn print(shared: &Shared, graph: &Graph, arguments: &[Variable]) {
    let limits = shared.lock().limits.clone();
    let bounds = Bounds::of(&limits).with_bytes(limits.log_bytes_max);
    let texts: Vec<String> =
        arguments.iter().map(|argument| to_text(graph, &argument.val.read_recursive(), bounds)).collect();
    let any_text = arguments.iter().any(|argument| matches!(&*argument.val.read_recursive(), Val::Str(_)));
    let line = texts.join(if any_text { "" } else { ", " });
    if let Some(call) = &mut shared.lock().call {
        call.print(&line, limits.log_bytes_max);
    }
}

/// The clock stands still within a day: a document knows the date and nothing finer.
fn install_dates(graph: &mut Graph) {
    let now = |env: &mut stof::runtime::proc::ProcEnv, _: &mut Graph, _: Vec<Variable>| {
        let midnight = clock::midnight_ms();
        env.stack.push(Variable::val(Val::from((midnight, stof::runtime::Units::Milliseconds))));
        Ok(Instructions::default())
    };
    install(graph, "Time", "now", Params::from([]), false, Arc::new(now));
    let text = |env: &mut stof::runtime::proc::ProcEnv, _: &mut Graph, _: Vec<Variable>| {
        env.stack.push(Variable::val(Val::from(clock::midnight_text().as_str())));
        Ok(Instructions::default())
    };
    install(graph, "Time", "now_rfc3339", Params::from([]), false, Arc::new(text));
}

/// `parse`, behind the guard.
fn install_parse(graph: &mut Graph, shared: &Shared) {
    let params = Params::from([
        param("source", None),
        param("context", Some(Val::Null)),
        param("format", Some(Val::Null)),
        param("profile", Some(Val::Null)),
    ]);
    let shared = shared.clone();
    let body = move |env: &mut stof::runtime::proc::ProcEnv, graph: &mut Graph, arguments: Vec<Variable>| {
        let target = target(env, graph, arguments.get(1));
        let Some(target) = target else {
            env.stack.push(Variable::val(Val::Bool(false)));
            return Ok(Instructions::default());
        };
        let format = arguments.get(2).map(Variable::get).unwrap_or_default();
        let source = match arguments.first().map(Variable::get) {
            Some(Val::Str(text)) => text,
            _ => return Err(thrown("only text can be parsed here")),
        };
        match format {
            Val::Str(format) if format == "json" => json(graph, &shared, &source, &target)?,
            Val::Str(format) if format != "stof" => {
                return Err(thrown(format!("the format `{format}` is not available; use json or stof")));
            }
            _ => stof_source(graph, &shared, &source, &target)?,
        }
        env.stack.push(Variable::val(Val::Bool(true)));
        Ok(Instructions::default())
    };
    install(graph, "Std", "parse", params, false, Arc::new(body));
}

/// The object that a text is to be parsed into.
fn target(env: &stof::runtime::proc::ProcEnv, graph: &mut Graph, context: Option<&Variable>) -> Option<NodeRef> {
    let own = env.self_stack.last().cloned();
    match context.map(Variable::get) {
        Some(Val::Obj(node)) => node.node_exists(graph).then_some(node),
        Some(Val::Str(path)) => {
            let relative = path.starts_with("self") || path.starts_with("super");
            let start = if relative { own } else { None };
            let field = stof::model::Field::field_from_path(graph, &path, start.clone());
            let held = field.and_then(|field| graph.get_stof_data::<stof::model::Field>(&field)?.value.try_obj());
            held.or_else(|| graph.find_node_named(path.as_str(), start))
        }
        _ => own,
    }
}

fn json(graph: &mut Graph, shared: &Shared, source: &str, target: &NodeRef) -> Result<(), stof::runtime::Error> {
    let limits = shared.lock().limits.clone();
    check_json(source, &limits).map_err(|refused| thrown(refused.to_string()))?;
    graph.string_import("json", source, Some(target.clone()), &Profile::prod())
}

/// Parses Stof: a tool where it is to join the document, plain values and functions where it is not.
fn stof_source(graph: &mut Graph, shared: &Shared, source: &str, target: &NodeRef) -> Result<(), stof::runtime::Error> {
    let (limits, live) = {
        let state = shared.lock();
        (state.limits.clone(), state.live.contains(target))
    };
    if live {
        let added = add_tool(graph, shared, source, target).map_err(|refused| thrown(refused.to_string()))?;
        if let Some(call) = &mut shared.lock().call {
            call.added.push(added);
        }
        return Ok(());
    }
    check_fragment(source, &limits).map_err(|refused| thrown(with_frame(source, &refused)))?;
    super::parse::into(graph, source, Some(target)).map(|_| ())
}

/// Lets a tool into the document: checked, parsed, and checked again as what the engine made of it.
pub(crate) fn add_tool(
    graph: &mut Graph,
    shared: &Shared,
    source: &str,
    target: &NodeRef,
) -> Result<AddedTool, Refused> {
    let (names, limits) = {
        let state = shared.lock();
        if !state.may_add {
            return Err(Refused::whole("no tool can be added to this document"));
        }
        if state.tools.as_ref() != Some(target) {
            return Err(Refused::whole("a tool can be added to `tools` only"));
        }
        (state.names.clone(), state.limits.clone())
    };
    let function = check_tool(source, &names, &limits).map_err(|refused| framed(source, refused))?;
    let held = target.node(graph).and_then(|node| node.data.get(&function.name));
    if held.is_some_and(|held| graph.get_stof_data::<stof::model::Func>(held).is_none()) {
        return Err(Refused::whole(format!("`{}` is the name of a field; choose another", function.name)));
    }
    let warnings = parse_tool(graph, source, target, &function.name)?;
    super::grants::install_missing(graph, shared, source);
    let mut state = shared.lock();
    state.names.added.insert(function.name.clone());
    state.warnings = warnings;
    drop(state);
    Ok(AddedTool { name: function.name, source: source.to_owned(), ..AddedTool::default() })
}

/// Has the engine parse a source that passed the guard, and sees that it made one tool of this name.
pub(crate) fn parse_tool(
    graph: &mut Graph,
    source: &str,
    target: &NodeRef,
    name: &str,
) -> Result<Vec<String>, Refused> {
    let before = target.node(graph).map(|node| node.data.clone()).unwrap_or_default();
    let nodes = graph.nodes.len();
    let roots = graph.roots.clone();
    let warnings = super::parse::into(graph, source, Some(target))
        .map_err(|error| Refused::whole(super::errors::plain(&error.to_string())))?;
    let after = target.node(graph).map(|node| node.data.clone()).unwrap_or_default();
    let strange = after.iter().any(|(key, data)| key != name && before.get(key) != Some(data));
    let function = stof::model::Func::func(graph, target, &name.into());
    let tagged = function.as_ref().is_some_and(|function| {
        graph.get_stof_data::<stof::model::Func>(function).is_some_and(|function| {
            matches!(function.attributes.get("tool"), Some(Val::Str(_)))
                && function.attributes.keys().all(|key| key == "tool" || key == "async")
        })
    });
    if !tagged || strange || graph.nodes.len() != nodes || graph.roots != roots {
        return Err(Refused::whole("the source defines more than one tool"));
    }
    Ok(warnings)
}

/// Adds the line and a caret below the place to what is wrong.
fn framed(source: &str, refused: Refused) -> Refused {
    let message = match refused.at {
        Some(at) => format!("{}\n{}", refused.message, crate::refused::frame(source, at)),
        None => refused.message,
    };
    Refused { message, at: refused.at }
}

fn with_frame(source: &str, refused: &Refused) -> String {
    framed(source, refused.clone()).to_string()
}

#[cfg(test)]
mod tests {
    /// A new version of the engine shows here what it brings; nothing gets in unseen.
    #[test]
    fn the_engine_offers_these_functions_and_no_others() {
        let graph = super::graph();
        let mut lines: Vec<String> = graph
            .libfuncs
            .iter()
            .map(|(library, functions)| {
                let mut names: Vec<&str> = functions.keys().map(String::as_str).collect();
                names.sort_unstable();
                format!("{library}: {}", names.join(" "))
            })
            .collect();
        lines.sort();
        let mut formats: Vec<String> = graph.available_formats().into_iter().collect();
        formats.sort();
        lines.push(format!("formats: {}", formats.join(" ")));
        let found = lines.join("\n") + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/engine-libraries.txt");
        if std::env::var_os("GESTA_WRITE_FIXTURES").is_some() {
            std::fs::write(path, &found).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), found);
    }
}
