//! The tools of a folder: what the machine knows of each, and what runs it.

use std::collections::{BTreeMap, BTreeSet};

use gesta_run::tool::{self, Accepts, Effect, Tool, ToolError, ToolSpec};
use serde_json::Value;

use super::agent_toml::ToolToml;
use super::resolve::Resolver;
use super::secret::{NO_SECRET, Template};
use super::settings::{Body, Endpoint};
use super::source::Step;
use crate::http::headers::{self, Carries};
use crate::rules::answers::Answers;

impl Resolver<'_> {
    /// All tools, and what runs each.
    pub(crate) fn tools(&mut self) -> (Vec<ToolSpec>, BTreeMap<String, Body>) {
        let toml = self.toml;
        let mut specs = Vec::new();
        let mut bodies = BTreeMap::new();
        let mut names = BTreeSet::new();
        for (at, written) in toml.tools.iter().enumerate() {
            let path = ["tools".into(), at.into()];
            if !names.insert(&written.name) {
                self.report(&[path[0], path[1], "name".into()], format!("tool `{}` is there twice", written.name));
            }
            let spec = self.tool(&path, written);
            if let Err(why) = Tool::new(spec.clone()) {
                let key = match &why {
                    ToolError::Schema { .. } if written.parameters_file.is_some() => "parameters_file",
                    ToolError::Schema { .. } => "parameters",
                    ToolError::Refusal { .. } => "refusal",
                    ToolError::TimeLimit(_) => "time_limit",
                    ToolError::NeedsApproval(_) => "needs_approval",
                    _ => "name",
                };
                self.report(&[path[0], path[1], key.into()], why.to_string());
            }
            if let Some(body) = self.body(&path, written) {
                bodies.insert(written.name.clone(), body);
            }
            specs.push(spec);
        }
        (specs, bodies)
    }

    fn tool(&mut self, path: &[Step<'_>; 2], written: &ToolToml) -> ToolSpec {
        let parameters = match (&written.parameters, &written.parameters_file) {
            (Some(schema), None) => Value::Object(schema.clone()),
            (None, Some(name)) => {
                self.json_file(&[path[0], path[1], "parameters_file".into()], name).unwrap_or_else(tool::no_parameters)
            }
            (None, None) => tool::no_parameters(),
            (Some(_), Some(_)) => {
                let message = "stands beside `parameters`; use one of the two";
                self.report(&[path[0], path[1], "parameters_file".into()], message);
                tool::no_parameters()
            }
        };
        if written.external && written.accepts.is_some_and(|accepts| accepts != Accepts::External) {
            let message = "an external tool is answered by whoever called the agent; leave `accepts` out";
            self.report(&[path[0], path[1], "accepts".into()], message);
        }
        let usual = if written.external { Accepts::External } else { Accepts::default() };
        ToolSpec {
            effect: written.effect,
            time_limit_ms: written.time_limit.map_or(tool::TIME_LIMIT_MS, |it| it.ms),
            refusal: written.refusal.clone(),
            accepts: written.accepts.unwrap_or(usual),
            silent: written.silent,
            needs_approval: written.needs_approval,
            ..ToolSpec::new(&written.name, &written.description, parameters)
        }
    }

    fn body(&mut self, path: &[Step<'_>; 2], written: &ToolToml) -> Option<Body> {
        let [tools, at] = *path;
        let bodies = [written.url.is_some(), !written.answers.is_empty(), written.external];
        if bodies.iter().filter(|there| **there).count() != 1 {
            let message =
                format!("tool `{}` must have exactly one of `url`, `answers` and `external = true`", written.name);
            self.report(path, message);
            return None;
        }
        if written.external && written.effect == Effect::Staged {
            let message = "an external tool cannot be staged; its calls wait for whoever called the agent";
            self.report(&[tools, at, "effect".into()], message);
        }
        if written.url.is_none() && !written.headers.is_empty() {
            self.report(&[tools, at, "headers".into()], "headers need a `url`");
        }
        if let Some(url) = &written.url {
            let headers = self.templates(&[tools, at, "headers".into()], &written.headers);
            self.reachable(&[tools, at, "url".into()], url);
            return Some(Body::Http(Endpoint { url: url.clone(), headers }));
        }
        if written.external {
            return Some(Body::External);
        }
        if let Err(why) = Answers::compile(&written.answers) {
            self.report(&[tools, at, "answers".into(), why.answer.into()], why.to_string());
        }
        Some(Body::Answers(written.answers.clone()))
    }

    /// Headers as templates. Names and values must be legal, and the host's own names are not to be had.
    pub(crate) fn templates(
        &mut self,
        path: &[Step<'_>],
        written: &BTreeMap<String, String>,
    ) -> BTreeMap<String, Template> {
        let mut templates = BTreeMap::new();
        for (name, value) in written {
            let at = [path, &[name.as_str().into()]].concat();
            if let Err(why) = headers::check(name, value) {
                self.report(&at, why);
                continue;
            }
            match Template::parse(value) {
                Ok(template) if template.env.is_none() && headers::carries(name) == Carries::Secret => {
                    let fix = "write `env:NAME`, or `Bearer env:NAME`, and set NAME in the environment or in `.env`";
                    self.report_fix(&at, NO_SECRET, fix);
                }
                Ok(template) => drop(templates.insert(name.clone(), template)),
                Err(why) => self.report(&at, why),
            }
        }
        templates
    }

    /// An address that the network rules can never let through is told now rather than at the first call.
    pub(crate) fn reachable(&mut self, path: &[Step<'_>], url: &str) {
        let Ok(policy) = crate::http::policy::Policy::new(&self.toml.network.allow) else { return };
        if let Err(why) = policy.check_url(url) {
            self.report(path, why.to_string());
        }
    }
}
