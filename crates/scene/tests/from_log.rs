//! A stored log, told as a scene, plays to the same log.

use std::path::{Path, PathBuf};

use gesta_scene::{Scene, can_be_told, check, from_log};

fn scenes(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder of scenes can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            scenes(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "scene") {
            found.push(path);
        }
    }
}

#[test]
fn every_log_of_every_scene_can_be_told_and_plays_to_itself() {
    let mut paths = Vec::new();
    scenes(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenes"), &mut paths);
    let mut told = 0;
    for path in paths {
        let source = std::fs::read_to_string(&path).expect("a scene can be read");
        let scene = Scene::read(&source).expect("a scene is well formed");
        if source.contains(" function ") {
            continue;
        }
        for log in scene.play().logs.into_iter().filter(|log| !log.is_empty()) {
            if !can_be_told(scene.plan_spec(), &log) {
                continue;
            }
            let text = from_log(scene.plan_spec(), &log);
            let again = Scene::read(&text).unwrap_or_else(|why| panic!("{}: {why}\n{text}", path.display()));
            assert!(!text.contains("no line brings this about"), "{}:\n{text}", path.display());
            assert_eq!(again.play().logs, [log], "{}:\n{text}", path.display());
            check(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            told += 1;
        }
    }
    assert!(told > 100, "only {told} logs were told");
}
