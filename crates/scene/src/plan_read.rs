//! Reads the clauses of a scene's plan.

use gesta_run::contract::{ActWhenAsked, BackstopSpec, OnToolRefusal, RefusalPreset, Require};
use gesta_run::intervention::Phase;
use gesta_run::json::Object;
use gesta_run::plan::{Limits, OnHookError, OnMessageWhileParked, OnUndecided, PlanSpec, Prices};
use gesta_run::tool::{Accepts, Effect, TIME_LIMIT_MS, ToolSpec};
use serde_json::{Value, json};

use crate::document::Carried;
use crate::error::{ReadError, ReadReason};
use crate::functions::{FunctionSpec, Verdict};
use crate::grants;
use crate::patterns;
use crate::text::Cursor;
use crate::world_read::{count, duration_ms};

type Read<T> = Result<T, ReadError>;

/// What the clauses of a plan say.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanClauses {
    pub(crate) spec: PlanSpec,
    pub(crate) functions: Vec<FunctionSpec>,
    /// Whether the hook is on, where a clause says so.
    pub(crate) hook: Option<bool>,
    /// No tool exists but those declared.
    pub(crate) no_other_tools: bool,
    /// The document that the scene carries.
    pub(crate) document: Option<Carried>,
    /// The plan is that of an agent, whose tools are known.
    of_agent: bool,
    /// What `prompts to act` and the hint say before `on … must call` does.
    prompts_max: Option<u32>,
    hint: Option<String>,
}

/// How each clause begins.
pub(crate) const CLAUSES: [&str; 49] = [
    "tool",
    "grant",
    "grants of a call at most",
    "no other tools",
    "document:",
    "the agent's document",
    "tools can be added",
    "no tools can be added",
    "on",
    "prompts to act at most",
    "hint to act:",
    "refusals are retried",
    "failures are refusals",
    "refusals match",
    "hint on refusal:",
    "backstop",
    "trips at most",
    "calls at once at most",
    "calls at most",
    "actions at most",
    "result bytes at most",
    "input bytes at most",
    "error bytes at most",
    "tokens at most",
    "seconds at most",
    "cost at most",
    "prices",
    "output",
    "hook on",
    "hook off",
    "a failed hook denies",
    "holds expire after",
    "undecided calls are told to the model",
    "messages are refused while parked",
    "live",
    "the last trip has no tools",
    "replies are judged",
    "tools change",
    "agent:",
    "version:",
    "instructions:",
    "model:",
    "model options",
    "timezone:",
    "intent function",
    "hint function",
    "refusal hint function",
    "refusal function",
    "#",
];

/// The clauses about the document that a scene carries.
pub(crate) const OF_DOCUMENT: [&str; 4] =
    ["document:", "the agent's document", "tools can be added", "no tools can be added"];

const OTHER_TOOL: &str = "the agent has another tool of that name; take this line out, or change the agent";
const OTHER_GRANT: &str = "the agent has another grant of that name; take this line out, or change the agent";

impl PlanClauses {
    /// The clauses of a plan that is known.
    pub(crate) fn of(plan: &PlanSpec) -> Self {
        Self { spec: plan.clone(), hook: Some(plan.hook), no_other_tools: true, of_agent: true, ..Self::default() }
    }

    /// Takes one clause.
    pub(crate) fn clause(&mut self, mut line: Cursor<'_>) -> Read<()> {
        let known = self.tools(&mut line)?
            || self.contract(&mut line)?
            || self.limit(&mut line)?
            || self.switch(&mut line)?
            || self.name(&mut line)?
            || self.function(&mut line)?;
        if !known {
            return Err(ReadError::unknown(line.line, "clause of a plan", line.rest, CLAUSES));
        }
        line.done()
    }

    /// The plan without the clauses that only stood for others.
    pub(crate) fn close(mut self) -> Self {
        if let Some(act) = &mut self.spec.contract.act_when_asked {
            act.max_reprompts = self.prompts_max.unwrap_or(act.max_reprompts);
            act.hint = self.hint.take().or(act.hint.take());
        }
        self
    }

