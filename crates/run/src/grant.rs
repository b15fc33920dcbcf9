//! Grants: functions that the host lends to a document's tools, declared, checked and decided on like tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::CallEnd;
use crate::json::Object;
use crate::schema::Schema;
use crate::time::Timestamp;
use crate::tool::{Effect, no_parameters};

/// Default time limit of a grant: 10 s (`spec/documents.md`, 3.2).
pub const TIME_LIMIT_MS: u64 = 10_000;

/// A grant as it is written down (`spec/documents.md`, 3.14).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantSpec {
    /// The library under which documents call it, `App` in most.
    pub library: String,
    /// Its name in the library.
    pub name: String,
    /// Its parameters in order, so that positional arguments get names. Surplus ones are dropped.
    #[serde(default)]
    pub params: Vec<String>,
    /// JSON schema of its arguments, an object.
    #[serde(default = "no_parameters")]
    pub parameters: Value,
    /// What calling it does to the world.
    #[serde(default)]
    pub effect: Effect,
    /// How long it may take, in milliseconds.
    #[serde(default = "time_limit_ms")]
    pub time_limit_ms: u64,
}

fn time_limit_ms() -> u64 {
    TIME_LIMIT_MS
}

impl GrantSpec {
    /// A grant with every option at its default, `App.refund` for instance.
    pub fn new(
        library: impl Into<String>,
        name: impl Into<String>,
        params: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            library: library.into(),
            name: name.into(),
            params: params.into_iter().map(Into::into).collect(),
            parameters: no_parameters(),
            effect: Effect::default(),
            time_limit_ms: TIME_LIMIT_MS,
        }
    }

    /// What hooks, rules and logs call it: `App.refund`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.library, self.name)
    }
}

/// Why a grant cannot be lent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// A library, name or parameter that no document could write.
    #[error("grant `{0}`: library, name and parameters are letters, digits and `_`, and begin with no digit")]
    Name(String),
    /// Two grants of one name, or two parameters.
    #[error("grant `{0}` is there twice, or two of its parameters share a name")]
    Twice(String),
    /// Parameters that are no JSON schema of an object.
    #[error("grant `{grant}`: its parameters are not a usable JSON schema: {reason}")]
    Schema {
        /// The grant.
        grant: String,
        /// Why not.
        reason: String,
    },
    /// A time limit of zero.
    #[error("grant `{0}`: its time limit must be more than zero")]
    TimeLimit(String),
    /// It stages, and nothing here performs what is staged by a grant.
    #[error(
        "grant `{0}`: a grant with the effect `staged` needs the customer channel, which this agent has not; use \
         `once`, and a decision that denies what a person has to see first"
    )]
    Staged(String),
}

/// A grant ready to be called.
#[derive(Debug)]
pub struct Grant {
    /// As it was written down.
    pub spec: GrantSpec,
    schema: Schema,
}

impl Grant {
    fn new(spec: GrantSpec) -> Result<Self, GrantError> {
        let full = spec.full_name();
        let legal = |name: &String| {
            let mut chars = name.chars();
            chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
                && name.len() <= 64
                && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if ![&spec.library, &spec.name].into_iter().chain(&spec.params).all(legal) {
            return Err(GrantError::Name(full));
        }
        if spec.params.iter().enumerate().any(|(at, name)| spec.params[..at].contains(name)) {
            return Err(GrantError::Twice(full));
        }
        if spec.time_limit_ms == 0 {
            return Err(GrantError::TimeLimit(full));
        }
        if spec.effect == Effect::Staged {
            return Err(GrantError::Staged(full));
        }
        match Schema::compile(&spec.parameters) {
            Ok(schema) => Ok(Self { spec, schema }),
            Err(reason) => Err(GrantError::Schema { grant: full, reason }),
        }
    }

    /// Checks arguments against the schema. The error names up to three issues, each with its place.
    ///
    /// # Errors
    /// The text that is thrown inside the document.
    pub fn check(&self, arguments: &Object) -> Result<(), String> {
        self.schema.check_object(arguments)
    }
}

/// The grants of a plan, by full name.
pub(crate) type Grants = BTreeMap<String, Arc<Grant>>;

pub(crate) fn compile(specs: &[GrantSpec]) -> Result<Grants, GrantError> {
    let mut grants = Grants::new();
    for spec in specs {
        let grant = Grant::new(spec.clone())?;
        if grants.insert(spec.full_name(), Arc::new(grant)).is_some() {
            return Err(GrantError::Twice(spec.full_name()));
        }
    }
    Ok(grants)
}

/// One grant that a running call asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantCall {
    /// Its full name, as the document wrote it.
    pub name: String,
    /// The arguments by name, as the document gave them.
    pub asked: Object,
    /// The arguments to run with.
    pub arguments: Object,
    /// How far it has come.
    pub stage: GrantStage,
    /// The grant, where the plan has one of that name.
    pub(crate) grant: Option<Arc<Grant>>,
    /// When it came to its stage.
    pub(crate) since: Timestamp,
}

/// How far a grant call has come.
#[derive(Debug, Clone, PartialEq)]
pub enum GrantStage {
    /// Its decision is wanted.
    Undecided,
    /// It may run.
    Allowed,
    /// It runs.
    Executing,
    /// It ended.
    Ended(CallEnd),
}

impl PartialEq for Grant {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

impl GrantCall {
    /// How it ended, once it has.
    pub fn end(&self) -> Option<&CallEnd> {
        match &self.stage {
            GrantStage::Ended(end) => Some(end),
            GrantStage::Undecided | GrantStage::Allowed | GrantStage::Executing => None,
        }
    }

    /// Whether it may have changed the world: it began, and does more than read.
    pub(crate) fn had_effect(&self) -> bool {
        let reads = self.grant.as_ref().is_none_or(|grant| grant.spec.effect == Effect::ReadsOnly);
        let began = match &self.stage {
            GrantStage::Undecided | GrantStage::Allowed => false,
            GrantStage::Executing => true,
            GrantStage::Ended(end) => end.began(),
        };
        began && !reads
    }
}
