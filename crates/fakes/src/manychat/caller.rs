//! The caller's side: a contact writes, the block posts, the response is looked at strictly and shown
//! (`spec/channel.md`, 24, point 3).

use std::time::Duration;

use bytes::Bytes;
use gesta_channel::numbers::MANYCHAT_WAITS_MS;
use gesta_channel::response;
use http::Request;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::serve::Page;
use super::setup::Webhook;
use super::state::{Contact, SeenBy};

/// Why a contact's message got no response that can be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboundError {
    /// There is no such contact, or no webhook.
    #[error("{0}; name it in the setup")]
    Setup(&'static str),
    /// Nobody answered within ten seconds, as ManyChat gives up.
    #[error("no response within {MANYCHAT_WAITS_MS} ms")]
    TimedOut,
    /// No connection, or it broke.
    #[error("no response: {0}")]
    Network(String),
    /// A status other than 200.
    #[error("the response has status {0}")]
    Status(u16),
    /// A response that ManyChat would not take.
    #[error("the response is none: {0}")]
    Response(String),
}

/// The longest response that is read, in bytes.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

impl Page {
    /// A contact writes: posts the block's body, or the callback's, and shows what comes back.
    pub(crate) async fn inbound(&self, id: &str, text: &str) -> Result<Value, InboundError> {
        let webhook = self.webhook().ok_or(InboundError::Setup("there is no webhook"))?;
        let (url, secret, body) = self.outgoing(&webhook, id, text)?;
        let posted = post(&url, &secret, &body);
        let answered = tokio::time::timeout(Duration::from_millis(MANYCHAT_WAITS_MS), posted).await;
        let shown = answered.unwrap_or(Err(InboundError::TimedOut)).and_then(|response| {
            response::check(&webhook.messenger.profile(), &response).map_err(InboundError::Response)?;
            Ok(response)
        });
        let now = self.now();
        let mut state = self.state();
        state.play(now);
        let contact = state.contacts.get_mut(id).ok_or(InboundError::Setup("there is no such contact"))?;
        match &shown {
            Ok(response) => show(contact, &webhook, response, now),
            Err(why) => contact.say(now, SeenBy::Silent, &format!("the block failed: {why}")),
        }
        shown
    }

    /// Where the message goes: to the callback of the last response, once and until it expires, else to the block.
    fn outgoing(&self, webhook: &Webhook, id: &str, text: &str) -> Result<(String, String, Value), InboundError> {
        let now = self.now();
        let mut state = self.state();
        state.play(now);
        let contact = state.contacts.get_mut(id).ok_or(InboundError::Setup("there is no such contact"))?;
        contact.last_interaction_ms = Some(now);
        text.clone_into(&mut contact.last_input);
        contact.say(now, SeenBy::Contact, text);
        let callback = contact.callback.take().filter(|(_, until)| now < *until).map(|(callback, _)| callback);
        Ok(match callback {
            Some(callback) => (
                callback["url"].as_str().unwrap_or_default().to_owned(),
                callback["headers"]["Authorization"].as_str().unwrap_or_default().to_owned(),
                substitute(&callback["payload"], id, contact),
            ),
            None => (webhook.url.clone(), format!("Bearer {}", webhook.secret), substitute(&webhook.body, id, contact)),
        })
    }
}

fn show(contact: &mut Contact, webhook: &Webhook, response: &Value, now: i64) {
    let content = &response["content"];
    let messages = content["messages"].as_array().into_iter().flatten();
    for message in messages.take(webhook.messenger.profile().messages_max) {
        contact.say(now, SeenBy::Inline, message["text"].as_str().unwrap_or_default());
    }
    let callback = content["external_message_callback"].clone();
    let seconds = callback["timeout"].as_i64().unwrap_or(0);
    contact.callback = Some((callback, now.saturating_add(seconds.saturating_mul(1000))));
}

/// Fills in ManyChat's variables; what it does not know stays as it is.
fn substitute(template: &Value, id: &str, contact: &Contact) -> Value {
    match template {
        Value::String(text) => {
            let mut text = text.clone();
            for (key, variable) in response::VARIABLES {
                let value = if key == "text" { contact.last_input.as_str() } else { id };
                if text == variable {
                    return value.into();
                }
                text = text.replace(variable, value);
            }
            text = text.replace("{{first_name}}", &contact.first_name);
            for (field, value) in &contact.fields {
                text = text.replace(&response::field_variable(field), value);
            }
            text.into()
        }
        Value::Object(object) => {
            object.iter().map(|(key, value)| (key.clone(), substitute(value, id, contact))).collect()
        }
        Value::Array(list) => list.iter().map(|value| substitute(value, id, contact)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

async fn post(url: &str, authorization: &str, body: &Value) -> Result<Value, InboundError> {
    let network = |why: &dyn std::fmt::Display| InboundError::Network(why.to_string());
    let request = Request::post(url)
        .header(http::header::CONTENT_TYPE, "application/json")
        .header(http::header::AUTHORIZATION, authorization)
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(|why| network(&why))?;
    // A client of its own for each message: the block keeps no connection, and a server that was killed is met anew.
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.map_err(|why| network(&why))?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX).collect().await.map_err(|why| network(&why))?;
    if status != 200 {
        return Err(InboundError::Status(status));
    }
    serde_json::from_slice(&body.to_bytes()).map_err(|_| InboundError::Response("it is no JSON".to_owned()))
}
