//! A turn's working copy of the document, shared by the wants that are performed on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};

use gesta_document::Author;
use gesta_run::json::Object;
use gesta_run::{Answer, CallId, CallState, Event, EventKind, RunId, Timestamp, ToolSpec};
use gesta_sandbox::{Call, Cause, Failure, Session};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::Documents;
use super::lending::{Asked, Lending};
use crate::error::AgentError;

type Waiting = BTreeMap<(CallId, u32), oneshot::Sender<Result<Value, String>>>;

/// A turn's working copy.
pub(crate) struct Working {
    copy: Arc<Copy>,
    /// The version of the conversation's document that the turn began with; 0 for none.
    pub(crate) from: u64,
    run: RunId,
    asks: mpsc::UnboundedSender<Asked>,
    asked: mpsc::UnboundedReceiver<Asked>,
    /// Grants that a document waits for.
    waiting: Waiting,
}

/// What tasks share.
struct Copy {
    documents: Arc<Documents>,
    session: Mutex<Session>,
    /// The image of the copy, where it has changed since it was last kept.
    changed: SyncMutex<Option<Vec<u8>>>,
}

impl Working {
    pub(super) fn new(documents: Arc<Documents>, session: Session, run: RunId, from: u64) -> Self {
        let (asks, asked) = mpsc::unbounded_channel();
        let copy = Arc::new(Copy { documents, session: Mutex::new(session), changed: SyncMutex::default() });
        Self { copy, from, run, asks, asked, waiting: Waiting::new() }
    }

    /// The tools as they are now.
    pub(crate) fn specs(&self) -> impl Future<Output = Result<Vec<ToolSpec>, Failure>> + Send + 'static {
        let copy = self.copy.clone();
        async move {
            let specs = copy.session.lock().await.specs().await?;
            Ok(specs.into_iter().map(|spec| ToolSpec { document: true, ..spec }).collect())
        }
    }

    /// Opens it in a worker, and has its tools described, which the first trip asks for anyway. Whatever else goes wrong
    /// than the opening is for that trip to say.
    pub(crate) async fn open(&self) -> Result<(), AgentError> {
        match self.copy.session.lock().await.specs().await {
            Err(why) if matches!(why.cause, Cause::Open(_) | Cause::Start(_)) => {
                Err(AgentError::Unopened { document: self.copy.documents.name.clone(), why: Box::new(why) })
            }
            _ => Ok(()),
        }
    }

    /// Runs a call.
    pub(crate) fn call(
        &self,
        call: &CallState,
        arguments: Object,
        at: Timestamp,
    ) -> impl Future<Output = Answer> + Send + 'static {
        let copy = self.copy.clone();
        let before = u32::try_from(call.grants().len()).unwrap_or(u32::MAX);
        let lending = Lending { call: call.id.clone(), before, asks: self.asks.clone() };
        let author = Author::Agent { run: self.run.to_string() };
        let tool = call.name.clone();
        let time_limit_ms = call.tool.as_ref().map_or(gesta_run::tool::TIME_LIMIT_MS, |it| it.spec.time_limit_ms);
        async move {
            let call = Call { tool: &tool, arguments: &arguments, time_limit_ms, author: Some(&author), at: Some(at) };
            copy.call(call, &lending).await
        }
    }

    /// The next grant that a running call asks for.
    pub(crate) async fn next_asked(&mut self) -> Option<Asked> {
        self.asked.recv().await
    }

    /// Remembers who waits for a grant.
    pub(crate) fn wait_for(&mut self, call: CallId, n: u32, answer: oneshot::Sender<Result<Value, String>>) {
        self.waiting.insert((call, n), answer);
    }

    /// A grant that the run does not take is an error inside the document.
    pub(crate) fn refuse(&mut self, call: &CallId, n: u32, why: String) {
        if let Some(waiting) = self.waiting.remove(&(call.clone(), n)) {
            // Nobody waits any more where the call was ended meanwhile.
            let _ = waiting.send(Err(why));
        }
    }

    /// Hands answers of grants back into the document.
    pub(crate) fn hand_back(&mut self, events: &[Event]) {
        for event in events {
            match &event.what {
                EventKind::GrantAnswered { call, n, end, .. } => {
                    let Some(waiting) = self.waiting.remove(&(call.clone(), *n)) else { continue };
                    // Nobody waits any more where the call was ended meanwhile.
                    let _ = waiting.send(if end.is_error { Err(text_of(&end.result)) } else { Ok(end.result.clone()) });
                }
                EventKind::Answered { call, .. } => self.waiting.retain(|(of, _), _| of != call),
                _ => {}
            }
        }
    }

    /// The image of the copy, where a call has changed it since this was last asked.
    pub(crate) fn take_changed(&self) -> Option<Vec<u8>> {
        self.copy.changed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Copy {
    async fn call(&self, call: Call<'_>, lending: &Lending) -> Answer {
        let mut session = self.session.lock().await;
        match session.call(call, lending).await {
            Ok(called) => {
                if called.data.is_some() || !called.added.is_empty() {
                    match self.documents.write(session.record()) {
                        Ok(image) => {
                            *self.changed.lock().unwrap_or_else(PoisonError::into_inner) = Some(image);
                        }
                        Err(why) => return Answer::Error(format!("the document cannot be kept: {why}")),
                    }
                }
                Answer::Ok(called.result)
            }
            Err(failure) if failure.cause.is_timed_out() => Answer::TimedOutWith(failure.to_string()),
            Err(failure) => Answer::Error(failure.to_string()),
        }
    }
}

fn text_of(result: &Value) -> String {
    result.as_str().map_or_else(|| result.to_string(), str::to_owned)
}
