//! Everything that can be said about a folder without starting it.

use std::path::Path;

use gesta_run::pattern::PatternSpec;
use gesta_scene::Scene;
use serde::Serialize;
use serde_json::Value;

use super::agent_toml::{DecisionToml, Operators, Test};
use super::problem::{Place, Problem};
use super::secret::Template;
use super::source::{Source, Step};
use super::{AGENT_FILE, Body, Folder, files};
use crate::http::headers::{self, Carries};
use crate::rules::condition;
use crate::rules::glob;

/// The shortest substring that is not warned of.
const INTENT_CHARS_MIN: usize = 3;

/// What is wrong with a folder, and what is doubtful.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// It cannot be used.
    pub problems: Vec<Problem>,
    /// It can be used, and something is probably not meant as it stands.
    pub warnings: Vec<Problem>,
}

/// Checks a folder: `agent.toml`, the files it names, the scripted model and the scenes. Blocks on files.
pub fn check(dir: &Path, env: &dyn Fn(&str) -> Option<String>) -> Report {
    let mut report = Report::default();
    match Folder::load(dir, env) {
        Ok(folder) => {
            report.warnings = warnings(dir, &folder);
            scenes(dir, &folder, &mut report.problems);
        }
        Err(errors) => report.problems = errors.0,
    }
    report
}

/// The scenes of a folder, by their names relative to it, sorted. Blocks on files.
pub fn scene_files(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir.join("scenes")) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter(|name| name.ends_with(".scene")).map(|name| format!("scenes/{name}")).collect();
    names.sort();
    names
}

/// Whether each scene can be read under the agent's plan. Whether it holds is for those who play it.
fn scenes(dir: &Path, folder: &Folder, problems: &mut Vec<Problem>) {
    for name in scene_files(dir) {
        let read = match files::read(dir, &name) {
            Ok(text) => Scene::read_for(&text, &folder.settings.plan).map(drop),
            Err(why) => {
                problems.push(Problem::new(name, why.to_string()));
                continue;
            }
        };
        if let Err(why) = read {
            let place = Place { line: why.line, column: 1 };
            problems.push(Problem::new(name, why.reason.to_string()).at(Some(place)));
        }
    }
}

/// What is doubtful in a folder that can be used.
fn warnings(dir: &Path, folder: &Folder) -> Vec<Problem> {
    let source = files::read(dir, AGENT_FILE).ok().and_then(|text| Source::parse(AGENT_FILE, text).ok());
    let Some(source) = source else { return Vec::new() };
    let mut doubts = Doubts { source: &source, folder, found: Vec::new() };
    doubts.intents();
    doubts.prompt();
    doubts.tools();
    doubts.decisions();
    doubts.budget();
    doubts.providers();
    doubts.headers();
    doubts.found.sort_by_key(|doubt| doubt.place);
    doubts.found
}

struct Doubts<'a> {
    source: &'a Source,
    folder: &'a Folder,
    found: Vec<Problem>,
}

