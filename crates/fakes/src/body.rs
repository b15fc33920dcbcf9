//! A response body that is sent in steps: pieces, pauses, and ends that no honest server shows.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// One thing that a body does.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Hands these bytes to the connection.
    Send(Bytes),
    /// Lets the connection write out what it has, so that the next bytes travel by themselves.
    Flush,
    /// Waits.
    Pause(Duration),
    /// Breaks the connection.
    Cut,
    /// Sends nothing more and keeps the connection.
    Stall,
}

/// The steps of a body.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    steps: VecDeque<Step>,
    /// The length that is announced; none for a body in chunks.
    length: Option<u64>,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Steps {
    /// A body of announced length, sent in one piece.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { length: Some(bytes.len() as u64), steps: VecDeque::from([Step::Send(bytes)]), sleep: None }
    }

    /// A body of these steps. `length` is what is announced, whatever the steps then send.
    pub(crate) fn new(steps: impl Into<VecDeque<Step>>, length: Option<u64>) -> Self {
        Self { steps: steps.into(), length, sleep: None }
    }
}

impl Body for Steps {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        loop {
            if let Some(sleep) = &mut this.sleep {
                std::task::ready!(sleep.as_mut().poll(cx));
                this.sleep = None;
            }
            match this.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(Step::Send(bytes)) if bytes.is_empty() => {}
                Some(Step::Send(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Step::Pause(time)) => this.sleep = Some(Box::pin(tokio::time::sleep(time))),
                Some(Step::Flush) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Cut) => return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
                Some(Step::Stall) => {
                    this.steps.push_front(Step::Stall);
                    return Poll::Pending;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.sleep.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}
