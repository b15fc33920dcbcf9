//! A talk with an agent, turn by turn: what `gesta chat` keeps between the lines a person types.

mod there;

use std::path::PathBuf;
use std::sync::Arc;

use gesta_run::{AnswerError, ConversationId, FaultKind, Hold, HoldAnswer, HoldReply, Part, RunId, RunResult, Status};
use gesta_runtime::folder::Folder;
use gesta_runtime::{AgentError, Ask, FolderAgent, OpenError, Resume};
use gesta_store::Store;

use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::holds::{self, Asked};
use crate::lines::Lines;
use crate::live::{Line, Live, Notes, short, summary, unwell, ways_on};
use crate::place::{Place, agent_folder};
use crate::remote::Remote;
use crate::render::Teller;
use crate::terminal::{Look, Screen};

/// An agent that runs in this process.
pub(crate) struct Here {
    /// The agent's folder on disk.
    pub(crate) dir: PathBuf,
    /// As it was read last.
    pub(crate) folder: Folder,
    /// The agent made of it.
    pub(crate) agent: FolderAgent,
    /// Variables, those of the folder's `.env` included.
    pub(crate) environment: Environment,
    /// Where it is kept.
    pub(crate) place: Place,
}

/// Who is talked to.
pub(crate) enum With {
    /// An agent of this machine.
    Here(Box<Here>),
    /// An agent that a server runs.
    There(Box<Remote>),
}

/// A talk.
pub(crate) struct Talk {
    /// Who is talked to.
    pub(crate) with: With,
    /// The agent's name.
    pub(crate) agent: String,
    /// What a later command needs to find the talk again.
    pub(crate) flag: String,
    /// Under which name.
    pub(crate) conversation: ConversationId,
    /// What the person types.
    pub(crate) lines: Lines,
    /// Where all is shown but errors.
    pub(crate) screen: Screen,
    /// Where errors are shown.
    pub(crate) errors: Screen,
    /// Also what is usually left out.
    pub(crate) details: bool,
    /// The answer alone.
    pub(crate) quiet: bool,
    /// The last run, for `/why`.
    pub(crate) last: Option<RunId>,
    /// What waits in this talk.
    pub(crate) waiting: Vec<Hold>,
    /// How the model failed in the last turn.
    pub(crate) fault: Option<FaultKind>,
    /// The person leaves.
    pub(crate) leaves: bool,
}

/// What came of answers to holds.
enum Answered {
    /// They count, and the run stands like this.
    Now(RunResult),
    /// They were refused, which was told, and the run stands like this.
    Otherwise(RunResult, Exit),
    /// The run cannot be gone on with here, which was told.
    Not(Exit),
}

/// The talk is over because someone left in the middle of a turn.
pub(crate) struct Over;

impl Talk {
    /// One turn, with what the person decides meanwhile.
    ///
    /// # Errors
    /// The person left.
    pub(crate) async fn turn(&mut self, text: &str) -> Result<Exit, Over> {
        match self.closes().await {
            Ok(Some(closed)) if !self.quiet => self.screen.line(Look::Warn, &format!("  {closed}")),
            Ok(_) => {}
            Err(failure) => return Ok(self.fail(failure)),
        }
        let Self { with, screen, quiet, details, .. } = self;
        let here = match with {
            With::Here(here) => here,
            With::There(_) => return self.turn_there(text).await,
        };
        let line = Line::new();
        let ask = Ask {
            input: vec![Part::text(text)],
            conversation: Some(self.conversation.clone()),
            cancel: line.cancel.clone(),
            listener: Some(line.listener.clone()),
            ..Ask::default()
        };
        let teller = Teller::new(&here.folder.settings.plan);
        let mut live = Live::new(screen, notes(*quiet), teller, *details).of_turn();
        let result = live.follow(here.agent.agent().run(ask), line).await.map_err(|_| Over)?;
        self.fault = live.fault;
        match result {
            Ok(result) => self.settle(result).await,
            Err(why) => Ok(self.fail(why.into())),
        }
    }

