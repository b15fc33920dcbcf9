//! `gesta scenes`: plays scenes and shows where a run does something else than stands there.

use std::path::{Path, PathBuf};

use clap::Args;
use gesta_runtime::SceneDocuments;
use gesta_runtime::folder::Folder;
use gesta_scene::{ReadError, ReadReason, Scene, SceneError};

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
        Playing { folder: None, update: self.update || is_updating(), quiet: globals.quiet }.files(&files)
    }
}

/// The variable by which tests are told to write what they see stands for `--update` too.
pub(super) fn is_updating() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|it| it == "1")
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
    below(path, files, &mut Vec::new())?;
    if files.len() == before {
        return Err(Failure::usage(format!("{} has no scene", path.display()), "scenes are files that end in .scene"));
    }
    Ok(())
}

fn below(folder: &Path, files: &mut Vec<PathBuf>, above: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let real = folder.canonicalize().map_err(|why| Failure::file(folder, &why))?;
    // A link to a folder further up would play the same scenes again and again.
    if above.len() > DEPTH_MAX || above.contains(&real) {
        return Ok(());
    }
    above.push(real);
    let entries = std::fs::read_dir(folder).map_err(|why| Failure::file(folder, &why))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            below(&path, files, above)?;
        } else if path.extension().is_some_and(|it| it == "scene") {
            files.push(path);
        }
    }
    above.pop();
    Ok(())
}

/// How scenes are played.
pub(super) struct Playing<'a> {
    /// Under this folder's plan and with its document, where they are an agent's.
    pub(super) folder: Option<&'a Folder>,
    /// Write what was played.
    pub(super) update: bool,
    /// Show the differences alone.
    pub(super) quiet: bool,
}

/// What came of one file.
enum Scened {
    Holds,
    Written,
    /// It does something else, which may be right.
    Differs(String),
    /// It cannot be played as it stands.
    Wrong(String),
}

impl Playing<'_> {
    /// Plays these files.
    pub(super) fn files(&self, files: &[PathBuf]) -> Ended {
        let mut screen = Screen::stdout();
        let mut documents = SceneDocuments::new(self.folder).map_err(|why| {
            Failure::new(Exit::Other, format!("no worker can be started: {why}"), "close other programs")
        })?;
        let (mut held, mut written, mut differ) = (0, 0, 0);
        for file in files {
            let why = match self.file(file, &mut documents)? {
                Scened::Holds => {
                    held += 1;
                    continue;
                }
                Scened::Written => {
                    written += 1;
                    continue;
                }
                Scened::Differs(why) => {
                    differ += 1;
                    why
                }
                Scened::Wrong(why) => why,
            };
            screen.line(Look::Bad, &format!("{}: {}", file.display(), why.trim_end()));
        }
        let all_hold = held + written == files.len();
        if !self.quiet || !all_hold {
            let mut text = format!("{held} of {} scenes hold", files.len());
            if written > 0 {
                text.push_str(&format!(", {written} written anew: look at the difference"));
            }
            screen.line(if all_hold { Look::Good } else { Look::Bad }, &text);
        }
        if differ > 0 && !self.quiet {
            screen.line(Look::Faint, "help: where what was played is right, write it with --update");
        }
        Ok(if all_hold { Exit::Done } else { Exit::Other })
    }

    fn file(&self, file: &Path, documents: &mut SceneDocuments) -> Result<Scened, Failure> {
        let source = std::fs::read_to_string(file).map_err(|why| Failure::file(file, &why))?;
        let mut checked = self.check(&source, documents);
        let other_plan = matches!(&checked, Err(SceneError::Read(why)) if is_other_plan(why));
        if let (true, true, Ok(scene)) = (other_plan, self.update, Scene::read(&source)) {
            // From now on the scene is played under whatever plan the agent has.
            checked = self.check(&scene.without_plan().print(), documents);
        }
        Ok(match checked {
            Ok(()) => Scened::Holds,
            Err(SceneError::Differs(difference)) if self.update => {
                std::fs::write(file, &difference.played).map_err(|why| Failure::file(file, &why))?;
                Scened::Written
            }
            Err(why @ SceneError::Differs(_)) => Scened::Differs(why.to_string()),
            Err(why) if other_plan && !self.update => Scened::Differs(why.to_string()),
            Err(why) => Scened::Wrong(why.to_string()),
        })
    }

    fn check(&self, source: &str, documents: &mut SceneDocuments) -> Result<(), SceneError> {
        gesta_scene::check_with(source, self.folder.map(|folder| &folder.settings.plan), documents)
    }
}

fn is_other_plan(why: &ReadError) -> bool {
    matches!(why.reason, ReadReason::OtherPlan { .. })
}
