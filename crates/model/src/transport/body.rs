//! The body of a response, read by the task that wants it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

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
        Self { inner, target, open: Some((line, incoming)), clock, bytes: 0, bytes_max }
    }

    /// The next piece, none at the end.
    ///
    /// # Errors
    /// The connection broke, a time limit passed, or the body is too long. After an error there is nothing more.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, TransportError> {
        std::future::poll_fn(|cx| self.poll_piece(cx)).await
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
        let result = ready!(self.poll_open(cx));
        match result {
            Ok(Some(piece)) => {
                self.clock.enter(Limit::Idle);
                self.bytes = self.bytes.saturating_add(piece.len());
                if self.bytes <= self.bytes_max {
                    return Poll::Ready(Ok(Some(piece)));
                }
                self.open = None;
                Poll::Ready(Err(TransportError::TooLong { bytes_max: self.bytes_max }))
            }
            Ok(None) => {
                self.keep();
                Poll::Ready(Ok(None))
            }
            Err(error) => {
                self.open = None;
                Poll::Ready(Err(error))
            }
        }
    }

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, TransportError>> {
        let Some((line, incoming)) = &mut self.open else { return Poll::Ready(Ok(None)) };
        loop {
            let mut frame = Pin::new(&mut *incoming).poll_frame(cx);
            if frame.is_pending() {
                line.drive(cx);
                frame = Pin::new(&mut *incoming).poll_frame(cx);
            }
            match frame {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Poll::Ready(Ok(Some(data))),
                    Err(_trailers) => {}
                },
                Poll::Ready(Some(Err(why))) => {
                    let broken = TransportError::Broken { host: self.target.to_string(), reason: words(&why) };
                    return Poll::Ready(Err(broken));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Pending => return self.clock.poll_passed(cx).map(|limit| Err(TransportError::Timeout(limit))),
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

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body of {}, {} bytes so far", self.target, self.bytes)
    }
}
