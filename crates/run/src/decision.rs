//! The one decision each call gets before it may run (`spec/contract.md`, 7.1 and 7.2).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::Object;

/// What is to become of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Decision {
    /// Run it.
    Run {
        /// With these arguments instead of the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Object>,
        /// Recorded; the model does not read it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Do not run it; the model reads the reason in an error result.
    Deny {
        /// What the model is told. Not blank.
        reason: String,
    },
    /// Leave it unanswered: the run parks until someone outside answers.
    Defer {
        /// Recorded and shown to whoever answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl Decision {
    /// Run the call as the model wrote it.
    pub fn run() -> Self {
        Self::Run { arguments: None, reason: None }
    }

    /// Run the call with other arguments.
    pub fn run_with(arguments: impl Into<Object>) -> Self {
        Self::Run { arguments: Some(arguments.into()), reason: None }
    }

    /// Deny the call.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into() }
    }

    /// Defer the call.
    pub fn defer() -> Self {
        Self::Defer { reason: None }
    }

    /// Reads a decision from the wire. `null` is no decision: the call runs as requested.
    ///
    /// # Errors
    /// Everything that `spec/contract.md` 7.2 lists: such an answer stops the run instead of running the call.
    pub fn from_wire(value: &Value) -> Result<Self, HookError> {
        let object = match value {
            Value::Null => return Ok(Self::run()),
            Value::Object(object) => object,
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                return Err(HookError(format!("a decision must be an object or null, not {}", kind(other))));
            }
        };
        let reason = match object.get("reason") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => return Err(HookError(format!("`reason` must be a text, not {}", kind(other)))),
        };
        let action = object.get("action").and_then(Value::as_str);
        if action != Some("run") && object.contains_key("arguments") {
            return Err(HookError("`arguments` stand only beside the action `run`".to_owned()));
        }
        match action {
            Some("run") => match object.get("arguments") {
                None => Ok(Self::Run { arguments: None, reason }),
                Some(Value::Object(arguments)) => Ok(Self::Run { arguments: Some(arguments.clone()), reason }),
                Some(other) => Err(HookError(format!("`arguments` must be an object, not {}", kind(other)))),
            },
            Some("deny") => match reason {
                Some(reason) if !reason.trim().is_empty() => Ok(Self::Deny { reason }),
                _ => Err(HookError("a denial needs a reason".to_owned())),
            },
            Some("defer") => Ok(Self::Defer { reason }),
            _ => Err(HookError("`action` must be `run`, `deny` or `defer`".to_owned())),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The hook failed, took too long or answered nonsense.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// What the hook said about one call.
pub type Ruling = Result<Decision, HookError>;
