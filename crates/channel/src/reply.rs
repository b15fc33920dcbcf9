//! What the model has to answer at the end of a turn (`spec/channel.md`, 7).

use serde_json::{Value, json};

use crate::numbers::{REPLY_CHARS_MAX, REPLY_MESSAGES_MAX};
use crate::outcome::Reason;

/// The reply's fields: the schema's own, and so those whose echo is taken out of texts.
pub const FIELDS: [&str; 5] = ["messages", "escalate", "escalation_reason", "confidence", "closing_question"];

/// The model's reply, read. Upper bounds are not held here: the guardrails clamp and record.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentReply {
    /// At least one, none empty.
    pub messages: Vec<String>,
    /// Set exactly where the model escalates.
    pub escalation: Option<Reason>,
    /// 0 to 1.
    pub confidence: f64,
    /// Not empty.
    pub closing_question: Option<String>,
}

/// The schema that the model is given: every field is required, and nothing else may stand there.
pub fn schema() -> Value {
    let reasons: Vec<Value> = Reason::ALL.iter().map(|it| Value::from(*it)).chain([Value::Null]).collect();
    let text = json!({"type": "string", "minLength": 1, "maxLength": REPLY_CHARS_MAX});
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": FIELDS,
        "properties": {
            "messages": {"type": "array", "minItems": 1, "maxItems": REPLY_MESSAGES_MAX, "items": text},
            "escalate": {"type": "boolean"},
            "escalation_reason": {"type": ["string", "null"], "enum": reasons},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "closing_question": {"type": ["string", "null"], "minLength": 1, "maxLength": REPLY_CHARS_MAX},
        },
    })
}

impl AgentReply {
    /// Reads a reply from the model's text.
    ///
    /// # Errors
    /// Which field is wrong, without what stood in it.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        match gesta_run::json::read_strict(text) {
            Ok(value) => Self::of(&value),
            Err(_) => Err("the reply is no JSON"),
        }
    }

    fn of(value: &Value) -> Result<Self, &'static str> {
        let object = value.as_object().ok_or("the reply is no object")?;
        if object.keys().any(|key| !FIELDS.contains(&key.as_str())) {
            return Err("the reply has an unknown field");
        }
        let list = object.get("messages").and_then(Value::as_array).ok_or("`messages` is no list")?;
        let messages: Option<Vec<String>> = list.iter().map(full).collect();
        let messages = messages.filter(|it| !it.is_empty()).ok_or("`messages` is not a list of texts")?;
        let escalate = object.get("escalate").and_then(Value::as_bool).ok_or("`escalate` is no boolean")?;
        let escalation = match object.get("escalation_reason") {
            None => return Err("`escalation_reason` is missing"),
            Some(Value::Null) => None,
            Some(reason) => Some(serde_json::from_value(reason.clone()).map_err(|_| "`escalation_reason` is unknown")?),
        };
        if escalate != escalation.is_some() {
            return Err("`escalation_reason` is set exactly when `escalate` is true");
        }
        let confidence = object.get("confidence").and_then(Value::as_f64).filter(|it| (0.0..=1.0).contains(it));
        let closing_question = match object.get("closing_question") {
            None => return Err("`closing_question` is missing"),
            Some(Value::Null) => None,
            Some(text) => Some(full(text).ok_or("`closing_question` is no text")?),
        };
        Ok(Self { messages, escalation, confidence: confidence.ok_or("`confidence` is not 0 to 1")?, closing_question })
    }
}

fn full(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}
