//! `gesta document call`: one call of one tool, as a model's call would run.

use std::time::Instant;

use clap::Args;
use gesta_run::json::Object;
use gesta_run::tool::Tool;
use gesta_runtime::folder::duration::Length;
use gesta_sandbox::{Call as Asked, Session};
use serde_json::{Value, json};

use super::opened::Opening;
use super::told::{self, Measured};
use crate::commands::{Globals, wait_for};
use crate::exit::{Ended, Exit, Failure};
use crate::terminal::{Look, Screen};

/// The time limit of a tool where nothing else is said (`spec/contract.md`, 2.6).
const TIME_LIMIT_MS: u64 = 30_000;

/// Call one tool of a document and print its result as JSON
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesta document call tools.stof recent_orders '{\"limit\": 3}' \\
      --grant 'App.orders=[{\"id\": \"o_1\", \"total\": 40}]'
  gesta document call tools.stof total_spent --add total_spent.stof --grant 'App.orders=[]'
  gesta document call tools.stof refund '{\"order_id\": \"o_1\", \"amount\": 250}' \\
      --grant 'App.refund=error:refunds over $100 are approved by a person'
  gesta document call tools.stof loop_for_ever --call-time-max 300ms --json

The arguments are checked against the tool's schema, as those of a model are. A grant that is not given throws \
`grant NAME is not available`. What the tool changes is not written anywhere: the file stays as it is.

With --json there is one line: `result` or `error`, the `limit` that was met (call_time, time_limit, work, memory, \
stack, output, values or record), `running_us` in the document, `whole_us` with worker and grants, `peak_bytes` of the \
worker, `grants`, `added` and the `log`.

Exit codes: 0 it gave a result, 1 it failed or met a limit, 2 usage, the arguments do not fit, the document cannot be \
opened, a source was refused.")]
pub(super) struct Call {
    #[command(flatten)]
    opening: Opening,
    /// The tool
    name: String,
    /// Its arguments by name, a JSON object
    #[arg(default_value = "{}")]
    arguments: String,
    /// How long the call may take with its worker and its grants [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = Length::parse)]
    time_limit: Option<Length>,
    /// Print what came of it as JSON on one line
    #[arg(long)]
    json: bool,
}

impl Call {
    pub(super) fn run(self, globals: &Globals) -> Ended {
        let ended = wait_for(self.once(globals));
        match ended {
            Err(failure) if self.json => {
                Screen::stdout().json(&failure.json());
                Ok(failure.exit)
            }
            other => other,
        }
    }

    async fn once(&self, globals: &Globals) -> Ended {
        let arguments = self.arguments()?;
        let opened = self.opening.open().await?;
        if globals.verbose > 0 {
            Screen::stderr().line(Look::Faint, &format!("walls: {}", opened.walls));
        }
        let mut session = self.opening.session(&opened).await?;
        self.fits(&mut session, &arguments).await?;
        let began = Instant::now();
        let outcome = session.call(asked(&self.name, &arguments, self.time_limit), &opened.desk).await;
        let measured = Measured::of(began, &outcome, session, &opened).await;
        if self.json { self.json(outcome, measured) } else { self.tell(outcome, &measured, globals) }
    }

    /// Whether the arguments fit the tool's schema, as they must when a model makes the call.
    async fn fits(&self, session: &mut Session, arguments: &Object) -> Result<(), Failure> {
        // What cannot be described is for the call to say.
        let specs = session.specs().await.unwrap_or_default();
        let Some(spec) = specs.into_iter().find(|spec| spec.name == self.name) else { return Ok(()) };
        let Err(issues) = Tool::new(spec).map_or(Ok(()), |tool| tool.check(arguments)) else { return Ok(()) };
        let message = format!("the arguments do not fit the schema of `{}`, and it was not run", self.name);
        let help = format!("`gesta document specs {}` prints the schemas", self.opening.file.display());
        let mut failure = Failure::usage(message, help).coded("arguments_invalid");
        failure.details = issues.split("; ").map(str::to_owned).collect();
        Err(failure)
    }

    fn arguments(&self) -> Result<Object, Failure> {
        let wrong = |why: String| Failure::usage(why, "write them by name: '{\"limit\": 3}'");
        match gesta_run::json::read_strict(&self.arguments) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(wrong("the arguments are no JSON object".to_owned())),
            Err(why) => Err(wrong(format!("the arguments are no JSON: {why}"))),
        }
    }

    fn tell(
        &self,
        outcome: Result<gesta_document::Called, gesta_sandbox::Failure>,
        measured: &Measured,
        globals: &Globals,
    ) -> Ended {
        let log = outcome.as_ref().map_or_else(|why| &why.log, |called| &called.log);
        if !log.is_empty() {
            Screen::stderr().prose_line(log.trim_end());
        }
        let ended = match outcome {
            Ok(called) => {
                Screen::stdout().data(&serde_json::to_string_pretty(&called.result).unwrap_or_default());
                Ok(Exit::Done)
            }
            Err(why) => Err(told::failed(&why, &self.opening.file)),
        };
        if !globals.quiet {
            measured.tell();
        }
        ended
    }

    fn json(&self, outcome: Result<gesta_document::Called, gesta_sandbox::Failure>, measured: Measured) -> Ended {
        let (exit, mut line) = match outcome {
            Ok(called) => {
                let added: Vec<&str> = called.added.iter().map(|tool| tool.name.as_str()).collect();
                (Exit::Done, json!({"result": called.result, "added": added, "log": called.log}))
            }
            Err(why) => {
                let failure = told::failed(&why, &self.opening.file);
                let mut line = failure.json();
                line["limit"] = json!(told::limit_of(&why.cause));
                line["log"] = json!(why.log);
                (failure.exit, line)
            }
        };
        measured.add_to(&mut line);
        Screen::stdout().json(&line);
        Ok(exit)
    }
}

/// A call by nobody in particular.
pub(super) fn asked<'a>(tool: &'a str, arguments: &'a Object, time_limit: Option<Length>) -> Asked<'a> {
    let time_limit_ms = time_limit.map_or(TIME_LIMIT_MS, |it| it.ms);
    Asked { tool, arguments, time_limit_ms, author: None, at: None }
}
