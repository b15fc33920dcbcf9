//! `gesta backup` and `gesta restore`: a copy of everything that is kept, and back again.

use std::path::{Path, PathBuf};

use clap::Args;
use gesta_store::{Copied, FILE_NAME};

use super::Globals;
use crate::exit::{Ended, Exit, Failure};
use crate::place;
use crate::shell::quoted;
use crate::terminal::{Look, Screen};

/// Copy everything that is kept to another folder, also while agents run
#[derive(Debug, Args)]
#[command(
    after_help = "The copy is a data folder itself, with the runs, conversations, documents and the key that signs them, as they
stood at one moment. What an agent's folder holds is not in it. Look into it with `gesta runs --data TO`.

Examples:
  gesta backup /backups/$(date +%F)
  gesta backup /backups/today --data /var/lib/gesta"
)]
pub(crate) struct Backup {
    /// Where to; made if it is not there, and it must not hold a store yet
    #[arg(value_name = "TO")]
    to: PathBuf,
}

/// Put a copy that `gesta backup` made into the data folder
#[derive(Debug, Args)]
#[command(after_help = "Nothing is deleted: with --replace, what is there is moved into a folder of its own beside it.
What ran after the copy was made is not known to it, so its calls may be made again when somebody asks again.

Examples:
  gesta restore /backups/2026-11-30
  gesta restore /backups/2026-11-30 --replace --data /var/lib/gesta")]
pub(crate) struct Restore {
    /// The copy
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// Take the place of the store that is there
    #[arg(long)]
    replace: bool,
}

impl Backup {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        let data = data_of(globals)?;
        holds_store(&data, "nothing was kept there yet; name another data folder with --data")?;
        let copied = gesta_store::backup(&data, &self.to)?;
        told(&copied, &data, &self.to);
        Screen::stdout().line(Look::Faint, &format!("look into it: gesta runs --data {}", quoted(&self.to)));
        Ok(Exit::Done)
    }
}

impl Restore {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        let data = data_of(globals)?;
        holds_store(&self.from, "name a folder that `gesta backup` made")?;
        let (copied, aside) = gesta_store::restore(&self.from, &data, self.replace).map_err(|why| {
            let exists = matches!(why, gesta_store::StoreError::Exists { .. });
            let mut failure = Failure::from(why);
            if exists {
                failure.help =
                    "add --replace to move what is there aside, or name another folder with --data".to_owned();
            }
            failure
        })?;
        told(&copied, &self.from, &data);
        if let Some(aside) = aside {
            let text = format!("what was there lies in {}; delete it when nobody misses it", aside.display());
            Screen::stdout().line(Look::Warn, &text);
        }
        Ok(Exit::Done)
    }
}

fn holds_store(folder: &Path, help: &str) -> Result<(), Failure> {
    if folder.join(FILE_NAME).exists() {
        return Ok(());
    }
    Err(Failure::usage(format!("{} holds no store", folder.display()), help))
}

fn data_of(globals: &Globals) -> Result<PathBuf, Failure> {
    let named = place::named(globals, None)?.or_else(gesta_store::default_folder);
    named.ok_or_else(|| Failure::usage("there is no data folder", "name one with --data"))
}

fn told(copied: &Copied, from: &Path, to: &Path) {
    let counted = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let (runs, talks) = (counted(copied.runs, "run"), counted(copied.conversations, "conversation"));
    let kb = copied.bytes.div_ceil(1_000);
    let text = format!("{runs} and {talks}, {kb} kB, copied from {} to {}", from.display(), to.display());
    Screen::stdout().line(Look::Plain, &text);
}
