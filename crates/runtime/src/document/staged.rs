//! Documents of scenes: opened in workers as a run's are, for the rehearsal of a scene that carries one.

use std::sync::Arc;

use gesta_document::{AddedTools, GrantName, GrantSpec, OpenError, Record, Terms};
use gesta_run::json::Object;
use gesta_run::{Answer, PlanSpec, ToolSpec};
use gesta_sandbox::{Call, Cause, Failure, GrantFuture, Grants, Pool, PoolSettings, Session};
use gesta_scene::{Carried, Document, Documents, Fault, Turn};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::folder::Folder;

/// Opens the documents of scenes in workers. It blocks the thread that plays them, and is not for use inside of a
/// runtime.
pub struct SceneDocuments {
    runtime: Arc<Runtime>,
    pool: Pool,
    /// That of the agent whose scenes are played: its source, and on which terms it is opened.
    agents: Option<(String, Terms)>,
    opened: usize,
}

impl SceneDocuments {
    /// For scenes of an agent's folder, or of none.
    ///
    /// # Errors
    /// The system starts no runtime.
    pub fn new(folder: Option<&Folder>) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let document = folder.and_then(|folder| folder.settings.document.as_ref());
        let settings = document.map_or_else(PoolSettings::default, crate::folder::DocumentPart::pool);
        let pool = {
            let _inside = runtime.enter();
            Pool::new(PoolSettings { warm: 0, ..settings })
        };
        let agents = document.map(|document| document.base.clone()).zip(folder.and_then(Folder::document_terms));
        Ok(Self { runtime: Arc::new(runtime), pool, agents, opened: 0 })
    }
}

impl Documents for SceneDocuments {
    fn open(&mut self, carried: &Carried, plan: &PlanSpec) -> Result<Box<dyn Document>, Fault> {
        let agents = self.agents.clone();
        let (base, terms) = match (&carried.base, agents) {
            (Some(base), agents) => (base.clone(), agents.map(|(_, terms)| terms).unwrap_or_default()),
            (None, Some(agents)) => agents,
            (None, None) => {
                let message = "there is no agent's folder with one; write its source under `plan: document: |`";
                return Err(Fault { message: message.to_owned(), line: None });
            }
        };
        let grants = plan.grants.iter().map(|grant| GrantSpec {
            name: GrantName { library: grant.library.clone(), name: grant.name.clone() },
            params: grant.params.clone(),
        });
        let added_tools = carried.added_tools.map(|on| if on { AddedTools::On } else { AddedTools::Off });
        let mut terms = Terms {
            grants: grants.collect(),
            added_tools: added_tools.unwrap_or(terms.added_tools),
            names_taken: plan.tools.iter().map(|tool| tool.name.clone()).collect(),
            ..terms
        };
        terms.limits.grants_max = plan.limits.grants_max;
        self.opened += 1;
        let whose = format!("scene/{}", self.opened);
        let kept = Record { base, ..Record::default() };
        let mut document = Staged {
            runtime: self.runtime.clone(),
            session: Arc::new(Mutex::new(self.pool.session(&whose, kept.clone(), terms.clone()))),
            pool: self.pool.clone(),
            kept,
            terms,
            whose,
            call: None,
        };
        document.tools()?;
        Ok(Box::new(document))
    }
}

/// A conversation's document while a scene is rehearsed.
struct Staged {
    runtime: Arc<Runtime>,
    pool: Pool,
    whose: String,
    terms: Terms,
    /// As the last turn that completed left it.
    kept: Record,
    session: Arc<Mutex<Session>>,
    call: Option<Calling>,
}

/// A call that goes on.
struct Calling {
    ended: JoinHandle<Answer>,
    asked: mpsc::UnboundedReceiver<Asked>,
    /// Who waits for the grant that was asked last.
    waits: Option<oneshot::Sender<Result<Value, String>>>,
}

struct Asked {
    grant: String,
    arguments: Object,
    answer: oneshot::Sender<Result<Value, String>>,
}

struct Lending(mpsc::UnboundedSender<Asked>);

impl Grants for Lending {
    fn call(&self, _n: u32, grant: GrantName, arguments: Object) -> GrantFuture<'_> {
        let (answer, answered) = oneshot::channel();
        let gone = || "the scene gives no answer to it".to_owned();
        let sent = self.0.send(Asked { grant: grant.to_string(), arguments, answer });
        Box::pin(async move {
            sent.map_err(|_| gone())?;
            answered.await.unwrap_or_else(|_| Err(gone()))
        })
    }
}

impl Document for Staged {
    fn begin(&mut self) {
        self.call = None;
        let session = self.pool.session(&self.whose, self.kept.clone(), self.terms.clone());
        self.session = Arc::new(Mutex::new(session));
    }

    fn keep(&mut self) {
        let session = self.session.clone();
        self.kept = self.runtime.block_on(async move { session.lock().await.record().clone() });
    }

    fn tools(&mut self) -> Result<Vec<ToolSpec>, Fault> {
        let session = self.session.clone();
        self.runtime.block_on(async move { session.lock().await.specs().await }).map_err(fault)
    }

    fn call(&mut self, tool: &str, arguments: &Object, time_limit_ms: u64) -> Turn {
        let (asks, asked) = mpsc::unbounded_channel();
        let (session, tool, arguments) = (self.session.clone(), tool.to_owned(), arguments.clone());
        let ended = self.runtime.spawn(async move {
            let call = Call { tool: &tool, arguments: &arguments, time_limit_ms, author: None, at: None };
            match session.lock().await.call(call, &Lending(asks)).await {
                Ok(called) => Answer::Ok(called.result),
                Err(why) if why.cause.is_timed_out() => Answer::TimedOutWith(why.to_string()),
                Err(why) => Answer::Error(why.to_string()),
            }
        });
        self.call = Some(Calling { ended, asked, waits: None });
        self.go_on()
    }

    fn granted(&mut self, answer: Result<Value, String>) -> Turn {
        if let Some(waits) = self.call.as_mut().and_then(|call| call.waits.take()) {
            // Nobody waits any more where the call was ended meanwhile, which is found out next.
            let _ = waits.send(answer);
        }
        self.go_on()
    }

    fn give_up(&mut self) {
        self.call = None;
    }
}

impl Staged {
    /// Lets the call go on until it asks for a grant or ends.
    fn go_on(&mut self) -> Turn {
        let Some(call) = &mut self.call else {
            return Turn::Ends(Answer::Error("no call of the document goes on".to_owned()));
        };
        let next = self.runtime.block_on(async {
            tokio::select! {
                biased;
                Some(asked) = call.asked.recv() => Ok(asked),
                ended = &mut call.ended => Err(ended.unwrap_or_else(|why| Answer::Error(why.to_string()))),
            }
        });
        match next {
            Ok(Asked { grant, arguments, answer }) => {
                call.waits = Some(answer);
                Turn::Asks { grant, arguments }
            }
            Err(answer) => {
                self.call = None;
                Turn::Ends(answer)
            }
        }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        self.ended.abort();
    }
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err`")]
fn fault(why: Failure) -> Fault {
    match &why.cause {
        Cause::Open(OpenError::Base { message, at, .. }) => {
            Fault { message: format!("column {}: {message}", at.column), line: Some(at.line) }
        }
        cause => Fault { message: cause.to_string(), line: None },
    }
}
