//! The document of a folder and its grants: the file read, the limits with their defaults, what the schema cannot check.

use std::collections::BTreeMap;

use gesta_document::{AddedTools, Limits};
use gesta_run::grant::{GrantError, GrantSpec};
use gesta_run::plan::{Functions, Plan, PlanError, PlanSpec};
use gesta_run::tool;
use gesta_sandbox::{Demand, PoolSettings};
use serde_json::Value;

use super::agent_toml::{AddedToolsWord, DocumentToml, GrantToml, SandboxWord};
use super::files::{self, FileError};
use super::problem::Problem;
use super::resolve::Resolver;
use super::settings::{Body, DocumentPart, Endpoint};
use super::source::Step;
use crate::rules::answers::Answers;

/// The document's file where none is named.
pub(crate) const DOCUMENT_FILE: &str = "tools.stof";

impl Resolver<'_> {
    /// The document, where the folder has one.
    pub(crate) fn document(&mut self) -> Option<DocumentPart> {
        let toml = self.toml;
        let usual = DocumentToml::default();
        let written = toml.document.as_ref().unwrap_or(&usual);
        let file = written.file.as_deref().unwrap_or(DOCUMENT_FILE);
        let base = match files::read(self.dir, file) {
            Ok(base) => base,
            Err(FileError::Missing(_)) if toml.document.is_none() => {
                if !toml.grants.is_empty() {
                    let fix = format!("write one into `{DOCUMENT_FILE}`, or use `[[tools]]`");
                    self.report_fix(&["grants".into()], "grants are lent to a document, and the folder has none", fix);
                }
                return None;
            }
            Err(why) if written.file.is_some() => {
                self.report(&["document".into(), "file".into()], why.to_string());
                return None;
            }
            Err(why) => {
                self.problems.push(Problem::new(file, why.to_string()).fixed_by("write the document there"));
                return None;
            }
        };
        Some(DocumentPart {
            file: file.to_owned(),
            base,
            added_tools: match written.added_tools {
                Some(AddedToolsWord::On) => AddedTools::On,
                Some(AddedToolsWord::Off) => AddedTools::Off,
                None => AddedTools::AsBase,
            },
            sandbox: match written.sandbox {
                Some(SandboxWord::Required) => Demand::Required,
                Some(SandboxWord::Available) | None => Demand::Available,
            },
            limits: limits(written),
            workers_max: written.workers_max,
            worker_wait_max_ms: written.worker_wait_time_limit.map(|it| it.ms),
        })
    }

    /// All grants, and what runs each.
    pub(crate) fn grants(&mut self) -> (Vec<GrantSpec>, BTreeMap<String, Body>) {
        let toml = self.toml;
        let (mut specs, mut bodies) = (Vec::new(), BTreeMap::new());
        for (library, grants) in &toml.grants {
            for (name, written) in grants {
                let path = ["grants".into(), library.as_str().into(), name.as_str().into()];
                let spec = grant(library, name, written);
                self.lendable(&path, &spec);
                if let Some(body) = self.grant_body(&path, written) {
                    bodies.insert(spec.full_name(), body);
                }
                specs.push(spec);
            }
        }
        (specs, bodies)
    }

    /// Whether the machine takes a grant; where it does not, its own words say why.
    fn lendable(&mut self, path: &[Step<'_>; 3], spec: &GrantSpec) {
        let alone = PlanSpec { grants: vec![spec.clone()], ..PlanSpec::default() };
        let Err(why) = Plan::new(alone, Functions::default()) else { return };
        let key = match &why {
            PlanError::Grant(GrantError::Schema { .. }) => Some("parameters"),
            PlanError::Grant(GrantError::TimeLimit(_)) => Some("time_limit"),
            PlanError::Grant(GrantError::Staged(_)) => Some("effect"),
            PlanError::Grant(GrantError::Twice(_)) => Some("params"),
            _ => None,
        };
        let path: Vec<Step<'_>> = path.iter().copied().chain(key.map(Step::Key)).collect();
        self.report(&path, why.to_string());
    }

    fn grant_body(&mut self, path: &[Step<'_>; 3], written: &GrantToml) -> Option<Body> {
        let at = |key| [&path[..], &[Step::Key(key)]].concat();
        if written.url.is_some() != written.answers.is_empty() {
            self.report(path, "must have exactly one of `url` and `answers`");
            return None;
        }
        if let Some(url) = &written.url {
            let headers = self.templates(&at("headers"), &written.headers);
            self.reachable(&at("url"), url);
            return Some(Body::Http(Endpoint { url: url.clone(), headers }));
        }
        if !written.headers.is_empty() {
            self.report(&at("headers"), "headers need a `url`");
        }
        if let Err(why) = Answers::compile(&written.answers) {
            self.report(&[&at("answers")[..], &[why.answer.into()]].concat(), why.to_string());
        }
        Some(Body::Answers(written.answers.clone()))
    }
}

fn grant(library: &str, name: &str, written: &GrantToml) -> GrantSpec {
    let usual = GrantSpec::new(library, name, written.params.iter().cloned());
    GrantSpec {
        parameters: written.parameters.clone().map_or_else(tool::no_parameters, Value::Object),
        effect: written.effect,
        time_limit_ms: written.time_limit.map_or(usual.time_limit_ms, |it| it.ms),
        ..usual
    }
}

fn limits(written: &DocumentToml) -> Limits {
    let mut limits = Limits::default();
    let bytes = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
    limits.call_time_max_ms = written.call_time_max_ms.map_or(limits.call_time_max_ms, u64::from);
    limits.grants_max = written.grants_max.unwrap_or(limits.grants_max);
    limits.grant_arguments_bytes_max =
        written.grant_arguments_bytes_max.map_or(limits.grant_arguments_bytes_max, bytes);
    limits.grant_result_bytes_max = written.grant_result_bytes_max.map_or(limits.grant_result_bytes_max, bytes);
    limits.added_tools_max = written.added_tools_max.map_or(limits.added_tools_max, bytes);
    limits.source_bytes_max = written.source_bytes_max.map_or(limits.source_bytes_max, bytes);
    limits.value_bytes_max = written.value_bytes_max.map_or(limits.value_bytes_max, bytes);
    limits.log_bytes_max = written.log_bytes_max.map_or(limits.log_bytes_max, bytes);
    limits.data_bytes_max = written.data_bytes_max.map_or(limits.data_bytes_max, bytes);
    limits
}

impl DocumentPart {
    /// The workers that it runs in.
    pub fn pool(&self) -> PoolSettings {
        let usual = PoolSettings::default();
        let workers_max = self.workers_max.and_then(|it| usize::try_from(it).ok());
        let workers_max = workers_max.unwrap_or(usual.workers_max);
        PoolSettings {
            demand: self.sandbox,
            warm: usual.warm.min(workers_max),
            workers_max,
            wait_max_ms: self.worker_wait_max_ms.unwrap_or(usual.wait_max_ms),
            ..usual
        }
    }
}
