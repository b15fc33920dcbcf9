//! Scenes that carry a document. What it does is not written down but found out: the scene is rehearsed with the engine,
//! which stands behind a trait, and what the document said is played with it ever after.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};

use gesta_run::call::Answer;
use gesta_run::event::EventKind;
use gesta_run::id::{CallId, ConversationId};
use gesta_run::json::Object;
use gesta_run::outcome::{Outcome, Status};
use gesta_run::plan::PlanSpec;
use gesta_run::tool::ToolSpec;
use gesta_run::want::{Effect, Want};
use serde_json::Value;

use crate::error::{ReadError, ReadReason};
use crate::grants;
use crate::play::{Page, Step, Way, play_line};
use crate::scene::Scene;
use crate::stage::Stage;
use crate::world::{Item, Outside, World};

/// What a scene says of its document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// Its source; none for the document of the agent that the scene is played for.
    pub base: Option<String>,
    /// Whether tools can be added, where the scene says so.
    pub added_tools: Option<bool>,
    /// The line that says it, counted from 1.
    pub(crate) line: usize,
}

/// Opens documents for scenes.
pub trait Documents {
    /// Opens a document for one conversation, lent the plan's grants.
    ///
    /// # Errors
    /// It does not open: why, and in which line and column of its source.
    fn open(&mut self, carried: &Carried, plan: &PlanSpec) -> Result<Box<dyn Document>, Fault>;
}

/// Why a document cannot be played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub message: String,
    /// Where in its source, in lines from 1; none where the whole is meant.
    pub line: Option<usize>,
}

/// A conversation's document while a scene is rehearsed.
pub trait Document {
    /// A turn begins: it works on a copy of what was kept last.
    fn begin(&mut self);

    /// The turn has completed: what it made of the document is kept.
    fn keep(&mut self);

    /// The tools as they are now.
    ///
    /// # Errors
    /// They cannot be described.
    fn tools(&mut self) -> Result<Vec<ToolSpec>, Fault>;

    /// Begins a call; the one before it has ended, or is given up.
    fn call(&mut self, tool: &str, arguments: &Object, time_limit_ms: u64) -> Turn;

    /// Answers the grant that the call asked for last.
    fn granted(&mut self, answer: Result<Value, String>) -> Turn;

    /// Nobody waits for the call any more: it has not happened to the document.
    fn give_up(&mut self);
}

/// What a document does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// It calls a grant, and waits.
    Asks {
        /// Its full name.
        grant: String,
        /// The arguments, by name.
        arguments: Object,
    },
    /// The call has come to this.
    Ends(Answer),
}

/// Plays a scene with its document, and gives the scene with all that the document said in it.
pub(crate) fn rehearse(scene: &Scene, documents: &mut dyn Documents) -> Result<Scene, ReadError> {
    let (Some(carried), Ok(plan)) = (scene.carried(), scene.plan()) else { return Ok(scene.clone()) };
    let mut stage = Stage::new(plan, Way::Plainly);
    let mut cast = Cast {
        carried,
        documents,
        plan: scene.plan_spec(),
        open: BTreeMap::new(),
        running: BTreeMap::new(),
        says: VecDeque::new(),
        standing: BTreeMap::new(),
    };
    let mut items = Vec::new();
    for item in scene.items.iter().filter(|item| !matches!(item, Item::Document(_))) {
        items.push(item.clone());
        let Item::World(line) = item else { continue };
        cast.follow(&mut stage, line)?;
        while let Some(said) = cast.says.pop_front() {
            items.push(Item::Document(said.clone()));
            stage.stand_still();
            cast.follow(&mut stage, &said)?;
        }
    }
    Ok(Scene { items, ..scene.clone() })
}

type Conversation = Option<ConversationId>;

/// The documents of a scene, and what they have yet to say.
struct Cast<'a> {
    carried: &'a Carried,
    documents: &'a mut dyn Documents,
    plan: &'a PlanSpec,
    open: BTreeMap<Conversation, Box<dyn Document>>,
    /// The call that each document is in the middle of.
    running: BTreeMap<Conversation, CallId>,
    says: VecDeque<World>,
    /// Grants that answer by themselves.
    standing: BTreeMap<String, Answer>,
}

