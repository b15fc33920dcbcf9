//! What a talk asks of the agent's side, and the turns of an agent that a server runs.

use gesta_run::{HoldAnswer, RunId, RunResult};
use gesta_store::ConversationHead;

use super::{Answered, Over, Talk, With, notes};
use crate::exit::{Exit, Failure};
use crate::live::{Line, Live};
use crate::remote::{Begun, Remote};
use crate::render::Teller;
use crate::signals::Signals;
use crate::stored::Shown;

impl Talk {
    /// A run of the talk.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) async fn read(&self, run: &RunId) -> Result<Shown, Failure> {
        match &self.with {
            With::Here(here) => crate::stored::read(&here.place.store(), run).await,
            With::There(remote) => remote.read(run.as_str()).await,
        }
    }

    /// What is known of the talk, where anything was said in it.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) async fn head(&self) -> Result<Option<ConversationHead>, Failure> {
        match &self.with {
            With::Here(here) => Ok(here.place.store().conversation(&self.conversation).await?),
            With::There(remote) => remote.conversation(&self.conversation).await,
        }
    }

    /// The agent's model, and where the talk is kept, for people.
    ///
    /// # Errors
    /// The server has no such agent.
    pub(crate) async fn whereabouts(&self) -> Result<(String, String), Failure> {
        Ok(match &self.with {
            With::Here(here) => (here.folder.settings.plan.model.clone(), format!("in {}", here.place.shown())),
            With::There(remote) => (remote.model_of(&self.agent).await?, format!("by {}", remote.base)),
        })
    }

    fn remote(&self) -> Option<Remote> {
        match &self.with {
            With::Here(_) => None,
            With::There(remote) => Some(Remote::clone(remote)),
        }
    }

    /// One turn of an agent that a server runs.
    pub(super) async fn turn_there(&mut self, text: &str) -> Result<Exit, Over> {
        let Some(remote) = self.remote() else { return Ok(Exit::Done) };
        let begun = tokio::select! {
            begun = remote.begin(&self.agent, &self.conversation, text) => begun,
            () = pressed() => return Err(Over),
        };
        match begun {
            Ok(begun) => match self.follow(&remote, begun, 0).await? {
                Ok(result) => self.settle(result).await,
                Err(exit) => Ok(exit),
            },
            Err(why) => Ok(self.fail(why)),
        }
    }

    /// Answers holds of such a run.
    pub(super) async fn resume_there(&mut self, run: &RunId, answers: &[HoldAnswer]) -> Result<Answered, Over> {
        let Some(remote) = self.remote() else { return Ok(Answered::Not(Exit::Done)) };
        let begun = tokio::select! {
            begun = remote.answer_live(run, answers) => begun,
            () = pressed() => return Err(Over),
        };
        let begun = match begun {
            Ok(begun) => begun,
            Err(why) => {
                let exit = self.fail(why);
                // Somebody else may have answered meanwhile.
                return Ok(match remote.read(run.as_str()).await {
                    Ok(shown) => Answered::Otherwise(shown.run.result(), exit),
                    Err(_) => Answered::Not(exit),
                });
            }
        };
        let known = begun.shown.stored.events.len();
        let followed = self.follow(&remote, begun, known).await?;
        Ok(match followed {
            Ok(result) => Answered::Now(result),
            Err(exit) => Answered::Not(exit),
        })
    }

    /// Shows a run until nobody works on it. What kept it from being followed is told.
    async fn follow(&mut self, remote: &Remote, begun: Begun, known: usize) -> Result<Result<RunResult, Exit>, Over> {
        let line = Line::new();
        let events = &begun.shown.stored.events;
        let teller = Teller::new(&begun.shown.run.plan().spec).after(events.get(..known).unwrap_or_default());
        self.last = Some(begun.shown.stored.head.run.clone());
        let work = remote.follow(begun, known, line.cancel.clone(), line.listener.clone());
        let mut live = Live::new(&mut self.screen, notes(self.quiet), teller, self.details);
        let followed = live.follow(work, line).await.map_err(|_| Over)?;
        self.fault = live.fault;
        Ok(match followed {
            Ok(shown) => {
                let result = shown.run.result();
                if known > 0 && shown.stored.events.len() == known {
                    self.said_before(&result);
                }
                Ok(result)
            }
            Err(why) => Err(self.fail(why)),
        })
    }
}

/// Waits for Ctrl-C, or for what else asks this program to end.
async fn pressed() {
    Signals::listen().next().await;
}
