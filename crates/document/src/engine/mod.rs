//! The Stof engine behind [`Document`]. Nothing outside this module knows its types.
#![expect(clippy::result_large_err, reason = "the engine's own error, in the signatures that it asks for")]

mod additions;
mod census;
mod clock;
mod data;
mod docs;
mod errors;
#[cfg(test)]
pub(crate) mod for_properties;
mod grants;
mod kept;
mod libraries;
mod load;
mod native;
mod objects;
mod parse;
mod restore;
mod schema;
mod shared;
mod step;
mod tools;
mod values;

use std::panic::{self, AssertUnwindSafe};

use gesta_run::ToolSpec;
use gesta_run::json::Object;
use serde_json::{Value, json};
use stof::model::{BstfFormat, Format as _, Func, StofFormat};
use stof::runtime::Val;
use stof::runtime::proc::Process;

pub(crate) use libraries::is_engines as is_engines_library;

use clock::Clock;
use load::Loaded;
use shared::{CallState, Shared};
use tools::{ADD_TOOL, CALL_TOOL, TOOL_SPECS};
use values::Bounds;

use crate::{AddedTool, CallError, Called, Document, Form, Host, OpenError, Record, Refused, Terms};

/// A document that is open.
pub(crate) struct Engine {
    record: Record,
    terms: Terms,
    shared: Shared,
    loaded: Loaded,
    /// Whether what is loaded is not what the record says: a call failed, and the next one begins by loading again.
    stale: bool,
    /// The data as it was last saved.
    saved: Vec<u8>,
}

impl Engine {
    /// Opens a document.
    pub(crate) fn open(record: &Record, terms: &Terms) -> Result<Self, OpenError> {
        grants::check(&terms.grants)?;
        let shared = Shared::default();
        let loaded = load::load(record, terms, &shared)?;
        let mut record = record.clone();
        record.added.clone_from(&loaded.added);
        record.data_base = None;
        let saved = kept::kept(&loaded.graph, &loaded.base.nodes)
            .and_then(|kept| data::save(&loaded.graph, &kept, &loaded.base, &terms.limits))
            .map_err(|error| OpenError::Data { message: error.to_string() })?;
        record.data = Some(saved.clone());
        Ok(Self { record, terms: terms.clone(), shared, loaded, stale: false, saved })
    }

    /// Loads again where a call left the document other than it was.
    fn refresh(&mut self) -> Result<(), CallError> {
        if !self.stale {
            return Ok(());
        }
        let shared = Shared::default();
        let loaded = load::load(&self.record, &self.terms, &shared)
            .map_err(|error| CallError::Thrown { message: format!("the document cannot be loaded again: {error}") })?;
        let left = std::mem::replace(&mut self.loaded, loaded);
        if !kept::can_be_dropped(&left.graph) {
            // Taking it apart would overflow the stack; it goes with the process.
            std::mem::forget(left);
        }
        self.shared = shared;
        self.saved = self.data()?;
        self.stale = false;
        Ok(())
    }

    /// The data as it is now.
    fn data(&self) -> Result<Vec<u8>, CallError> {
        let Loaded { graph, base, .. } = &self.loaded;
        let kept = kept::kept(graph, &base.nodes).map_err(too_much)?;
        data::save(graph, &kept, base, &self.terms.limits).map_err(too_much)
    }

    /// Clears away what a call left that nothing refers to, and gives what can act and is not of the record, in words.
    fn clear_away(&mut self, allowed: &[&str]) -> Result<Option<String>, CallError> {
        let tools = self.shared.lock().tools.clone();
        let Loaded { graph, census, base, .. } = &mut self.loaded;
        census.sweep_arrows(graph);
        if let Some(message) = census.roots_differ(graph) {
            return Ok(Some(message));
        }
        let kept = kept::kept(graph, &base.nodes).map_err(too_much)?;
        kept::sweep(graph, &kept);
        Ok(census.difference(graph, tools.as_ref(), allowed))
    }

