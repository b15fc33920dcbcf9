//! `gesta run`: one turn of an agent, for people and for programs.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use gesta_run::{ConversationId, Outcome, Part, RunResult, Source};
use gesta_runtime::{Ask, FolderAgent};

use super::{Globals, wait_for};
use crate::environment::Environment;
use crate::exit::{CODES, Ended, Exit, Failure};
use crate::holds;
use crate::left::closes;
use crate::lines::{INPUT_BYTES_MAX, whole_stdin};
use crate::live::{Line, Live, Notes, summary, ways_on};
use crate::place::{Place, agent_folder, secrets_of};
use crate::render::Teller;
use crate::shell::quoted;
use crate::terminal::{Look, Screen};

/// Say one thing to an agent
///
/// What the model says goes to standard output as it comes, what happens meanwhile to standard error.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:
  gesta run examples/coach \"Swap squats for lunges\"
  gesta run examples/coach --json \"Swap squats for lunges\" | jq .text
  echo \"What is on this picture?\" | gesta run my-agent --image cat.png -
  gesta run my-agent --conversation maria \"And now?\"

{CODES}"))]
pub(crate) struct Run {
    /// The agent's folder
    folder: PathBuf,
    /// What to say; `-` reads it from standard input, as does leaving it out where a pipe is attached
    text: Option<String>,
    /// Add a picture: a file or an https address
    #[arg(long, value_name = "FILE")]
    image: Vec<String>,
    /// Add a file
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Make it a turn of this conversation; without one the run has no history
    #[arg(long, value_name = "NAME")]
    conversation: Option<String>,
    /// Print the whole result as JSON on one line, and nothing else
    #[arg(long)]
    json: bool,
    /// Use this model in place of the agent's
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<String>,
}

impl Run {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        let json = self.json;
        or_json(json, self.turn(globals))
    }

    fn turn(self, globals: &Globals) -> Ended {
        let environment = Environment::with_model(self.model.as_deref());
        let folder = agent_folder(&self.folder, &environment)?;
        let input = self.input()?;
        let place = Place::open(globals, Some(&folder))?;
        let secrets = || secrets_of(&place.data);
        let agent = FolderAgent::open(&folder, &environment.lookup(), Some(place.store()), &secrets)?;
        let teller = Teller::new(&folder.settings.plan);
        wait_for(async {
            let line = Line::new();
            let ask = Ask {
                input,
                conversation: self.conversation.as_deref().map(ConversationId::new),
                cancel: line.cancel.clone(),
                listener: Some(line.listener.clone()),
                ..Ask::default()
            };
            let mut screens = Screens::new(self.json, globals);
            if let Some(conversation) = &ask.conversation
                && let Some(closed) = closes(&place.store(), conversation).await?
            {
                screens.beside(Look::Warn, &format!("  {closed}"));
            }
            let followed = screens.live(teller).of_turn().follow(agent.agent().run(ask), line).await;
            let Ok(result) = followed else { return Ok(Exit::Cancelled) };
            let result = result?;
            screens.finish(&result, &place.flag);
            place.close().await;
            Ok(Exit::of(&result))
        })
    }

    fn input(&self) -> Result<Vec<Part>, Failure> {
        let mut parts = Vec::new();
        let attached = !self.image.is_empty() || !self.file.is_empty();
        let piped = !std::io::stdin().is_terminal();
        match self.text.as_deref() {
            Some("-") => parts.push(Part::text(from_stdin()?)),
            Some(text) => parts.push(Part::text(text)),
            None if attached => {}
            None if piped => parts.push(Part::text(from_stdin()?)),
            None => {
                let help = format!("write it behind the folder: `gesta run {} \"Hello\"`", quoted(&self.folder));
                return Err(Failure::usage("there is nothing to say", help));
            }
        }
        for image in &self.image {
            parts.push(picture(image)?);
        }
        for file in &self.file {
            parts.push(attachment(file)?);
        }
        Ok(parts)
    }
}

/// With `--json` programs read there, too, why there is no result.
pub(super) fn or_json(json: bool, ended: Ended) -> Ended {
    if let (true, Err(failure)) = (json, &ended) {
        Screen::stdout().json(&failure.json());
    }
    ended
}

