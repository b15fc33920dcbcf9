//! The engine's libraries, reduced to what a tool may use (`spec/documents.md`, 3.11).

use std::sync::{Arc, OnceLock};

use stof::model::{Graph, Params};
use stof::runtime::instruction::Instructions;
use stof::runtime::proc::ProcEnv;
use stof::runtime::{Units, Val, Variable};

use super::clock;
use super::native::install;
use super::shared::Shared;
use super::values::{Bounds, to_text};

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
    super::additions::install_parse(graph, shared);
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
    let now = |env: &mut ProcEnv, _: &mut Graph, _: Vec<Variable>| {
        let midnight = clock::midnight_ms();
        env.stack.push(Variable::val(Val::from((midnight, Units::Milliseconds))));
        Ok(Instructions::default())
    };
    install(graph, "Time", "now", Params::from([]), false, Arc::new(now));
    let text = |env: &mut ProcEnv, _: &mut Graph, _: Vec<Variable>| {
        env.stack.push(Variable::val(Val::from(clock::midnight_text().as_str())));
        Ok(Instructions::default())
    };
    install(graph, "Time", "now_rfc3339", Params::from([]), false, Arc::new(text));
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