    /// Runs a process to its end. Until somebody says otherwise, what is loaded then is not to be trusted.
    fn execute(&mut self, process: Process, host: &mut dyn Host) -> Result<(Val, Clock), CallError> {
        self.stale = true;
        self.shared.lock().call = Some(CallState::default());
        let mut clock = Clock::start(self.terms.limits.call_time_max_ms);
        let mut run = step::Run {
            graph: &mut self.loaded.graph,
            shared: &self.shared,
            host,
            clock: &mut clock,
            limits: &self.terms.limits,
        };
        // The engine panics on some arguments. What it leaves is thrown away by the next load.
        let ended = panic::catch_unwind(AssertUnwindSafe(|| run.finish(process)));
        match ended {
            Ok(ended) => ended.map(|value| (value, clock)),
            Err(cause) => {
                run.hand_over_log();
                Err(CallError::Thrown { message: errors::of_panic(cause.as_ref()) })
            }
        }
    }

    /// Runs a process as one call: all that it changed is kept, or nothing.
    fn run(&mut self, process: Process, host: &mut dyn Host) -> Result<Called, CallError> {
        let (value, clock) = self.execute(process, host)?;
        let bounds = Bounds::of(&self.terms.limits);
        let result = values::result_to_json(&self.loaded.graph, &value, bounds)
            .map_err(|error| CallError::Limit { message: format!("the tool's result cannot be given: {error}") })?;
        drop(value);
        let call = self.shared.lock().call.take().unwrap_or_default();
        let data = self.settle(&call)?;
        let running_us = u64::try_from(clock.running().as_micros()).unwrap_or(u64::MAX);
        self.stale = false;
        Ok(Called { result, added: call.added, data, log: call.log, running_us })
    }

    /// Compares the document with its record, and saves what changed.
    fn settle(&mut self, call: &CallState) -> Result<Option<Vec<u8>>, CallError> {
        let allowed: Vec<&str> = call.added.iter().map(|tool| tool.name.as_str()).collect();
        if let Some(message) = self.clear_away(&allowed)? {
            return Err(CallError::OffRecord { message });
        }
        let data = self.data()?;
        self.keep_added(&call.added);
        if data == self.saved {
            return Ok(None);
        }
        self.recount();
        self.saved.clone_from(&data);
        self.record.data = Some(data.clone());
        Ok(Some(data))
    }

    /// Writes tools that were added into the record; one of the same name is replaced.
    fn keep_added(&mut self, added: &[AddedTool]) {
        self.record.keep_tools(added);
        if !added.is_empty() {
            self.recount();
        }
    }

    /// Takes the document as it is now for what the record says.
    fn recount(&mut self) {
        self.loaded.census = census::Census::take(&self.loaded.graph);
        self.shared.lock().live = self.loaded.census.nodes.clone();
    }

    /// The source of each tool, by name.
    pub(crate) fn sources(&self) -> Vec<(String, String)> {
        let graph = &self.loaded.graph;
        let source = |tool: tools::Tool| {
            let function = graph.get_stof_data::<Func>(&tool.function)?;
            Some((tool.name, function.source.as_ref()?.to_string()))
        };
        tools::all(graph).into_iter().filter_map(source).collect()
    }

    /// Tools with two parameters of one name, and that name.
    pub(crate) fn parameters_twice(&self) -> Vec<(String, String)> {
        let graph = &self.loaded.graph;
        let mut found = Vec::new();
        for tool in tools::all(graph) {
            let Some(function) = graph.get_stof_data::<Func>(&tool.function) else { continue };
            let names: Vec<&str> = function.params.iter().map(|param| param.name.as_str()).collect();
            let twice = (1..names.len()).find(|at| names[..*at].contains(&names[*at]));
            found.extend(twice.map(|at| (tool.name.clone(), names[at].to_owned())));
        }
        found
    }

