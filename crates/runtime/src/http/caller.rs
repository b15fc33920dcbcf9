//! Calls of tools and backstops that are endpoints, exactly as `spec/contract.md` 2.11 says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use gesta_model::transport::{Guard, Outgoing, Received, Timeouts, Transport, TransportError, TransportSpec};
use gesta_run::json::{self, Object};
use gesta_run::{Answer, Ran};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use serde_json::{Value, json};

use super::policy::Policy;
use crate::folder::agent_toml::BackstopToml;
use crate::folder::secret::Template;
use crate::folder::{Endpoint, Secrets};
use crate::hook::{RanFuture, TurnSeen};
use crate::tool::{AnswerFuture, Scope, ToolBody};

/// Longest body of an answer, in bytes.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// How long connecting may take. What the body of a tool may take in all is the tool's own time limit.
const CONNECT_MS: u64 = 10_000;

/// Makes the requests of one agent, within its network's rules.
pub struct HttpCaller {
    policy: Policy,
    transport: Transport,
}

/// The rules, asked for each address that a name was resolved to.
struct Walls(Policy);

impl Guard for Walls {
    fn address(&self, host: &str, address: SocketAddr) -> Result<(), String> {
        if self.0.opens(host, address.port()) {
            return Ok(());
        }
        Policy::check_addresses(host, &[address.ip()]).map_err(|why| why.to_string())
    }
}

impl HttpCaller {
    /// A caller with these rules. `lookup` is asked for proxies and certificates.
    pub fn new(policy: Policy, lookup: &gesta_model::Lookup) -> Self {
        let guard: Arc<dyn Guard> = Arc::new(Walls(policy.clone()));
        let spec = TransportSpec { lookup: Some(&**lookup), root_files: Vec::new(), guard: Some(guard) };
        Self { policy, transport: Transport::new(spec) }
    }

    /// The body of a tool that is an endpoint.
    pub(crate) fn tool(&self, endpoint: &Endpoint, secrets: &Secrets, time_limit_ms: u64) -> impl ToolBody + 'static {
        let target = self.target(&endpoint.url, &endpoint.headers, secrets, time_limit_ms);
        move |arguments: Object, scope: Scope| -> AnswerFuture {
            let target = target.clone();
            Box::pin(async move {
                match target {
                    Ok(target) => target.call(&arguments, &scope).await,
                    Err(why) => Answer::Error(why),
                }
            })
        }
    }

    /// What a backstop with an address does: tells the server of the turn; a `prompt` in its answer is the backstop's.
    pub(crate) fn backstop(
        &self,
        written: &BackstopToml,
        secrets: &Secrets,
    ) -> Option<Arc<dyn Fn(TurnSeen) -> RanFuture + Send + Sync>> {
        let url = written.url.as_ref()?;
        let parsed =
            written.headers.iter().filter_map(|(name, value)| Some((name.clone(), Template::parse(value).ok()?)));
        let limit_ms = written.time_limit.as_ref().map_or(gesta_run::tool::TIME_LIMIT_MS, |limit| limit.ms());
        let target = self.target(url, &parsed.collect(), secrets, limit_ms);
        let name = written.name.clone();
        Some(Arc::new(move |turn: TurnSeen| {
            let (target, name) = (target.clone(), name.clone());
            Box::pin(async move { target?.tell(&name, turn).await })
        }))
    }

    fn target(
        &self,
        url: &str,
        templates: &BTreeMap<String, Template>,
        secrets: &Secrets,
        time_limit_ms: u64,
    ) -> Result<Target, String> {
        let checked = self.policy.check_url(url).map_err(|why| why.to_string())?;
        let uri: Uri = checked.url.as_str().parse().map_err(|_| format!("`{url}` is no address"))?;
        let mut headers = HeaderMap::new();
        for (name, template) in templates {
            let missing = || format!("the secret of header `{name}` is not set");
            let value = template.fill(secrets).ok_or_else(missing)?;
            let bad = |_| format!("header `{name}` cannot be sent");
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no header"))?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(bad)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (first_byte_ms, idle_ms, whole_ms) = (time_limit_ms, time_limit_ms, time_limit_ms);
        let timeouts = Timeouts { connect_ms: CONNECT_MS.min(time_limit_ms), first_byte_ms, idle_ms, whole_ms };
        Ok(Target { transport: self.transport.clone(), uri, headers, timeouts })
    }
}

