//! Which model an agent has, where it is and what it is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use gesta_model::{Provider, ProviderError, ProviderSpec, Providers, Retries, Timeouts, Transport, TransportSpec};
use gesta_run::json::Object;
use gesta_run::plan::PlanSpec;
use gesta_scene::Script;
use serde_json::Value;

use super::environment::Environment;
use super::files::{self, FileError};
use super::format;
use super::problem::{Place, Problem};
use super::resolve::{Resolver, SCRIPT_FILE};
use super::secret::{NO_SECRET, Secret, Secrets};
use super::source::Step;
use crate::http::headers::{self, Carries};

/// The scripted model's name as a provider.
const SCRIPT: &str = "script";

impl Resolver<'_> {
    /// The model's whole name, and its text where it is a script.
    pub(crate) fn model(&mut self) -> (String, Option<String>) {
        let unusable = self.unusable_providers();
        let overriding = self.env.get("GESTA_MODEL");
        let Some(name) = overriding.clone().or_else(|| self.toml.model.clone()).or_else(|| self.default_model()) else {
            let fix = "write `model = \"provider:model\"`, or put a scripted model into `model.script`";
            self.report_fix(&[], "there is no model", fix);
            return (String::new(), None);
        };
        if name == SCRIPT || name.starts_with("script:") {
            let text = self.script(name.split_once(':').map_or("", |it| it.1));
            return (name, Some(text));
        }
        let known = unusable.iter().any(|it| name.strip_prefix(it.as_str()).is_some_and(|rest| rest.starts_with(':')));
        if let Err(why) = self.provider(&name)
            && !known
        {
            self.problems.push(match overriding {
                // The command line puts its own word in the variable's place.
                Some(_) => Problem::new("--model or GESTA_MODEL", why),
                None => self.source.problem(&["model".into()], why),
            });
        }
        (name, None)
    }

    fn default_model(&self) -> Option<String> {
        let script = self.toml.model_script.is_some() || self.dir.join(SCRIPT_FILE).exists();
        script.then(|| SCRIPT.to_owned())
    }

    /// The script's text; `script:FILE` names another file than the usual one.
    fn script(&mut self, named: &str) -> String {
        let toml = self.toml;
        let name = match (named, &toml.model_script) {
            ("", Some(name)) => name.as_str(),
            ("", None) => SCRIPT_FILE,
            (name, _) => name,
        };
        let text = match files::read(self.dir, name) {
            Ok(text) => text,
            Err(why) => {
                let fix = match why {
                    FileError::Missing(_) => "write it with lines like `model: Good morning.`",
                    _ => "",
                };
                self.report_fix(&["model_script".into()], format!("the scripted model {why}"), fix);
                return String::new();
            }
        };
        if let Err(why) = Script::parse(&text) {
            let place = Place { line: why.line, column: 1 };
            self.problems.push(Problem::new(name, why.reason.to_string()).at(Some(place)));
        }
        text
    }

    /// Says what is wrong with any provider of the folder, asked or not; the names of those that cannot be used.
    fn unusable_providers(&mut self) -> Vec<String> {
        let toml = self.toml;
        let mut unusable = Vec::new();
        for (name, spec) in &toml.providers {
            let before = self.problems.len();
            let path = |key: &'static str| [Step::Key("providers"), Step::Key(name), Step::Key(key)];
            let address = spec.base_url.as_deref().map_or(Ok(()), |url| format::check("http_url", url));
            if let Err(why) = address {
                self.report(&path("base_url"), why);
            } else if let Err(why) = Provider::new(name, spec, &|_| Some("a key".to_owned())) {
                let key = if matches!(why, ProviderError::Header { .. }) { "headers" } else { "base_url" };
                self.report(&path(key), why.to_string());
            }
            for header in spec.headers.keys().filter(|it| headers::carries(it) == Carries::Secret) {
                let fix = format!("name its variable: `headers_env = {{ {header} = \"NAME\" }}`, or `api_key_env`");
                self.report_fix(&[path("headers").as_slice(), &[Step::Key(header)]].concat(), NO_SECRET, fix);
            }
            if self.problems.len() > before {
                unusable.push(name.clone());
            }
        }
        unusable
    }

    /// Whether the provider is known and can be asked: the model crate's own words, at the place of the model.
    fn provider(&mut self, name: &str) -> Result<(), String> {
        let (provider, model) = name.split_once(':').unwrap_or((name, ""));
        if model.trim().is_empty() {
            return Err(format!(
                "`{name}` must be `provider:model`, for instance \"openai:gpt-5-mini\", or \"script\""
            ));
        }
        let variables = variables(&self.toml.providers, self.env);
        let providers = providers(&self.toml.providers, variables, Transport::new(TransportSpec::default()));
        providers.provider(provider).map(drop).map_err(|why| why.to_string())
    }

    /// Time limits of requests.
    pub(crate) fn timeouts(&self) -> Timeouts {
        let (usual, toml) = (Timeouts::default(), &self.toml.requests);
        Timeouts {
            connect_ms: toml.connect_time_limit.map_or(usual.connect_ms, |it| it.ms),
            first_byte_ms: toml.first_byte_time_limit.map_or(usual.first_byte_ms, |it| it.ms),
            idle_ms: toml.idle_time_limit.map_or(usual.idle_ms, |it| it.ms),
            whole_ms: toml.whole_time_limit.map_or(usual.whole_ms, |it| it.ms),
        }
    }

    /// How often requests are tried.
    pub(crate) fn retries(&self) -> Retries {
        let usual = Retries::default();
        Retries { attempts_max: self.toml.requests.attempts_max.unwrap_or(usual.attempts_max), ..usual }
    }

    /// The model's options as they stand in a plan: named ones, then `extra`.
    pub(crate) fn model_options(&self) -> Object {
        let mut named = self.toml.model_options.clone();
        let extra = std::mem::take(&mut named.extra);
        let mut options = match serde_json::to_value(named) {
            Ok(Value::Object(options)) => options,
            _ => PlanSpec::default().model_options,
        };
        options.extend(extra);
        options
    }
}

/// Variables of the providers that are known without a configuration.
const BUILT_IN_VARIABLES: [&str; 4] = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"];

/// The variables that providers may ask for, as far as they are set.
pub(crate) fn variables(specs: &BTreeMap<String, ProviderSpec>, env: &Environment<'_>) -> Secrets {
    let of_spec = |spec: &ProviderSpec| -> Vec<String> {
        spec.api_key_env.iter().chain(spec.headers_env.values()).cloned().collect()
    };
    let built_in = BUILT_IN_VARIABLES.into_iter().map(str::to_owned);
    let mut found = Secrets::default();
    for name in built_in.chain(specs.values().flat_map(of_spec)) {
        if let Some(value) = env.get(&name) {
            found.insert(name, Secret::new(value));
        }
    }
    found
}

/// The providers of a folder, which know these variables and no others.
pub(crate) fn providers(specs: &BTreeMap<String, ProviderSpec>, known: Secrets, transport: Transport) -> Providers {
    let lookup = move |name: &str| known.get(name).map(|secret| secret.expose().to_owned());
    let mut providers = Providers::new(Arc::new(lookup), transport);
    providers.specs.clone_from(specs);
    providers
}
