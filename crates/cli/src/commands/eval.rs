//! `gesta eval`: whether what agents say is what they did, over recorded replies.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gesta_eval::claims::{Claims, Label, PatternSet, Row, Score, for_language, languages, read_line, source};

use super::Globals;
use crate::exit::{Ended, Exit, Failure};
use crate::terminal::{Look, Screen};

/// The longest line of a file, in bytes.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Measure what agents say against what they did
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta eval claims replies.jsonl           a verdict for each recorded reply
  gesta eval claims --export languages      the built-in languages as files")]
pub(crate) struct Eval {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Claims(ClaimsArgs),
}

/// Find the replies that claim a change, and say what backs each
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta eval claims replies.jsonl                      a verdict for each reply, one a line
  gesta eval claims replies.jsonl --labels seen.jsonl  and how well they agree with a reader's labels
  gesta eval claims --export languages                 the built-in languages as files, to be changed
  gesta eval claims replies.jsonl --lang-dir languages

Each line of the file is an object with `id`, `reply`, `turn_calls` and `earlier_writes`; docs/claims.md describes them.

Exit codes: 0 every line was judged, 1 a line could not be read, 2 usage or a language file.")]
struct ClaimsArgs {
    /// Recorded replies, as JSON lines; `-` reads standard input
    #[arg(value_name = "FILE", required_unless_present = "export")]
    file: Option<PathBuf>,
    /// Labels of the same replies, as JSON lines with `id`, `claim` and `supported`
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Language files to use in place of the built-in ones
    #[arg(long, value_name = "DIR", conflicts_with = "export")]
    lang_dir: Option<PathBuf>,
    /// Write the built-in language files into this folder, and leave those that are there
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
}

impl Eval {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        match self.what {
            What::Claims(claims) => claims.run(globals),
        }
    }
}

impl ClaimsArgs {
    fn run(self, globals: &Globals) -> Ended {
        if let Some(folder) = &self.export {
            export(folder, globals)?;
        }
        let Some(file) = &self.file else { return Ok(Exit::Done) };
        let claims = self.claims()?;
        let labels = self.labels.as_deref().map(read_labels).transpose()?;
        let mut judging = Judging { claims, labels, score: Score::default(), bad: 0 };
        if file.as_os_str() == "-" {
            judging.all(BufReader::new(std::io::stdin().lock()), file)?;
        } else {
            judging.all(BufReader::new(open(file)?), file)?;
        }
        if judging.labels.is_some() {
            judging.report();
        }
        if judging.bad > 0 { Ok(Exit::Other) } else { Ok(Exit::Done) }
    }

    fn claims(&self) -> Result<Claims, Failure> {
        let Some(folder) = &self.lang_dir else {
            let sets: Vec<_> = languages().filter_map(for_language).collect();
            return Claims::new(&sets).map_err(|why| Failure::usage(why.to_string(), "this is a fault of Gesta"));
        };
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::usage(why.to_string(), "mend the file; docs/claims.md describes its keys")
        };
        let sets = PatternSet::read_folder(folder).map_err(|why| wrong(&why))?;
        for set in &sets {
            let failed = set.check_examples().map_err(|why| wrong(&why))?;
            if let Some(first) = failed.first() {
                return Err(wrong(first));
            }
        }
        Claims::new(&sets).map_err(|why| wrong(&why))
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|why| Failure::file(path, &why))
}

/// Writes the built-in files; one that is there may have been changed and stays.
fn export(folder: &Path, globals: &Globals) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|why| Failure::file(folder, &why))?;
    for (tag, text) in languages().filter_map(|tag| Some((tag, source(tag)?))) {
        let path = folder.join(format!("{tag}.toml"));
        match File::create_new(&path).and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes())) {
            Ok(()) if globals.quiet => {}
            Ok(()) => Screen::stderr().line_on(&format!("wrote {}", path.display())),
            Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => {
                Screen::stderr().line_on(&format!("kept {}, which is there already", path.display()));
            }
            Err(why) => return Err(Failure::file(&path, &why)),
        }
    }
    Ok(())
}

fn read_labels(path: &Path) -> Result<HashMap<String, Label>, Failure> {
    let mut labels = HashMap::new();
    for (line, number) in BufReader::new(open(path)?).lines().zip(1u64..) {
        let line = line.map_err(|why| Failure::file(path, &why))?;
        if line.trim().is_empty() {
            continue;
        }
        let label: Label = serde_json::from_str(&line).map_err(|why| {
            let told = format!("{}: line {number}: {why}", path.display());
            Failure::usage(told, "a label is an object with `id` and `claim`")
        })?;
        labels.insert(label.id.clone(), label);
    }
    Ok(labels)
}

/// The replies, one at a time, so that a file of any size takes the memory of its longest line.
struct Judging {
    claims: Claims,
    labels: Option<HashMap<String, Label>>,
    score: Score,
    bad: u64,
}

impl Judging {
    fn all(&mut self, mut from: impl BufRead, path: &Path) -> Result<(), Failure> {
        let mut screen = Screen::stdout();
        let mut line = Vec::new();
        for number in 1u64.. {
            line.clear();
            let read = from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            match read.map_err(|why| Failure::file(path, &why))? {
                0 => break,
                length if length as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") => {
                    self.refuse(path, &format!("line {number}: longer than {LINE_BYTES_MAX} bytes"));
                    from.skip_until(b'\n').map_err(|why| Failure::file(path, &why))?;
                    continue;
                }
                _ => {}
            }
            let Ok(text) = std::str::from_utf8(&line) else {
                self.refuse(path, &format!("line {number}: no UTF-8"));
                continue;
            };
            match read_line(text, number) {
                Ok(Some(one)) => {
                    let verdict = self.claims.judge(&one);
                    if let Some(label) = self.labels.as_ref().and_then(|it| it.get(&verdict.id)) {
                        self.score.add(&verdict, label);
                    }
                    screen.json(&verdict);
                }
                Ok(None) => {}
                Err(why) => self.refuse(path, &why.to_string()),
            }
        }
        Ok(())
    }

    fn refuse(&mut self, path: &Path, why: &str) {
        self.bad += 1;
        let mut screen = Screen::stderr();
        screen.text(Look::Bad, "error: ");
        screen.line_on(&format!("{}: {why}; an object with `id`, `reply` and `turn_calls` is read", path.display()));
    }

    /// For programs the last line of standard output; for people a table on standard error.
    fn report(&self) {
        let row = |row: &Row| {
            serde_json::json!({"right": row.right, "false_alarms": row.false_alarms, "missed": row.missed,
                "precision": row.precision(), "recall": row.recall()})
        };
        let families: serde_json::Map<_, _> = self.score.families.iter().map(|(k, it)| (k.clone(), row(it))).collect();
        let differ = self.score.differ.iter().map(|(label, it)| {
            serde_json::json!({"id": it.id, "label": label, "claim": it.claim, "pattern": it.pattern, "clause": it.clause})
        });
        let differ: Vec<_> = differ.collect();
        let report = serde_json::json!({"report": {
            "replies": self.score.replies, "precision": self.score.change.precision(), "recall": self.score.change.recall(),
            "change": row(&self.score.change), "handoff": row(&self.score.handoff), "families": families,
            "confusions": self.score.confusions, "supported": {"known": self.score.supported.0, "right": self.score.supported.1},
            "differ": differ,
        }});
        Screen::stdout().json(&report);
    }
}