    async fn closes(&self) -> Result<Option<String>, Failure> {
        match &self.with {
            With::Here(here) => crate::left::closes(&here.place.store(), &self.conversation).await,
            With::There(remote) => {
                let head = remote.conversation(&self.conversation).await?;
                let Some(run) = head.and_then(|head| head.run) else { return Ok(None) };
                Ok(crate::left::closed(&remote.read(run.as_str()).await?))
            }
        }
    }

    /// Answers holds of a run, and goes on with it.
    ///
    /// # Errors
    /// The person left.
    pub(crate) async fn answer(&mut self, run: &RunId, answers: Vec<HoldAnswer>) -> Result<Exit, Over> {
        match self.resume(run, answers).await? {
            Answered::Now(result) => self.settle(result).await,
            // How the run stands is shown; that the answer was refused is what it came to.
            Answered::Otherwise(result, exit) => self.settle(result).await.map(|_| exit),
            Answered::Not(exit) => Ok(exit),
        }
    }

    /// Answers one hold of those that wait.
    ///
    /// # Errors
    /// The person left.
    pub(crate) async fn say_to_hold(&mut self, call: &str, reply: HoldReply) -> Result<Exit, Over> {
        let only = call.is_empty() && self.waiting.len() == 1;
        let found = self.waiting.iter().find(|hold| hold.id.as_str() == call || holds::name(hold) == call || only);
        let Some(hold) = found else {
            let open: Vec<String> = self.waiting.iter().map(holds::name).collect();
            let help =
                if open.is_empty() { "nothing waits here".to_owned() } else { format!("waiting: {}", open.join(", ")) };
            return Ok(self.fail(Failure::usage(format!("no call `{call}` waits"), help)));
        };
        let (run, binding) = (hold.binding.run_id.clone(), hold.binding.clone());
        self.answer(&run, vec![HoldAnswer { binding, answer: reply }]).await
    }

    async fn resume(&mut self, run: &RunId, answers: Vec<HoldAnswer>) -> Result<Answered, Over> {
        let Self { with, screen, quiet, details, .. } = self;
        let here = match with {
            With::Here(here) => here,
            With::There(_) => return self.resume_there(run, &answers).await,
        };
        let line = Line::new();
        let given = answers.len();
        let resume =
            Resume { answers, cancel: line.cancel.clone(), listener: Some(line.listener.clone()), ..Resume::default() };
        let store: Arc<dyn Store> = here.place.store();
        let shown = match crate::stored::read(&store, run).await {
            Ok(shown) => shown,
            Err(why) => return Ok(Answered::Not(self.fail(why))),
        };
        let teller = Teller::new(&shown.run.plan().spec).after(&shown.stored.events);
        let lookup = here.environment.lookup();
        let secrets = || here.place.secrets();
        let work = FolderAgent::resume(store.clone(), run, &lookup, &secrets, resume);
        let mut live = Live::new(screen, notes(*quiet), teller, *details);
        let resumed = live.follow(work, line).await.map_err(|_| Over)?;
        self.fault = live.fault;
        match resumed {
            Ok(resumed) => {
                if resumed.already_answered.len() == given {
                    self.said_before(&resumed.result);
                }
                Ok(Answered::Now(resumed.result))
            }
            Err(OpenError::Agent(AgentError::Answers(why))) => Ok(self.refused(&store, run, &why).await),
            Err(why) => Ok(Answered::Not(self.fail(why.into()))),
        }
    }

    fn said_before(&mut self, result: &RunResult) {
        self.screen.line(Look::Warn, "  somebody has said the same before: nothing ran again");
        self.screen.prose_line(&result.text);
    }

