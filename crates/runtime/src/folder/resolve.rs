//! From `agent.toml` and the files beside it to settings: defaults, overrides, and what the schema cannot check.

use std::path::Path;

use gesta_run::plan::{Limits, PlanSpec};
use serde_json::Value;

use super::agent_toml::{self, AgentToml, LimitsToml};
use super::environment::Environment;
use super::files::{self, FileError};
use super::prices::PriceTable;
use super::problem::Problem;
use super::resolve_contract::Known;
use super::settings::{HistoryLimits, SNAPSHOT_VERSION, Settings};
use super::shape;
use super::source::{Source, Step};
use super::{AGENT_FILE, Storage};

/// The persona's file where none is named.
pub(crate) const PROMPT_FILE: &str = "prompt.md";
/// The scripted model's file where none is named.
pub(crate) const SCRIPT_FILE: &str = "model.script";

/// What the parts of the resolution share.
pub(crate) struct Resolver<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) env: &'a Environment<'a>,
    pub(crate) source: &'a Source,
    pub(crate) toml: &'a AgentToml,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Resolver<'_> {
    /// Something is wrong with what stands at a path of `agent.toml`.
    pub(crate) fn report(&mut self, path: &[Step<'_>], message: impl Into<String>) {
        self.problems.push(self.source.problem(path, message));
    }

    /// The same, with a way out.
    pub(crate) fn report_fix(&mut self, path: &[Step<'_>], message: impl Into<String>, fix: impl Into<String>) {
        self.problems.push(self.source.problem(path, message).fixed_by(fix));
    }

    /// Reads a file that `agent.toml` names at a path.
    pub(crate) fn file(&mut self, path: &[Step<'_>], name: &str) -> Option<String> {
        files::read(self.dir, name).map_err(|why| self.report(path, why.to_string())).ok()
    }

    /// Reads a JSON file that `agent.toml` names at a path.
    pub(crate) fn json_file(&mut self, path: &[Step<'_>], name: &str) -> Option<Value> {
        let text = self.file(path, name)?;
        let wrong = |why: serde_json::Error| {
            let place = super::problem::Place { line: why.line().max(1), column: why.column().max(1) };
            Problem::new(name, format!("no JSON: {why}")).at(Some(place))
        };
        gesta_run::json::read_strict(&text).map_err(|why| self.problems.push(wrong(why))).ok()
    }
}

/// Reads and checks everything. `None` where the file itself cannot be understood; the problems say why.
pub(crate) fn resolve(dir: &Path, env: &Environment<'_>, problems: &mut Vec<Problem>) -> Option<(Settings, Storage)> {
    let source = read_source(dir, problems)?;
    let wrong_shape = shape::check(&source, &agent_toml::schema());
    let is_sound = wrong_shape.is_empty();
    problems.extend(wrong_shape);
    // Where each value is of its kind, and some are out of bounds, everything else can still be told.
    let toml: AgentToml = serde_json::from_value(source.root.to_json())
        .map_err(|why| problems.extend(is_sound.then(|| Problem::new(AGENT_FILE, why.to_string()))))
        .ok()?;
    let mut resolver = Resolver { dir, env, source: &source, toml: &toml, problems };
    let settings = settings(&mut resolver);
    let storage = storage(&resolver);
    Some((settings, storage))
}

fn read_source(dir: &Path, problems: &mut Vec<Problem>) -> Option<Source> {
    let text = files::read(dir, AGENT_FILE).map_err(|why| {
        let problem = match why {
            FileError::Missing(_) => Problem::new(AGENT_FILE, format!("is not in {}", dir.display()))
                .fixed_by("name an agent's folder, or make one with `gesta init`"),
            why => Problem::new(AGENT_FILE, why.to_string()),
        };
        problems.push(problem);
    });
    Source::parse(AGENT_FILE, text.ok()?).map_err(|wrong| problems.extend(wrong)).ok()
}

fn settings(resolver: &mut Resolver<'_>) -> Settings {
    let (model_name, script) = resolver.model();
    let prices = price_table(resolver);
    let price = prices.of(&model_name);
    let (tools, bodies) = resolver.tools();
    let document = resolver.document();
    let (grants, grant_bodies) = resolver.grants();
    let known = Known { tools: &tools, grants: &grants, document: document.is_some() };
    let contract = resolver.contract(&known);
    let decisions = resolver.decisions(&known);
    let toml = resolver.toml;
    let external = bodies.values().any(|body| matches!(body, super::Body::External));
    let mut limits = limits(&toml.limits);
    limits.cost_usd_max = cost_limit(resolver).or(limits.cost_usd_max);
    limits.grants_max = document.as_ref().map_or(limits.grants_max, |document| document.limits.grants_max);
    limits.prices = price.map(|price| price.prices());
    let plan = PlanSpec {
        agent: agent_name(resolver),
        version: toml.version.clone().unwrap_or_default(),
        instructions: prompt(resolver),
        model: model_name,
        model_options: resolver.model_options(),
        tools_change: document.is_some(),
        document: document.as_ref().map(|document| gesta_document::base_hash(&document.base)),
        tools,
        grants,
        hook: external || !decisions.is_empty(),
        contract,
        limits,
        output_schema: output_schema(resolver),
        on_hook_error: toml.on_hook_error.unwrap_or_default(),
        on_undecided: toml.on_undecided.unwrap_or_default(),
        on_message_while_parked: toml.on_message_while_parked.unwrap_or_default(),
        hold_ttl_ms: toml.hold_ttl.map(|length| length.ms),
        timezone: timezone(resolver),
        ..PlanSpec::default()
    };
    let tokens_max = toml
        .history
        .tokens_max
        .or_else(|| price.and_then(|price| price.window).map(|window| window / 100 * HistoryLimits::WINDOW_PERCENT));
    let mut settings = Settings {
        snapshot: SNAPSHOT_VERSION,
        plan,
        script,
        providers: toml.providers.clone(),
        timeouts: resolver.timeouts(),
        retries: resolver.retries(),
        stream: toml.stream.unwrap_or(true),
        bodies,
        document,
        grants: grant_bodies,
        decisions,
        backstops: toml.backstops.clone(),
        network_allow: toml.network.allow.clone(),
        history: HistoryLimits { turns_max: toml.history.turns_max.unwrap_or(HistoryLimits::TURNS_MAX), tokens_max },
    };
    let digest = settings.digest();
    let version = &mut settings.plan.version;
    *version = if version.is_empty() { digest } else { format!("{version}+{digest}") };
    settings
}

fn agent_name(resolver: &Resolver<'_>) -> String {
    let of_folder = || {
        let whole = std::path::absolute(resolver.dir).unwrap_or_else(|_| resolver.dir.to_owned());
        whole.file_name().map(|name| name.to_string_lossy().into_owned())
    };
    resolver.toml.name.clone().or_else(of_folder).unwrap_or_else(|| "agent".to_owned())
}

fn prompt(resolver: &mut Resolver<'_>) -> String {
    let toml = resolver.toml;
    match &toml.prompt {
        Some(name) => resolver.file(&["prompt".into()], name).unwrap_or_default(),
        None => match files::read(resolver.dir, PROMPT_FILE) {
            Ok(text) => text,
            Err(FileError::Missing(_)) => String::new(),
            Err(why) => {
                resolver.problems.push(Problem::new(PROMPT_FILE, why.to_string()));
                String::new()
            }
        },
    }
}

fn timezone(resolver: &mut Resolver<'_>) -> String {
    if let Some(name) = resolver.env.get("GESTA_TIMEZONE") {
        match super::format::check("timezone", &name) {
            Ok(()) => return name,
            Err(why) => resolver.problems.push(Problem::new("GESTA_TIMEZONE", why)),
        }
    }
    resolver.toml.timezone.clone().unwrap_or_else(|| "UTC".to_owned())
}

fn cost_limit(resolver: &mut Resolver<'_>) -> Option<f64> {
    let text = resolver.env.get("GESTA_COST_USD_MAX")?;
    let limit = text.trim().parse().ok().filter(|limit: &f64| limit.is_finite() && *limit > 0.0);
    if limit.is_none() {
        let why = format!("`{text}` must be an amount of dollars above 0");
        resolver.problems.push(Problem::new("GESTA_COST_USD_MAX", why));
    }
    limit
}

fn output_schema(resolver: &mut Resolver<'_>) -> Option<Value> {
    let output = resolver.toml.output.as_ref()?;
    match (&output.schema, &output.schema_file) {
        (Some(schema), None) => Some(Value::Object(schema.clone())),
        (None, Some(name)) => resolver.json_file(&["output".into(), "schema_file".into()], name),
        _ => {
            resolver.report(&["output".into()], "must have exactly one of `schema` and `schema_file`");
            None
        }
    }
    .filter(|schema| {
        let spec = PlanSpec { output_schema: Some(schema.clone()), ..PlanSpec::default() };
        let wrong = gesta_run::plan::Plan::new(spec, gesta_run::plan::Functions::default()).err();
        if let Some(why) = &wrong {
            resolver.report(&["output".into()], why.to_string());
        }
        wrong.is_none()
    })
}

fn price_table(resolver: &mut Resolver<'_>) -> PriceTable {
    let mut table = PriceTable::built_in();
    if let Some(name) = &resolver.toml.prices
        && let Some(text) = resolver.file(&["prices".into()], name)
    {
        match PriceTable::parse(name, text) {
            Ok(own) => {
                table.models.extend(own.models);
                table.written = own.written;
            }
            Err(wrong) => resolver.problems.extend(wrong),
        }
    }
    table
}

fn limits(toml: &LimitsToml) -> Limits {
    let mut limits = Limits::default();
    let bytes = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
    limits.trips_max = toml.trips_max.unwrap_or(limits.trips_max);
    limits.calls_parallel_max = toml.calls_parallel_max.unwrap_or(limits.calls_parallel_max);
    limits.calls_max = toml.calls_max.unwrap_or(limits.calls_max);
    limits.actions_max = toml.actions_max.unwrap_or(limits.actions_max);
    limits.result_bytes_max = toml.result_bytes_max.map_or(limits.result_bytes_max, bytes);
    limits.input_bytes_max = toml.input_bytes_max.map_or(limits.input_bytes_max, bytes);
    limits.error_bytes_max = toml.error_bytes_max.map_or(limits.error_bytes_max, bytes);
    limits.tokens_max = toml.tokens_max;
    limits.cost_usd_max = toml.cost_usd_max;
    limits.seconds_max = toml.seconds_max;
    limits
}

fn storage(resolver: &Resolver<'_>) -> Storage {
    let toml = &resolver.toml.storage;
    let named = || toml.folder.as_deref().map(|folder| resolver.dir.join(folder));
    let data = resolver.env.get("GESTA_DATA").map(Into::into).or_else(named);
    Storage {
        data,
        database_url: resolver.env.get("DATABASE_URL"),
        keep_ms: toml.keep.map(|length| length.ms),
        wire: toml.wire.unwrap_or(false),
    }
}
