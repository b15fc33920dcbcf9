//! From a record to a graph: base, added tools, data, in this order (`spec/documents.md`, 3.9 and 3.10).

use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use stof::model::{DataRef, Func, Graph};
use stof::runtime::Error;

use super::census::Census;
use super::clock::Clock;
use super::parse::Parsed;
use super::shared::Shared;
use super::step::Run;
use super::{additions, data, errors, grants, libraries, restore, tools};
use crate::guard::{Names, RESERVED, check_tool};
use crate::{AddedTool, AddedTools, CallError, OpenError, Place, Record, Terms};

/// A document that was loaded.
pub(crate) struct Loaded {
    pub(crate) graph: Graph,
    pub(crate) census: Census,
    /// What the base makes.
    pub(crate) base: data::Origin,
    /// The record's added tools, with the reason for each that was set aside.
    pub(crate) added: Vec<AddedTool>,
    /// Tools of the data that was laid over it, which were not taken.
    pub(crate) left_out: Vec<String>,
    /// What the parser found odd in the base.
    pub(crate) warnings: Vec<String>,
    /// Whether `add_tool` is ours: the base has none, and tools may be added.
    pub(crate) offers_add_tool: bool,
    /// Whether the base has an `add_tool` of its own.
    pub(crate) own_add_tool: bool,
}

/// Loads a record.
pub(crate) fn load(record: &Record, terms: &Terms, shared: &Shared) -> Result<Loaded, OpenError> {
    let mut graph = libraries::graph();
    graph.max_execution_time = Some(Duration::from_millis(terms.limits.call_time_max_ms));
    *shared.lock() = super::shared::State { limits: terms.limits.clone(), ..Default::default() };
    libraries::install_natives(&mut graph, shared);
    grants::install_given(&mut graph, shared, &terms.grants);
    let Parsed { warnings, init } = parse_base(&mut graph, &record.base)?;
    give_way(&mut graph, terms);
    grants::install_missing(&mut graph, shared, &record.base);
    run_init(&mut graph, shared, &record.base, terms, init)?;

    let names = names(&graph, terms, &record.added);
    let own_add_tool = tools::all(&graph).iter().any(|tool| tool.name == tools::ADD_TOOL);
    let may_add = match terms.added_tools {
        AddedTools::AsBase => own_add_tool,
        AddedTools::On => true,
        AddedTools::Off => false,
    };
    if tools::home(&graph).is_none() {
        let root = graph.ensure_main_root();
        graph.insert_child("tools", &root, true);
    }
    {
        let mut state = shared.lock();
        state.may_add = true;
        state.names = names;
        state.tools = tools::home(&graph);
    }
    let base = data::Origin::of(&graph);
    let added = add_tools(&mut graph, record, shared);
    let mut left_out = Vec::new();
    if let Some(bytes) = &record.data {
        let same_base = record.data_base.as_ref().is_none_or(|hash| *hash == crate::base_hash(&record.base));
        left_out = restore::restore(&mut graph, bytes, same_base, &terms.limits)
            .map_err(|error| OpenError::Data { message: error.to_string() })?;
    }
    let census = Census::take(&graph);
    {
        let mut state = shared.lock();
        state.may_add = may_add;
        state.live = census.nodes.clone();
    }
    Ok(Loaded {
        graph,
        census,
        base,
        added,
        left_out,
        warnings,
        offers_add_tool: may_add && !own_add_tool,
        own_add_tool,
    })
}

/// Parses the base. The operator wrote it, so it may do what the language can.
fn parse_base(graph: &mut Graph, base: &str) -> Result<Parsed, OpenError> {
    graph.ensure_main_root();
    super::parse::into(graph, base, None).map_err(|error| base_error(base, &error))
}

