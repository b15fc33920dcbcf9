//! Plays every scene of `scenes/` in every way, and checks that each case of the list is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gesta_scene::{Scene, SceneError, Way, check};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenes")
}

fn scenes(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder of scenes can be read");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            scenes(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "scene") {
            found.push(path);
        }
    }
}

#[test]
fn every_scene_holds_in_every_way() {
    let mut paths = Vec::new();
    scenes(&root(), &mut paths);
    assert!(!paths.is_empty(), "there are scenes");
    let update = std::env::var_os("UPDATE_EXPECT").is_some_and(|it| it == "1");
    let mut failures = Vec::new();
    for path in paths {
        let source = std::fs::read_to_string(&path).expect("a scene can be read");
        if update
            && let Ok(scene) = Scene::read(&source)
            && scene.carried().is_none()
        {
            std::fs::write(&path, scene.play().text).expect("a scene can be written");
        }
        let source = std::fs::read_to_string(&path).expect("a scene can be read");
        if Scene::read(&source).is_ok_and(|scene| scene.carried().is_some()) {
            // An engine plays it: the tests of `gesta-cli` do.
            continue;
        }
        if let Err(why) = check(&source) {
            let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
            failures.push(format!("{name}: {why}"));
        }
    }
    assert!(failures.is_empty(), "{} scenes do not hold:\n\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn other_dice_cut_the_answers_elsewhere_and_nothing_changes() {
    let mut paths = Vec::new();
    scenes(&root(), &mut paths);
    for path in paths {
        let source = std::fs::read_to_string(&path).expect("a scene can be read");
        let Some(scene) = Scene::read(&source).ok().filter(|scene| scene.carried().is_none()) else { continue };
        for seed in 0..4 {
            assert_eq!(scene.play_as(Way::Cut(seed)).text, scene.play().text, "{} with seed {seed}", path.display());
        }
    }
}

/// Cases that another part of the list covers: evaluation, and sessions of live turns.
fn elsewhere(case: u32) -> bool {
    (70..=91).contains(&case) || (127..=132).contains(&case)
}

/// The numbers of the list of cases.
const CASES: [u32; 86] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 20, 21, 23, 24, 25, 27, 28, 29, 30, 31, 32, 34, 35, 36,
    37, 39, 40, 41, 43, 44, 45, 46, 48, 49, 50, 52, 54, 55, 57, 58, 60, 62, 64, 65, 66, 68, 70, 71, 72, 73, 74, 75, 76,
    77, 79, 81, 82, 83, 87, 88, 89, 91, 92, 93, 94, 95, 97, 98, 100, 102, 104, 106, 107, 109, 110, 112, 113, 114, 115,
];
const MORE_CASES: [u32; 10] = [116, 118, 120, 122, 125, 126, 127, 128, 129, 132];

#[test]
fn every_case_of_the_list_stands_in_a_scene() {
    let mut paths = Vec::new();
    scenes(&root(), &mut paths);
    let numbers: BTreeSet<u32> =
        paths.iter().filter_map(|path| path.file_name()?.to_str()?.split('_').next()?.parse().ok()).collect();
    let readme = std::fs::read_to_string(root().join("README.md")).expect("scenes/README.md is there");
    let all = CASES.iter().chain(&MORE_CASES).filter(|case| !elsewhere(**case));
    for case in all {
        assert!(numbers.contains(case), "case {case} has no scene");
        assert!(readme.contains(&format!("| {case} |")), "case {case} is not in scenes/README.md");
    }
}

#[test]
fn a_scene_that_does_not_hold_shows_where() {
    let source = "user: Hello\n    asks nobody\nmodel: Hi.\n    says: Hi.\n";
    let Err(SceneError::Differs(difference)) = check(source) else { panic!("it differs") };
    assert_eq!(difference.line, 2);
    assert_eq!(
        difference.to_string(),
        "the run does something else from line 2 on:\n  user: Hello\n-     asks nobody\n+     asks the model\n  model: Hi.\n      says: Hi.\n"
    );
}
