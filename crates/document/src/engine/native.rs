//! Functions of ours among the engine's: how a closure becomes one that the engine calls with its arguments evaluated.

use std::sync::Arc;

use stof::arcstr::ArcStr;
use stof::imbl::Vector;
use stof::model::{Graph, LibFunc, Param, Params, SId};
use stof::runtime::instruction::{Instruction, Instructions};
use stof::runtime::instructions::Base;
use stof::runtime::instructions::call::FuncCall;
use stof::runtime::proc::ProcEnv;
use stof::runtime::{Error, Num, Type, Val, Variable};

/// What a function of ours does once its arguments are there: it may push one result, and hand back what to run next.
pub(crate) type Body =
    dyn Fn(&mut ProcEnv, &mut Graph, Vec<Variable>) -> Result<Instructions, Error> + Send + Sync + 'static;

/// Installs a function of ours. The engine asks a function for its instructions before the arguments are evaluated, so
/// it is two: one that the document calls, and one, in a library no source can name, that runs behind the arguments.
pub(crate) fn install(graph: &mut Graph, library: &str, name: &str, params: Params, any_number: bool, body: Arc<Body>) {
    let inner_library = format!("{library} of the host");
    let search: ArcStr = format!("{inner_library}::{name}").into();
    let inner = move |_: bool, _: usize, env: &mut ProcEnv, graph: &mut Graph| {
        let arguments = take_arguments(env)?;
        body(env, graph, arguments)
    };
    graph.insert_libfunc(function(&inner_library, name, Params::from([]), false, Arc::new(inner)));
    let outer = move |_: bool, count: usize, _: &mut ProcEnv, _: &mut Graph| {
        let mut instructions = Instructions::default();
        instructions.push(Arc::new(Base::Literal(Val::from(count as u64))));
        instructions.push(call(search.clone()));
        Ok(instructions)
    };
    graph.insert_libfunc(function(library, name, params, any_number, Arc::new(outer)));
}

/// A parameter; one without a value must be given.
pub(crate) fn param(name: &str, default: Option<Val>) -> Param {
    Param {
        name: SId::from(name),
        param_type: Type::Void,
        default: default.map(|value| Arc::new(Base::Literal(value)) as Arc<dyn Instruction>),
    }
}

/// An instruction that calls a function of a library without arguments.
pub(crate) fn call(search: ArcStr) -> Arc<dyn Instruction> {
    Arc::new(FuncCall {
        func: None,
        search: Some(search),
        stack: false,
        as_ref: false,
        cnull: false,
        args: Vector::new(),
        oself: None,
    })
}

/// An error that the document can catch.
pub(crate) fn thrown(message: impl AsRef<str>) -> Error {
    Error::Thrown(Val::Str(message.as_ref().into()))
}

type Outer = dyn Fn(bool, usize, &mut ProcEnv, &mut Graph) -> Result<Instructions, Error> + Send + Sync + 'static;

fn function(library: &str, name: &str, params: Params, any_number: bool, func: Arc<Outer>) -> LibFunc {
    LibFunc {
        library: library.into(),
        name: name.to_owned(),
        is_async: false,
        docs: String::new(),
        params,
        unbounded_args: any_number,
        return_type: None,
        args_to_symbol_table: false,
        func,
    }
}

/// Takes the arguments from the stack: their number lies on top.
fn take_arguments(env: &mut ProcEnv) -> Result<Vec<Variable>, Error> {
    let count = match env.stack.pop().map(|top| top.get()) {
        Some(Val::Num(Num::Int(count))) => usize::try_from(count).unwrap_or(0),
        _ => return Err(Error::StackError),
    };
    if env.stack.len() < count {
        return Err(Error::StackError);
    }
    Ok(env.stack.split_off(env.stack.len() - count))
}