impl Cast<'_> {
    /// Plays a line, and has the documents do what the runs then want of them.
    fn follow(&mut self, stage: &mut Stage, line: &World) -> Result<(), ReadError> {
        if let World::Grant { id, answer } = line
            && grants::is_name(id)
        {
            self.standing.insert(id.clone(), answer.clone());
            return Ok(());
        }
        if matches!(line, World::Outside(Outside::Crashed)) {
            // Whoever ran it is gone with its process.
            self.running.clear();
            self.open.values_mut().for_each(|document| document.give_up());
        }
        let mut page = Page::listening();
        play_line(stage, line, true, &mut page);
        for step in page.steps {
            self.see(stage, line, &step)?;
        }
        Ok(())
    }

    fn see(&mut self, stage: &Stage, line: &World, step: &Step) -> Result<(), ReadError> {
        let Some(run) = stage.run(step.track) else { return Ok(()) };
        let whose = run.opening().and_then(|opening| opening.conversation.clone());
        if let (Some(why), World::Document { call, .. }) = (&step.refused, line) {
            self.hand_back(&whose, &call.as_str().into(), Err(why.clone()));
        }
        for event in &step.events {
            match &event.what {
                EventKind::Opened { .. } => self.document(&whose)?.begin(),
                EventKind::GrantAnswered { call, end, .. } => {
                    let text = || end.result.as_str().map_or_else(|| end.result.to_string(), str::to_owned);
                    let answer = if end.is_error { Err(text()) } else { Ok(end.result.clone()) };
                    self.hand_back(&whose, call, answer);
                }
                EventKind::Answered { call, .. } if self.running.get(&whose) == Some(call) => {
                    self.running.remove(&whose);
                    self.document(&whose)?.give_up();
                }
                _ => {}
            }
        }
        for want in &step.wants {
            self.want(stage, step.track, &whose, want)?;
        }
        if run.status() == Status::Ended && run.outcome() == Some(&Outcome::Completed) {
            self.document(&whose)?.keep();
        }
        Ok(())
    }

    fn want(&mut self, stage: &Stage, track: usize, whose: &Conversation, want: &Want) -> Result<(), ReadError> {
        let Some(run) = stage.run(track) else { return Ok(()) };
        match &want.effect {
            Effect::Offer => {
                let tools = self.document(whose)?.tools();
                let tools = tools.map_err(|fault| self.carried.fault(fault))?;
                self.says.push_back(World::Offer(
                    tools.into_iter().map(|tool| ToolSpec { document: true, ..tool }).collect(),
                ));
            }
            Effect::RunTool(id) => {
                let Some(call) = run.call(id) else { return Ok(()) };
                let Some(tool) = call.tool.as_ref().filter(|tool| tool.spec.document) else { return Ok(()) };
                let arguments = call.arguments.clone();
                let turn = self.document(whose)?.call(&call.name, &arguments, tool.spec.time_limit_ms);
                self.running.insert(whose.clone(), id.clone());
                self.say(whose, id, turn);
            }
            Effect::RunGrant(call, n) => {
                let answer = run.grant(call, *n).and_then(|grant| self.standing.get(&grant.name));
                if let Some(answer) = answer {
                    self.says.push_back(World::Grant { id: grants::id(call, *n), answer: answer.clone() });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn hand_back(&mut self, whose: &Conversation, call: &CallId, answer: Result<Value, String>) {
        if self.running.get(whose) != Some(call) {
            return;
        }
        if let Some(document) = self.open.get_mut(whose) {
            let turn = document.granted(answer);
            self.say(whose, call, turn);
        }
    }

    fn say(&mut self, whose: &Conversation, call: &CallId, turn: Turn) {
        let call_id = call.to_string();
        self.says.push_back(match turn {
            Turn::Asks { grant, arguments } => World::Document { call: call_id, grant, arguments },
            Turn::Ends(answer) => {
                self.running.remove(whose);
                World::Tool { call: call_id, answer }
            }
        });
    }

    fn document(&mut self, whose: &Conversation) -> Result<&mut Box<dyn Document>, ReadError> {
        let carried = self.carried;
        Ok(match self.open.entry(whose.clone()) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => {
                place.insert(self.documents.open(carried, self.plan).map_err(|fault| carried.fault(fault))?)
            }
        })
    }
}

impl Carried {
    /// A fault at the line of the scene in which its source stands.
    fn fault(&self, fault: Fault) -> ReadError {
        let inside = fault.line.filter(|_| self.base.is_some()).unwrap_or(0);
        ReadError::new(self.line + inside, ReadReason::Document(fault.message))
    }
}

/// The tools of an offer by name, with their parameters: what a reader wants to know of a document's.
pub(crate) fn offered(tools: &[ToolSpec]) -> String {
    if tools.is_empty() {
        return "document: offers nothing".to_owned();
    }
    let tools: Vec<String> = tools.iter().map(signature).collect();
    format!("document: offers {}", tools.join(", "))
}

/// `refund(order_id, amount?)`, where `?` says that it may be left out.
fn signature(tool: &ToolSpec) -> String {
    let required = tool.parameters.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|it| it.as_str() == Some(name)));
    let all = tool.parameters.get("properties").and_then(Value::as_object);
    let params =
        all.into_iter().flatten().map(|(name, _)| format!("{name}{}", if is_required(name) { "" } else { "?" }));
    format!("{}({})", tool.name, params.collect::<Vec<_>>().join(", "))
}
