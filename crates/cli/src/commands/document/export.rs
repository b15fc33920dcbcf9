//! `gesta document export`: a conversation's document as a file, for another place or another program.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use gesta_document::Form;

use super::kept::{Kept, Whose};
use super::told;
use crate::commands::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::terminal::{Look, Screen};

/// Write a conversation's document to a file
///
/// Without --stof or --bstf it is the signed image that `gesta document import` reads, with the added tools and who
/// wrote them. With --stof it is source to read: comments that stand above no function are not in it, nor is a root that
/// only stands in for the grants of agent.toml, such as `root App`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta document export examples/shop --conversation anna --stof
  gesta document export examples/shop --conversation anna -o anna.image
  gesta document export examples/shop --bstf -o shop.bstf     for any program that reads Stof

Exit codes: 0 written, 1 it could not be written in that form, 2 usage or configuration, 5 the store failed.")]
pub(super) struct Export {
    #[command(flatten)]
    whose: Whose,
    /// As source text to read or to begin another agent with: file, added tools and data together
    #[arg(long, conflicts_with = "bstf")]
    stof: bool,
    /// In Stof's own binary form, for other programs; imported again it brings its data alone
    #[arg(long)]
    bstf: bool,
    /// The file; standard output without it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    pub(super) fn run(self, globals: &Globals) -> Ended {
        if !self.stof && self.output.is_none() && std::io::stdout().is_terminal() {
            return Err(Failure::usage("bytes are not for a terminal", "name a file with --output"));
        }
        wait_for(async {
            let kept = self.whose.read(globals).await?;
            let form = match (self.stof, self.bstf) {
                (true, _) => Some(Form::Stof),
                (_, true) => Some(Form::Bstf),
                _ => None,
            };
            let bytes = match form {
                Some(form) => {
                    let exported = kept.session(&kept.record).export(form).await;
                    exported.map_err(|why| told::failed(&why, &self.whose.file()))?
                }
                None => {
                    let mut record = kept.record.clone();
                    if record.data.is_none() {
                        let saved = kept.session(&record).save().await;
                        record.data = Some(saved.map_err(|why| told::failed(&why, &self.whose.file()))?);
                    }
                    kept.encode(&record)?
                }
            };
            self.write(&bytes)?;
            if self.stof && !globals.quiet {
                self.tell_left_out(&kept);
            }
            if let Some(file) = self.output.as_ref().filter(|_| !globals.quiet) {
                let text = format!("{} bytes of version {} in {}", bytes.len(), kept.version, file.display());
                Screen::stderr().line(Look::Good, &text);
            }
            kept.close().await;
            Ok(Exit::Done)
        })
    }

    /// Says what of the file is not in the text.
    fn tell_left_out(&self, kept: &Kept) {
        let mut left_out = vec!["comments that stand above no function".to_owned()];
        left_out.extend(kept.stand_ins().iter().map(|root| format!("`root {root}`, in whose place grants stand")));
        Screen::stderr().line(Look::Faint, &format!("left out: {}", left_out.join("; ")));
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        match &self.output {
            Some(file) => std::fs::write(file, bytes).map_err(|why| Failure::file(file, &why)),
            None if self.stof => {
                Screen::stdout().data(&String::from_utf8_lossy(bytes));
                Ok(())
            }
            None => std::io::stdout().write_all(bytes).map_err(|why| {
                Failure::new(
                    Exit::Unwritten,
                    format!("standard output cannot be written: {why}"),
                    "name a file with --output",
                )
            }),
        }
    }
}