    fn tools(&mut self, line: &mut Cursor<'_>) -> Read<bool> {
        if line.eat("tools change") {
            self.spec.tools_change = true;
        } else if line.eat("tool") {
            let tool = tool(line)?;
            let known = self.spec.tools.iter().find(|known| self.of_agent && known.name == tool.name);
            match known {
                Some(known) if *known == tool => {}
                Some(_) => return Err(line.misplaced(OTHER_TOOL)),
                None => self.spec.tools.push(tool),
            }
        } else if line.eat("grants of a call at most") {
            self.spec.limits.grants_max = count(line)?;
        } else if line.eat("grant") {
            let grant = grants::read(line)?;
            let full = grant.full_name();
            let known = self.spec.grants.iter().find(|known| self.of_agent && known.full_name() == full);
            match known {
                Some(known) if *known == grant => {}
                Some(_) => return Err(line.misplaced(OTHER_GRANT)),
                None => self.spec.grants.push(grant),
            }
        } else if line.eat("no other tools") {
            self.no_other_tools = true;
        } else {
            return self.document(line);
        }
        Ok(true)
    }

    fn document(&mut self, line: &mut Cursor<'_>) -> Read<bool> {
        let at = line.line;
        if line.eat("document:") {
            let Some(base) = line.block.take().filter(|_| line.rest.is_empty()) else {
                return Err(line.expected("`|`, and under it the document's source"));
            };
            let carried = self.document.get_or_insert_default();
            (carried.base, carried.line) = (Some(format!("{base}\n")), at);
        } else if line.eat("the agent's document") {
            self.document.get_or_insert_default().line = at;
        } else if line.eat("tools can be added") {
            self.document.get_or_insert_default().added_tools = Some(true);
        } else if line.eat("no tools can be added") {
            self.document.get_or_insert_default().added_tools = Some(false);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn contract(&mut self, line: &mut Cursor<'_>) -> Read<bool> {
        if line.eat("on") {
            self.must_call(line)?;
        } else if line.eat("prompts to act at most") {
            self.prompts_max = Some(count(line)?);
        } else if line.eat("hint to act:") {
            self.hint = Some(line.text());
        } else if line.eat("refusals are retried") {
            self.refusal().retries = times(line)?;
        } else if line.eat("failures are refusals") {
            self.refusal().preset = Some(RefusalPreset::Errors);
        } else if line.eat("refusals match") {
            let patterns = patterns::read(line)?;
            let refusal = self.refusal();
            refusal.preset = Some(RefusalPreset::Patterns);
            refusal.patterns = patterns;
        } else if line.eat("hint on refusal:") {
            self.refusal().hint = Some(line.text());
        } else if line.eat("backstop") {
            let backstop = backstop(line)?;
            self.spec.contract.backstops.push(backstop);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn refusal(&mut self) -> &mut OnToolRefusal {
        self.spec.contract.on_tool_refusal.get_or_insert_with(OnToolRefusal::default)
    }

    fn must_call(&mut self, line: &mut Cursor<'_>) -> Read<()> {
        let intents = if line.eat("nothing") { Vec::new() } else { patterns::read(line)? };
        if !line.eat("must call") {
            return Err(line.expected("`must call`"));
        }
        let require = if line.eat("all of") { Require::All } else { Require::Any };
        line.eat("any of");
        let required_tools = if line.eat("nothing") { Vec::new() } else { names(line)? };
        self.spec.contract.act_when_asked =
            Some(ActWhenAsked { intents, required_tools, require, hint: None, max_reprompts: 1 });
        Ok(())
    }

    fn limit(&mut self, line: &mut Cursor<'_>) -> Read<bool> {
        let limits: &mut Limits = &mut self.spec.limits;
        if line.eat("trips at most") {
            limits.trips_max = count(line)?;
        } else if line.eat("calls at once at most") {
            limits.calls_parallel_max = count(line)?;
        } else if line.eat("calls at most") {
            limits.calls_max = count(line)?;
        } else if line.eat("actions at most") {
            limits.actions_max = count(line)?;
        } else if line.eat("result bytes at most") {
            limits.result_bytes_max = count(line)? as usize;
        } else if line.eat("input bytes at most") {
            limits.input_bytes_max = count(line)? as usize;
        } else if line.eat("error bytes at most") {
            limits.error_bytes_max = count(line)? as usize;
        } else if line.eat("tokens at most") {
            limits.tokens_max = Some(line.number("a number of tokens")?);
        } else if line.eat("seconds at most") {
            limits.seconds_max = Some(line.number("a number of seconds")?);
        } else if line.eat("cost at most") {
            let word = line.word("US dollars")?;
            let cost = word.parse().map_err(|_| ReadError::expected(line.line, "US dollars", &word))?;
            limits.cost_usd_max = Some(cost);
        } else if line.eat("prices") {
            limits.prices = Some(typed::<Prices>(line)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn switch(&mut self, line: &mut Cursor<'_>) -> Read<bool> {
        let spec = &mut self.spec;
        if line.eat("output") {
            spec.output_schema = Some(line.json()?);
        } else if line.eat("hook on") {
            self.hook = Some(true);
        } else if line.eat("hook off") {
            self.hook = Some(false);
        } else if line.eat("a failed hook denies") {
            spec.on_hook_error = OnHookError::Deny;
        } else if line.eat("holds expire after") {
            spec.hold_ttl_ms = Some(duration_ms(line)?);
        } else if line.eat("undecided calls are told to the model") {
            spec.on_undecided = OnUndecided::TellModel;
        } else if line.eat("messages are refused while parked") {
            spec.on_message_while_parked = OnMessageWhileParked::Refuse;
        } else if line.eat("live") {
            spec.live = true;
        } else if line.eat("the last trip has no tools") {
            spec.tools_on_last_trip = false;
        } else if line.eat("replies are judged") {
            spec.judged = true;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn name(&mut self, line: &mut Cursor<'_>) -> Read<bool> {
        let spec = &mut self.spec;
        if line.eat("agent:") {
            spec.agent = line.text();
        } else if line.eat("version:") {
            spec.version = line.text();
        } else if line.eat("instructions:") {
            spec.instructions = line.text();
        } else if line.eat("model options") {
            spec.model_options = typed::<Object>(line)?;
        } else if line.eat("model:") {
            spec.model = line.text();
        } else if line.eat("timezone:") {
            spec.timezone = line.text();
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn function(&mut self, line: &mut Cursor<'_>) -> Read<bool> {
        let function = if line.eat("intent function matches") {
            FunctionSpec::Intent(Ok(patterns::read_one(line)?))
        } else if line.eat("intent function fails:") {
            FunctionSpec::Intent(Err(line.text()))
        } else if line.eat("refusal hint function says:") {
            FunctionSpec::RefusalHint(Ok(line.text()))
        } else if line.eat("refusal hint function fails:") {
            FunctionSpec::RefusalHint(Err(line.text()))
        } else if line.eat("hint function says:") {
            FunctionSpec::ActHint(Ok(line.text()))
        } else if line.eat("hint function fails:") {
            FunctionSpec::ActHint(Err(line.text()))
        } else if line.eat("refusal function on") {
            FunctionSpec::IsRefusal { tool: line.word("the name of a tool")?, says: verdict(line)? }
        } else if line.eat("staging function on") {
            FunctionSpec::Staging { tool: line.word("the name of a tool")?, says: verdict(line)?.map(Verdict::stages) }
        } else {
            return Ok(false);
        };
        self.functions.push(function);
        Ok(true)
    }
}

fn verdict(line: &mut Cursor<'_>) -> Read<Result<Verdict, String>> {
    if line.eat("says yes") {
        Ok(Ok(Verdict::Yes))
    } else if line.eat("says no") {
        Ok(Ok(Verdict::No))
    } else if line.eat("says nothing") {
        Ok(Ok(Verdict::Default))
    } else if line.eat("says:") {
        Ok(Ok(Verdict::Because(line.text())))
    } else if line.eat("fails:") {
        Ok(Err(line.text()))
    } else {
        let known = ["says yes", "says no", "says nothing", "says:", "fails:"];
        Err(ReadError::unknown(line.line, "word of a refusal function", line.rest, known))
    }
}

fn times(line: &mut Cursor<'_>) -> Read<u32> {
    if line.eat("once") {
        return Ok(1);
    }
    if line.eat("never") {
        return Ok(0);
    }
    let times = count(line)?;
    line.eat("times");
    Ok(times)
}

fn names(line: &mut Cursor<'_>) -> Read<Vec<String>> {
    let mut names = vec![name(line)?];
    while line.eat(",") {
        names.push(name(line)?);
    }
    Ok(names)
}

/// Takes a name that may have a comma or a colon behind it.
fn name(line: &mut Cursor<'_>) -> Read<String> {
    if line.rest.starts_with('"') {
        return line.word("a name");
    }
    let end = line.rest.find([' ', ',', ':']).unwrap_or(line.rest.len());
    if end == 0 {
        return Err(line.expected("a name"));
    }
    let name = line.rest[..end].to_owned();
    line.rest = line.rest[end..].trim_start();
    Ok(name)
}

fn backstop(line: &mut Cursor<'_>) -> Read<BackstopSpec> {
    let name = line.word("the name of a backstop")?;
    let phase = if line.eat("before") { Phase::Before } else { Phase::After };
    if phase == Phase::After {
        line.eat("after");
    }
    let time_limit_ms = if line.eat("within") { duration_ms(line)? } else { TIME_LIMIT_MS };
    Ok(BackstopSpec { name, phase, time_limit_ms })
}

fn typed<T: serde::de::DeserializeOwned>(line: &mut Cursor<'_>) -> Read<T> {
    let value = line.json()?;
    serde_json::from_value(value).map_err(|why| ReadError::new(line.line, ReadReason::Json { why: why.to_string() }))
}

/// The schema of a tool of which a scene says nothing.
pub(crate) fn permissive() -> Value {
    json!({"type": "object"})
}

/// Takes a tool: its name, its schema, its options, its description.
pub(crate) fn tool(line: &mut Cursor<'_>) -> Read<ToolSpec> {
    let name = name(line)?;
    let schema = if line.rest.starts_with('{') || (line.rest.is_empty() && line.block.is_some()) {
        schema(line)?
    } else {
        permissive()
    };
    let mut tool = ToolSpec::new(name, "", schema);
    while line.eat(",") {
        tool_option(line, &mut tool)?;
    }
    if line.eat(":") {
        tool.description = line.text();
    }
    Ok(tool)
}

fn tool_option(line: &mut Cursor<'_>, tool: &mut ToolSpec) -> Read<()> {
    if line.eat("reads only") {
        tool.effect = Effect::ReadsOnly;
    } else if line.eat("once") {
        tool.effect = Effect::Once;
    } else if line.eat("staged") {
        tool.effect = Effect::Staged;
    } else if line.eat("needs approval") {
        tool.needs_approval = true;
    } else if line.eat("silent") {
        tool.silent = true;
    } else if line.eat("in the document") {
        tool.document = true;
    } else if line.eat("approval only") {
        tool.accepts = Accepts::ApprovalOnly;
    } else if line.eat("external") {
        tool.accepts = Accepts::External;
    } else if line.eat("within") {
        tool.time_limit_ms = duration_ms(line)?;
    } else if line.eat("refuses by") {
        tool.refusal = Some(patterns::read_one(line)?);
    } else {
        let known = [
            "reads only",
            "once",
            "staged",
            "needs approval",
            "silent",
            "in the document",
            "approval only",
            "external",
            "within",
            "refuses by",
        ];
        return Err(ReadError::unknown(line.line, "option of a tool", line.rest, known));
    }
    Ok(())
}

/// Takes a schema: a whole JSON schema of an object, or the short form, which names each argument's type
/// (`{"day":"string","note":"string?","size":["s","m"]}`; with `?` it may be left out).
pub(crate) fn schema(line: &mut Cursor<'_>) -> Read<Value> {
    let value = line.json()?;
    let Value::Object(object) = value else { return Err(line.expected("a JSON object")) };
    let whole = ["type", "properties", "$schema", "additionalProperties", "anyOf", "$ref"];
    if object.get("type").is_some_and(|kind| kind == "object") || object.keys().any(|key| whole[1..].contains(&&**key))
    {
        return Ok(Value::Object(object));
    }
    let mut properties = Object::new();
    let mut required = Vec::new();
    for (name, short) in object {
        let (schema, optional) = argument(line, &short)?;
        if !optional {
            required.push(Value::from(name.as_str()));
        }
        properties.insert(name, schema);
    }
    Ok(json!({"type": "object", "properties": properties, "required": required}))
}

fn argument(line: &Cursor<'_>, short: &Value) -> Read<(Value, bool)> {
    match short {
        Value::String(word) => {
            let kind = word.strip_suffix('?').unwrap_or(word);
            let known = ["string", "integer", "number", "boolean", "object", "array", "null", "any"];
            if !known.contains(&kind) {
                return Err(ReadError::unknown(line.line, "type of an argument", kind, known));
            }
            let schema = if kind == "any" { json!({}) } else { json!({ "type": kind }) };
            Ok((schema, word.ends_with('?')))
        }
        Value::Array(choices) => Ok((json!({ "enum": choices }), false)),
        Value::Object(schema) => Ok((Value::Object(schema.clone()), false)),
        other => Err(ReadError::expected(line.line, "the type of an argument", &other.to_string())),
    }
}

/// The names of tools that a plan's clauses use without declaring them.
pub(crate) fn named_tools(spec: &PlanSpec) -> Vec<String> {
    spec.contract.act_when_asked.iter().flat_map(|act| act.required_tools.iter().cloned()).collect()
}
