//! `gesta scenes`: plays scenes and shows where a run does something else than stands there.

use std::path::{Path, PathBuf};

use clap::Args;
use gesta_run::PlanSpec;
use gesta_scene::SceneError;

use super::Globals;
use crate::exit::{Ended, Exit, Failure};
use crate::terminal::{Look, Screen};

/// Play scenes, each in four ways, and show the differences
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta scenes scenes/                    every .scene below a folder
  gesta scenes bug.scene --update         write what the run does under the margin

Exit codes: 0 all hold, 1 some do not, 2 usage.")]
pub(crate) struct Scenes {
    /// Scene files, or folders of them
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Write what the run did into the files
    #[arg(long)]
    update: bool,
}

impl Scenes {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        let mut files = Vec::new();
        for path in &self.paths {
            gather(path, &mut files)?;
        }
        Playing { plan: None, update: self.update, quiet: globals.quiet }.files(&files)
    }
}

/// How deep folders are looked into.
const DEPTH_MAX: usize = 16;

/// The scene files below a path, in order.
pub(super) fn gather(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.exists() {
        return Err(Failure::usage(
            format!("{} is not there", path.display()),
            "name a .scene file, or a folder of them",
        ));
    }
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let before = files.len();
    below(path, files, 0)?;
    if files.len() == before {
        return Err(Failure::usage(format!("{} has no scene", path.display()), "scenes are files that end in .scene"));
    }
    Ok(())
}

fn below(folder: &Path, files: &mut Vec<PathBuf>, depth: usize) -> Result<(), Failure> {
    if depth > DEPTH_MAX {
        return Ok(());
    }
    let entries = std::fs::read_dir(folder).map_err(|why| Failure::file(folder, &why))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            below(&path, files, depth + 1)?;
        } else if path.extension().is_some_and(|it| it == "scene") {
            files.push(path);
        }
    }
    Ok(())
}

/// How scenes are played.
pub(super) struct Playing<'a> {
    /// Under this plan, where they are an agent's.
    pub(super) plan: Option<&'a PlanSpec>,
    /// Write what was played.
    pub(super) update: bool,
    /// Show the differences alone.
    pub(super) quiet: bool,
}

impl Playing<'_> {
    /// Plays these files.
    pub(super) fn files(&self, files: &[PathBuf]) -> Ended {
        let mut screen = Screen::stdout();
        let (mut differ, mut updated) = (0, 0);
        for file in files {
            let source = std::fs::read_to_string(file).map_err(|why| Failure::file(file, &why))?;
            let checked = match self.plan {
                Some(plan) => gesta_scene::check_for(&source, plan),
                None => gesta_scene::check(&source),
            };
            match checked {
                Ok(()) => {}
                Err(SceneError::Differs(difference)) if self.update => {
                    std::fs::write(file, &difference.played).map_err(|why| Failure::file(file, &why))?;
                    updated += 1;
                }
                Err(why) => {
                    differ += 1;
                    screen.line(Look::Bad, &format!("{}: {}", file.display(), why.to_string().trim_end()));
                }
            }
        }
        let held = files.len() - differ - updated;
        if !self.quiet || differ > 0 {
            let mut text = format!("{held} of {} scenes hold", files.len());
            if updated > 0 {
                text.push_str(&format!(", {updated} written anew: look at the difference"));
            }
            screen.line(if differ > 0 { Look::Bad } else { Look::Good }, &text);
        }
        if differ > 0 && !self.update && !self.quiet {
            screen.line(Look::Faint, "help: where what was played is right, write it with --update");
        }
        Ok(if differ > 0 { Exit::Other } else { Exit::Done })
    }
}
