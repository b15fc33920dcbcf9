//! The agents that come with the project, and the one that `gesta init` makes, have no mistake, and their scenes hold.
//! `UPDATE_EXPECT=1` writes what a run did under each line of a scene.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use gesta_runtime::folder::check::scene_files;
use gesta_runtime::folder::init::{init, new_files};
use gesta_runtime::folder::{Folder, check};
use gesta_scene::SceneError;

fn no_variables(_: &str) -> Option<String> {
    None
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn holds(dir: &Path, source: &Path) {
    let report = check(dir, &no_variables);
    assert!(report.problems.is_empty() && report.warnings.is_empty(), "{}: {report:#?}", dir.display());
    let plan = Folder::load(dir, &no_variables).unwrap().settings.plan;
    for name in scene_files(dir) {
        let text = std::fs::read_to_string(dir.join(&name)).unwrap();
        assert!(!text.contains("out of turn"), "{}: a line comes when nobody waits for it", dir.join(&name).display());
        if gesta_scene::Scene::read_for(&text, &plan).is_ok_and(|scene| scene.carried().is_some()) {
            // A worker plays it, which this program is none of: the tests of `gesta-cli` do.
            continue;
        }
        match gesta_scene::check_for(&text, &plan) {
            Ok(()) => {}
            Err(SceneError::Differs(it)) if std::env::var_os("UPDATE_EXPECT").is_some() => {
                std::fs::write(source.join(&name), it.played).unwrap();
            }
            Err(why) => panic!("{}: {why}", dir.join(name).display()),
        }
    }
}

#[test]
fn the_coach_holds() {
    holds(&example("coach"), &example("coach"));
}

#[test]
fn the_desk_holds() {
    holds(&example("desk"), &example("desk"));
}

#[test]
fn the_shop_holds() {
    holds(&example("shop"), &example("shop"));
}

#[test]
fn a_new_folder_runs_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let agent = dir.path().join("a \"new\" one");
    let written = init(&agent).unwrap();
    assert_eq!(written.len(), new_files("x").len());
    holds(&agent, &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/folder/new"));
    assert_eq!(Folder::load(&agent, &no_variables).unwrap().settings.plan.agent, "a \"new\" one");
    assert!(init(&agent).unwrap_err().to_string().contains("is there already"));
}
