//! `gesta resume`: answers what waits, or goes on with a run that was left or failed.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use gesta_run::json::{DEPTH_MAX, read_strict};
use gesta_run::{AnswerError, Binding, Effect, FaultKind, HoldAnswer, HoldReply, Outcome, Run, RunId, Status};
use gesta_runtime::{AgentError, FolderAgent, OpenError, Resumed};
use gesta_store::Store;

use super::run::{Screens, or_json};
use super::{Globals, wait_for};
use crate::environment::Environment;
use crate::exit::{CODES, Ended, Exit, Failure};
use crate::holds::{name_of, named, read_object};
use crate::live::{Line, Live, last_fault, short};
use crate::place::Place;
use crate::remote::{At, Remote};
use crate::render::Teller;
use crate::shell::quoted;
use crate::stored::{self, Shown};
use crate::terminal::Look;

/// Answer what waits in a run, or go on with one that was left or failed
///
/// The agent's folder is not needed: the run goes on with the configuration it was begun under. Keys and secrets come
/// from the environment. All answers of one command count together, or none of them.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:
  gesta resume last --approve c1
  gesta resume last --approve c1 --arguments '{{\"amount\":50}}'
  gesta resume last --deny c1 --reason \"too much\" --approve c2
  gesta resume last --result c1 '{{\"done\":true}}'
  gesta resume last                       go on after a crash, or after the model failed
  gesta resume last --trips 20            go on after max_trips

{CODES}"))]
pub(crate) struct Resume {
    /// The run: its id, the beginning of it, or `last`
    run: String,
    #[command(flatten)]
    answers: Answers,
    /// Go on with at most so many trips
    #[arg(long, value_name = "N")]
    trips: Option<u32>,
    /// Where the tool of an approved call is gone, tell the model so
    #[arg(long)]
    force: bool,
    /// Read keys and secrets from this file too
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// Print the whole result as JSON on one line, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: At,
}

impl Resume {
    pub(crate) fn run(self, globals: &Globals) -> Ended {
        let json = self.json;
        or_json(json, globals, self.answer(globals))
    }

    fn answer(self, globals: &Globals) -> Ended {
        if let Some(why) = &self.answers.wrong {
            return Err(Failure::usage(why.text.as_str(), "`gesta resume --help` has examples").coded(why.code));
        }
        if let Some(remote) = Remote::of(&self.at)? {
            return wait_for(self.at_server(globals, &remote));
        }
        let environment = match &self.env_file {
            Some(path) => Environment::default().and_file(path)?,
            None => Environment::default(),
        };
        wait_for(async {
            let place = Place::open_if_there(globals).await?.ok_or_else(stored::no_run)?;
            let store = place.store();
            let head = stored::find(&place, &self.run).await?;
            let shown = stored::read(&store, &head.run).await?;
            let mut screens = Screens::new(self.json, globals);
            if self.asks_nothing(&shown.run) && head.held_by.is_none() {
                let resumed = Resumed { result: shown.run.result(), already_answered: Vec::new() };
                let exit = self.finish(&mut screens, &Told::of(&shown, None), &resumed, &place.flag);
                place.close().await;
                return exit;
            }
            let answers = bind(&shown.run, &head.run, &self.answers.given);
            let line = Line::new();
            let resume = gesta_runtime::Resume {
                answers,
                trips_max: self.trips,
                force: self.force,
                cancel: line.cancel.clone(),
                listener: Some(line.listener.clone()),
                ..gesta_runtime::Resume::default()
            };
            let lookup = environment.lookup();
            let secrets = || place.secrets();
            let work = FolderAgent::resume(Arc::clone(&store), &head.run, &lookup, &secrets, resume);
            let teller = Teller::new(&shown.run.plan().spec).after(&shown.stored.events);
            let waits = head.held_by.as_ref().map(|_| {
                let run = short(head.run.as_str());
                format!("another process works on run {run}: waits until it is done, at most 30 s; Ctrl-C leaves")
            });
            let mut live = screens.live(teller).waiting(waits);
            let followed = live.follow(work, line).await;
            let told = Told::of(&shown, Some(&live));
            let Ok(resumed) = followed else { return Ok(Exit::Cancelled) };
            let exit = match resumed {
                Ok(resumed) => self.finish(&mut screens, &told, &resumed, &place.flag),
                Err(why) => Err(self.refused(&store, &shown.run, &head.run, why).await),
            };
            place.close().await;
            exit
        })
    }

