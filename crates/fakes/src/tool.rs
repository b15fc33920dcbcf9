//! Tools over HTTP with canned answers: records each call with its headers, and can fail in every way.
//!
//! ```
//! use gesta_fakes::tool::{Canned, ToolServer};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let tools = ToolServer::start().await?;
//! tools.set("/refund", Canned::json(json!({"refunded": true})));
//! tools.set("/slow", Canned::Hang);
//! assert!(tools.url("/refund").ends_with("/refund"));
//! # Ok::<(), std::io::Error>(())
//! # })?;
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;
use tokio::sync::watch;

use crate::body::{Step, Steps};
use crate::journal::{Journal, Seen, Shown};
use crate::server::{Answers, LOOPBACK, Listening, headers_of, plain, with_body};

/// How many calls are kept.
const ENTRIES_MAX: usize = 10_000;

/// The longest body of a call that is read, in bytes.
const BODY_BYTES_MAX: usize = 64 << 20;

/// How a path is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Canned {
    /// With this status, content type and body.
    Body {
        /// The HTTP status.
        status: u16,
        /// For instance `application/json`.
        content_type: String,
        /// The body.
        body: Bytes,
    },
    /// With what was sent.
    Echo,
    /// With status 200 and this many bytes of a JSON string.
    Big(usize),
    /// Not at all: the connection stays open.
    Hang,
    /// Not at all: the connection is closed.
    Drop,
    /// With the beginning of an answer; then the connection breaks.
    Cut,
    /// Like the other, after a pause.
    After(Duration, Box<Canned>),
    /// Like these, one a call; the last repeats. Not inside another, where it closes the connection.
    Each(Vec<Canned>),
}

impl Canned {
    /// Status 200 and this value.
    pub fn json(value: Value) -> Self {
        Self::status(200, value)
    }

    /// This status and value.
    pub fn status(status: u16, value: Value) -> Self {
        Self::Body { status, content_type: "application/json".to_owned(), body: value.to_string().into() }
    }

    /// This status and a plain text.
    pub fn text(status: u16, text: &str) -> Self {
        Self::Body { status, content_type: "text/plain".to_owned(), body: Bytes::copy_from_slice(text.as_bytes()) }
    }
}

/// A server of tools that runs until this is dropped.
#[derive(Debug)]
pub struct ToolServer {
    listening: Listening,
    tools: Arc<Tools>,
    count: watch::Receiver<u64>,
}

#[derive(Debug)]
struct Tools {
    routes: Mutex<HashMap<String, (Canned, usize)>>,
    journal: Journal,
    count: watch::Sender<u64>,
}

impl ToolServer {
    /// Binds a free port of this machine. Every path gives 404 until it is set.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start() -> io::Result<Self> {
        let (sender, count) = watch::channel(0);
        let tools = Arc::new(Tools { routes: Mutex::default(), journal: Journal::new(ENTRIES_MAX), count: sender });
        let listening = Listening::start(LOOPBACK, Arc::clone(&tools)).await?;
        Ok(Self { listening, tools, count })
    }

    /// Answers this path so from now on.
    pub fn set(&self, path: &str, canned: Canned) {
        self.tools.routes().insert(path.to_owned(), (canned, 0));
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// The address of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listening.address)
    }

    /// The calls so far, in the order in which they arrived.
    pub fn calls(&self) -> Vec<Seen> {
        self.tools.journal.entries()
    }

    /// The calls of one path.
    pub fn calls_of(&self, path: &str) -> Vec<Seen> {
        let of_path = |seen: &Seen| seen.target.split('?').next() == Some(path);
        self.calls().into_iter().filter(of_path).collect()
    }

    /// Waits until this many calls have arrived, whether or not they were answered.
    pub async fn arrived(&self, calls: u64) {
        // The sender lives as long as the server, and so as long as `self`.
        drop(self.count.clone().wait_for(|count| *count >= calls).await);
    }

    /// Stops, and waits until the last answer is sent.
    pub async fn shut_down(self) {
        self.listening.shut_down().await;
    }
}

impl Tools {
    fn routes(&self) -> MutexGuard<'_, HashMap<String, (Canned, usize)>> {
        // Nothing that is done under the lock can leave it half done.
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this call of a path gets.
    fn next(&self, path: &str) -> Option<Canned> {
        let mut routes = self.routes();
        let (canned, calls) = routes.get_mut(path)?;
        let n = *calls;
        *calls += 1;
        Some(match canned {
            Canned::Each(list) => list.get(n).or(list.last()).cloned().unwrap_or(Canned::Drop),
            other => other.clone(),
        })
    }
}

impl Answers for Tools {
    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    async fn answer(&self, request: Request<Option<Bytes>>) -> Option<Response<Steps>> {
        let (head, body) = request.into_parts();
        let body = body.unwrap_or_default();
        let mut canned = self.next(head.uri.path()).unwrap_or_else(|| Canned::text(404, "no such tool"));
        let mut pause = Duration::ZERO;
        while let Canned::After(time, inner) = canned {
            pause += time;
            canned = *inner;
        }
        let status = match &canned {
            Canned::Body { status, .. } => Some(*status),
            Canned::Echo | Canned::Big(_) | Canned::Cut => Some(200),
            Canned::Hang | Canned::Drop | Canned::After(..) | Canned::Each(_) => None,
        };
        self.journal.push(Seen {
            number: 0,
            method: head.method.to_string(),
            target: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            headers: headers_of(&head.headers),
            body: body.clone(),
            shown: Shown::Plain { status },
        });
        self.count.send_modify(|count| *count += 1);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        match canned {
            Canned::Body { status, content_type, body } => Some(plain(status, &content_type, body)),
            Canned::Echo => Some(plain(200, "application/json", body)),
            Canned::Big(bytes) => Some(plain(200, "application/json", big(bytes))),
            Canned::Hang => std::future::pending().await,
            Canned::Cut => {
                let steps = [Step::Send(Bytes::from_static(b"{\"half\":")), Step::Flush, Step::Cut];
                Some(with_body(200, "application/json", Steps::new(steps, Some(1000))))
            }
            Canned::Drop | Canned::After(..) | Canned::Each(_) => None,
        }
    }
}

fn big(bytes: usize) -> Vec<u8> {
    let mut body = vec![b'x'; bytes.max(2)];
    body[0] = b'"';
    if let Some(last) = body.last_mut() {
        *last = b'"';
    }
    body
}
