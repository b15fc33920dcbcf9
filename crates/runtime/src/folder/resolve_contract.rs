//! The contract and the decisions of a folder, with what the schema cannot check.

use std::collections::BTreeSet;

use gesta_run::contract::{ActWhenAsked, BackstopSpec, ContractSpec, OnToolRefusal, RefusalPreset};
use gesta_run::grant::GrantSpec;
use gesta_run::pattern::PatternSpec;
use gesta_run::tool::{TIME_LIMIT_MS, ToolSpec};

use super::agent_toml::{DecisionToml, RefusalTable, RefusalToml, RefusalWord};
use super::nearest::nearest;
use super::resolve::Resolver;
use super::source::Step;
use crate::rules::backstops::BackstopRule;
use crate::rules::decisions::Decisions;
use crate::rules::glob;

/// What a rule may name.
pub(crate) struct Known<'a> {
    pub(crate) tools: &'a [ToolSpec],
    pub(crate) grants: &'a [GrantSpec],
    /// There is a document, whose tools nobody knows before it is opened, and which may get others.
    pub(crate) document: bool,
}

impl Resolver<'_> {
    /// The options of the contract.
    pub(crate) fn contract(&mut self, known: &Known<'_>) -> ContractSpec {
        ContractSpec {
            act_when_asked: self.act_when_asked(known),
            on_tool_refusal: self.on_tool_refusal(),
            backstops: self.backstops(),
        }
    }

    fn act_when_asked(&mut self, known: &Known<'_>) -> Option<ActWhenAsked> {
        let written = self.toml.act_when_asked.as_ref()?;
        self.patterns(&["act_when_asked".into(), "intents".into()], &written.intents);
        let path = ["act_when_asked".into(), "required_tools".into()];
        if written.required_tools.is_empty() {
            self.report(&path, "names no tool; then nothing would count as acting");
        }
        for (at, name) in written.required_tools.iter().enumerate() {
            self.tool_exists(&[path[0], path[1], at.into()], name, known);
        }
        Some(ActWhenAsked {
            intents: written.intents.clone(),
            required_tools: written.required_tools.clone(),
            require: written.require,
            hint: written.hint.clone(),
            max_reprompts: written.max_reprompts.unwrap_or(1),
        })
    }

    fn on_tool_refusal(&mut self) -> Option<OnToolRefusal> {
        let of_table = |table: &RefusalTable| OnToolRefusal {
            retries: table.retries.unwrap_or(1),
            hint: table.hint.clone(),
            preset: table.preset,
            patterns: table.patterns.clone(),
        };
        let found = match self.toml.on_tool_refusal.as_ref()? {
            RefusalToml::Word(RefusalWord::Off) => return None,
            RefusalToml::Word(RefusalWord::RetryOnceWithHint) => OnToolRefusal::default(),
            RefusalToml::Word(RefusalWord::Errors) => {
                OnToolRefusal { preset: Some(RefusalPreset::Errors), ..OnToolRefusal::default() }
            }
            RefusalToml::Table(table) => of_table(table),
        };
        let path = ["on_tool_refusal".into(), "patterns".into()];
        self.patterns(&path, &found.patterns);
        let wanted = found.preset == Some(RefusalPreset::Patterns);
        if wanted && found.patterns.is_empty() {
            self.report(&["on_tool_refusal".into(), "preset".into()], "the preset `patterns` needs `patterns`");
        }
        if !wanted && !found.patterns.is_empty() {
            self.report(&path, "needs `preset = \"patterns\"` beside it");
        }
        Some(found)
    }

    fn backstops(&mut self) -> Vec<BackstopSpec> {
        let toml = self.toml;
        let mut names = BTreeSet::new();
        let mut specs = Vec::new();
        for (at, written) in toml.backstops.iter().enumerate() {
            let key = |key| ["backstops".into(), Step::Index(at), Step::Key(key)];
            if written.name.trim().is_empty() {
                self.report(&key("name"), "the name is blank");
            } else if !names.insert(&written.name) {
                self.report(&key("name"), format!("backstop `{}` is there twice", written.name));
            }
            if let Err(why) = BackstopRule::compile(written) {
                self.report(&key(why.key), why.to_string());
            }
            self.templates(&key("headers"), &written.headers);
            if let Some(url) = &written.url {
                self.reachable(&key("url"), url);
            }
            let time_limit_ms = written.time_limit.map_or(TIME_LIMIT_MS, |it| it.ms);
            specs.push(BackstopSpec { name: written.name.clone(), phase: written.phase, time_limit_ms });
        }
        specs
    }

    /// The decision rules, checked.
    pub(crate) fn decisions(&mut self, known: &Known<'_>) -> Vec<DecisionToml> {
        let toml = self.toml;
        if let Err(errors) = Decisions::compile(&toml.decisions, []) {
            for error in errors {
                let path = ["decisions".into(), error.rule.into(), error.key.into()];
                self.report(&path, error.reason.to_string());
            }
        }
        for (at, rule) in toml.decisions.iter().enumerate() {
            if !glob::is_glob(&rule.tool) {
                self.tool_exists(&["decisions".into(), at.into(), "tool".into()], &rule.tool, known);
            }
        }
        toml.decisions.clone()
    }

    fn tool_exists(&mut self, path: &[Step<'_>], name: &str, known: &Known<'_>) {
        // A tool's name has no dot, a grant's always has one.
        let of_grant = name.contains('.');
        let names: Vec<String> = match of_grant {
            true => known.grants.iter().map(GrantSpec::full_name).collect(),
            false => known.tools.iter().map(|tool| tool.name.clone()).collect(),
        };
        if names.iter().any(|known| known == name) || (known.document && !of_grant) {
            return;
        }
        let (what, section) = if of_grant { ("grant", "[grants]") } else { ("tool", "[[tools]]") };
        let fix = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => format!("the folder has no `{section}`"),
            None => format!("there are: {}", names.join(", ")),
        };
        self.report_fix(path, format!("there is no {what} `{name}`"), fix);
    }

    fn patterns(&mut self, path: &[Step<'_>; 2], patterns: &[PatternSpec]) {
        for (at, pattern) in patterns.iter().enumerate() {
            if let Err(why) = pattern.compile() {
                let why = why.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ");
                self.report(&[path[0], path[1], at.into()], why);
            }
        }
    }
}