    /// Whether nothing is left to do in the run, and nothing else is asked for: no model is needed to say so.
    fn asks_nothing(&self, run: &Run) -> bool {
        let asked = !self.answers.given.is_empty() || self.trips.is_some();
        let due = run.wants().iter().any(|want| !matches!(want.effect, Effect::Hold(_)));
        run.status() == Status::Ended && !asked && !due && !run.can_go_on()
    }

    /// The same at a server, which tells how the run stands when it has gone on.
    async fn at_server(&self, globals: &Globals, remote: &Remote) -> Ended {
        let shown = remote.read(&self.run).await?;
        let run = &shown.stored.head.run;
        let answers = bind(&shown.run, run, &self.answers.given);
        let answered = remote.answer(run, &answers, self.trips, self.force).await?;
        let (result, already_answered) = (answered.result, answered.already_answered);
        let mut screens = Screens::new(self.json, globals);
        screens.say(&result.text);
        let told = Told::of(&shown, None);
        self.finish(&mut screens, &told, &Resumed { result, already_answered }, &remote.flag)
    }

    fn finish(&self, screens: &mut Screens, told: &Told, resumed: &Resumed, flag: &str) -> Ended {
        for call in &resumed.already_answered {
            let record = resumed.result.tool_calls.iter().find(|it| it.id == *call);
            let word = record.map_or_else(|| call.to_string(), |it| name_of(&it.id, it.trip, it.index));
            let outcome = record.and_then(|it| serde_json::to_value(it.status).ok());
            let outcome = outcome.as_ref().and_then(|it| it.as_str()).map(|it| format!(" ({it})")).unwrap_or_default();
            screens.note(Look::Warn, &format!("  {word} was answered like this before: nothing ran again{outcome}"));
        }
        let given = self.answers.given.len();
        let repeated = given > 0 && resumed.already_answered.len() == given;
        let was_over = resumed.result.status == Status::Ended && !told.happened;
        if was_over && given == 0 {
            screens.note(Look::Warn, "  the run had ended: nothing ran again");
        }
        if repeated || was_over {
            screens.say(&resumed.result.text);
        }
        screens.finish_with(&resumed.result, resumed, told.fault, flag);
        Ok(Exit::of(&resumed.result))
    }

    async fn refused(&self, store: &Arc<dyn Store>, before: &Run, run: &RunId, why: OpenError) -> Failure {
        if let OpenError::Agent(AgentError::Answers(why)) = &why {
            // Read again: whoever was first may have answered since this command looked.
            let now = stored::read(store, run).await;
            let first = match (why, &now) {
                (AnswerError::Conflict { call }, Ok(now)) => now.run.hold_answers(call).last(),
                _ => None,
            };
            return Failure::of_answers(why, &self.run, first);
        }
        let missing = matches!(why, OpenError::Provider(_) | OpenError::Folder(_));
        let mut failure = Failure::from(why);
        let out_of_trips = before.outcome() == Some(&Outcome::MaxTrips) && self.trips.is_none();
        if failure.code == "cannot_go_on" && out_of_trips {
            failure.help = format!("give it more trips: `gesta resume {} --trips N`", quoted(&self.run));
        }
        if missing {
            let waits = if before.status() == Status::Parked { ", and still waits" } else { "" };
            failure.message = format!("run `{}` cannot go on here{waits}: {}", self.run, failure.message);
            failure.help = format!("{}, or name the agent's file with --env-file FOLDER/.env", failure.help);
        }
        failure
    }
}

/// What was seen of the run while it went on.
struct Told {
    /// Something happened in it.
    happened: bool,
    /// How the model failed last.
    fault: Option<FaultKind>,
}

impl Told {
    fn of(before: &Shown, live: Option<&Live<'_>>) -> Self {
        let fault = live.and_then(|live| live.fault).or_else(|| last_fault(&before.stored.events));
        Self { happened: live.is_some_and(|live| live.happened), fault }
    }
}

