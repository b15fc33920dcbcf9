//! Plays a scene: feeds the margin to a run and writes down what the run does.

use std::sync::Arc;

use gesta_run::Run;
use gesta_run::event::{Event, EventKind};
use gesta_run::id::CallId;
use gesta_run::plan::Plan;
use gesta_run::time::Timestamp;
use gesta_run::want::Want;

use crate::inputs;
use crate::scene::Scene;
use crate::stage::Stage;
use crate::world::{Clock, Item, Outside, PersonAnswer, World};
use crate::{did, grants, show, world_print};

/// A way of playing. None may change what a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Line by line.
    Plainly,
    /// Each answer of the model is cut into deltas where the dice of this seed say, and folded back.
    Cut(u64),
    /// After each line the run is made anew from its log, as it is stored.
    Replayed,
    /// Each input is given twice: the second must be refused, or change nothing.
    Twice,
}

impl Way {
    /// All ways, for a test that plays each.
    pub const ALL: [Self; 4] = [Self::Plainly, Self::Cut(7), Self::Replayed, Self::Twice];
}

/// A scene that was played.
#[derive(Debug)]
pub struct Played {
    /// The whole scene: its margin, and indented what the run did.
    pub text: String,
    /// The events of each of its runs, in order.
    pub logs: Vec<Vec<Event>>,
    /// Its runs, as they stand at the end.
    pub runs: Vec<Run>,
}

/// The moment at which a scene's first line happens: 2026-01-01T00:00:00Z.
pub(crate) const START: Timestamp = Timestamp(1_767_225_600_000);
/// How long each line takes.
pub(crate) const LINE_MS: u64 = 1_000;

pub(crate) fn play(scene: &Scene, way: Way) -> Played {
    let mut out = Page::default();
    let last_plan = scene.items.iter().rposition(|item| matches!(item, Item::Plan(_)));
    let plan = scene.plan();
    let mut stage = plan.as_ref().ok().map(|plan| Stage::new(plan.clone(), way));
    for (at, item) in scene.items.iter().enumerate() {
        match item {
            Item::Document(line) => out.spoke(line),
            item => out.margin(item),
        }
        if let (Err(why), true) = (&plan, last_plan == Some(at)) {
            out.did(&world_print::said("refused:", &why.to_string()));
        }
        let Some(stage) = &mut stage else { continue };
        match item {
            Item::World(line) => play_line(stage, line, scene.carried().is_some(), &mut out),
            Item::Document(line) => {
                stage.stand_still();
                play_line(stage, line, true, &mut out);
            }
            Item::Blank | Item::Comment(_) | Item::Plan(_) => {}
        }
    }
    let (logs, runs) = stage.map_or((Vec::new(), Vec::new()), Stage::into_logs);
    Played { text: out.text, logs, runs }
}

/// One line of the world, and what the run does about it. `with_document` says that the scene has one.
pub(crate) fn play_line(stage: &mut Stage, line: &World, with_document: bool, out: &mut Page) {
    match line {
        World::Grant { id, .. } if grants::is_name(id) => {
            if !with_document {
                out.did("refused: a grant answers by itself in scenes that carry a document");
            }
            return;
        }
        World::Clock(Clock::At { ms }) => return stage.set_clock(Timestamp(*ms)),
        World::Clock(Clock::After { ms }) => return stage.set_clock(stage.now().plus_ms(*ms)),
        World::Show(what) => {
            match stage.last() {
                Some(run) => show::lines(run, stage.last_log(), *what).iter().for_each(|line| out.did(line)),
                None => out.did("refused: nothing has been said yet"),
            }
            return;
        }
        World::Outside(Outside::ToolGone(name)) => return stage.lose_tool(name),
        World::Outside(Outside::ToolBack(name)) => return stage.regain_tool(name),
        World::Outside(Outside::Pass { ms }) => {
            stage.set_clock(stage.now().plus_ms(*ms));
            stage.tick();
        }
        World::Outside(Outside::Cancelled) if stage.last().is_none() => return stage.cancel_first(),
        _ => stage.tick(),
    }
    if let World::User(line) = line {
        match stage.make_room(line) {
            Ok(Some(step)) => tell(stage, step, out),
            Ok(None) => {}
            Err(why) => return out.did(&world_print::said("refused:", &why)),
        }
        let step = stage.open(line);
        return tell(stage, step, out);
    }
    match inputs::of(stage, line) {
        Ok((track, kind)) => {
            let mut step = stage.feed(track, kind, matches!(line, World::Outside(Outside::Crashed)));
            if let World::Person { answers, .. } = line {
                step.repeated = repeated(&step, answers);
            }
            tell(stage, step, out);
        }
        Err(why) => out.did(&world_print::said("refused:", &why)),
    }
}