impl Doubts<'_> {
    fn add(&mut self, path: &[Step<'_>], message: impl Into<String>, fix: impl Into<String>) {
        self.found.push(self.source.problem(path, message).fixed_by(fix));
    }

    fn intents(&mut self) {
        let Some(act) = &self.folder.settings.plan.contract.act_when_asked else { return };
        let path = |at: usize| ["act_when_asked".into(), "intents".into(), Step::Index(at)];
        if act.intents.is_empty() {
            self.add(&path(0)[..2], "the list is empty: no turn is ever an action request", "add a word or a `regex`");
        }
        for (at, intent) in act.intents.iter().enumerate() {
            let PatternSpec::Substring(text) = intent else { continue };
            if text.trim().is_empty() {
                self.add(&path(at), "it is blank and stands in nearly every message", "name a word, or take it out");
            } else if text.chars().count() < INTENT_CHARS_MIN {
                let fix = format!("use `{{ regex = '\\b{text}\\b', ignore_case = true }}` for the whole word");
                self.add(&path(at), format!("\"{text}\" is short and stands inside of many words"), fix);
            }
        }
        if act.max_reprompts == 0 {
            self.add(
                &["act_when_asked".into(), "max_reprompts".into()],
                "0 detects and records, and never prompts",
                "",
            );
        }
    }

    fn prompt(&mut self) {
        if self.folder.settings.plan.instructions.trim().is_empty() {
            let fix = "write the persona into `prompt.md`";
            self.add(&["prompt".into()], "the model is told nothing about who it is", fix);
        }
    }

    fn tools(&mut self) {
        for (at, tool) in self.folder.settings.plan.tools.iter().enumerate() {
            let path = ["tools".into(), at.into()];
            if tool.description.trim().is_empty() {
                let message = format!("tool `{}` has no description; the model must guess what it does", tool.name);
                self.add(&path, message, "");
            }
            let properties = tool.parameters.get("properties").and_then(Value::as_object);
            let required = tool.parameters.get("required").and_then(Value::as_array);
            for name in required.into_iter().flatten().filter_map(Value::as_str) {
                if !properties.is_some_and(|it| it.contains_key(name)) {
                    let message = format!("`{name}` is required and not described in `properties`");
                    self.add(&[path[0], path[1], "parameters".into()], message, "");
                }
            }
        }
    }

    fn decisions(&mut self) {
        let settings = &self.folder.settings;
        for (at, rule) in settings.decisions.iter().enumerate() {
            let path = ["decisions".into(), Step::Index(at)];
            if let Some(earlier) = settings.decisions[..at].iter().position(|earlier| hides(earlier, rule)) {
                let message = format!("is never reached: decision {earlier} (counted from 0) fits whenever it does");
                self.add(&path, message, "put the narrower rule first");
            }
            let tools = settings.plan.tools.iter().map(|tool| (tool.name.clone(), &tool.parameters));
            let grants = settings.plan.grants.iter().map(|grant| (grant.full_name(), &grant.parameters));
            let tools: Vec<_> = tools.chain(grants).filter(|(name, _)| glob::fits(&rule.tool, name)).collect();
            // Which tools a document has is not known before it is opened.
            if tools.is_empty() && settings.document.is_none() {
                self.add(&[path[0], path[1], "tool".into()], format!("no tool fits `{}`", rule.tool), "");
            }
            if rule.action == super::agent_toml::ActionWord::Defer {
                self.deferred_grants(&[path[0], path[1], "tool".into()], &rule.tool);
            }
            for (argument, test) in &rule.when {
                for (name, parameters) in &tools {
                    if let Some(doubt) = doubtful(argument, test, parameters) {
                        let message = format!("tool `{name}`: {doubt}");
                        let at = [path[0], path[1], "when".into(), argument.as_str().into()];
                        self.add(&at, message, "otherwise the rule can be missed");
                    }
                }
            }
            let external = |name: &str| matches!(settings.bodies.get(name), Some(Body::External));
            if rule.action == super::agent_toml::ActionWord::Run && tools.iter().any(|(name, _)| external(name)) {
                self.add(
                    &[path[0], path[1], "action".into()],
                    "an external tool waits for its caller all the same",
                    "",
                );
            }
        }
    }

    /// A grant is called in the middle of a function, which cannot wait for a person.
    fn deferred_grants(&mut self, path: &[Step<'_>], pattern: &str) {
        let grants = self.folder.settings.plan.grants.iter().map(gesta_run::GrantSpec::full_name);
        let fitting: Vec<String> = grants.filter(|name| glob::fits(pattern, name)).collect();
        if !fitting.is_empty() {
            let names = fitting.join(", ");
            let message = format!("{names} cannot wait for a person: a deferred grant is not run, and throws");
            self.add(path, message, "`deny` it, or defer the tool that calls it");
        }
    }

    fn providers(&mut self) {
        for (name, spec) in &self.folder.settings.providers {
            let keyless = spec.api_key_env.is_none() && spec.headers_env.is_empty() && spec.headers.is_empty();
            if keyless && spec.base_url.is_none() {
                let fix = "name the variable that holds it as `api_key_env`";
                self.add(&["providers".into(), name.as_str().into()], "the protocol's own service is sent no key", fix);
            }
        }
    }

    /// Headers whose names sound like a secret, and whose values stand in the file.
    fn headers(&mut self) {
        let settings = &self.folder.settings;
        let doubtful = |name: &str| headers::carries(name) == Carries::PerhapsSecret;
        let is_literal = |value: &str| Template::parse(value).is_ok_and(|it| it.env.is_none());
        let place = |of, at, name| [Step::Key(of), at, Step::Key("headers"), Step::Key(name)];
        let mut found = Vec::new();
        for (at, tool) in settings.plan.tools.iter().enumerate() {
            let Some(Body::Http(endpoint)) = settings.bodies.get(&tool.name) else { continue };
            let names = endpoint.headers.iter().filter(|(name, value)| value.env.is_none() && doubtful(name));
            found.extend(names.map(|(name, _)| place("tools", at.into(), name.as_str())));
        }
        for (at, backstop) in settings.backstops.iter().enumerate() {
            let names = backstop.headers.iter().filter(|(name, value)| is_literal(value) && doubtful(name));
            found.extend(names.map(|(name, _)| place("backstops", at.into(), name.as_str())));
        }
        for (provider, spec) in &settings.providers {
            let names = spec.headers.keys().filter(|name| doubtful(name));
            found.extend(names.map(|name| place("providers", provider.as_str().into(), name.as_str())));
        }
        for path in found {
            let of_provider = matches!(path[0], Step::Key("providers"));
            let fix = if of_provider { "name its variable in `headers_env`" } else { "write `env:NAME`" };
            self.add(&path, "if this is a secret, it does not stand in this file", fix);
        }
    }

    fn budget(&mut self) {
        let plan = &self.folder.settings.plan;
        if plan.limits.cost_usd_max.is_some() && plan.limits.prices.is_none() {
            let message = format!("`{}` has no price; the budget counts it at 15 and 75 dollars a million", plan.model);
            self.add(&["limits".into(), "cost_usd_max".into()], message, "give its price in a file named as `prices`");
        }
    }
}

/// Whether the earlier rule fits every call that the later one fits.
fn hides(earlier: &DecisionToml, later: &DecisionToml) -> bool {
    let wider = glob::fits(&earlier.tool, &later.tool) && (earlier.tool == later.tool || !later.tool.contains('?'));
    wider && earlier.when.iter().all(|(argument, test)| later.when.get(argument) == Some(test))
}

/// A comparison that holds for no number because the argument may be missing or be a text.
fn doubtful(argument: &str, test: &Test, schema: &Value) -> Option<String> {
    let Test::Operators(operators) = test else { return None };
    let Operators { greater_than, at_least, less_than, at_most, .. } = &**operators;
    if [greater_than, at_least, less_than, at_most].iter().all(|limit| limit.is_none()) {
        return None;
    }
    let mut place = schema;
    for step in condition::path_of(argument) {
        let required = place.get("required").and_then(Value::as_array);
        if !required.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(step.as_str()))) {
            return Some(format!("its schema does not require `{step}`"));
        }
        let inner = place.get("properties").and_then(|properties| properties.get(&step));
        let Some(inner) = inner else { return Some(format!("its schema does not describe `{step}`")) };
        place = inner;
    }
    match place.get("type").and_then(Value::as_str) {
        Some("number" | "integer") => None,
        _ => Some(format!("its schema does not say that `{argument}` is a number")),
    }
}