fn from_stdin() -> Result<String, Failure> {
    let text =
        whole_stdin().map_err(|(why, help)| Failure::usage(format!("standard input cannot be used: {why}"), help))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn picture(image: &str) -> Result<Part, Failure> {
    let path = Path::new(image);
    if image.starts_with("http://") {
        let help = "name it by https, or save it and name the file";
        return Err(Failure::usage(format!("{image} is not fetched without encryption"), help));
    }
    let media_type = match extension(path).as_str() {
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "png" => "image/png",
        _ if image.starts_with("https://") => "image/*",
        _ => {
            return Err(Failure::usage(
                format!("{image} is no picture"),
                "pictures are png, jpg, gif or webp; try --file",
            ));
        }
    };
    let source = if image.starts_with("https://") { Source::Url(image.to_owned()) } else { bytes_of(path)? };
    Ok(Part::Image { media_type: media_type.to_owned(), source })
}

fn attachment(path: &Path) -> Result<Part, Failure> {
    let media_type = match extension(path).as_str() {
        "pdf" => "application/pdf",
        "json" => "application/json",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "md" => "text/markdown",
        "txt" | "log" => "text/plain",
        _ => "application/octet-stream",
    };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Part::File { media_type: media_type.to_owned(), name, source: bytes_of(path)? })
}

fn extension(path: &Path) -> String {
    path.extension().map(|it| it.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// Reads a file to its end. A device or a pipe, which may have none, is refused.
fn bytes_of(path: &Path) -> Result<Source, Failure> {
    let failed = |why: std::io::Error| Failure::file(path, &why);
    let refused = |what: &str| {
        Failure::usage(format!("{} {what}", path.display()), "save it into a file of at most 16 MiB, and name that")
    };
    // Looked at before it is opened: opening a pipe would wait for somebody to write.
    let about = std::fs::metadata(path).map_err(failed)?;
    if !about.is_file() {
        return Err(refused(if about.is_dir() { "is a folder" } else { "is a device or a pipe, and no file" }));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 {
        0 => Err(refused("is empty")),
        length if length > INPUT_BYTES_MAX => Err(refused("is too long to be sent")),
        _ => Ok(Source::Base64(STANDARD.encode(bytes))),
    }
}

/// Where one turn is shown.
pub(crate) struct Screens {
    out: Screen,
    notes: Screen,
    json: bool,
    details: bool,
    quiet: bool,
    shown: Screen,
}

impl Screens {
    /// The answer goes to standard output, everything else to standard error; with `--json` only the result is shown.
    pub(crate) fn new(json: bool, globals: &Globals) -> Self {
        let shown = if json { Screen::nowhere() } else { Screen::stdout() };
        let (out, notes) = (Screen::stdout(), Screen::stderr());
        Self { out, notes, json, details: globals.verbose > 0, quiet: globals.quiet, shown }
    }

    /// For following a run.
    pub(crate) fn live(&mut self, teller: Teller) -> Live<'_> {
        let notes = match (self.quiet, self.json) {
            (true, _) => Notes::Nowhere,
            (false, true) => Notes::Before(&mut self.notes),
            (false, false) => Notes::Beside(&mut self.notes),
        };
        Live::new(&mut self.shown, notes, teller, self.details)
    }

    /// A line beside the answer, also where that is one for programs.
    fn beside(&mut self, look: Look, text: &str) {
        if !self.quiet {
            self.notes.line(look, text);
        }
    }

    /// A line beside the answer.
    pub(crate) fn note(&mut self, look: Look, text: &str) {
        if !self.json && !self.quiet {
            self.notes.line(look, text);
        }
    }

    /// An answer that was given before, and was not heard here.
    pub(crate) fn say(&mut self, text: &str) {
        if !text.is_empty() {
            self.shown.prose_line(text);
        }
    }

    /// Shows how it stands in the end.
    pub(crate) fn finish(&mut self, result: &RunResult, flag: &str) {
        self.finish_with(result, result, flag);
    }

    /// The same, where programs are told more than the result.
    pub(crate) fn finish_with(&mut self, result: &RunResult, whole: &impl serde::Serialize, flag: &str) {
        if self.json {
            self.out.json(whole);
            return;
        }
        self.shown.end_line();
        if self.quiet {
            return;
        }
        // Whether what waits was written down is not known where the store failed.
        let waiting = result.deferred.iter().filter(|_| result.outcome != Some(Outcome::StoreFailed));
        for hold in waiting {
            for line in holds::lines_of(hold) {
                self.notes.line(Look::Warn, &format!("  {line}"));
            }
            for command in holds::commands_of(hold, flag) {
                self.notes.line(Look::Plain, &format!("    {command}"));
            }
        }
        self.notes.line(Look::Faint, &format!("  {}", summary(result)));
        for (look, text) in ways_on(result, flag) {
            self.notes.line(look, &text);
        }
    }
}
