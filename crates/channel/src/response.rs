//! What the webhook answers: a Dynamic Block, built for one messenger and checked before it leaves (`spec/channel.md`, 4).

use serde_json::{Value, json};

use crate::numbers::CALLBACK_SECONDS;
use crate::profile::{Profile, QUICK_REPLIES_MAX};

/// ManyChat's variables in the callback's payload. One place for their spelling, shared with the fake.
pub const VARIABLES: [(&str, &str); 2] = [("text", "{{last_input_text}}"), ("subscriber_id", "{{user_id}}")];

/// The variable of a custom field.
pub fn field_variable(field: &str) -> String {
    format!("{{{{cuf_{field}}}}}")
}

/// The path of the webhook, also within the callback.
pub const PATH: &str = "/v1/channels/manychat/message";

/// Where the contact's next message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    /// `PUBLIC_BASE_URL`, without a slash at its end.
    pub base: String,
    /// The secret that this caller presented, never "the first one" (3).
    pub secret: String,
    /// The custom field that holds the contact's token, `MANYCHAT_TOKEN_FIELD`.
    pub token_field: String,
}

impl Callback {
    fn value(&self) -> Value {
        let mut payload: serde_json::Map<String, Value> =
            VARIABLES.iter().map(|(key, variable)| ((*key).to_owned(), Value::from(*variable))).collect();
        payload.insert("ai_token".to_owned(), field_variable(&self.token_field).into());
        json!({
            "url": format!("{}{PATH}", self.base.trim_end_matches('/')),
            "method": "post",
            "headers": {"Authorization": format!("Bearer {}", self.secret)},
            "payload": payload,
            "timeout": CALLBACK_SECONDS,
        })
    }
}

/// A response with these messages; with none it is silent, and the callback is there all the same.
pub fn block(profile: &Profile, messages: &[String], callback: &Callback) -> Value {
    let messages: Vec<Value> = profile.fit(messages).iter().map(|text| json!({"type": "text", "text": text})).collect();
    let mut content = json!({
        "messages": messages,
        "actions": [],
        "external_message_callback": callback.value(),
    });
    if let Some(kind) = profile.kind {
        content["type"] = kind.into();
    }
    if profile.quick_replies {
        content["quick_replies"] = json!([]);
    }
    json!({"version": "v2", "content": content})
}

/// Checks a response against the schema of its messenger: ours before it leaves, and whatever the fake is answered.
///
/// # Errors
/// What is wrong, by its place in the response and without its text.
pub fn check(profile: &Profile, response: &Value) -> Result<(), String> {
    let top = object(response, "the response", &["version", "content"])?;
    if top.get("version") != Some(&json!("v2")) {
        return Err("`version` is not v2".to_owned());
    }
    let keys = ["type", "messages", "actions", "quick_replies", "external_message_callback"];
    let content = object(top.get("content").unwrap_or(&Value::Null), "`content`", &keys)?;
    if let Some(kind) = content.get("type")
        && kind.as_str() != profile.kind
    {
        return Err("`content.type` is not the messenger's".to_owned());
    }
    let messages = list(content.get("messages"), "content.messages", profile.messages_max)?;
    for (at, message) in messages.iter().enumerate() {
        let place = format!("`content.messages[{at}]`");
        let message = object(message, &place, &["type", "text"])?;
        let text = message.get("text").and_then(Value::as_str).unwrap_or_default();
        if message.get("type") != Some(&json!("text")) || text.is_empty() {
            return Err(format!("{place} is no text of at least one character"));
        }
    }
    if content.contains_key("actions") {
        list(content.get("actions"), "content.actions", profile.actions_max)?;
    }
    match content.get("quick_replies") {
        Some(_) if !profile.quick_replies => return Err("`content.quick_replies` must be absent".to_owned()),
        Some(quick) => drop(list(Some(quick), "content.quick_replies", QUICK_REPLIES_MAX)?),
        None => {}
    }
    check_callback(content.get("external_message_callback").unwrap_or(&Value::Null))
}

fn check_callback(callback: &Value) -> Result<(), String> {
    let place = "`content.external_message_callback`";
    let callback = object(callback, place, &["url", "method", "headers", "payload", "timeout"])?;
    let url = callback.get("url").and_then(Value::as_str).unwrap_or_default();
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return Err(format!("{place}: `url` is none"));
    }
    if callback.get("method") != Some(&json!("post")) {
        return Err(format!("{place}: `method` is not post"));
    }
    let is_bearer = |it: &str| it.strip_prefix("Bearer ").is_some_and(|secret| !secret.is_empty());
    if !callback.get("headers").and_then(|it| it["Authorization"].as_str()).is_some_and(is_bearer) {
        return Err(format!("{place}: no bearer secret in `headers`"));
    }
    if callback.get("timeout").and_then(Value::as_u64) != Some(CALLBACK_SECONDS) {
        return Err(format!("{place}: `timeout` is not {CALLBACK_SECONDS}"));
    }
    let keys = ["text", "subscriber_id", "ai_token", "offering"];
    let payload = object(callback.get("payload").unwrap_or(&Value::Null), "`payload`", &keys)?;
    match ["text", "subscriber_id"].iter().find(|key| !payload.contains_key(**key)) {
        Some(key) => Err(format!("{place}: `payload.{key}` is missing")),
        None => Ok(()),
    }
}

fn object<'a>(value: &'a Value, place: &str, keys: &[&str]) -> Result<&'a gesta_run::json::Object, String> {
    let object = value.as_object().ok_or_else(|| format!("{place} is no object"))?;
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("{place} has the unknown key `{key}`")),
        None => Ok(object),
    }
}

fn list<'a>(value: Option<&'a Value>, place: &str, max: usize) -> Result<&'a [Value], String> {
    let list = value.and_then(Value::as_array).ok_or_else(|| format!("`{place}` is no list"))?;
    if list.len() > max { Err(format!("`{place}` has more than {max} entries")) } else { Ok(list) }
}
