//! A scene: a run written as a conversation. Read from text, printed canonically.

use std::collections::BTreeSet;
use std::sync::Arc;

use gesta_run::plan::{Plan, PlanError, PlanSpec};
use gesta_run::tool::ToolSpec;

use crate::document::{self, Carried, Documents};
use crate::error::{ReadError, ReadReason};
use crate::functions;
use crate::plan_read::{self, PlanClauses};
use crate::play::{Played, Way};
use crate::text::{Cursor, Line, margin_lines};
use crate::world::{Item, World};
use crate::{plan_of, play, world_print, world_read};

/// How deep the text under a line stands. What a run did stands at half of that.
pub(crate) const TEXT_INDENT: usize = 8;

/// A scene that has been read. Playing it needs nothing else.
#[derive(Debug, Clone)]
pub struct Scene {
    pub(crate) items: Vec<Item>,
    pub(crate) clauses: PlanClauses,
}

impl Scene {
    /// Reads a scene. Its indented lines are not looked at: they are what playing gives.
    ///
    /// # Errors
    /// A line that cannot be read, with its number and the nearest known word.
    pub fn read(source: &str) -> Result<Self, ReadError> {
        let mut scene = Self { items: Vec::new(), clauses: PlanClauses::default() };
        scene.take_all(source)?;
        scene.complete_plan();
        Ok(scene)
    }

    /// Reads a scene of an agent whose plan is known. Its clauses change that plan, and no tool exists but the plan's.
    ///
    /// A scene that brings a whole plan (`plan: no other tools`), as one that was made from a stored run does, is played
    /// under the agent's plan all the same, and both must say the same of everything that a run depends on. Names, texts
    /// for the model and prices may differ.
    ///
    /// # Errors
    /// As [`Scene::read`], and where the plans differ.
    pub fn read_for(source: &str, plan: &PlanSpec) -> Result<Self, ReadError> {
        let mut scene = Self::read(source)?;
        if scene.clauses.no_other_tools {
            plan_of::same(source, scene.plan_spec(), plan)?;
            let own = std::mem::replace(&mut scene.clauses, PlanClauses::of(plan));
            scene.clauses.functions = own.functions;
            scene.clauses.document = own.document;
        } else {
            scene = Self { items: Vec::new(), clauses: PlanClauses::of(plan) };
            scene.take_all(source)?;
        }
        scene.complete_plan();
        Ok(scene)
    }

    fn take_all(&mut self, source: &str) -> Result<(), ReadError> {
        let lines = margin_lines(source, TEXT_INDENT / 2 + 1);
        let mut at = 0;
        while at < lines.len() {
            let taken = 1 + lines[at + 1..].iter().take_while(|line| line.head.starts_with("and:")).count();
            self.take(&lines[at..at + taken])?;
            at += taken;
        }
        while matches!(self.items.last(), Some(Item::Blank)) {
            self.items.pop();
        }
        self.clauses = std::mem::take(&mut self.clauses).close();
        Ok(())
    }

    /// Takes a line and those that continue it.
    fn take(&mut self, lines: &[Line<'_>]) -> Result<(), ReadError> {
        let first = &lines[0];
        if first.head.is_empty() {
            if !matches!(self.items.last(), None | Some(Item::Blank)) {
                self.items.push(Item::Blank);
            }
            return no_more(lines);
        }
        if first.head.starts_with('#') {
            self.items.push(Item::Comment(first.head.to_owned()));
            return no_more(lines);
        }
        let Some((word, cursor)) = Cursor::keyword(first) else {
            return Err(ReadError::unknown(first.number, "line of a scene", first.head, world_read::WORDS));
        };
        if word == "plan" {
            if self.items.iter().any(|item| matches!(item, Item::World(_))) {
                return Err(ReadError::new(
                    first.number,
                    ReadReason::Misplaced("the plan stands ahead of the first line that the world says"),
                ));
            }
            self.items.push(Item::Plan(plan_text(first, cursor.rest)));
            self.clauses.clause(cursor)?;
            return no_more(lines);
        }
        if !world_read::may_continue(word) {
            no_more(lines)?;
        }
        let pieces = lines.iter().filter_map(Cursor::keyword).map(|(_, piece)| piece).collect();
        self.items.push(Item::World(world_read::read(word, pieces)?));
        Ok(())
    }

    /// Adds what a scene leaves out: the hook where a line of a policy stands, and the tools that are only named.
    fn complete_plan(&mut self) {
        let worlds = || self.items.iter().filter_map(Item::world);
        let has_policy = worlds().any(|line| matches!(line, World::Policy { .. }));
        let mut named = plan_read::named_tools(&self.clauses.spec);
        // A tool that is offered on the way is not there before.
        let offered: BTreeSet<&str> = worlds()
            .filter_map(|line| match line {
                World::Offer(added) => Some(added.iter().map(|tool| tool.name.as_str())),
                _ => None,
            })
            .flatten()
            .collect();
        for line in worlds() {
            if let World::Model(answer) = line
                && let Ok(reply) = &answer.outcome
            {
                named.extend(reply.calls().map(|call| call.name.clone()));
            }
        }
        let spec = &mut self.clauses.spec;
        spec.hook = self.clauses.hook.unwrap_or(has_policy);
        if self.clauses.document.is_some() {
            spec.tools_change = true;
        }
        // Which tools a document has is its own word.
        if self.clauses.no_other_tools || self.clauses.document.is_some() {
            return;
        }
        let mut known: BTreeSet<String> = spec.tools.iter().map(|tool| tool.name.clone()).collect();
        for name in named {
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let fits = (1..=64).contains(&name.len()) && name.chars().all(legal);
            if fits && !offered.contains(name.as_str()) && known.insert(name.clone()) {
                spec.tools.push(ToolSpec::new(name, "", plan_read::permissive()));
            }
        }
    }

    /// Whether nothing stands in it that could be played.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.iter().all(|item| matches!(item, Item::Blank | Item::Comment(_)))
    }

