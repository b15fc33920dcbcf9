//! Where a model is and how it is spoken to, from configuration and environment.

use std::collections::BTreeMap;

use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::dialect::{CacheTime, Dialect};
use crate::ids::IdRule;
use crate::secret::Secret;

/// The wires that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// OpenAI Chat Completions, and every server that is compatible with it.
    OpenAi,
    /// Anthropic Messages.
    Anthropic,
}

impl Protocol {
    /// Its name, as in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    fn base_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }
}

/// How the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// `Authorization: Bearer …`, as OpenAI wants it.
    Bearer,
    /// `x-api-key: …`, as Anthropic wants it.
    XApiKey,
    /// `api-key: …`, as Azure wants it.
    ApiKey,
    /// Not at all.
    None,
}

/// Whether neighbours of one role may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Roles {
    /// As they come.
    Free,
    /// Neighbours are joined, for servers that insist on alternating roles.
    Alternate,
}

/// A provider as it is written down: `[providers.NAME]` in `agent.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderSpec {
    /// The wire it speaks.
    pub protocol: Protocol,
    /// Its address up to the protocol's path. By default the protocol's own service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The variable of the environment that holds its key. Without one no key is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Further headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Further headers whose values stand in these variables of the environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers_env: BTreeMap<String, String>,
    /// The path after `base_url`, in place of the protocol's; `{model}` stands for the model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What stands behind `?` in the address, for instance `api-version` for Azure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// How the key is sent. By default as the protocol's own service wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Whether neighbours of one role may be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Roles>,
    /// Which call ids it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_ids: Option<IdRule>,
    /// The length limit where the options name none and the protocol insists on one, in tokens. 8192 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// What `max_tokens` is called in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_key: Option<String>,
    /// Whether usage is asked for at the end of a stream. Some servers refuse the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_usage: Option<bool>,
    /// Whether it keeps to an output schema by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<bool>,
    /// Asks it to cache system text, tools and history for this long. By default not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheTime>,
    /// The value of `anthropic-version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl ProviderSpec {
    /// A provider with every option at its default.
    pub fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            base_url: None,
            api_key_env: None,
            headers: BTreeMap::new(),
            headers_env: BTreeMap::new(),
            path: None,
            query: BTreeMap::new(),
            auth: None,
            roles: None,
            call_ids: None,
            max_tokens: None,
            max_tokens_key: None,
            stream_usage: None,
            output_schema: None,
            cache: None,
            version: None,
        }
    }
}

/// Why a model cannot be used. The messages name the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// A name without a provider.
    #[error("model `{0}` names no provider; write `provider:model`, for instance `openai:{0}`")]
    NoPrefix(String),
    /// A provider that is not there.
    #[error("there is no provider `{name}`; known are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The variable that holds its key is not set.
    #[error("provider `{provider}` needs a key; set {variable}")]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variable.
        variable: String,
    },
    /// Its address cannot be used.
    #[error("provider `{provider}`: its address cannot be used: {reason}")]
    Address {
        /// The provider.
        provider: String,
        /// Why not.
        reason: String,
    },
    /// A header or a key that cannot be sent.
    #[error("provider `{provider}`: the header `{header}` cannot be sent; look for line ends and odd characters in it")]
    Header {
        /// The provider.
        provider: String,
        /// The header.
        header: String,
    },
    /// A scripted model without a script.
    #[error("the model is `script`, but there is no script; write one as `model.script`")]
    NoScript,
}

/// A provider ready to be asked.
#[derive(Debug, Clone)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// The wire it speaks.
    pub protocol: Protocol,
    /// In what it differs from others.
    pub dialect: Dialect,
    /// The address of requests; `{model}` stands for the model's name.
    pub url: String,
    /// The same, read once, where no model's name stands in it.
    fixed: Option<Uri>,
    pub(crate) headers: HeaderMap,
    pub(crate) secrets: Vec<Secret>,
    /// The variable that holds its key, or would.
    pub(crate) key_variable: Option<String>,
    pub(crate) has_key: bool,
}