/// Gives each answer the binding of its hold, as the store shows it.
fn bind(run: &Run, id: &RunId, given: &[Given]) -> Vec<HoldAnswer> {
    let holds = run.holds();
    let bound = |given: &Given| {
        let call = named(run, &given.call);
        let open = holds.iter().find(|hold| hold.id == call).map(|hold| hold.binding.clone());
        // Of a hold that is closed or unknown only the run can be named; the machine says what is wrong with it.
        let binding = open.unwrap_or_else(|| Binding {
            run_id: id.clone(),
            call_id: call,
            tool: String::new(),
            fingerprint: String::new(),
            config_version: run.plan().hash().to_owned(),
        });
        HoldAnswer { binding, answer: given.reply.clone() }
    };
    given.iter().map(bound).collect()
}

/// What was said to one call.
#[derive(Debug, Clone, PartialEq)]
struct Given {
    call: String,
    reply: HoldReply,
}

/// The answers of a command, in the order in which they stand there.
#[derive(Debug, Clone, Default, PartialEq)]
struct Answers {
    given: Vec<Given>,
    /// Why they cannot be used. Told by this command and not by the parser, which would name the whole program.
    wrong: Option<Wrong>,
}

/// Why answers cannot be used.
#[derive(Debug, Clone, PartialEq)]
struct Wrong {
    text: String,
    /// As in `docs/errors.md`.
    code: &'static str,
}

impl From<String> for Wrong {
    fn from(text: String) -> Self {
        Self { text, code: "usage" }
    }
}

