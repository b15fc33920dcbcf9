//! Grants as functions of libraries: named, counted, limited, and answered by the host (`spec/documents.md`, 3.14).

use std::collections::BTreeMap;
use std::sync::Arc;

use gesta_run::json::Object;
use stof::model::{Graph, Params};
use stof::runtime::instruction::Instructions;
use stof::runtime::instructions::Base;
use stof::runtime::proc::ProcEnv;
use stof::runtime::{Error, Val, Variable, WakeRef};

use super::native::{call, install, param, thrown};
use super::shared::{Asked, Shared};
use super::values::{Bounds, from_json, to_json};
use super::{libraries, native};
use crate::guard::calls_of_libraries;
use crate::{GrantName, GrantSpec, OpenError};

/// Positional arguments beyond the declared ones that are dropped instead of refused.
const SURPLUS_MAX: usize = 16;

/// Checks that the grants make sense.
pub(crate) fn check(grants: &[GrantSpec]) -> Result<(), OpenError> {
    let wrong = |message: String| Err(OpenError::Terms { message });
    let mut seen = BTreeMap::new();
    for grant in grants {
        for word in [&grant.name.library, &grant.name.name].into_iter().chain(&grant.params) {
            if !is_word(word) {
                return wrong(format!("`{word}` of the grant {} is no name; use letters, digits and `_`", grant.name));
            }
        }
        if libraries::is_engines(&grant.name.library)
            || matches!(grant.name.library.as_str(), "root" | "self" | "super")
        {
            return wrong(format!(
                "`{}` belongs to the engine; give the grant {} another library",
                grant.name.library, grant.name
            ));
        }
        if seen.insert(grant.name.clone(), ()).is_some() {
            return wrong(format!("the grant {} is given twice", grant.name));
        }
    }
    Ok(())
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.len() <= 64
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Installs the grants that are given.
pub(crate) fn install_given(graph: &mut Graph, shared: &Shared, grants: &[GrantSpec]) {
    for grant in grants {
        let mut params: Vec<_> = grant.params.iter().map(|name| param(name, Some(Val::Void))).collect();
        params.extend((0..SURPLUS_MAX).map(|_| param("…", Some(Val::Void))));
        let body = {
            let (grant, shared) = (grant.clone(), shared.clone());
            move |env: &mut ProcEnv, graph: &mut Graph, arguments: Vec<Variable>| {
                ask(env, graph, &shared, &grant, &arguments)
            }
        };
        let (library, name) = (grant.name.library.as_str(), grant.name.name.as_str());
        install(graph, library, name, Params::from(params), false, Arc::new(body));
        let shared = shared.clone();
        let answer = move |env: &mut ProcEnv, graph: &mut Graph, _: Vec<Variable>| answer(env, graph, &shared);
        install(graph, library, &answer_name(name), Params::from([]), false, Arc::new(answer));
    }
    let mut state = shared.lock();
    for grant in grants {
        if !state.libraries.contains(&grant.name.library) {
            state.libraries.push(grant.name.library.clone());
        }
    }
}

/// A name that no source can write.
fn answer_name(name: &str) -> String {
    format!("{name} answered")
}

/// Puts the call before the host: the process sleeps until the loop has the answer.
fn ask(
    env: &mut ProcEnv,
    graph: &mut Graph,
    shared: &Shared,
    grant: &GrantSpec,
    arguments: &[Variable],
) -> Result<Instructions, Error> {
    let limits = shared.lock().limits.clone();
    let bounds = Bounds::of(&limits).with_bytes(limits.grant_arguments_bytes_max);
    let mut named = Object::new();
    for (name, argument) in grant.params.iter().zip(arguments) {
        let value = argument.val.read_recursive();
        if matches!(&*value, Val::Void) {
            continue;
        }
        let value = to_json(graph, &value, bounds)
            .map_err(|error| thrown(format!("the argument `{name}` of {} cannot be given: {error}", grant.name)))?;
        named.insert(name.clone(), value);
    }
    if serde_json::to_string(&named).map_or(0, |text| text.len()) > limits.grant_arguments_bytes_max {
        let max = limits.grant_arguments_bytes_max;
        return Err(thrown(format!("the arguments of {} are larger than {max} bytes", grant.name)));
    }
    let mut state = shared.lock();
    let Some(running) = &mut state.call else {
        return Err(thrown(format!("{} cannot be called while the document is loaded", grant.name)));
    };
    if running.grants >= limits.grants_max {
        return Err(thrown(format!(
            "a call may use grants {} times; {} is one too many",
            limits.grants_max, grant.name
        )));
    }
    running.grants += 1;
    running.asked.insert(env.pid.clone(), Asked { grant: grant.name.clone(), arguments: named });
    let mut instructions = Instructions::default();
    instructions.push(Arc::new(Base::CtrlSleepRef(WakeRef::default())));
    let search = format!("{}::{}", grant.name.library, answer_name(&grant.name.name));
    instructions.push(call(search.into()));
    Ok(instructions)
}

/// Gives the host's answer to the document.
fn answer(env: &mut ProcEnv, _graph: &mut Graph, shared: &Shared) -> Result<Instructions, Error> {
    let mut state = shared.lock();
    let bounds = Bounds::of(&state.limits).with_bytes(state.limits.grant_result_bytes_max);
    let answer = state.call.as_mut().and_then(|call| call.answers.remove(&env.pid));
    drop(state);
    let value = match answer {
        Some(Ok(value)) => from_json(&value, bounds)
            .map_err(|error| thrown(format!("what the grant answered is not usable: {error}")))?,
        Some(Err(message)) => return Err(thrown(message)),
        None => return Err(thrown("the grant has not been answered")),
    };
    env.stack.push(Variable::val(value));
    Ok(Instructions::default())
}

/// Installs, for every function that a source calls in a library that is nobody's, one that says that it is missing.
pub(crate) fn install_missing(graph: &mut Graph, shared: &Shared, source: &str) {
    let libraries = shared.lock().libraries.clone();
    for (library, name) in calls_of_libraries(source, &libraries) {
        let given = graph.has_libfunc(&library, &name);
        let granted = libraries.contains(&library);
        let root = !granted && graph.find_root_named(library.as_str()).is_some();
        if given || root || libraries::is_engines(&library) {
            continue;
        }
        let missing = GrantName { library, name };
        let message = format!("grant {missing} is not available");
        let body = move |_: &mut ProcEnv, _: &mut Graph, _: Vec<Variable>| Err(thrown(&message));
        native::install(graph, &missing.library, &missing.name, Params::from([]), true, Arc::new(body));
    }
}