impl Provider {
    /// Reads a provider from what is written down and from the environment.
    ///
    /// # Errors
    /// A key is missing, or an address or a header cannot be used.
    pub fn new(
        name: &str,
        spec: &ProviderSpec,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ProviderError> {
        let mut headers = HeaderMap::new();
        let mut secrets = Vec::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("gesta/", env!("CARGO_PKG_VERSION"))));
        if spec.protocol == Protocol::Anthropic {
            set(name, &mut headers, "anthropic-version", spec.version.as_deref().unwrap_or("2023-06-01"))?;
        }
        if let Some(variable) = &spec.api_key_env {
            let key = secret(name, variable, lookup)?;
            authorise(name, &mut headers, auth_of(spec), &key)?;
            secrets.push(key);
        }
        for (header, value) in &spec.headers {
            set(name, &mut headers, header, value)?;
        }
        for (header, variable) in &spec.headers_env {
            let value = secret(name, variable, lookup)?;
            set(name, &mut headers, header, value.reveal())?;
            secrets.push(value);
        }
        let mut provider = Self {
            fixed: None,
            name: name.to_owned(),
            protocol: spec.protocol,
            dialect: dialect_of(name, spec),
            url: url_of(name, spec)?,
            headers,
            secrets,
            key_variable: spec.api_key_env.clone(),
            has_key: spec.api_key_env.is_some(),
        };
        let unusable = |reason| ProviderError::Address { provider: name.to_owned(), reason };
        let uri = provider.uri("model").map_err(unusable)?;
        provider.fixed = Some(uri).filter(|_| !provider.url.contains("{model}"));
        Ok(provider)
    }

    /// The address for a model.
    pub(crate) fn uri(&self, model: &str) -> Result<Uri, String> {
        if let Some(uri) = &self.fixed {
            return Ok(uri.clone());
        }
        let mut encoded = String::new();
        for byte in model.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
                _ => encoded.push_str(&format!("%{byte:02X}")),
            }
        }
        self.url.replace("{model}", &encoded).parse().map_err(|why: http::uri::InvalidUri| why.to_string())
    }

    /// Where to look when the key was refused.
    pub(crate) fn key_hint(&self) -> String {
        match &self.key_variable {
            Some(variable) if self.has_key => format!("look at the variable {variable}, which holds it"),
            Some(variable) => format!("none was sent, since {variable} is not set"),
            None => format!("none was sent; name the variable that holds it as `api_key_env` of `{}`", self.name),
        }
    }

    /// Takes keys out of a text.
    pub(crate) fn hide(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| secret.hide_in(&text))
    }
}

fn secret(provider: &str, variable: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Secret, ProviderError> {
    let missing = || ProviderError::MissingKey { provider: provider.to_owned(), variable: variable.to_owned() };
    lookup(variable).filter(|text| !text.trim().is_empty()).map(Secret::new).ok_or_else(missing)
}

fn auth_of(spec: &ProviderSpec) -> Auth {
    spec.auth.unwrap_or(match spec.protocol {
        Protocol::OpenAi => Auth::Bearer,
        Protocol::Anthropic => Auth::XApiKey,
    })
}

fn authorise(provider: &str, headers: &mut HeaderMap, auth: Auth, key: &Secret) -> Result<(), ProviderError> {
    match auth {
        Auth::Bearer => set(provider, headers, AUTHORIZATION.as_str(), &format!("Bearer {}", key.reveal())),
        Auth::XApiKey => set(provider, headers, "x-api-key", key.reveal()),
        Auth::ApiKey => set(provider, headers, "api-key", key.reveal()),
        Auth::None => Ok(()),
    }
}

/// Sets a header. Every value is marked so that nothing prints it.
fn set(provider: &str, headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), ProviderError> {
    let unusable = || ProviderError::Header { provider: provider.to_owned(), header: name.to_owned() };
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
    let mut value = HeaderValue::from_str(value).map_err(|_| unusable())?;
    value.set_sensitive(true);
    headers.insert(key, value);
    Ok(())
}

fn dialect_of(name: &str, spec: &ProviderSpec) -> Dialect {
    let mut dialect = match spec.protocol {
        Protocol::OpenAi => Dialect::openai(),
        Protocol::Anthropic => Dialect::anthropic(),
    };
    dialect.origin = name.to_owned();
    let base = spec.base_url.as_deref().unwrap_or(spec.protocol.base_url());
    if base.trim_end_matches('/') == Protocol::OpenAi.base_url() {
        // OpenAI's own service refuses the old word for its newer models.
        dialect.max_tokens_key = "max_completion_tokens".to_owned();
    }
    dialect.alternate = spec.roles.map_or(dialect.alternate, |roles| roles == Roles::Alternate);
    dialect.call_ids = spec.call_ids.unwrap_or(dialect.call_ids);
    dialect.max_tokens = spec.max_tokens.unwrap_or(dialect.max_tokens);
    dialect.max_tokens_key = spec.max_tokens_key.clone().unwrap_or(dialect.max_tokens_key);
    dialect.stream_usage = spec.stream_usage.unwrap_or(dialect.stream_usage);
    dialect.output_schema = spec.output_schema.unwrap_or(dialect.output_schema);
    dialect.cache = spec.cache;
    dialect
}

fn url_of(name: &str, spec: &ProviderSpec) -> Result<String, ProviderError> {
    let unusable = |reason: String| ProviderError::Address { provider: name.to_owned(), reason };
    let base = spec.base_url.as_deref().unwrap_or(spec.protocol.base_url()).trim_end_matches('/');
    let path = match (&spec.path, spec.protocol) {
        (Some(path), _) => path.as_str(),
        (None, Protocol::OpenAi) => "/chat/completions",
        (None, Protocol::Anthropic) if base.ends_with("/v1") => "/messages",
        (None, Protocol::Anthropic) => "/v1/messages",
    };
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut url = Url::parse(&format!("{base}{slash}{path}")).map_err(|why| unusable(why.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(unusable("it must begin with http:// or https://".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(unusable("a name or a password does not belong into it; use `api_key_env`".to_owned()));
    }
    if !spec.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&spec.query);
    }
    // The parser has encoded the braces of the placeholder.
    Ok(url.as_str().replace("%7Bmodel%7D", "{model}"))
}
