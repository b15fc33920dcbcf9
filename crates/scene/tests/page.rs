//! The page of the vocabulary and the reader agree.

use gesta_scene::vocabulary::{self, ANSWERS, PLAN, SCRIPT, SHOWN, WORLD};
use gesta_scene::{Scene, Script};

const BEGIN: &str =
    "<!-- the tables below are printed by the tests of gesta-scene: UPDATE_EXPECT=1 cargo test -p gesta-scene -->\n\n";

#[test]
fn the_page_lists_every_line_of_the_vocabulary() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenes.md");
    let page = std::fs::read_to_string(path).expect("docs/scenes.md is there");
    let (head, _) = page.split_once(BEGIN).expect("the page says where its tables begin");
    let wanted = format!("{head}{BEGIN}{}", vocabulary::page().trim_end()) + "\n";
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|it| it == "1") {
        std::fs::write(path, &wanted).expect("docs/scenes.md can be written");
    } else {
        assert!(page == wanted, "docs/scenes.md is not up to date: run UPDATE_EXPECT=1 cargo test -p gesta-scene");
    }
}

#[test]
fn every_example_can_be_read_and_printed() {
    for group in [WORLD, ANSWERS, PLAN, SHOWN] {
        for entry in group.entries {
            let prefix = if entry.example.starts_with("and:") { "model: First.\n" } else { "" };
            let source = format!("{prefix}{}\n", entry.example);
            let scene = Scene::read(&source).unwrap_or_else(|why| panic!("{}: {why}", entry.form));
            let printed = scene.print();
            let again = Scene::read(&printed).unwrap_or_else(|why| panic!("{printed}: {why}"));
            assert_eq!(again.print(), printed, "{}", entry.form);
        }
    }
    for entry in SCRIPT.entries {
        let source = format!("{}\nmodel: Hello\n", entry.example);
        let script = Script::parse(&source).unwrap_or_else(|why| panic!("{}: {why}", entry.form));
        assert_eq!(Script::parse(&script.print()).map(|it| it.print()), Ok(script.print()));
    }
}

#[test]
fn every_word_the_reader_knows_is_in_the_vocabulary() {
    let forms: Vec<&str> = vocabulary::ALL.iter().flat_map(|group| group.entries).map(|entry| entry.form).collect();
    for word in gesta_scene::known_words() {
        let found = forms.iter().any(|form| form.strip_prefix("plan: ").unwrap_or(form).starts_with(word));
        assert!(found, "`{word}` is not in the vocabulary");
    }
}

#[test]
fn an_error_names_the_line_and_the_nearest_word() {
    let cases = [
        ("user: hi\n    asks the model\nmodle: hi", "line 3: `modle:` is no line of a scene; did you mean `model:`?"),
        ("user: hi\nmodel", "line 2: `model` is no line of a scene; did you mean `model:`?"),
        ("policy: c1 rnu", "line 1: `rnu` is no decision; did you mean `run`?"),
        ("plan: trip at most 3", "line 1: `trip at most 3` is no clause of a plan; did you mean `trips at most`?"),
        ("user: hi\nplan: live", "line 2: the plan stands ahead of the first line that the world says"),
        ("tool: c1 ok {", "line 1: cannot read the JSON: EOF while parsing an object at line 1 column 1"),
        (
            "client: delivered\nand: x",
            "line 2: `and:` continues `user:`, `model:`, `offer:`, `backstop:`, `person:` or `world:`",
        ),
        ("tool: c1 ok 1 2", "line 1: expected the end of the line, found `2`"),
        (
            "plan: tool a {\"b\":\"text\"}",
            "line 1: `text` is no type of an argument; it is one of `string`, `integer`, `number`, `boolean`, `object`, `array`, `null`, `any`",
        ),
        ("world: 3 weeks pass", "line 1: `weeks pass` is no unit of time; it is one of `ms`, `s`, `min`, `h`, `d`"),
    ];
    for (source, error) in cases {
        assert_eq!(Scene::read(source).expect_err(source).to_string(), error);
    }
}

#[test]
fn a_scene_of_an_agent_is_played_under_its_plan() {
    let own =
        Scene::read("plan: tool find {\"q\":\"string\"}, reads only\nplan: hook on\n").expect("it is well formed");
    let source = "user: Find it\n    asks the model\nmodel: calls c1 find {\"q\":1}\n    closes c1 as invalid_arguments: \
                  The arguments do not fit the tool's schema: /q: 1 is not of type \"string\"\n    asks the model\n";
    assert_eq!(gesta_scene::check_for(source, own.plan_spec()), Ok(()));
    assert!(gesta_scene::check(source).is_err());
}
