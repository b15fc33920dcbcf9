//! `gesta chat`: a talk with an agent at the terminal, or through a pipe, a turn a line.

use std::path::PathBuf;

use clap::Args;
use gesta_run::{ConversationId, HoldReply, Status};
use gesta_runtime::FolderAgent;

use super::{Globals, wait_for};
use crate::environment::Environment;
use crate::exit::{Ended, Exit, Failure};
use crate::holds::read_object;
use crate::lines::{Lines, Typed};
use crate::live::{is_of_configuration, last_fault, short};
use crate::place::{Place, agent_folder};
use crate::remote::{At, Remote};
use crate::signals::has_ended;
use crate::talk::{Here, Over, Talk, With};
use crate::terminal::{Look, Screen};

/// Talk to an agent
///
/// Each line is a turn. What the agent does is shown as it happens; a call that waits for a person is put to you.
/// The talk goes on where it was left at the last start.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta chat examples/coach
  echo \"Swap squats for lunges\" | gesta chat examples/coach
  gesta chat my-agent --watch             edit the folder meanwhile
  gesta chat my-agent --model openai:gpt-5-mini
  gesta chat my-agent --conversation maria
  gesta chat --server https://desk.example.com desk

In the talk: /help lists what can be typed. Ctrl-C cancels a turn and keeps the talk; twice leaves; Ctrl-D leaves.
Through a pipe the exit code is that of the last turn, as of `gesta run`.")]
pub(crate) struct Chat {
    /// The agent's folder; with --server the name of an agent there
    #[arg(value_name = "AGENT")]
    folder: PathBuf,
    /// The talk's name [default: chat/AGENT]
    #[arg(long, value_name = "NAME", conflicts_with = "new")]
    conversation: Option<String>,
    /// Begin a new talk
    #[arg(long)]
    new: bool,
    /// Take up edits of the folder at the next turn
    #[arg(long)]
    watch: bool,
    /// Use this model in place of the agent's
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<String>,
    #[command(flatten)]
    at: At,
}

/// The file in the data folder that keeps what was typed.
const HISTORY: &str = "chat_history";

const HELP: &str = "  a line is a turn; one that begins with a slash is one of these:
  /why               what happened in the last turn, and why
  /approve CALL [ARGUMENTS]   let a waiting call run, also with other arguments
  /deny CALL REASON  do not let it run
  /new               begin a new talk
  /quit              leave (also Ctrl-D)
  //TEXT             say /TEXT";

impl Chat {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        if let Some(remote) = Remote::of(&self.at)? {
            if self.watch || self.model.is_some() {
                let help = "leave it out, or unset GESTA_SERVER to talk to an agent of this machine";
                return Err(Failure::usage(
                    "--watch and --model are about an agent's folder, not about a server",
                    help,
                ));
            }
            return wait_for(self.there(globals, remote));
        }
        let mut environment = Environment::with_model(self.model.as_deref());
        let folder = agent_folder(&self.folder, &environment)?;
        let dotenv = self.folder.join(".env");
        if dotenv.is_file() {
            environment = environment.and_file(&dotenv)?;
        }
        wait_for(async {
            let place = Place::open(globals, Some(&folder)).await?;
            let secrets = || place.secrets();
            let agent = FolderAgent::open(&folder, &environment.lookup(), Some(place.store()), &secrets)?;
            let (name, history) = (folder.settings.plan.agent.clone(), place.data.join(HISTORY));
            let (flag, dir) = (place.flag.clone(), self.folder.clone());
            let with = With::Here(Box::new(Here { dir, folder, agent, environment, place: place.clone() }));
            let exit = self.with(with, name, flag, history, globals).await;
            place.close().await;
            exit
        })
    }

    /// The same with an agent that a server runs.
    async fn there(&self, globals: &Globals, remote: Remote) -> Ended {
        let name = self.folder.to_string_lossy().into_owned();
        remote.model_of(&name).await?;
        let data = crate::place::named(globals, None)?.folder.or_else(gesta_store::default_folder).unwrap_or_default();
        let flag = remote.flag.clone();
        self.with(With::There(Box::new(remote)), name, flag, data.join(HISTORY), globals).await
    }

    async fn with(&self, with: With, agent: String, flag: String, history: PathBuf, globals: &Globals) -> Ended {
        let conversation = match (&self.conversation, self.new) {
            (Some(name), _) => ConversationId::new(name.as_str()),
            (None, true) => fresh(&agent),
            (None, false) => ConversationId::new(format!("chat/{agent}")),
        };
        let mut talk = Talk {
            lines: Lines::of_stdin(history),
            with,
            agent,
            flag,
            conversation,
            screen: Screen::stdout(),
            errors: Screen::stderr(),
            details: globals.verbose > 0,
            quiet: globals.quiet,
            last: None,
            waiting: Vec::new(),
            fault: None,
            leaves: false,
        };
        // From now on a signal is heard, and no longer the end, also between two things that are waited for.
        drop(crate::signals::Signals::listen());
        greet(&mut talk).await?;
        self.talk(&mut talk, globals).await
    }

    async fn talk(&self, talk: &mut Talk, globals: &Globals) -> Ended {
        let mut last = Exit::Done;
        let mut interrupted = false;
        while !talk.leaves && !has_ended() {
            talk.screen.end_line();
            let line = match talk.lines.read("> ", true).await {
                Typed::Line(line) => line,
                Typed::End => break,
                Typed::Interrupted if interrupted || !talk.lines.interactive => return Ok(Exit::Cancelled),
                Typed::Interrupted => {
                    interrupted = true;
                    talk.screen.line(Look::Faint, "  Ctrl-C again leaves");
                    continue;
                }
                Typed::Failed(why) => {
                    last = talk.fail(Failure::usage(format!("nothing more can be read: {why}"), "begin the talk anew"));
                    break;
                }
                Typed::Unusable(why) => {
                    let message = format!("what was typed cannot be used, and was not said: {why}");
                    last = talk.fail(Failure::usage(message, "type text in UTF-8"));
                    continue;
                }
            };
            interrupted = false;
            let text = line.trim();
            if text.is_empty() {
                continue;
            }
            if !talk.lines.interactive && !talk.quiet {
                talk.screen.line(Look::Strong, &format!("> {text}"));
            }
            let done = match text.strip_prefix('/') {
                Some("quit" | "exit") => break,
                Some(command) if !command.starts_with('/') => self.command(talk, command, globals).await,
                said => {
                    if self.watch {
                        talk.take_up_edits();
                    }
                    talk.turn(said.unwrap_or(text)).await
                }
            };
            match done {
                Ok(exit) => last = exit,
                Err(Over) => return Ok(Exit::Cancelled),
            }
        }
        Ok(match (has_ended(), talk.lines.interactive) {
            (true, _) => Exit::Cancelled,
            (false, true) => Exit::Done,
            (false, false) => last,
        })
    }

    async fn command(&self, talk: &mut Talk, command: &str, globals: &Globals) -> Result<Exit, Over> {
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        let (call, more) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
        match word {
            "help" => talk.screen.line(Look::Faint, HELP),
            "why" => return Ok(why(talk, globals).await),
            "new" => {
                talk.conversation = fresh(&talk.agent);
                talk.waiting.clear();
                let text = format!("  a new talk: conversation {}", talk.conversation);
                talk.screen.line(Look::Faint, &text);
            }
            "approve" => {
                let arguments = if more.trim().is_empty() { Ok(None) } else { read_object(more.trim()).map(Some) };
                return match arguments {
                    Ok(arguments) => talk.say_to_hold(call, HoldReply::Approve { arguments }).await,
                    Err(why) => Ok(talk.fail(Failure::usage(why, "/approve CALL {\"name\":\"value\"}"))),
                };
            }
            "deny" => return talk.say_to_hold(call, HoldReply::Deny { reason: more.trim().to_owned() }).await,
            _ => {
                let failure = Failure::usage(format!("there is no /{word}"), "/help lists what there is");
                return Ok(talk.fail(failure));
            }
        }
        Ok(Exit::Done)
    }
}

