//! Requests that leave a run: checked, with the host's own headers, over one transport.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use gesta_model::transport::{Guard, Outgoing, Received, TransportError};
use gesta_model::{Lookup, Timeouts, Transport, TransportSpec};
use gesta_run::call::Answer;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;

use super::headers::Scoped;
use super::policy::{Policy, is_public};
use crate::folder::Secrets;
use crate::folder::secret::{Secret, Template};

/// The variable with the proxy that requests of tools go through. The usual ones are for the model alone: a proxy
/// resolves names by itself, so that it, and not we, has to keep to the rules.
const EGRESS_PROXY: &str = "GESTA_EGRESS_PROXY";

/// Makes the requests of tools and backstops. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct HttpCaller(pub(crate) Arc<Caller>);

pub(crate) struct Caller {
    policy: Policy,
    transport: Transport,
}

/// One endpoint and everything of a request that does not change.
#[derive(Clone)]
pub(crate) struct Call {
    url: String,
    headers: HeaderMap,
    secrets: Vec<Secret>,
    time_limit_ms: u64,
}

impl HttpCaller {
    /// Requests under these rules. `lookup` is asked for `SSL_CERT_FILE`, `GESTA_EGRESS_PROXY` and `NO_PROXY`.
    pub fn new(policy: Policy, lookup: &Lookup) -> Self {
        let own = |name: &str| match name.to_ascii_uppercase().as_str() {
            "HTTP_PROXY" | "HTTPS_PROXY" | "ALL_PROXY" => lookup(EGRESS_PROXY),
            "SSL_CERT_FILE" | "NO_PROXY" => lookup(name),
            _ => None,
        };
        let guard = Arc::new(Wall(policy.clone()));
        let transport = Transport::new(TransportSpec { lookup: Some(&own), guard: Some(guard), ..Default::default() });
        Self(Arc::new(Caller { policy, transport }))
    }

    /// Whether `GESTA_EGRESS_PROXY` is set and holds no address of a proxy. Every request fails then.
    pub fn has_wrong_proxy(&self) -> bool {
        self.0.transport.wrong_proxy().is_some()
    }
}

impl Caller {
    /// Sends one POST. Nothing is tried twice and no redirect is followed.
    pub(crate) async fn post(
        &self,
        call: &Call,
        scoped: &Scoped<'_>,
        body: Bytes,
        body_bytes_max: usize,
    ) -> Result<Received, TransportError> {
        let refused = |reason: String| TransportError::Forbidden { host: host_of(&call.url), reason };
        let target = self.policy.check_url(&call.url).map_err(|why| refused(why.to_string()))?;
        let uri = target.url.as_str().parse().map_err(|_| TransportError::Address(host_of(&call.url)))?;
        let mut headers = call.headers.clone();
        scoped.write(&mut headers);
        let ms = call.time_limit_ms;
        let timeouts = Timeouts { connect_ms: ms, first_byte_ms: ms, idle_ms: ms, whole_ms: ms };
        let request = Outgoing { method: Method::POST, uri, headers, body };
        self.transport.send(&request, timeouts, body_bytes_max).await
    }
}

impl Call {
    pub(crate) fn new(
        url: &str,
        templates: &BTreeMap<String, Template>,
        secrets: &Secrets,
        time_limit_ms: u64,
    ) -> Self {
        let mut headers = HeaderMap::new();
        let mut known = Vec::new();
        for (name, template) in templates {
            let Some(filled) = template.fill(secrets) else { continue };
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(filled.expose())) {
                value.set_sensitive(template.env.is_some());
                headers.insert(name, value);
            }
            known.extend(template.env.as_ref().and_then(|name| secrets.get(name)).cloned());
        }
        Self { url: url.to_owned(), headers, secrets: known, time_limit_ms }
    }

    /// A server that quotes our own secrets back at us is not to put them into the log.
    pub(crate) fn hide(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Ok(value) => Answer::Ok(self.hide_in(value)),
            Answer::Error(text) => Answer::Error(self.hide_text(text)),
            Answer::TimedOut | Answer::TimedOutWith(_) | Answer::Unknown => answer,
        }
    }

    fn hide_in(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hide_text(text)),
            Value::Array(list) => list.into_iter().map(|item| self.hide_in(item)).collect(),
            Value::Object(object) => {
                Value::Object(object.into_iter().map(|(key, value)| (key, self.hide_in(value))).collect())
            }
            plain => plain,
        }
    }

    fn hide_text(&self, text: String) -> String {
        let long = self.secrets.iter().map(Secret::expose).filter(|secret| secret.len() >= 8);
        long.fold(text, |text, secret| if text.contains(secret) { text.replace(secret, "***") } else { text })
    }
}

fn host_of(url: &str) -> String {
    url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// The rules as the transport asks them: about each address that a name was resolved to, before it connects.
struct Wall(Policy);

impl Guard for Wall {
    fn address(&self, host: &str, address: SocketAddr) -> Result<(), String> {
        if is_public(address.ip()) || self.0.allows(host, address.port()) {
            return Ok(());
        }
        let entry = format!("{host}:{}", address.port());
        Err(format!("its address {} is not public; `[network] allow = [\"{entry}\"]` would open it", address.ip()))
    }

    fn by_proxy(&self, _: &str, _: u16) -> Result<(), String> {
        Ok(())
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Shows no header: some hold secrets.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("host", &host_of(&self.url)).finish_non_exhaustive()
    }
}