/// Runs the functions tagged `#[init]` in order, under one clock. A document of which one fails does not open: half of
/// it would be another document.
fn run_init(
    graph: &mut Graph,
    shared: &Shared,
    base: &str,
    terms: &Terms,
    init: Vec<DataRef>,
) -> Result<(), OpenError> {
    let mut clock = Clock::start(terms.limits.call_time_max_ms);
    for function in init {
        let (name, place) = {
            let name = function.data_name(graph).map(|name| name.to_string()).unwrap_or_default();
            let line = graph.get_stof_data::<Func>(&function).and_then(|func| Some(func.src.as_ref()?.line as usize));
            (name, Place { line: line.unwrap_or(1).max(1), column: 1 })
        };
        let process = tools::call_in_order(&function, Vec::new());
        let mut run = Run { graph, shared, host: &mut super::NoGrants, clock: &mut clock, limits: &terms.limits };
        let ended = panic::catch_unwind(AssertUnwindSafe(|| run.finish(process)));
        let failed = match ended {
            Ok(Ok(_)) => continue,
            Ok(Err(CallError::TimedOut { limit_ms })) => format!("it ran longer than {limit_ms} ms"),
            Ok(Err(why)) => why.to_string(),
            Err(cause) => errors::of_panic(cause.as_ref()),
        };
        let message = format!("the #[init] function `{name}` did not succeed: {failed}");
        return Err(OpenError::Base { message, frame: crate::refused::frame(base, place), at: place });
    }
    Ok(())
}

pub(crate) fn base_error(base: &str, error: &Error) -> OpenError {
    let (message, at) = match error {
        Error::ParseError(error) => (error.describe(), error.location()),
        other => (other.message(), None),
    };
    let at = at.map_or(Place { line: 1, column: 1 }, |(line, column)| Place { line, column });
    OpenError::Base { message: errors::plain(&message), frame: crate::refused::frame(base, at), at }
}

/// A root of the base that has the name of a granted library was a stand-in for it, and goes.
fn give_way(graph: &mut Graph, terms: &Terms) {
    for grant in &terms.grants {
        if let Some(root) = graph.find_root_named(grant.name.library.as_str()) {
            graph.remove_node(&root, true);
        }
    }
}

/// Names that are taken before anything is added.
fn names(graph: &Graph, terms: &Terms, added: &[AddedTool]) -> Names {
    let mut names = Names::default();
    names.taken.extend(RESERVED.iter().map(|name| (*name).to_owned()));
    names.taken.extend(terms.names_taken.iter().cloned());
    let switched_off = added.iter().filter(|tool| tool.set_aside.as_deref() == Some(crate::SWITCHED_OFF));
    names.taken.extend(switched_off.map(|tool| tool.name.clone()));
    names.taken.extend(tools::all(graph).into_iter().map(|tool| tool.name));
    if let Some(home) = tools::home(graph).and_then(|home| home.node(graph)) {
        names.taken.extend(home.data.keys().cloned());
    }
    names
}

/// Adds what was added before; what does not pass any more is set aside and said.
fn add_tools(graph: &mut Graph, record: &Record, shared: &Shared) -> Vec<AddedTool> {
    let home = shared.lock().tools.clone();
    let mut added = record.added.clone();
    for tool in &mut added {
        if tool.set_aside.as_deref().is_some_and(|reason| !reason.starts_with(SET_ASIDE)) {
            continue;
        }
        tool.set_aside = None;
        let (names, limits) = {
            let state = shared.lock();
            (state.names.clone(), state.limits.clone())
        };
        let outcome = check_tool(&tool.source, &names, &limits).and_then(|function| {
            let Some(home) = &home else { return Err(crate::Refused::whole("the document has no `tools`")) };
            additions::add_tool(graph, shared, &tool.source, home)?;
            tool.name = function.name;
            Ok(())
        });
        if let Err(refused) = outcome {
            tool.set_aside = Some(format!("{SET_ASIDE}: {refused}"));
        }
    }
    added
}

/// How the reason begins where it was found on opening; it is looked at again on the next one.
const SET_ASIDE: &str = "set aside";
