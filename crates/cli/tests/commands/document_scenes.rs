//! Scenes that carry a document, played by the engine in real workers.

use std::path::{Path, PathBuf};

use crate::support::{Home, example};

fn scenes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenes/documents")
}

/// `UPDATE_EXPECT=1` writes them anew: the program heeds it as this test does.
#[test]
fn the_scenes_of_documents_hold_in_every_way() {
    let folder = scenes();
    let count = std::fs::read_dir(&folder).unwrap().count();
    let said = Home::new().gesta(&["scenes", folder.to_str().unwrap()]).ended(0);
    assert!(said.out.contains(&format!("of {count} scenes hold")) && count > 5, "{said:?}");
}

#[test]
fn the_shops_own_document_is_played() {
    Home::new().gesta(&["test", &example("shop")]).ended(0).has(&["scenes hold"]);
}

const SCENE: &str = "\
plan: document: |
        count: 0
        tools: {
            #[tool('Counts')]
            fn count() -> int { root.count += 1; root.count }
        }
user: Count
model: calls c1 count {}
model: One.
client: delivered
";

#[test]
fn what_a_document_does_is_written_below_the_margin_and_compared() {
    let home = Home::new();
    let path = home.write("a.scene", SCENE);
    home.gesta(&["scenes", "a.scene"]).ended(1).has(&["+     document: c1 ok 1"]);
    home.gesta(&["scenes", "a.scene", "--update"]).ended(0);
    home.gesta(&["scenes", "a.scene"]).ended(0);
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.contains("    document: offers count()\n"), "{written}");
    // Another document does something else.
    home.write("a.scene", &written.replace("root.count += 1", "root.count += 2"));
    home.gesta(&["scenes", "a.scene"]).ended(1).has(&["-     document: c1 ok 1", "+     document: c1 ok 2"]);
}

#[test]
fn what_cannot_be_played_is_told_with_its_line() {
    let home = Home::new();
    for (scene, told) in [
        (SCENE.replace("fn count()", "fn count("), "line 5: the document: column "),
        (
            SCENE.replace("count: 0", "count: 0\n        #[init]\n        fn boot() { throw('no'); }"),
            "line 4: the document: ",
        ),
        ("plan: document\nuser: Hi\n".to_owned(), "line 1: "),
        ("plan: document: tools\nuser: Hi\n".to_owned(), "line 1: expected `|`"),
        ("plan: the agent's document\nuser: Hi\n".to_owned(), "line 1: the document: there is no agent's folder"),
        ("plan: docment: |\n        tools: {}\nuser: Hi\n".to_owned(), "did you mean `document:`?"),
        ("grant: App.orders ok 1\nuser: Hi\n".to_owned(), "a grant answers by itself in scenes that carry a document"),
    ] {
        home.write("bad.scene", &scene);
        home.gesta(&["scenes", "bad.scene"]).ended(1).has(&[told]);
    }
}
