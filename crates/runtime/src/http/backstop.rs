//! Backstops that call a server: it is told of the turn and may answer with a prompt for the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use gesta_run::input::Ran;
use gesta_run::tool::TIME_LIMIT_MS;
use serde_json::{Value, json};

use super::caller::{Call, HttpCaller, text_of};
use super::headers::Scoped;
use super::tool::BODY_BYTES_MAX;
use crate::folder::agent_toml::BackstopToml;
use crate::folder::secret::{Secrets, Template};
use crate::hook::{RanFuture, TurnSeen};

/// What a backstop does on the wire.
pub type BackstopDeed = Arc<dyn Fn(TurnSeen) -> RanFuture + Send + Sync>;

impl HttpCaller {
    /// The request of a backstop; none where it has no `url`.
    ///
    /// The server is sent `{"backstop", "phase", "input", "reply", "trip_index", "tool_calls", "state"}`. From a JSON
    /// object in answer `prompt` (a text that is not blank) is sent to the model and `state` is handed to the next backstop of the run.
    pub fn backstop(&self, written: &BackstopToml, secrets: &Secrets) -> Option<BackstopDeed> {
        let url = written.url.as_ref()?;
        let readable = |(name, value): (&String, &String)| Some((name.clone(), Template::parse(value).ok()?));
        let headers: BTreeMap<String, Template> = written.headers.iter().filter_map(readable).collect();
        let time_limit_ms = written.time_limit.map_or(TIME_LIMIT_MS, |it| it.ms);
        let call = Call::new(url, &headers, secrets, time_limit_ms);
        let (caller, name) = (self.0.clone(), written.name.clone());
        Some(Arc::new(move |turn: TurnSeen| -> RanFuture {
            let (caller, call, name) = (caller.clone(), call.clone(), name.clone());
            Box::pin(async move {
                let scoped = Scoped {
                    idempotency_key: format!("{}/backstop/{name}", turn.run_id),
                    run: turn.run_id.as_str(),
                    conversation: turn.conversation.as_ref().map(|it| it.as_str()),
                    contact: turn.contact.as_ref().map(|it| it.as_str()),
                };
                let body = Bytes::from(body(&name, &turn).to_string());
                let received =
                    caller.post(&call, &scoped, body, BODY_BYTES_MAX).await.map_err(|why| why.to_string())?;
                if !received.status.is_success() {
                    return Err(format!("its server answered {}", received.status));
                }
                let text = text_of(&received).map_err(|why| format!("its server's answer {why}"))?;
                Ok(ran(text))
            })
        }))
    }
}

fn body(name: &str, turn: &TurnSeen) -> Value {
    json!({
        "backstop": name,
        "phase": turn.phase,
        "input": turn.input,
        "reply": turn.reply,
        "trip_index": turn.trip_index,
        "tool_calls": turn.tool_calls,
        "state": turn.state,
    })
}

/// What the server's answer asks for. Anything but an object asks for nothing.
fn ran(text: &str) -> Ran {
    let Ok(Value::Object(mut object)) = gesta_run::json::read_strict(text) else { return Ran::default() };
    let prompt = match object.get("prompt") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        // The run notes that a blank one is left out.
        Some(_) => Some(String::new()),
    };
    Ran { prompt, state: object.remove("state") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_is_no_text_is_told_from_none() {
        let prompt = |text: &str| ran(text).prompt;
        assert_eq!((prompt("{}"), prompt("no JSON"), prompt(r#"{"prompt":null}"#)), (None, None, None));
        assert_eq!(prompt(r#"{"prompt":"Look."}"#).as_deref(), Some("Look."));
        assert_eq!(prompt(r#"{"prompt":5}"#).as_deref(), Some(""), "the run notes that it is not sent");
    }
}
