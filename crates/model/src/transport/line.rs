//! Connections: each is driven by whoever waits on it, and rests in a pool between two exchanges.

use std::collections::{HashMap, VecDeque};
use std::error::Error as _;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use super::connect::{Opened, Socket, Target};

/// How long a connection may rest before it is closed. Below what common servers and balancers keep (60 s).
const REST_MS_MAX: u64 = 50_000;

/// How many connections to one target may rest.
const RESTING_MAX: usize = 1024;

/// How long a response that was left before its end may still take to end, once its connection is wanted.
const REST_OF_BODY_MS_MAX: u64 = 20;

/// How much of such a response is read.
const REST_OF_BODY_BYTES_MAX: usize = 64 * 1024;

/// One connection.
#[derive(Debug)]
pub(crate) struct Line {
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<TokioIo<Socket>, Full<Bytes>>,
    ended: bool,
    absolute: bool,
    proxy_auth: Option<String>,
    /// The end of a response that nobody waited for.
    rest: Option<Incoming>,
    resting_since: Instant,
}

/// What became of a request.
pub(crate) enum Sent {
    Answered(Response<Incoming>),
    /// The connection was closed before it took the request.
    NotTaken(String),
    /// The request, or a part of it, went out.
    Broken(String),
}

impl Line {
    pub(crate) async fn begin(opened: Opened) -> Result<Self, String> {
        let (sender, connection) = handshake(TokioIo::new(opened.socket)).await.map_err(|why| words(&why))?;
        Ok(Self {
            sender,
            connection,
            ended: false,
            absolute: opened.absolute,
            proxy_auth: opened.proxy_auth,
            rest: None,
            resting_since: Instant::now(),
        })
    }

    pub(crate) fn absolute(&self) -> bool {
        self.absolute
    }

    pub(crate) fn proxy_auth(&self) -> Option<&str> {
        self.proxy_auth.as_deref()
    }

    /// Moves bytes between the socket and whoever waits for them.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.ended && Pin::new(&mut self.connection).poll(cx).is_ready() {
            self.ended = true;
        }
    }

    /// Lets go of the task that waited last, which a resting connection would otherwise keep in memory.
    pub(crate) fn forget_task(&mut self) {
        self.drive(&mut Context::from_waker(Waker::noop()));
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Sent {
        let mut sending = pin!(self.sender.try_send_request(request));
        let (connection, ended) = (&mut self.connection, &mut self.ended);
        let result = std::future::poll_fn(|cx| {
            // The answer comes by way of the connection, which is driven here, so that nobody else need wake us.
            let deaf = &mut Context::from_waker(Waker::noop());
            if !*ended && Pin::new(&mut *connection).poll(cx).is_ready() {
                *ended = true;
            }
            sending.as_mut().poll(deaf)
        })
        .await;
        match result {
            Ok(response) => Sent::Answered(response),
            Err(mut error) => {
                let taken = error.take_message().is_none();
                let reason = words(&error.into_error());
                if taken { Sent::Broken(reason) } else { Sent::NotTaken(reason) }
            }
        }
    }

    /// Whether a connection that rested can take another request.
    pub(crate) async fn revive(&mut self) -> bool {
        let limit = Duration::from_millis(REST_OF_BODY_MS_MAX);
        let mut bytes = 0;
        let reviving = std::future::poll_fn(|cx| self.poll_revive(cx, &mut bytes));
        tokio::time::timeout(limit, reviving).await.unwrap_or(false)
    }

    fn poll_revive(&mut self, cx: &mut Context<'_>, bytes: &mut usize) -> Poll<bool> {
        self.drive(cx);
        while let Some(rest) = &mut self.rest {
            let mut frame = Pin::new(&mut *rest).poll_frame(cx);
            if frame.is_pending() {
                if self.ended {
                    return Poll::Ready(false);
                }
                self.drive(cx);
                let Some(rest) = &mut self.rest else { break };
                frame = Pin::new(rest).poll_frame(cx);
            }
            match ready!(frame) {
                Some(Ok(frame)) => *bytes += frame.data_ref().map_or(0, Bytes::len),
                Some(Err(_)) => return Poll::Ready(false),
                None => self.rest = None,
            }
            if *bytes > REST_OF_BODY_BYTES_MAX {
                return Poll::Ready(false);
            }
        }
        self.drive(cx);
        if self.ended {
            return Poll::Ready(false);
        }
        self.sender.poll_ready(cx).map(|ready| ready.is_ok())
    }

    /// Keeps the end of a response, to be read when the connection is wanted again.
    pub(crate) fn leave(&mut self, rest: Incoming) {
        self.rest = Some(rest);
    }
}

/// The error with its causes, on one line.
pub(crate) fn words(error: &hyper::Error) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(why) = cause {
        out.push_str(": ");
        out.push_str(&why.to_string());
        cause = why.source();
    }
    out
}

/// Connections that rest, by target; the one that rested least is taken first.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<HashMap<Arc<Target>, VecDeque<Box<Line>>>>);

impl Pool {
    pub(crate) fn take(&self, target: &Target) -> Option<Box<Line>> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.get_mut(target)?.pop_back()?;
        if line.resting_since.elapsed() < Duration::from_millis(REST_MS_MAX) {
            return Some(line);
        }
        // The rest of them are older still.
        lines.remove(target);
        None
    }

    pub(crate) fn put(&self, target: Arc<Target>, mut line: Box<Line>) {
        let now = Instant::now();
        line.resting_since = now;
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let resting = lines.entry(target).or_default();
        let old = |line: &Line| now.duration_since(line.resting_since) >= Duration::from_millis(REST_MS_MAX);
        while resting.len() >= RESTING_MAX || resting.front().is_some_and(|line| old(line)) {
            resting.pop_front();
        }
        resting.push_back(line);
    }
}