    /// What the parser found odd in the base.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.loaded.warnings
    }

    fn bounds(&self) -> Bounds {
        Bounds::of(&self.terms.limits)
    }

    /// The process that a call of a tool begins with.
    fn begin(&mut self, tool: &str, arguments: &Object) -> Result<Process, CallError> {
        let bounds = self.bounds();
        let unknown = || CallError::UnknownTool { name: tool.to_owned() };
        let value = |error| CallError::Limit { message: format!("the arguments cannot be taken: {error}") };
        if tool == ADD_TOOL && self.loaded.own_add_tool && !self.shared.lock().may_add {
            return Err(unknown());
        }
        let graph = &mut self.loaded.graph;
        if let Some(call_tool) = tools::of_root(graph, CALL_TOOL) {
            let arguments = tools::for_call_tool(tool, arguments, bounds).map_err(value)?;
            return Ok(tools::call_in_order(&call_tool, arguments));
        }
        let found = tools::all(graph).into_iter().find(|found| found.name == tool).ok_or_else(unknown)?;
        tools::call_by_name(graph, &found.function, arguments, bounds).map_err(value)
    }

    /// The built-in `add_tool`, called by the model.
    fn add_for_model(&mut self, arguments: &Object) -> Result<Called, CallError> {
        let Some(Value::String(source)) = arguments.get("source") else {
            return Err(CallError::Thrown { message: "add_tool takes `source`, the text of one function".to_owned() });
        };
        let clock = Clock::start(self.terms.limits.call_time_max_ms);
        let added =
            Document::add_tool(self, source).map_err(|refused| CallError::Thrown { message: refused.to_string() })?;
        let notes = std::mem::take(&mut self.shared.lock().warnings);
        let notes: String = notes.iter().map(|note| format!("\nnote: {note}")).collect();
        Ok(Called {
            result: Value::from(format!("added {}{notes}", added.name)),
            added: vec![added],
            running_us: u64::try_from(clock.running().as_micros()).unwrap_or(u64::MAX),
            ..Called::default()
        })
    }

    /// Tools as the document's own `tool_specs` describes them.
    fn own_specs(&mut self, function: &stof::model::DataRef) -> Result<Vec<ToolSpec>, CallError> {
        let (value, _) = self.execute(tools::call_in_order(function, Vec::new()), &mut NoGrants)?;
        let given = values::to_json(&self.loaded.graph, &value, self.bounds())
            .map_err(|error| CallError::Limit { message: format!("the document's tool_specs: {error}") })?;
        let call = self.shared.lock().call.take().unwrap_or_default();
        // Describing changes nothing; where it did, what it did is dropped by loading again.
        let unchanged = call.added.is_empty() && self.settle_nothing();
        self.stale = !unchanged;
        tools::read_specs(&given).map_err(|message| CallError::Thrown {
            message: format!("the document's tool_specs is not usable: {message}"),
        })
    }

    /// Whether the document is what it was.
    fn settle_nothing(&mut self) -> bool {
        self.clear_away(&[]).is_ok_and(|difference| difference.is_none())
            && self.data().is_ok_and(|data| data == self.saved)
    }

    /// Tools as their functions describe themselves.
    fn derived_specs(&self) -> Vec<ToolSpec> {
        let graph = &self.loaded.graph;
        let added: Vec<AddedTool> = self.record.added.iter().filter(|tool| tool.set_aside.is_none()).cloned().collect();
        let tools = tools::all(graph);
        tools.iter().filter_map(|tool| tools::describe(graph, tool, &self.record.base, &added)).collect()
    }
}

/// Data that cannot be kept is a limit that the call met.
#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err`")]
fn too_much(error: data::DataError) -> CallError {
    CallError::Limit { message: error.to_string() }
}

