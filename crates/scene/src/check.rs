//! Compares a scene with what playing it gives, and shows the difference.

use std::fmt;

use gesta_run::plan::{PlanError, PlanSpec};

use crate::document::Documents;
use crate::error::{ReadError, ReadReason};
use crate::play::Way;
use crate::scene::Scene;

/// Why a scene does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SceneError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The plan has an author's mistake. It stands in no scene until somebody writes `refused:` under the plan, which
    /// says that the mistake is meant.
    #[error("{0}; a scene that is to show this says `refused:` under its plan")]
    Plan(PlanError),
    /// What the run did is not what stands there.
    #[error("{0}")]
    Differs(Difference),
}

/// Where a scene and its playing part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The way of playing that showed it.
    pub way: Way,
    /// The scene as it is played: what `UPDATE_EXPECT=1` would write.
    pub played: String,
    /// The first line that differs, counted from 1.
    pub line: usize,
    text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way {
            Way::Plainly => writeln!(f, "the run does something else from line {} on:", self.line)?,
            way => writeln!(f, "played another way ({way:?}), it differs from line {} on:", self.line)?,
        }
        f.write_str(&self.text)
    }
}

/// Reads a scene and plays it in every way.
///
/// # Errors
/// It cannot be read, or the run does something else than stands there: the difference, line by line.
pub fn check(source: &str) -> Result<(), SceneError> {
    compare_ways(&without_document(Scene::read(source)?)?, source)
}

/// Reads a scene of an agent whose plan is known, and plays it in every way ([`Scene::read_for`]).
///
/// # Errors
/// As [`check`].
pub fn check_for(source: &str, plan: &PlanSpec) -> Result<(), SceneError> {
    compare_ways(&without_document(Scene::read_for(source, plan)?)?, source)
}

/// As [`check`], or as [`check_for`] where a plan is given, with what opens the document of a scene that carries one.
///
/// # Errors
/// As [`check`]; the document does not open.
pub fn check_with(source: &str, plan: Option<&PlanSpec>, documents: &mut dyn Documents) -> Result<(), SceneError> {
    let scene = plan.map_or_else(|| Scene::read(source), |plan| Scene::read_for(source, plan))?;
    compare_ways(&scene.rehearsed(documents)?, source)
}

/// Refuses a scene whose document nobody would run.
fn without_document(scene: Scene) -> Result<Scene, ReadError> {
    match scene.carried() {
        None => Ok(scene),
        Some(carried) => {
            let why = "it is run by an engine, which is not at hand here; `gesta scenes` plays this scene";
            Err(ReadError::new(carried.line, ReadReason::Document(why.to_owned())))
        }
    }
}

fn compare_ways(scene: &Scene, source: &str) -> Result<(), SceneError> {
    if scene.is_empty() {
        let nothing = ReadReason::Empty("there is nothing to play: a scene has a line such as `user: Hello`");
        return Err(ReadError::new(1, nothing).into());
    }
    if let Err(why) = scene.plan()
        && !expects_refusal(source)
    {
        return Err(SceneError::Plan(why));
    }
    for way in Way::ALL {
        let played = scene.play_as(way).text;
        if played != source {
            return Err(SceneError::Differs(difference(way, source, played)));
        }
    }
    Ok(())
}

/// Whether the scene says of its plan that it is refused.
fn expects_refusal(source: &str) -> bool {
    let plan = source.lines().skip_while(|line| !line.starts_with("plan:"));
    let mut said = plan.take_while(|line| line.starts_with("plan:") || line.starts_with([' ', '#']) || line.is_empty());
    said.any(|line| line.trim_start().starts_with("refused:"))
}

fn difference(way: Way, expected: &str, played: String) -> Difference {
    let old: Vec<&str> = expected.lines().collect();
    let new: Vec<&str> = played.lines().collect();
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let text = compare(&old, &new);
    Difference { way, line: same + 1, text, played }
}

/// Lines of context around a change.
const AROUND: usize = 3;

/// The lines that differ (`-` stands there, `+` was played), with a few of those around them.
fn compare(old: &[&str], new: &[&str]) -> String {
    let marked = diff(old, new);
    let near = |at: usize| {
        let from = at.saturating_sub(AROUND);
        let to = (at + AROUND + 1).min(marked.len());
        marked[from..to].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut out = String::new();
    let mut gap = false;
    for (at, (mark, line)) in marked.iter().enumerate() {
        if near(at) {
            if std::mem::take(&mut gap) {
                out.push_str("  ...\n");
            }
            out.push_str(&format!("{mark} {line}\n"));
        } else {
            gap = !out.is_empty();
        }
    }
    out
}

/// A longest common subsequence, by the plain table: scenes are short.
fn diff<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let mut lengths = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i][j] =
                if old[i] == new[j] { lengths[i + 1][j + 1] + 1 } else { lengths[i + 1][j].max(lengths[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut marked = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            marked.push((' ', old[i]));
            i += 1;
            j += 1;
        } else if i < old.len() && (j == new.len() || lengths[i + 1][j] >= lengths[i][j + 1]) {
            marked.push(('-', old[i]));
            i += 1;
        } else {
            marked.push(('+', new[j]));
            j += 1;
        }
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_both_sides_and_a_little_around() {
        let old = ["a", "b", "c", "d", "e", "f", "g"];
        let new = ["a", "b", "c", "d", "x", "f", "g"];
        assert_eq!(compare(&old, &new), "  b\n  c\n  d\n- e\n+ x\n  f\n  g\n");
    }

    #[test]
    fn a_mistake_of_the_plan_is_no_difference_unless_it_is_expected() {
        let twice = "plan: tool a\nplan: tool a\n";
        let turn = "user: Hello\n";
        assert!(matches!(check(&format!("{twice}{turn}")), Err(SceneError::Plan(_))));
        let other = check(&format!("{twice}    refused: in other words\n{turn}"));
        assert!(matches!(other, Err(SceneError::Differs(it)) if it.played.contains("refused: ")));
    }
}
