//! What a call may read into a document: `parse`, behind the guard, and the one way by which a tool is added.

use std::sync::Arc;

use stof::model::{Field, Func, Graph, NodeRef, Params, Profile};
use stof::runtime::instruction::Instructions;
use stof::runtime::proc::ProcEnv;
use stof::runtime::{Error, Val, Variable};

use super::native::{install, param, thrown};
use super::shared::Shared;
use super::{errors, grants, parse};
use crate::guard::{check_fragment, check_json, check_tool};
use crate::{AddedTool, Refused};

/// `parse`, behind the guard.
pub(crate) fn install_parse(graph: &mut Graph, shared: &Shared) {
    let params = Params::from([
        param("source", None),
        param("context", Some(Val::Null)),
        param("format", Some(Val::Null)),
        param("profile", Some(Val::Null)),
    ]);
    let shared = shared.clone();
    let body = move |env: &mut ProcEnv, graph: &mut Graph, arguments: Vec<Variable>| {
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
fn target(env: &ProcEnv, graph: &mut Graph, context: Option<&Variable>) -> Option<NodeRef> {
    let own = env.self_stack.last().cloned();
    match context.map(Variable::get) {
        Some(Val::Obj(node)) => node.node_exists(graph).then_some(node),
        Some(Val::Str(path)) => {
            let relative = path.starts_with("self") || path.starts_with("super");
            let start = if relative { own } else { None };
            let field = Field::field_from_path(graph, &path, start.clone());
            let held = field.and_then(|field| graph.get_stof_data::<Field>(&field)?.value.try_obj());
            held.or_else(|| graph.find_node_named(path.as_str(), start))
        }
        _ => own,
    }
}

fn json(graph: &mut Graph, shared: &Shared, source: &str, target: &NodeRef) -> Result<(), Error> {
    let limits = shared.lock().limits.clone();
    check_json(source, &limits).map_err(|refused| thrown(refused.to_string()))?;
    graph.string_import("json", source, Some(target.clone()), &Profile::prod())
}

/// Parses Stof: a tool where it is to join the document, plain values and functions where it is not.
fn stof_source(graph: &mut Graph, shared: &Shared, source: &str, target: &NodeRef) -> Result<(), Error> {
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
    parse::into(graph, source, Some(target)).map(|_| ())
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
    if held.is_some_and(|held| graph.get_stof_data::<Func>(held).is_none()) {
        return Err(Refused::whole(format!("`{}` is the name of a field; choose another", function.name)));
    }
    let warnings = parse_tool(graph, source, target, &function.name)?;
    grants::install_missing(graph, shared, source);
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
    let parsed = parse::into(graph, source, Some(target));
    let warnings = parsed.map_err(|error| Refused::whole(errors::plain(&error.to_string())))?.warnings;
    let after = target.node(graph).map(|node| node.data.clone()).unwrap_or_default();
    let strange = after.iter().any(|(key, data)| key != name && before.get(key) != Some(data));
    let function = Func::func(graph, target, &name.into());
    let tagged = function.as_ref().is_some_and(|function| {
        graph.get_stof_data::<Func>(function).is_some_and(|function| {
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
