//! A scene that carries a document is rehearsed with an engine, here a toy, and then played without it.

use gesta_run::json::Object;
use gesta_run::{Answer, PlanSpec, ToolSpec};
use gesta_scene::{Carried, Document, Documents, Fault, Scene, SceneError, Turn, Way, check, check_with};
use serde_json::{Value, json};

/// Documents whose one tool counts, after it has asked `App.may`.
#[derive(Default)]
struct Counting {
    opened: usize,
}

#[derive(Default)]
struct Counter {
    kept: u64,
    now: u64,
}

impl Documents for Counting {
    fn open(&mut self, carried: &Carried, plan: &PlanSpec) -> Result<Box<dyn Document>, Fault> {
        let base = carried.base.as_deref().unwrap_or_default();
        if let Some(at) = base.lines().position(|line| line.contains("wrong")) {
            return Err(Fault { message: "this is wrong".to_owned(), line: Some(at + 1) });
        }
        assert!(plan.tools_change && plan.grants.len() == 1, "a document's tools are asked for on each trip");
        self.opened += 1;
        Ok(Box::new(Counter::default()))
    }
}

impl Document for Counter {
    fn begin(&mut self) {
        self.now = self.kept;
    }

    fn keep(&mut self) {
        self.kept = self.now;
    }

    fn tools(&mut self) -> Result<Vec<ToolSpec>, Fault> {
        let schema = json!({"type": "object", "properties": {"by": {"type": "integer"}}, "required": ["by"]});
        Ok(vec![ToolSpec::new("count", "Counts", schema)])
    }

    fn call(&mut self, _tool: &str, arguments: &Object, _time_limit_ms: u64) -> Turn {
        self.now += arguments["by"].as_u64().unwrap_or(0);
        Turn::Asks { grant: "App.may".to_owned(), arguments: Object::new() }
    }

    fn granted(&mut self, answer: Result<Value, String>) -> Turn {
        Turn::Ends(answer.map_or_else(Answer::Error, |_| Answer::Ok(self.now.into())))
    }

    fn give_up(&mut self) {
        self.now = self.kept;
    }
}

const HEAD: &str = "plan: grant App.may()\nplan: document: |\n        count: 0\n        more: 1\n";
const TURN: &str = "user: Count\nmodel: calls c1 count {\"by\":2}\nmodel: Two.\nclient: delivered\n";

fn written(source: &str) -> String {
    let rehearsed = Scene::read(source).and_then(|scene| scene.rehearsed(&mut Counting::default()));
    rehearsed.expect("it can be rehearsed").play().text
}

#[test]
fn what_the_document_said_is_printed_below_the_margin_and_holds_in_every_way() {
    let scene = written(&format!("{HEAD}grant: App.may ok\n{TURN}"));
    let said: Vec<&str> = scene.lines().filter(|line| line.contains("document:") || line.contains("grant:")).collect();
    let wanted = [
        "plan: document: |",
        "grant: App.may ok",
        "    document: offers count(by)",
        "    document: c1 asks App.may",
        "    grant: c1/0 ok",
        "    document: c1 ok 2",
        "    document: offers the same",
    ];
    assert_eq!(said, wanted, "{scene}");
    assert_eq!(check_with(&scene, None, &mut Counting::default()), Ok(()), "{scene}");
    let rehearsed = Scene::read(&scene).unwrap().rehearsed(&mut Counting::default()).unwrap();
    for way in Way::ALL {
        assert_eq!(rehearsed.play_as(way).text, scene, "{way:?}");
    }
    assert_eq!(rehearsed.print(), Scene::read(&scene).unwrap().print(), "the margin is the author's");
    assert_eq!(rehearsed.rehearsed(&mut Counting::default()).unwrap().play().text, scene, "again it is the same");
}

#[test]
fn a_grant_is_answered_at_the_margin_where_no_answer_stands_for_it() {
    let scene = written(&format!(
        "{HEAD}user: Count\nmodel: calls c1 count {{\"by\":2}}\ngrant: c1/0 error not today\nmodel: No.\nclient: delivered\n"
    ));
    assert!(scene.contains("    document: c1 error not today\n    closes c1 as failed: not today\n"), "{scene}");
    // One that nobody answers leaves the call open.
    let open = written(&format!("{HEAD}user: Count\nmodel: calls c1 count {{\"by\":2}}\n"));
    assert!(open.ends_with("    runs grant c1/0 App.may {}\n"), "{open}");
}

#[test]
fn what_a_completed_turn_made_is_kept_for_its_conversation_alone() {
    let turn = |conversation: &str, call: &str| {
        format!(
            "user: Count\nand: conversation: {conversation}\nmodel: calls {call} count {{\"by\":2}}\nmodel: So.\nclient: delivered\n"
        )
    };
    let cancelled = "user: Count\nand: conversation: a\nmodel: calls c9 count {\"by\":2}\nworld: cancelled\n";
    let source =
        [HEAD, "grant: App.may ok\n", &turn("a", "c1"), cancelled, &turn("a", "c2"), &turn("b", "c3")].concat();
    let scene = written(&source);
    for (call, counted) in [("c1", 2), ("c9", 4), ("c2", 4), ("c3", 2)] {
        assert!(scene.contains(&format!("    document: {call} ok {counted}\n")), "{call}: {scene}");
    }
}

#[test]
fn a_mistake_in_the_source_is_told_with_its_line_in_the_scene() {
    let source = format!("# A title\n\n{}{TURN}", HEAD.replace("more: 1", "wrong: 1"));
    let Err(SceneError::Read(why)) = check_with(&source, None, &mut Counting::default()) else { panic!("{source}") };
    assert_eq!(why.to_string(), "line 6: the document: this is wrong");
    let Err(SceneError::Read(why)) = check(&source) else { panic!("{source}") };
    assert!(why.line == 4 && why.to_string().contains("gesta scenes"), "{why}");
}

#[test]
fn a_scene_without_a_document_opens_none() {
    let source = "grant: App.may ok\nuser: Hello\n    asks the model\nmodel: Hi.\n    says: Hi.\nclient: delivered\n    ends: completed\n";
    let mut counting = Counting::default();
    let Err(SceneError::Differs(difference)) = check_with(source, None, &mut counting) else { panic!("{source}") };
    assert!(difference.played.contains("refused: a grant answers by itself in scenes that carry"), "{difference}");
    assert_eq!(counting.opened, 0);
}
