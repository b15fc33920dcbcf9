//! Scenes with their lines shuffled, repeated, dropped and damaged: nothing panics, and the four ways still agree.

use std::path::{Path, PathBuf};

use gesta_run::message::{BlockKind, Message};
use gesta_scene::{Scene, Way, can_be_told, from_log};

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

fn sources() -> Vec<String> {
    let mut paths = Vec::new();
    scenes(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenes"), &mut paths);
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).expect("a scene can be read")).collect()
}

/// The groups of lines at the margin: a line with those that continue it.
fn groups(source: &str) -> Vec<String> {
    let margin = Scene::read(source).expect("a scene is well formed").print();
    let mut groups: Vec<String> = Vec::new();
    for line in margin.lines() {
        let continues = line.starts_with("and:") || line.starts_with(' ') || line.is_empty();
        match groups.last_mut().filter(|_| continues) {
            Some(group) => *group = format!("{group}\n{line}"),
            None => groups.push(line.to_owned()),
        }
    }
    groups
}

/// How many scenes are made. More by hand: `SEEDS=100000 cargo test --release -p gesta-scene --test shuffled`.
fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(600)
}

#[test]
fn shuffled_scenes_play_alike_in_every_way_and_can_be_told_from_their_log() {
    let all: Vec<Vec<String>> = sources().iter().map(|source| groups(source)).collect();
    for seed in 0..seeds() {
        let mut dice = fastrand::Rng::with_seed(seed);
        let source = shuffled(&all, &mut dice);
        let Ok(scene) = Scene::read(&source) else { continue };
        let plain = scene.play();
        for way in [Way::Cut(seed), Way::Replayed, Way::Twice] {
            let other = scene.play_as(way).text;
            assert!(other == plain.text, "seed {seed}, {way:?}:\n{}\n----\n{other}", plain.text);
        }
        for run in &plain.runs {
            assert!(sendable(run.transcript()), "seed {seed}: no provider takes this:\n{}", plain.text);
        }
        if source.contains(" function ") {
            continue;
        }
        for log in plain.logs.into_iter().filter(|log| !log.is_empty() && can_be_told(scene.plan_spec(), log)) {
            let told = from_log(scene.plan_spec(), &log);
            let again = Scene::read(&told).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{told}"));
            assert_eq!(again.play().logs, [log], "seed {seed}:\n{source}\n----\n{told}");
        }
    }
}

/// Each answer with calls is followed by one result for each of them, in order, and no result stands elsewhere.
fn sendable(messages: &[Message]) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::Assistant { blocks } => {
                let calls = blocks.iter().filter_map(|block| match &block.kind {
                    BlockKind::Call(call) => Some(call.id.as_str()),
                    _ => None,
                });
                if !std::mem::replace(&mut open, calls.collect()).is_empty() {
                    return false;
                }
            }
            Message::Tools { results } => {
                let answered: Vec<&str> = results.iter().map(|result| result.call_id.as_str()).collect();
                if std::mem::take(&mut open) != answered || answered.is_empty() {
                    return false;
                }
            }
            Message::User { .. } | Message::Notice { .. } if !open.is_empty() => return false,
            Message::User { .. } | Message::Notice { .. } => {}
        }
    }
    open.is_empty()
}

/// What may come between any two lines.
const BETWEEN: [&str; 6] = [
    "world: crashed",
    "world: cancelled",
    "world: new message",
    "world: resumed with 9 trips",
    "world: 2 h pass",
    "person: nothing",
];

fn shuffled(all: &[Vec<String>], dice: &mut fastrand::Rng) -> String {
    let one = &all[dice.usize(..all.len())];
    let other = &all[dice.usize(..all.len())];
    let is_plan = |group: &&String| group.starts_with("plan:") || group.starts_with('#');
    let mut lines: Vec<&str> = one.iter().filter(|group| !is_plan(group)).map(String::as_str).collect();
    if dice.bool() {
        lines.extend(other.iter().filter(|group| !is_plan(group)).map(String::as_str));
    }
    for _ in 0..dice.usize(..3) {
        lines.insert(dice.usize(..=lines.len()), BETWEEN[dice.usize(..BETWEEN.len())]);
    }
    for _ in 0..dice.usize(..3) {
        if lines.len() > 2 {
            let (a, b) = (dice.usize(..lines.len()), dice.usize(..lines.len()));
            match dice.usize(..3) {
                0 => lines.swap(a, b),
                1 => lines.insert(a, lines[b]),
                _ => drop(lines.remove(a)),
            }
        }
    }
    let mut plans: Vec<&str> = one.iter().filter(is_plan).map(String::as_str).collect();
    if dice.usize(..4) == 0 {
        plans.extend(other.iter().filter(is_plan).map(String::as_str));
    }
    plans.into_iter().chain(lines).fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

#[test]
fn a_damaged_scene_is_an_error_or_another_scene_and_never_a_panic() {
    let all = sources();
    for seed in 0..seeds() * 5 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut text: Vec<char> = all[dice.usize(..all.len())].chars().collect();
        let letters: Vec<char> = "{}[]\"\\|:#/, \n\té🙂0-9a calls and: user: plan: model: policy:".chars().collect();
        for _ in 0..=dice.usize(..4) {
            let at = dice.usize(..text.len());
            match dice.usize(..3) {
                0 => text[at] = letters[dice.usize(..letters.len())],
                1 => text.insert(at, letters[dice.usize(..letters.len())]),
                _ => drop(text.remove(at)),
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(scene) = Scene::read(&text) {
            let played = scene.play().text;
            let again = Scene::read(&played).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{text}\n----\n{played}"));
            assert_eq!(again.play().text, played, "seed {seed}");
        }
    }
}