#[derive(Clone)]
struct Target {
    transport: Transport,
    uri: Uri,
    headers: HeaderMap,
    timeouts: Timeouts,
}

impl Target {
    async fn call(&self, arguments: &Object, scope: &Scope) -> Answer {
        let own = [
            ("idempotency-key", Some(scope.idempotency_key())),
            ("gesta-run", Some(scope.run.to_string())),
            ("gesta-conversation", scope.conversation.as_ref().map(ToString::to_string)),
            ("gesta-contact", scope.contact.as_ref().map(ToString::to_string)),
        ];
        match self.post(&json!({ "arguments": arguments }), own).await {
            Ok(received) => answer_of(&received),
            Err(why) => answer_of_failure(&why),
        }
    }

    async fn tell(&self, name: &str, turn: TurnSeen) -> Result<Ran, String> {
        let own = [
            ("idempotency-key", Some(format!("{}/{name}", turn.run_id))),
            ("gesta-run", Some(turn.run_id.to_string())),
            ("gesta-conversation", turn.conversation.as_ref().map(ToString::to_string)),
            ("gesta-contact", turn.contact.as_ref().map(ToString::to_string)),
        ];
        let body = json!({
            "backstop": name,
            "phase": turn.phase,
            "run_id": turn.run_id,
            "input": turn.input,
            "reply": turn.reply,
            "trip_index": turn.trip_index,
            "tool_calls": turn.tool_calls,
            "state": turn.state,
        });
        let received = self.post(&body, own).await.map_err(|why| why.to_string())?;
        if !received.status.is_success() {
            return Err(format!("the server answered {}", received.status.as_u16()));
        }
        let answer: Value = serde_json::from_slice(&received.body).unwrap_or(Value::Null);
        let prompt = answer.get("prompt").and_then(Value::as_str).map(str::to_owned);
        Ok(Ran { prompt, state: answer.get("state").filter(|state| state.is_object()).cloned() })
    }

    async fn post(&self, body: &Value, own: [(&'static str, Option<String>); 4]) -> Result<Received, TransportError> {
        let mut headers = self.headers.clone();
        for (name, value) in own {
            let Some(value) = value else { continue };
            // A name with characters that no header may have goes percent-encoded, so that it is still told apart.
            let plain = HeaderValue::from_str(&value).ok().filter(|_| value.is_ascii());
            let value = plain.or_else(|| HeaderValue::from_str(&percent_encoded(&value)).ok());
            headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
        }
        let body = Bytes::from(body.to_string());
        let request = Outgoing { method: Method::POST, uri: self.uri.clone(), headers, body };
        self.transport.send(&request, self.timeouts, BODY_BYTES_MAX).await
    }
}

fn percent_encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// 2xx is the result, 4xx an error with its text, 5xx a failure; a redirect is not followed.
fn answer_of(received: &Received) -> Answer {
    let text = String::from_utf8_lossy(&received.body);
    let status = received.status;
    if status.is_success() {
        if text.trim().is_empty() {
            return Answer::Ok(Value::Null);
        }
        return Answer::Ok(json::read_strict(&text).unwrap_or_else(|_| Value::String(text.into_owned())));
    }
    if status.is_client_error() && !text.trim().is_empty() {
        return Answer::Error(text.into_owned());
    }
    if status.is_redirection() {
        return Answer::Error(format!(
            "the tool's server sent a redirect ({}), which is not followed",
            status.as_u16()
        ));
    }
    Answer::Error(format!("the tool's server answered {}", status.as_u16()))
}

fn answer_of_failure(why: &TransportError) -> Answer {
    match why {
        TransportError::Timeout(_) if why.may_have_arrived() => Answer::TimedOut,
        _ if why.may_have_arrived() => Answer::Unknown,
        _ => Answer::Error(format!("the tool's server cannot be reached: {why}")),
    }
}