    /// The plan that the scene is played under, with the tools that are only named.
    pub fn plan_spec(&self) -> &PlanSpec {
        &self.clauses.spec
    }

    /// What the scene says of a document, where it carries one. Such a scene is played with an engine: see
    /// [`crate::check_with`].
    pub fn carried(&self) -> Option<&Carried> {
        self.clauses.document.as_ref()
    }

    /// The scene with all that its document says in it, found out with the engine. Played, it needs none any more.
    ///
    /// # Errors
    /// The document does not open or cannot describe its tools, with the line.
    pub fn rehearsed(&self, documents: &mut dyn Documents) -> Result<Self, ReadError> {
        document::rehearse(self, documents)
    }

    /// The plan, checked and compiled.
    ///
    /// # Errors
    /// The plan has an author's mistake; playing the scene prints it as `refused: …`.
    pub fn plan(&self) -> Result<Arc<Plan>, PlanError> {
        let functions = functions::compile(&self.clauses.functions)
            .map_err(|reason| PlanError::Pattern { place: "intent function".to_owned(), reason })?;
        Plan::new(self.clauses.spec.clone(), functions)
    }

    /// Plays the scene: its margin, canonically, and under each line what the run did.
    pub fn play(&self) -> Played {
        self.play_as(Way::Plainly)
    }

    /// Plays the scene in one of the ways that must make no difference.
    pub fn play_as(&self, way: Way) -> Played {
        play::play(self, way)
    }

    /// The same scene without the lines of its plan but for its document, to be played for an agent.
    #[must_use]
    pub fn without_plan(mut self) -> Self {
        let of_document = |clause: &str| plan_read::OF_DOCUMENT.iter().any(|word| clause.starts_with(word));
        self.items.retain(|item| match item {
            Item::Plan(line) => line.strip_prefix("plan: ").is_some_and(of_document),
            _ => true,
        });
        let begins = self.items.iter().position(|item| !matches!(item, Item::Blank)).unwrap_or_default();
        self.items.drain(..begins);
        Self { clauses: PlanClauses::default(), ..self }
    }

    /// The margin alone, canonically.
    pub fn print(&self) -> String {
        let mut out = String::new();
        for item in self.items.iter().filter(|item| !matches!(item, Item::Document(_))) {
            out.push_str(&world_print::item(item));
            out.push('\n');
        }
        out
    }
}

impl Item {
    fn world(&self) -> Option<&World> {
        match self {
            Self::World(world) => Some(world),
            Self::Blank | Self::Comment(_) | Self::Plan(_) | Self::Document(_) => None,
        }
    }
}

fn no_more(lines: &[Line<'_>]) -> Result<(), ReadError> {
    match lines.get(1) {
        Some(more) => {
            let known = "`and:` continues `user:`, `model:`, `offer:`, `backstop:`, `person:` or `world:`";
            Err(ReadError::new(more.number, ReadReason::Misplaced(known)))
        }
        None => Ok(()),
    }
}

fn plan_text(line: &Line<'_>, rest: &str) -> String {
    match &line.block {
        Some(block) => world_print::under(&format!("plan: {rest}"), block),
        None => format!("plan: {rest}"),
    }
}
