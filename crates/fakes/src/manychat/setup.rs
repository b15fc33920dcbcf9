//! What a fake begins with: a page's contacts, fields, tags and flows, and the webhook that its block calls.

use std::collections::BTreeMap;

use gesta_channel::profile::Messenger;
use serde::Deserialize;
use serde_json::Value;

/// The state of a page. As JSON it is what `gesta fake-manychat` reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setup {
    /// The page's API key.
    pub key: String,
    /// Declared custom fields.
    pub fields: Vec<String>,
    /// Declared tags.
    pub tags: Vec<String>,
    /// Flows, by their `flow_ns`.
    pub flows: BTreeMap<String, FlowSetup>,
    /// Those who may write and be written to.
    pub contacts: Vec<ContactSetup>,
    /// Where their messages go.
    pub webhook: Option<Webhook>,
}

/// One contact.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContactSetup {
    /// Its id.
    pub id: String,
    /// Its first name.
    pub first_name: String,
    /// Tags that are set.
    pub tags: Vec<String>,
    /// Values of fields.
    pub fields: BTreeMap<String, String>,
}

/// A flow.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlowSetup {
    /// What it does, in order.
    pub steps: Vec<FlowStep>,
}

/// One step of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowStep {
    /// Shows a field, as it stands when the step runs.
    Field(String),
    /// Shows a text.
    Text(String),
    /// Waits. Milliseconds.
    DelayMs(u64),
    /// Sets a tag.
    Tag(String),
}

/// The external request of the tenant's block.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// On loopback, over HTTP.
    pub url: String,
    /// The bearer secret.
    pub secret: String,
    /// The messenger that the phone shows.
    #[serde(default)]
    pub messenger: Messenger,
    /// The body with ManyChat's variables. By default the contact's id, the text and the first name.
    #[serde(default = "body")]
    pub body: Value,
}

fn body() -> Value {
    serde_json::json!({"subscriber_id": "{{user_id}}", "text": "{{last_input_text}}", "first_name": "{{first_name}}"})
}

impl Webhook {
    /// A webhook with the default body.
    pub fn new(url: impl Into<String>, secret: impl Into<String>, messenger: Messenger) -> Self {
        Self { url: url.into(), secret: secret.into(), messenger, body: body() }
    }
}

impl Setup {
    /// Reads a setup, strictly.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
