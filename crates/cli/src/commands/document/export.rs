//! `gesta document export`: a conversation's document as a file, for another place or another program.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use gesta_document::Form;

use super::kept::Whose;
use super::told;
use crate::commands::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::terminal::{Look, Screen};

/// Write a conversation's document to a file
///
/// Without --stof or --bstf it is the signed image that `gesta document import` reads.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta document export examples/shop --conversation anna --stof
  gesta document export examples/shop --conversation anna -o anna.image
  gesta document export examples/shop --bstf -o shop.bstf     for any program that reads Stof

Exit codes: 0 written, 1 it could not be written in that form, 2 usage or configuration, 5 the store failed.")]
pub(super) struct Export {
    #[command(flatten)]
    whose: Whose,
    /// As source text: file, added tools and data together
    #[arg(long, conflicts_with = "bstf")]
    stof: bool,
    /// In Stof's own binary form
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
            if let Some(file) = self.output.as_ref().filter(|_| !globals.quiet) {
                let text = format!("{} bytes of version {} in {}", bytes.len(), kept.version, file.display());
                Screen::stderr().line(Look::Good, &text);
            }
            kept.close().await;
            Ok(Exit::Done)
        })
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