    /// Tells why answers were refused, and how the run stands now: somebody else may have answered meanwhile.
    async fn refused(&mut self, store: &Arc<dyn Store>, run: &RunId, why: &AnswerError) -> Answered {
        let shown = match crate::stored::read(store, run).await {
            Ok(shown) => shown,
            Err(why) => return Answered::Not(self.fail(why)),
        };
        let first = match why {
            AnswerError::Conflict { call } => shown.run.hold_answers(call).last(),
            _ => None,
        };
        let exit = self.fail(Failure::of_answers(why, short(run.as_str()), first));
        let result = shown.run.result();
        if result.status == Status::Ended && !result.text.is_empty() {
            self.screen.prose_line(&result.text);
        }
        Answered::Otherwise(result, exit)
    }

    /// Shows how a run stands, and asks about what waits as long as the person answers.
    ///
    /// # Errors
    /// The person left.
    pub(crate) async fn settle(&mut self, mut result: RunResult) -> Result<Exit, Over> {
        let mut exit = Exit::of(&result);
        let mut asked = false;
        loop {
            let run = result.report.run_id.clone();
            self.last = Some(run.clone());
            self.waiting.clone_from(&result.deferred);
            if self.waiting.is_empty() || !self.lines.interactive {
                break;
            }
            asked = true;
            let Asked { answers, leaves } = holds::ask(&self.lines, &mut self.screen, &result.deferred).await;
            self.leaves = leaves;
            if answers.is_empty() {
                break;
            }
            (result, exit) = match self.resume(&run, answers).await? {
                Answered::Now(next) => (next.clone(), Exit::of(&next)),
                Answered::Otherwise(next, exit) => (next, exit),
                Answered::Not(exit) => return Ok(exit),
            };
        }
        self.show_commands(!asked);
        if !self.quiet {
            self.screen.line(Look::Faint, &format!("  {}", summary(&result)));
        }
        for (look, text) in ways_on(&result, self.fault, &self.flag) {
            self.screen.line(look, &text);
        }
        if self.quiet
            && let Some(why) = unwell(&result)
        {
            self.screen.end_line();
            self.errors.line(Look::Bad, &why);
        }
        if result.status == Status::Ended && result.empty_reply && result.error.is_none() {
            self.screen.line(Look::Warn, "  the model said nothing");
        }
        Ok(exit)
    }

    /// What waits, and how it is answered.
    pub(crate) fn show_waiting(&mut self) {
        self.show_commands(true);
    }

    /// The commands that answer what waits, each hold with its lines where the person has not just read them.
    fn show_commands(&mut self, with_lines: bool) {
        for hold in &self.waiting {
            for line in holds::lines_of(hold).into_iter().filter(|_| with_lines) {
                self.screen.line(Look::Warn, &format!("  {line}"));
            }
            for command in holds::commands_of(hold, &self.flag) {
                self.screen.line(Look::Plain, &format!("    {command}"));
            }
        }
    }

    /// Reads the folder again where it was edited. One that cannot be used is told, and the old one stays.
    pub(crate) fn take_up_edits(&mut self) {
        let With::Here(here) = &mut self.with else { return };
        let folder = match agent_folder(&here.dir, &here.environment) {
            Ok(folder) if folder.snapshot() == here.folder.snapshot() => return,
            Ok(folder) => folder,
            Err(failure) => {
                self.fail(failure);
                return self.screen.line(Look::Warn, "  the folder as it was before goes on");
            }
        };
        let secrets = || here.place.secrets();
        match FolderAgent::open(&folder, &here.environment.lookup(), Some(here.place.store()), &secrets) {
            Ok(agent) => {
                here.agent = agent;
                here.folder = folder;
                self.screen.line(Look::Good, "  took up what was edited in the folder");
            }
            Err(why) => drop(self.fail(why.into())),
        }
    }

    /// Tells what failed; the talk goes on.
    pub(crate) fn fail(&mut self, failure: Failure) -> Exit {
        let exit = failure.exit;
        self.screen.end_line();
        self.errors.text(Look::Bad, "error: ");
        self.errors.line_on(&failure.naming(&self.flag).to_string());
        exit
    }
}

fn notes(quiet: bool) -> Notes<'static> {
    if quiet { Notes::Nowhere } else { Notes::Between }
}