/// Answers that were given before and so changed nothing.
fn repeated(step: &Step, answers: &[PersonAnswer]) -> Vec<CallId> {
    let is_fresh = |call: &CallId| {
        let mut answered = step.events.iter().filter_map(|event| match &event.what {
            EventKind::HoldAnswered { call, .. } => Some(call),
            _ => None,
        });
        answered.any(|it| it == call)
    };
    let calls = answers.iter().map(|answer| CallId::new(answer.call.as_str()));
    if step.refused.is_some() { Vec::new() } else { calls.filter(|call| !is_fresh(call)).collect() }
}

/// What one input led to.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// The run it went to.
    pub(crate) track: usize,
    /// What happened.
    pub(crate) events: Vec<Event>,
    /// What is wanted and was not wanted before.
    pub(crate) wants: Vec<Want>,
    /// Calls and actions whose outcome a crash hid.
    pub(crate) lost: Vec<CallId>,
    /// Holds that had been answered like this before.
    pub(crate) repeated: Vec<CallId>,
    /// Why it was refused.
    pub(crate) refused: Option<String>,
    /// What must not have happened: the way of playing made a difference.
    pub(crate) faults: Vec<String>,
}

fn tell(stage: &mut Stage, step: Step, out: &mut Page) {
    let plan: Arc<Plan> = stage.plan().clone();
    step.faults.iter().for_each(|fault| out.did(&world_print::said("FAULT:", fault)));
    if let Some(why) = &step.refused {
        out.did(&world_print::said("refused:", why));
    }
    let Some(run) = stage.run(step.track) else { return };
    did::lost(&step.lost, run).iter().for_each(|line| out.did(line));
    did::repeated(&step.repeated, run).iter().for_each(|line| out.did(line));
    for event in &step.events {
        did::event(event, &plan).iter().for_each(|line| out.did(line));
        did::discarded(event, run).iter().for_each(|line| out.did(line));
    }
    for want in &step.wants {
        did::want(want, run, &plan).iter().for_each(|line| out.did(line));
    }
    stage.status_lines(step.track).iter().for_each(|line| out.did(line));
    if out.listens {
        out.steps.push(step);
    }
}

/// The text of a scene as it grows.
#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
    /// What the document offered last.
    offered: String,
    /// Whether steps are kept.
    listens: bool,
    /// What the lines led to, where somebody listens.
    pub(crate) steps: Vec<Step>,
}

impl Page {
    /// One of which the steps are wanted.
    pub(crate) fn listening() -> Self {
        Self { listens: true, ..Self::default() }
    }

    /// A line that the document said; the same offer is not listed again.
    fn spoke(&mut self, line: &World) {
        let text = world_print::document(line);
        if !matches!(line, World::Offer(_)) {
            self.did(&text);
        } else if text == self.offered {
            self.did("document: offers the same");
        } else {
            self.did(&text);
            self.offered = text;
        }
    }

    fn margin(&mut self, item: &Item) {
        self.text.push_str(&world_print::item(item));
        self.text.push('\n');
    }

    /// A line that the run did; a text over several lines stands deeper already.
    fn did(&mut self, line: &str) {
        self.text.push_str("    ");
        self.text.push_str(line);
        self.text.push('\n');
    }
}
