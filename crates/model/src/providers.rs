//! From `provider:model` to a model that can be asked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use gesta_scene::Script;

use crate::http_model::HttpModel;
use crate::provider::{Protocol, Provider, ProviderError, ProviderSpec};
use crate::request::Model;
use crate::retry::Retries;
use crate::script::ScriptedModel;
use crate::transport::{Timeouts, Transport};

/// Looks a variable of the environment up.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The providers there are: `openai`, `anthropic`, `script`, and those of the configuration, which go before them.
#[derive(Clone)]
pub struct Providers {
    /// Looks variables of the environment up: keys, and `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL`.
    pub lookup: Lookup,
    /// Providers of the configuration, by name.
    pub specs: BTreeMap<String, ProviderSpec>,
    /// What the model `script` says.
    pub script: Option<Arc<Script>>,
    /// What requests go over.
    pub transport: Transport,
    /// Time limits of each request.
    pub timeouts: Timeouts,
    /// How often a request is tried again.
    pub retries: Retries,
}

/// A model, and what its provider calls it.
#[derive(Clone)]
pub struct Resolved {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Its name for [`crate::Request::model`].
    pub name: String,
    /// The name of its provider.
    pub provider: String,
}

impl Providers {
    /// The providers without any of a configuration.
    pub fn new(lookup: Lookup, transport: Transport) -> Self {
        Self {
            lookup,
            specs: BTreeMap::new(),
            script: None,
            transport,
            timeouts: Timeouts::default(),
            retries: Retries::default(),
        }
    }

    /// Finds the model of a name such as `openai:gpt-4o`, `work:llama3:8b` or `script`.
    ///
    /// # Errors
    /// There is no such provider, or it cannot be used as it is configured.
    pub fn resolve(&self, name: &str) -> Result<Resolved, ProviderError> {
        let (provider, model) = match name.split_once(':') {
            Some((provider, model)) => (provider, model),
            None if name == "script" || self.specs.contains_key(name) => (name, ""),
            None => return Err(ProviderError::NoPrefix(name.to_owned())),
        };
        if provider == "script" && !self.specs.contains_key(provider) {
            let script = self.script.clone().ok_or(ProviderError::NoScript)?;
            let model: Arc<dyn Model> = Arc::new(ScriptedModel::new(script));
            return Ok(Resolved { model, name: "script".to_owned(), provider: provider.to_owned() });
        }
        if model.is_empty() {
            return Err(ProviderError::NoPrefix(name.to_owned()));
        }
        let asked = HttpModel::new(self.provider(provider)?, self.transport.clone(), self.timeouts, self.retries);
        Ok(Resolved { model: Arc::new(asked), name: model.to_owned(), provider: provider.to_owned() })
    }

    /// The provider of a name, other than `script`.
    ///
    /// # Errors
    /// There is no such provider, or it cannot be used as it is configured.
    pub fn provider(&self, name: &str) -> Result<Provider, ProviderError> {
        let lookup = &*self.lookup;
        if let Some(spec) = self.specs.get(name) {
            return Provider::new(name, spec, lookup);
        }
        let (protocol, key, base) = match name {
            "openai" => (Protocol::OpenAi, "OPENAI_API_KEY", "OPENAI_BASE_URL"),
            "anthropic" => (Protocol::Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
            _ => return Err(ProviderError::Unknown { name: name.to_owned(), known: self.names().join(", ") }),
        };
        let set = |variable: &str| lookup(variable).filter(|value| !value.trim().is_empty());
        let mut spec = ProviderSpec::new(protocol);
        spec.base_url = set(base).map(|url| url.trim().to_owned());
        // A server of one's own often wants no key.
        let wants_key = spec.base_url.is_none() || set(key).is_some();
        spec.api_key_env = wants_key.then(|| key.to_owned());
        let mut provider = Provider::new(name, &spec, lookup)?;
        provider.key_variable.get_or_insert_with(|| key.to_owned());
        Ok(provider)
    }

    /// The names of all providers, sorted.
    pub fn names(&self) -> Vec<String> {
        let built_in = ["openai", "anthropic", "script"].map(str::to_owned);
        let mut names: Vec<String> = self.specs.keys().cloned().chain(built_in).collect();
        names.sort();
        names.dedup();
        names
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers").field("specs", &self.specs).finish_non_exhaustive()
    }
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider, self.name)
    }
}
