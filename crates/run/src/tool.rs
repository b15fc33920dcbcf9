//! Tools as the machine knows them: name, schema, effect; never a body.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::{self, Object};
use crate::pattern::{Pattern, PatternError, PatternSpec};
use crate::schema::Schema;

/// What running a tool does to the world (`spec/contract.md`, 2.11; `spec/durability.md`, R12).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing: it may be run again after a crash.
    ReadsOnly,
    /// It writes an action down, which is performed after the reply was delivered. It has no body.
    Staged,
    /// It has effects: its start is recorded first, and it is never repeated by itself.
    #[default]
    Once,
}

/// Which answers to its holds a tool takes (`spec/contract.md`, 7.4 and 7.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accepts {
    /// Approval, denial, result or error.
    #[default]
    Any,
    /// Approval, denial or error: nobody may hand in a result.
    ApprovalOnly,
    /// Denial, result or error: whoever called the API runs it.
    External,
}

/// A tool as it is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// What the model calls it. `[a-zA-Z0-9_-]{1,64}`.
    pub name: String,
    /// What the model is told about it.
    #[serde(default)]
    pub description: String,
    /// JSON schema of its arguments, an object.
    #[serde(default = "no_parameters")]
    pub parameters: Value,
    /// What running it does.
    #[serde(default)]
    pub effect: Effect,
    /// How long its body may take, in milliseconds.
    #[serde(default = "time_limit_ms", rename = "time_limit_ms")]
    pub time_limit_ms: u64,
    /// A match in its text result or error is a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<PatternSpec>,
    /// Which answers its holds take.
    #[serde(default)]
    pub accepts: Accepts,
    /// An answer that calls silent tools alone ends the turn with the text beside the calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// Each staged action waits for a person. For `staged` tools only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// It lives in the conversation's document: its calls run one after another, and reach the world by grants alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub document: bool,
}

/// The schema of a tool that takes nothing.
pub fn no_parameters() -> Value {
    serde_json::json!({"type": "object", "properties": {}})
}

/// Default time limit of a tool's body: 30 s (`spec/contract.md`, 2.6).
pub const TIME_LIMIT_MS: u64 = 30_000;

fn time_limit_ms() -> u64 {
    TIME_LIMIT_MS
}

impl ToolSpec {
    /// A tool with every option at its default.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
            effect: Effect::default(),
            time_limit_ms: TIME_LIMIT_MS,
            refusal: None,
            accepts: Accepts::default(),
            silent: false,
            needs_approval: false,
            document: false,
        }
    }
}

/// Why a tool cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// A name that some provider would refuse.
    #[error("tool name `{0}`: must be 1 to 64 letters, digits, `_` or `-`")]
    Name(String),
    /// Two tools of one name.
    #[error("tool `{0}` is there twice")]
    Twice(String),
    /// Parameters that are no JSON schema of an object.
    #[error("tool `{tool}`: its parameters are not a usable JSON schema: {reason}")]
    Schema {
        /// The tool.
        tool: String,
        /// Why not.
        reason: String,
    },
    /// Its refusal pattern cannot be used.
    #[error("tool `{tool}`: refusal pattern: {reason}")]
    Refusal {
        /// The tool.
        tool: String,
        /// Why not.
        reason: PatternError,
    },
    /// A time limit of zero.
    #[error("tool `{0}`: its time limit must be more than zero")]
    TimeLimit(String),
    /// `needs_approval` on a tool that does not stage.
    #[error("tool `{0}`: `needs_approval` is for staged tools; defer its calls with a decision instead")]
    NeedsApproval(String),
}

/// A tool ready to be offered: its schema is compiled once.
#[derive(Debug)]
pub struct Tool {
    /// As it was written down.
    pub spec: ToolSpec,
    pub(crate) refusal: Option<Pattern>,
    schema: Schema,
    parameters: String,
    /// The whole definition in canonical form, written once because every list that has the tool hashes it.
    canonical: OnceLock<String>,
}

