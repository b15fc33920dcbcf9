//! `gesta document import`: a document from a file becomes a conversation's.

use std::path::PathBuf;

use clap::Args;
use gesta_document::{Image, ImageError, Record, base_hash};

use super::kept::{Kept, Whose, image};
use super::told;
use crate::commands::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::terminal::{Look, Screen};

/// Bytes of a file that is read.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Take a file as the document of a conversation
///
/// Taken are the data, and the added tools that are recorded in an image, each checked anew. Everything else a document
/// does comes from the agent's folder. A file of another Stof program (.bstf) brings data alone: its functions are left
/// out, and those among them that are tools are named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta document import examples/shop anna.image --conversation anna
  gesta document import examples/shop anna.image --conversation bert --trust  signed elsewhere
  gesta document import examples/shop shop.bstf --conversation anna --trust   the data alone

What the conversation had is replaced. An image is signed with GESTA_SECRET, or with the key in the data folder; for \
one that another place signed give that key too, or --trust the file.

Exit codes: 0 done, 1 a run of the conversation is going on, 2 usage, configuration, or a file that cannot be used, \
5 the store failed.")]
pub(super) struct Import {
    #[command(flatten)]
    whose: Whose,
    /// What `gesta document export` wrote
    file: PathBuf,
    /// Take it although no key of this place signed it; only a worker opens it all the same
    #[arg(long)]
    trust: bool,
}

impl Import {
    pub(super) fn run(self, globals: &Globals) -> Ended {
        wait_for(async {
            let found = std::fs::metadata(&self.file).map_err(|why| Failure::file(&self.file, &why))?;
            if !found.is_file() || found.len() > FILE_BYTES_MAX {
                let what = format!("{} is no file of at most 4 MB", self.file.display());
                return Err(Failure::usage(what, "name what `gesta document export` wrote"));
            }
            let bytes = std::fs::read(&self.file).map_err(|why| Failure::file(&self.file, &why))?;
            self.looks_like_one(&bytes)?;
            let kept = self.whose.read_to_replace(globals).await?;
            let record = self.record(&kept, bytes)?;
            // Whatever the bytes are, only a worker opens them; what is kept is what that worker saves.
            let mut session = kept.session(&record);
            let data = session.save().await.map_err(|why| told::failed(&why, &self.file))?;
            let opened = Record { data: Some(data), data_base: None, ..session.record().clone() };
            let version = kept.put(&opened).await?;
            self.left_out(session.left_out());
            if !globals.quiet {
                self.tell(&kept, &opened, version);
            }
            kept.close().await;
            Ok(Exit::Done)
        })
    }

    /// Says what a file is that is plainly something else.
    fn looks_like_one(&self, bytes: &[u8]) -> Result<(), Failure> {
        let file = self.file.display();
        if bytes.is_empty() {
            let help = "name what `gesta document export` wrote";
            return Err(Failure::usage(format!("{file} is empty"), help).coded("image_unusable"));
        }
        let is_text = std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'));
        if is_text && !bytes.starts_with(b"gesta document ") {
            let help = "source belongs into tools.stof of the agent's folder; what is imported is an image, or a .bstf";
            return Err(Failure::usage(format!("{file} is text and no image"), help).coded("image_unusable"));
        }
        if !self.trust && !bytes.starts_with(b"gesta document ") {
            let help =
                "what is signed is written by `gesta document export`; a .bstf carries no signature: add --trust";
            return Err(Failure::usage(format!("{file} is no signed image"), help).coded("image_unusable"));
        }
        Ok(())
    }

    /// Tools of a foreign file that are not taken, said also to who wants to read little.
    fn left_out(&self, tools: &[String]) {
        if !tools.is_empty() {
            let text = format!(
                "not taken: {}; a .bstf brings data alone, and the image that `export` writes without --bstf brings \
                 added tools",
                tools.join(", ")
            );
            Screen::stderr().line(Look::Warn, &text);
        }
    }

    fn record(&self, kept: &Kept, bytes: Vec<u8>) -> Result<Record, Failure> {
        let base = &kept.record.base;
        match kept.decode(&bytes) {
            Ok(image) => Ok(image.record(base)),
            Err(ImageError::Signature) if self.trust => {
                Ok(Image::decode_trusted(&bytes).map_err(|why| image(&why))?.record(base))
            }
            Err(ImageError::Foreign) if self.trust => {
                let data_base = Some(base_hash(base));
                Ok(Record { base: base.clone(), added: Vec::new(), data: Some(bytes), data_base })
            }
            Err(why) => Err(image(&why)),
        }
    }

    fn tell(&self, kept: &Kept, record: &Record, version: u64) {
        let mut screen = Screen::stdout();
        let text = format!("{} is the document of {} now, version {version}", self.file.display(), kept.name());
        screen.line(Look::Good, &text);
        for tool in &record.added {
            match &tool.set_aside {
                None => screen.line(Look::Plain, &format!("  {}", tool.name)),
                Some(why) => {
                    let why = why.replace('\n', " ");
                    screen.line(Look::Warn, &format!("  {} is not offered: {why}", tool.name));
                }
            }
        }
    }
}
