//! A document's file, opened in a worker: the options that every command about one has, and what comes of them.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gesta_document::{AddedTools, Author, Limits, Record, Terms};
use gesta_runtime::folder::duration::Length;
use gesta_sandbox::{Isolation, Pool, PoolSettings, Session, Walls};

use super::lent::{Desk, Lent};
use super::told;
use crate::exit::Failure;

/// Bytes of a file that is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Which document, and on which terms.
#[derive(Debug, Clone, Args)]
pub(super) struct Opening {
    /// The document's file, tools.stof of an agent for instance
    pub(super) file: PathBuf,
    /// First add the tool in this file, checked as `add_tool` checks it; may be repeated
    #[arg(long = "add", value_name = "SOURCE_FILE")]
    pub(super) add: Vec<PathBuf>,
    /// Answer this grant: NAME=JSON, NAME=error:TEXT to throw, NAME(a, b)=… where its parameters matter
    #[arg(long = "grant", value_name = "NAME=JSON")]
    grants: Vec<Lent>,
    /// Whether the document's tools may add tools [default: as the document says]
    #[arg(long, value_enum, value_name = "WORD")]
    added_tools: Option<Switch>,
    /// How long code of the document may run, grants left out, for instance 300ms [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = Length::parse)]
    call_time_max: Option<Length>,
    /// How often one call of a tool may call grants [default: 50]
    #[arg(long, value_name = "N")]
    grants_max: Option<u32>,
    /// Run it in this process, without any wall: for documents whose authors you trust, and where there is no Linux
    #[arg(long)]
    unsafe_in_process: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// A document in its worker.
pub(super) struct Opened {
    pub(super) base: String,
    pub(super) pool: Pool,
    pub(super) terms: Terms,
    pub(super) desk: Desk,
    pub(super) walls: Walls,
}

impl Opening {
    /// Every file that is read.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        std::iter::once(&self.file).chain(&self.add).cloned().collect()
    }

    /// Reads the file and starts its worker; nothing of it has run yet.
    pub(super) async fn open(&self) -> Result<Opened, Failure> {
        let base = read(&self.file)?;
        // One worker, so that what is measured is this document's alone.
        let mut settings = PoolSettings { warm: 0, workers_max: 1, ..PoolSettings::default() };
        if self.unsafe_in_process {
            settings.isolation = Isolation::None;
        }
        let pool = Pool::new(settings);
        let walls = pool.start().await.map_err(|why| told::not_started(&why))?;
        Ok(Opened { base, pool, terms: self.terms()?, desk: Desk::new(self.grants.clone()), walls })
    }

    fn terms(&self) -> Result<Terms, Failure> {
        let mut limits = Limits::default();
        limits.call_time_max_ms = self.call_time_max.map_or(limits.call_time_max_ms, |it| it.ms);
        limits.grants_max = self.grants_max.unwrap_or(limits.grants_max);
        let added_tools = match self.added_tools {
            Some(Switch::On) => AddedTools::On,
            Some(Switch::Off) => AddedTools::Off,
            None => AddedTools::AsBase,
        };
        let grants: Vec<_> = self.grants.iter().map(Lent::spec).collect();
        let twice = |at: usize| grants[..at].iter().any(|grant| grant.name == grants[at].name);
        if let Some(at) = (0..grants.len()).find(|at| twice(*at)) {
            return Err(Failure::usage(format!("grant {} is given twice", grants[at].name), "give it one answer"));
        }
        Ok(Terms { grants, limits, added_tools, names_taken: Vec::new() })
    }

    /// The document with the tools of `--add`.
    pub(super) async fn session(&self, opened: &Opened) -> Result<Session, Failure> {
        let record = Record { base: opened.base.clone(), ..Record::default() };
        let mut session = opened.pool.session(&self.file.to_string_lossy(), record, opened.terms.clone());
        for file in &self.add {
            let source = read(file)?;
            let author = Author::Person { name: file.display().to_string() };
            let added = session.add_tool(&source, Some(author), None).await;
            added.map_err(|why| told::not_added(&why, file, &source, &self.file))?;
        }
        Ok(session)
    }
}

/// A text file of moderate size.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let found = std::fs::metadata(path).map_err(|why| Failure::file(path, &why))?;
    let wrong = |what: &str| Failure::usage(format!("{} {what}", path.display()), "name a text file in Stof");
    if !found.is_file() {
        return Err(wrong("is no file"));
    }
    if found.len() > FILE_BYTES_MAX {
        return Err(wrong("is larger than 1 MB"));
    }
    let bytes = std::fs::read(path).map_err(|why| Failure::file(path, &why))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("is no text in UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