/// The name of a talk that nobody has begun.
fn fresh(agent: &str) -> ConversationId {
    let id = gesta_store::new_run_id();
    ConversationId::new(format!("chat/{agent}/{}", short(id.as_str())))
}

async fn why(talk: &mut Talk, globals: &Globals) -> Exit {
    let Some(run) = talk.last.clone() else {
        talk.screen.line(Look::Faint, "  nothing has happened yet");
        return Exit::Done;
    };
    match talk.read(&run).await {
        Ok(shown) => {
            super::show::page(&mut talk.screen, globals, &shown, &talk.flag);
            Exit::Done
        }
        Err(failure) => talk.fail(failure),
    }
}

/// Says who is there, how to leave, where it is kept, and what was left from before.
async fn greet(talk: &mut Talk) -> Result<(), Failure> {
    let head = talk.head().await?;
    if !talk.quiet {
        let (model, kept) = talk.whereabouts().await?;
        let turns = head.as_ref().map_or(0, |head| head.turns);
        let so_far = match turns {
            0 => String::new(),
            1 => ", 1 turn so far".to_owned(),
            many => format!(", {many} turns so far"),
        };
        let first = format!("{}, model {model}, conversation {}{so_far}", talk.agent, talk.conversation);
        talk.screen.line(Look::Strong, &first);
        let kept = format!("kept {kept}; /help tells what can be typed, /quit or Ctrl-D leaves");
        talk.screen.line(Look::Faint, &kept);
    }
    let Some(run) = head.and_then(|head| head.run) else { return Ok(()) };
    let shown = talk.read(&run).await?;
    let name = short(run.as_str()).to_owned();
    match shown.stored.head.status {
        Status::Parked => {
            talk.screen.line(Look::Warn, &format!("run {name} waits for a person:"));
            if talk.lines.interactive {
                // Leaving here is leaving the talk as it is: the next line ends it.
                drop(talk.settle(shown.run.result()).await);
            } else {
                talk.waiting = shown.run.holds();
                talk.show_waiting();
            }
        }
        Status::Open => {
            let text =
                format!("run {name} was left unfinished, or still goes on elsewhere; the next turn takes it up first");
            talk.screen.line(Look::Warn, &text);
        }
        Status::Ended if last_fault(&shown.stored.events).is_some_and(is_of_configuration) => {}
        Status::Ended if shown.run.can_go_on() => {
            let outcome = shown.stored.head.outcome.map_or("", gesta_run::Outcome::as_str);
            let text = format!(
                "run {name} ended {outcome}; go on with `gesta resume {}{}`, or say something new",
                crate::shell::quoted(&name),
                talk.flag
            );
            talk.screen.line(Look::Warn, &text);
        }
        Status::Ended => {}
    }
    Ok(())
}