impl Args for Answers {
    fn augment_args(command: Command) -> Command {
        let option = |name: &'static str, values: &[&'static str], help: &'static str| {
            Arg::new(name)
                .long(name)
                .value_names(values.to_vec())
                .num_args(values.len())
                .action(ArgAction::Append)
                // A text may begin with a hyphen, JSON with that of a number; neither takes the next option for its own.
                .allow_hyphen_values(values.contains(&"TEXT"))
                .allow_negative_numbers(values.contains(&"JSON"))
                .help(help)
        };
        command
            .arg(option("approve", &["CALL"], "Let it run"))
            .arg(option("arguments", &["JSON"], "For the --approve before it: with these arguments"))
            .arg(option("deny", &["CALL"], "Do not let it run"))
            .arg(option("reason", &["TEXT"], "For the --deny before it: what the model reads"))
            .arg(option("result", &["CALL", "JSON"], "It was done elsewhere, and this came of it"))
            .arg(option("error", &["CALL", "TEXT"], "It was tried elsewhere, and failed"))
            .arg(option("unknown", &["CALL"], "Nobody knows what came of it (after a crash)"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Answers {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found: Vec<(usize, &str, Vec<String>)> = Vec::new();
        for name in ["approve", "arguments", "deny", "reason", "result", "error", "unknown"] {
            let Some(values) = matches.get_occurrences::<String>(name) else { continue };
            let mut indices = matches.indices_of(name).into_iter().flatten();
            for values in values {
                let values: Vec<String> = values.cloned().collect();
                let at = indices.by_ref().take(values.len()).last().unwrap_or_default();
                found.push((at, name, values));
            }
        }
        found.sort_by_key(|(at, ..)| *at);
        let mut answers = Self::default();
        for (_, name, values) in found {
            if let Err(why) = answers.take(name, values) {
                answers.wrong = Some(why);
                return Ok(answers);
            }
        }
        let blank = |given: &&Given| matches!(&given.reply, HoldReply::Deny { reason } if reason.is_empty());
        let unsaid = answers.given.iter().find(blank).map(|given| given.call.clone());
        answers.wrong = unsaid.map(|call| Wrong {
            text: format!("--deny {call} needs --reason TEXT behind it: the model reads it"),
            code: "no_reason",
        });
        Ok(answers)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Answers {
    fn take(&mut self, name: &str, values: Vec<String>) -> Result<(), Wrong> {
        if let Some(option) = values.iter().find(|value| is_option(value)) {
            return Err(format!("--{name} needs more behind it before `{option}`").into());
        }
        let mut values = values.into_iter();
        let first = values.next().unwrap_or_default();
        let second = values.next().unwrap_or_default();
        let reply = match name {
            "approve" => HoldReply::Approve { arguments: None },
            "deny" => HoldReply::Deny { reason: String::new() },
            "result" => {
                let value = read_strict(&second).map_err(|why| no_json(&first, &second, &why))?;
                HoldReply::Result { value }
            }
            "error" if second.trim().is_empty() => {
                return Err(format!("--error {first} needs a text: the model reads it").into());
            }
            "error" => HoldReply::Error { text: second },
            "unknown" => HoldReply::OutcomeUnknown,
            "arguments" => {
                return match self.given.last_mut().map(|given| &mut given.reply) {
                    Some(HoldReply::Approve { arguments: slot @ None }) => {
                        *slot = Some(read_object(&first)?);
                        Ok(())
                    }
                    _ => Err("--arguments stands behind the --approve it is for".to_owned().into()),
                };
            }
            _ => {
                return match self.given.last_mut().map(|given| &mut given.reply) {
                    Some(HoldReply::Deny { reason }) if reason.is_empty() => {
                        *reason = first;
                        Ok(())
                    }
                    _ => Err("--reason stands behind the --deny it is for".to_owned().into()),
                };
            }
        };
        self.given.push(Given { call: first, reply });
        Ok(())
    }
}

fn no_json(call: &str, text: &str, why: &serde_json::Error) -> Wrong {
    // Too many levels end the reading where the text may be JSON all the same.
    let levels = text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if levels > DEPTH_MAX && why.to_string().contains("recursion limit") {
        let text = format!("--result {call} is nested more than {DEPTH_MAX} levels deep; hand in something flatter");
        return Wrong { text, code: "too_deep" };
    }
    format!("--result {call}: no JSON: {why}").into()
}

/// A value that was left out lets the next option stand in its place.
fn is_option(value: &str) -> bool {
    let word = value.strip_prefix("--").unwrap_or_default();
    let word = word.split('=').next().unwrap_or_default();
    !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;
    use crate::render::hold_reply;

    fn read(words: &[&str]) -> Result<Vec<Given>, String> {
        let words = ["gesta", "resume", "r1"].iter().chain(words);
        match Cli::try_parse_from(words).map_err(|why| why.to_string())?.command {
            Command::Resume(Resume { answers: Answers { given, wrong: None }, .. }) => Ok(given),
            Command::Resume(Resume { answers, .. }) => Err(answers.wrong.map(|it| it.text).unwrap_or_default()),
            _ => Err("another command".to_owned()),
        }
    }

    #[test]
    fn each_answer_takes_what_stands_behind_it() {
        let given = read(&[
            "--approve",
            "a",
            "--deny",
            "b",
            "--reason",
            "no",
            "--approve",
            "c",
            "--arguments",
            r#"{"n":-1}"#,
            "--result",
            "d",
            "-1",
            "--error",
            "e",
            "broken",
            "--unknown",
            "f",
        ]);
        let said: Vec<String> =
            given.unwrap().iter().map(|it| format!("{} {}", it.call, hold_reply(&it.reply))).collect();
        assert_eq!(
            said,
            [
                "a was approved",
                "b was denied: no",
                r#"c was approved with {"n":-1}"#,
                "d was done elsewhere: -1",
                "e failed elsewhere: broken",
                "f is given up: nobody knows what came of it",
            ]
        );
    }

    #[test]
    fn what_belongs_to_nothing_is_refused() {
        for (words, why) in [
            (vec!["--arguments", "{}"], "--arguments stands behind"),
            (vec!["--approve", "a", "--arguments", "[1]"], "must be a JSON object"),
            (vec!["--approve", "a", "--reason", "x"], "--reason stands behind"),
            (vec!["--deny", "a"], "needs --reason"),
            (vec!["--error", "a", " "], "needs a text"),
            (vec!["--result", "a", "{"], "no JSON"),
            (vec!["--result", "a"], "2 values required"),
            (vec!["--result", "a", "--data", "d"], "2 values required"),
            (vec!["--deny", "--json"], "a value is required"),
            (vec!["--deny", "a", "--reason", "--json"], "--reason needs more behind it before `--json`"),
        ] {
            let refused = read(&words).unwrap_err();
            assert!(refused.contains(why), "{words:?}: {refused}");
        }
    }
}