impl Tool {
    /// Checks and compiles a tool.
    ///
    /// # Errors
    /// Its name, schema, pattern or limits cannot be used.
    pub fn new(spec: ToolSpec) -> Result<Self, ToolError> {
        let name = &spec.name;
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
            return Err(ToolError::Name(name.clone()));
        }
        if spec.time_limit_ms == 0 {
            return Err(ToolError::TimeLimit(name.clone()));
        }
        if spec.needs_approval && spec.effect != Effect::Staged {
            return Err(ToolError::NeedsApproval(name.clone()));
        }
        let schema_error = |reason: String| ToolError::Schema { tool: name.clone(), reason };
        if spec.parameters.get("type").is_some_and(|kind| kind != "object") || !spec.parameters.is_object() {
            return Err(schema_error("it must describe an object".to_owned()));
        }
        if json::is_deeper(&spec.parameters, json::SCHEMA_DEPTH_MAX) {
            return Err(schema_error(format!("it is nested more than {} levels deep", json::SCHEMA_DEPTH_MAX)));
        }
        let schema = Schema::compile(&spec.parameters).map_err(schema_error)?;
        let refusal = spec
            .refusal
            .as_ref()
            .map(PatternSpec::compile)
            .transpose()
            .map_err(|reason| ToolError::Refusal { tool: name.clone(), reason })?;
        Ok(Self { parameters: spec.parameters.to_string(), canonical: OnceLock::new(), refusal, schema, spec })
    }

    /// Checks arguments against the schema. The error names up to three issues, each with its place.
    ///
    /// # Errors
    /// The text that the model, or the person who edits, is shown.
    pub fn check(&self, arguments: &Object) -> Result<(), String> {
        self.schema.check_object(arguments)
    }

    fn canonical(&self) -> &str {
        let write = || serde_json::to_value(&self.spec).map(|spec| json::canonical(&spec)).unwrap_or_default();
        self.canonical.get_or_init(write)
    }

    /// The JSON of its parameters' schema, written once because every request carries it.
    pub fn parameters_json(&self) -> &str {
        &self.parameters
    }

    /// Whether the tool takes no arguments at all, so that empty or `null` ones mean `{}`.
    pub fn takes_nothing(&self) -> bool {
        let properties = self.spec.parameters.get("properties").and_then(Value::as_object);
        properties.is_none_or(serde_json::Map::is_empty)
    }
}

/// The tools offered on one trip.
#[derive(Debug, Clone, Default)]
pub struct ToolList {
    tools: Vec<Arc<Tool>>,
    by_name: BTreeMap<String, usize>,
    /// Taken when somebody asks for it.
    hash: OnceLock<String>,
}

impl ToolList {
    /// Puts a list together.
    ///
    /// # Errors
    /// Two tools share a name.
    pub fn new(tools: Vec<Arc<Tool>>) -> Result<Self, ToolError> {
        let mut by_name = BTreeMap::new();
        for (at, tool) in tools.iter().enumerate() {
            if by_name.insert(tool.spec.name.clone(), at).is_some() {
                return Err(ToolError::Twice(tool.spec.name.clone()));
            }
        }
        Ok(Self { hash: OnceLock::new(), tools, by_name })
    }

    /// The list that these tools and those added to them make: nothing where it is this one again. Only what is new
    /// is compiled.
    ///
    /// # Errors
    /// An added tool cannot be used, or two share a name.
    pub(crate) fn with(&self, base: &Self, added: &[ToolSpec]) -> Result<Option<Self>, ToolError> {
        let wanted = base.tools.iter().map(|tool| &tool.spec).chain(added);
        if self.tools.len() == base.tools.len() + added.len() && wanted.eq(self.tools.iter().map(|tool| &tool.spec)) {
            return Ok(None);
        }
        let compiled = added.iter().map(|spec| Tool::new(spec.clone()).map(Arc::new));
        let tools = base.tools.iter().cloned().map(Ok).chain(compiled);
        Self::new(tools.collect::<Result<_, _>>()?).map(Some)
    }

    /// Compiles tools and puts them into a list.
    ///
    /// # Errors
    /// A tool cannot be used, or two share a name.
    pub fn compile(specs: impl IntoIterator<Item = ToolSpec>) -> Result<Self, ToolError> {
        let tools = specs.into_iter().map(|spec| Tool::new(spec).map(Arc::new));
        Self::new(tools.collect::<Result<_, _>>()?)
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).map(|at| &self.tools[*at])
    }

    /// The tools, in the order in which they are offered.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> {
        self.tools.iter()
    }

    /// Whether nothing is offered.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// SHA-256 over all definitions.
    pub fn hash(&self) -> &str {
        self.hash.get_or_init(|| {
            let canonical: Vec<&str> = self.tools.iter().map(|tool| tool.canonical()).collect();
            json::sha256_hex(format!("[{}]", canonical.join(",")).as_bytes())
        })
    }
}
