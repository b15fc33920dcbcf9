//! A turn as a stream: what happens, as it happens, and the result last. It is polled, not pushed: no second task.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::Stream;
use gesta_run::RunResult;

use crate::agent::{Agent, Ask};
use crate::error::AgentError;
use crate::progress::Progress;
use crate::turn;

type Turn = Pin<Box<dyn Future<Output = Result<Arc<RunResult>, AgentError>> + Send>>;
type Queue = Arc<Mutex<VecDeque<Progress>>>;

/// A turn that goes on while it is polled. Ends after [`Progress::Finished`], or with an error if it could not begin.
/// Dropping it stops the turn as a crash would: resume the run to go on.
pub struct TurnStream {
    queue: Queue,
    turn: Option<Turn>,
}

impl TurnStream {
    pub(crate) fn new(agent: Agent, mut ask: Ask) -> Self {
        let queue = Queue::default();
        let (told, also) = (queue.clone(), ask.listener.take());
        ask.listener = Some(Arc::new(move |progress: Progress| {
            if let Some(also) = &also {
                also(progress.clone());
            }
            told.lock().unwrap_or_else(PoisonError::into_inner).push_back(progress);
        }));
        Self { queue, turn: Some(Box::pin(async move { turn::run(&agent.0, ask).await })) }
    }

    fn pop(&self) -> Option<Progress> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Stream for TurnStream {
    type Item = Result<Progress, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(progress) = self.pop() {
            return Poll::Ready(Some(Ok(progress)));
        }
        let Some(turn) = &mut self.turn else { return Poll::Ready(None) };
        let ended = turn.as_mut().poll(task);
        if let Poll::Ready(result) = ended {
            self.turn = None;
            if let Err(why) = result {
                return Poll::Ready(Some(Err(why)));
            }
        }
        match (self.pop(), &self.turn) {
            (Some(progress), _) => Poll::Ready(Some(Ok(progress))),
            (None, None) => Poll::Ready(None),
            (None, Some(_)) => Poll::Pending,
        }
    }
}