impl Document for Engine {
    fn specs(&mut self) -> Result<Vec<ToolSpec>, CallError> {
        self.refresh()?;
        let mut specs = match tools::of_root(&self.loaded.graph, TOOL_SPECS) {
            Some(function) => self.own_specs(&function)?,
            None => self.derived_specs(),
        };
        let may_add = self.shared.lock().may_add;
        if !may_add {
            specs.retain(|spec| spec.name != ADD_TOOL);
        } else if self.loaded.offers_add_tool {
            specs.push(built_in_add_tool());
        }
        Ok(specs)
    }

    fn call(&mut self, tool: &str, arguments: &Object, host: &mut dyn Host) -> Result<Called, CallError> {
        self.refresh()?;
        if tool == ADD_TOOL && self.loaded.offers_add_tool {
            return self.add_for_model(arguments);
        }
        let process = self.begin(tool, arguments)?;
        self.run(process, host)
    }

    fn add_tool(&mut self, source: &str) -> Result<AddedTool, Refused> {
        self.refresh().map_err(|error| Refused::whole(error.to_string()))?;
        let (home, may_add) = {
            let mut state = self.shared.lock();
            (state.tools.clone(), std::mem::replace(&mut state.may_add, true))
        };
        let home = home.ok_or_else(|| Refused::whole("the document has no `tools`"))?;
        let added = additions::add_tool(&mut self.loaded.graph, &self.shared, source, &home);
        self.shared.lock().may_add = may_add;
        match &added {
            Ok(tool) => self.keep_added(std::slice::from_ref(tool)),
            Err(_) => self.stale = true,
        }
        added
    }

    fn main(&mut self, host: &mut dyn Host) -> Result<Called, CallError> {
        self.refresh()?;
        let functions = Func::main_functions(&self.loaded.graph);
        if functions.is_empty() {
            return Err(CallError::UnknownTool { name: "main".to_owned() });
        }
        let mut all = Called::default();
        for function in functions {
            let called = self.run(tools::call_in_order(&function, Vec::new()), host)?;
            all.result = called.result;
            all.added.extend(called.added);
            all.data = called.data.or(all.data);
            all.log.push_str(&called.log);
            all.running_us += called.running_us;
        }
        Ok(all)
    }

    fn added(&self) -> &[AddedTool] {
        &self.record.added
    }

    fn left_out(&self) -> &[String] {
        &self.loaded.left_out
    }

    fn export(&mut self, form: Form) -> Result<Vec<u8>, CallError> {
        self.refresh()?;
        let graph = &self.loaded.graph;
        let failed = |error: stof::runtime::Error| CallError::Thrown {
            message: format!("the document cannot be written: {}", errors::plain(&error.message())),
        };
        match form {
            Form::Bstf => Ok(BstfFormat {}.binary_export(graph, "bstf", None).map_err(failed)?.to_vec()),
            Form::Stof => {
                let mut graph = graph.clone();
                docs::put_back(&mut graph, &self.record.base, &self.record.added);
                Ok(StofFormat {}.string_export(&graph, "stof", None).map_err(failed)?.into_bytes())
            }
        }
    }

    fn save(&mut self) -> Result<Vec<u8>, CallError> {
        self.refresh()?;
        Ok(self.saved.clone())
    }
}

/// The built-in `add_tool`, as the model is told of it.
fn built_in_add_tool() -> ToolSpec {
    ToolSpec::new(
        ADD_TOOL,
        "Add a tool for yourself, or replace one that you added. It is offered from your next step on.",
        json!({
            "type": "object",
            "properties": {"source": {"type": "string", "description": "Stof source: exactly one function tagged #[tool('what it does')]."}},
            "required": ["source"],
        }),
    )
}

/// A host that lends nothing: describing tools has no effects.
struct NoGrants;

impl Host for NoGrants {
    fn grant(&mut self, grant: &crate::GrantName, _: Object) -> Result<Value, String> {
        Err(format!("{grant} cannot be called while tools are described"))
    }
}
