//! The body of a response, read by the task that wants it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming};

use super::Inner;
use super::clock::Clock;
use super::connect::Target;
use super::error::{Limit, TransportError};
use super::line::{Line, words};

/// A body that is still coming. Dropping it closes the connection.
pub struct Body {
    inner: Arc<Inner>,
    target: Arc<Target>,
    /// The connection and what it brings; none once the body has ended.
    open: Option<(Box<Line>, Incoming)>,
    clock: Clock,
    bytes: usize,
    bytes_max: usize,
    /// What was found at hand and is not a piece: the end, or an error.
    next: Option<Result<Option<Bytes>, TransportError>>,
}

impl Body {
    pub(crate) fn new(
        inner: Arc<Inner>,
        target: Arc<Target>,
        line: Box<Line>,
        incoming: Incoming,
        clock: Clock,
        bytes_max: usize,
    ) -> Self {
        Self { inner, target, open: Some((line, incoming)), clock, bytes: 0, bytes_max, next: None }
    }

    /// The next piece, none at the end.
    ///
    /// # Errors
    /// The connection broke, a time limit passed, or the body is too long. After an error there is nothing more.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, TransportError> {
        std::future::poll_fn(|cx| self.poll_piece(cx)).await
    }

    /// The next piece, where it has come already. The end and errors are left to [`Body::piece`].
    pub fn piece_at_hand(&mut self) -> Option<Bytes> {
        if self.next.is_some() {
            return None;
        }
        let (line, incoming) = self.open.as_mut()?;
        let found = match found(line, incoming) {
            Poll::Ready(found) => self.take(found),
            Poll::Pending => return None,
        };
        match found {
            Ok(Some(piece)) => Some(piece),
            other => {
                self.next = Some(other);
                None
            }
        }
    }

    /// Waits for the whole body.
    ///
    /// # Errors
    /// As [`Body::piece`].
    pub async fn whole(mut self) -> Result<Bytes, TransportError> {
        let Some(first) = self.piece().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.piece().await? else { return Ok(first) };
        let mut all = BytesMut::with_capacity((first.len() + second.len()) * 2);
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(more) = self.piece().await? {
            all.extend_from_slice(&more);
        }
        Ok(all.freeze())
    }

    /// Leaves the body before its end, where its end is about to come: the connection is kept and used again if it
    /// has ended by then.
    pub fn let_go(mut self) {
        if let Some((mut line, incoming)) = self.open.take() {
            line.leave(incoming);
            line.forget_task();
            self.inner.pool.put(self.target, line);
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, TransportError>> {
        if let Some(next) = self.next.take() {
            return Poll::Ready(next);
        }
        let Some((line, incoming)) = &mut self.open else { return Poll::Ready(Ok(None)) };
        let mut frame = found(line, incoming);
        if frame.is_pending() {
            line.drive(cx);
            frame = poll_data(incoming);
        }
        match frame {
            Poll::Ready(found) => Poll::Ready(self.take(found)),
            Poll::Pending => {
                let limit = ready!(self.clock.poll_passed(cx));
                self.open = None;
                Poll::Ready(Err(TransportError::Timeout(limit)))
            }
        }
    }

    fn take(&mut self, found: Found) -> Result<Option<Bytes>, TransportError> {
        match found {
            Some(Ok(piece)) => {
                self.clock.enter(Limit::Idle);
                self.bytes = self.bytes.saturating_add(piece.len());
                if self.bytes <= self.bytes_max {
                    return Ok(Some(piece));
                }
                self.open = None;
                Err(TransportError::TooLong { bytes_max: self.bytes_max })
            }
            None => {
                self.keep();
                Ok(None)
            }
            Some(Err(why)) => {
                self.open = None;
                Err(TransportError::Broken { host: self.target.to_string(), reason: words(&why) })
            }
        }
    }

    /// The body has ended: the connection rests until it is wanted again.
    fn keep(&mut self) {
        if let Some((mut line, _)) = self.open.take() {
            line.forget_task();
            if !line.ended() {
                self.inner.pool.put(self.target.clone(), line);
            }
        }
    }
}

/// A piece of a body, its end, or what broke it.
type Found = Option<Result<Bytes, hyper::Error>>;

/// What has come already. Nobody is woken by what comes later.
fn found(line: &mut Line, incoming: &mut Incoming) -> Poll<Found> {
    let found = poll_data(incoming);
    if found.is_ready() {
        return found;
    }
    line.drive(&mut Context::from_waker(Waker::noop()));
    poll_data(incoming)
}

/// Asks a body. What it holds comes from its connection alone, which whoever asks drives as well: each tells the other
/// when it has moved, and heard by the task that drives both, that would wake it once more for nothing.
fn poll_data(incoming: &mut Incoming) -> Poll<Found> {
    let deaf = &mut Context::from_waker(Waker::noop());
    loop {
        match ready!(Pin::new(&mut *incoming).poll_frame(deaf)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Poll::Ready(Some(Ok(data))),
                Err(_trailers) => {}
            },
            Some(Err(why)) => return Poll::Ready(Some(Err(why))),
            None => return Poll::Ready(None),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body of {}, {} bytes so far", self.target, self.bytes)
    }
}
