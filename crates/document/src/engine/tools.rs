//! The tools of a document: found, described, and how a call of one begins.

use std::sync::Arc;

use gesta_run::ToolSpec;
use gesta_run::json::Object;
use serde_json::Value;
use stof::imbl::Vector;
use stof::model::{DataRef, Func, Graph, NodeRef, SId};
use stof::runtime::instruction::Instruction;
use stof::runtime::instructions::Base;
use stof::runtime::instructions::call::{FuncCall, NamedArg};
use stof::runtime::proc::Process;
use stof::runtime::{Type, Val, Variable};

use super::values::{Bounds, ValueError, from_json};
use super::{docs, objects, schema};
use crate::AddedTool;

/// What a document may define to speak for itself.
pub(crate) const TOOL_SPECS: &str = "tool_specs";
pub(crate) const CALL_TOOL: &str = "call_tool";
pub(crate) const ADD_TOOL: &str = "add_tool";

/// A tool of the document.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) function: DataRef,
}

/// The object that tools belong to.
pub(crate) fn home(graph: &Graph) -> Option<NodeRef> {
    graph.find_node_named("root.tools", None)
}

/// A function of the main root.
pub(crate) fn of_root(graph: &Graph, name: &str) -> Option<DataRef> {
    Func::func(graph, &graph.main_root()?, &SId::from(name))
}

/// The functions tagged `tool` below `tools`, in the order of their definition; the first of a name counts.
pub(crate) fn all(graph: &Graph) -> Vec<Tool> {
    let Some(home) = home(graph) else { return Vec::new() };
    let tag = Some(std::iter::once("tool".to_owned()).collect());
    let mut found: Vec<Tool> = Vec::new();
    for function in Func::functions(graph, &home, &tag, true) {
        let Some(name) = function.data_name(graph) else { continue };
        if !found.iter().any(|tool| tool.name == name.as_str()) {
            found.push(Tool { name: name.to_string(), function });
        }
    }
    found
}

/// How the model is told of a tool, read from its function. Comments are looked up in the source it came from.
pub(crate) fn describe(graph: &Graph, tool: &Tool, base: &str, added: &[AddedTool]) -> Option<ToolSpec> {
    let function = graph.get_stof_data::<Func>(&tool.function)?;
    let description = match function.attributes.get("tool") {
        Some(Val::Str(text)) => text.to_string(),
        _ => String::new(),
    };
    let source = added.iter().rfind(|added| added.name == tool.name).map_or(base, |added| &added.source);
    let names: Vec<&str> = function.params.iter().map(|param| param.name.as_str()).collect();
    let line = function.src.as_ref().map_or(0, |place| place.line as usize);
    let comments = docs::of_parameters(source, line, &names);
    Some(ToolSpec::new(tool.name.clone(), description, schema::of_parameters(graph, function, &comments)))
}

/// A call with the arguments matched to parameters by name; surplus ones are ignored.
pub(crate) fn call_by_name(
    graph: &mut Graph,
    function: &DataRef,
    arguments: &Object,
    bounds: Bounds,
) -> Result<Process, ValueError> {
    let params = graph.get_stof_data::<Func>(function).map(|function| function.params.clone());
    let mut given: Vector<Arc<dyn Instruction>> = Vector::new();
    for param in params.iter().flat_map(|params| params.iter()) {
        let Some(value) = arguments.get(param.name.as_str()) else { continue };
        // A null for a parameter with a value of its own is how many models leave it out.
        if value.is_null() && param.default.is_some() {
            continue;
        }
        let checked = from_json(value, bounds)?;
        let ins = literal(if takes_object(&param.param_type) { objects::made_of(graph, value) } else { checked });
        given.push_back(Arc::new(NamedArg { name: param.name.clone(), ins }));
    }
    Ok(process(function, given))
}

/// Whether a parameter wants an object of the engine rather than a map.
fn takes_object(of: &Type) -> bool {
    match of {
        Type::Obj(_) => true,
        Type::NotNull(inner) => takes_object(inner),
        Type::Union(all) => all.iter().any(takes_object) && !all.iter().any(|one| matches!(one, Type::Map)),
        _ => false,
    }
}

/// A call with arguments in order.
pub(crate) fn call_in_order(function: &DataRef, arguments: Vec<Val>) -> Process {
    process(function, arguments.into_iter().map(literal).collect())
}

/// The arguments of the document's own `call_tool`.
pub(crate) fn for_call_tool(tool: &str, arguments: &Object, bounds: Bounds) -> Result<Vec<Val>, ValueError> {
    let arguments = from_json(&Value::Object(arguments.clone()), bounds)?;
    Ok(vec![Val::from(tool), arguments])
}

fn literal(value: Val) -> Arc<dyn Instruction> {
    Arc::new(Base::Variable(Variable::val(value)))
}

fn process(function: &DataRef, args: Vector<Arc<dyn Instruction>>) -> Process {
    let call = FuncCall {
        func: Some(function.clone()),
        search: None,
        stack: false,
        as_ref: false,
        cnull: false,
        args,
        oself: None,
    };
    Process::from(Arc::new(call) as Arc<dyn Instruction>)
}

/// Reads what a document's own `tool_specs` gave: a list of tools, or an object with one under `tools`.
pub(crate) fn read_specs(given: &Value) -> Result<Vec<ToolSpec>, String> {
    let parsed = match given {
        Value::String(text) => serde_json::from_str(text).map_err(|error| format!("it gave no JSON: {error}"))?,
        other => other.clone(),
    };
    let list = match &parsed {
        Value::Array(list) => list,
        Value::Object(fields) => fields.get("tools").and_then(Value::as_array).ok_or("it gave no list `tools`")?,
        _ => return Err("it gave no list `tools`".to_owned()),
    };
    list.iter().map(read_spec).collect()
}

/// Reads one tool, in the form of either family of providers.
fn read_spec(given: &Value) -> Result<ToolSpec, String> {
    let given = given.get("function").unwrap_or(given);
    let name = given.get("name").and_then(Value::as_str).ok_or("a tool has no name")?;
    let description = given.get("description").and_then(Value::as_str).unwrap_or_default();
    let parameters = ["input_schema", "parameters"].iter().find_map(|key| given.get(key));
    let parameters = parameters.filter(|parameters| parameters.is_object()).cloned();
    Ok(ToolSpec::new(name, description, parameters.unwrap_or_else(gesta_run::tool::no_parameters)))
}
