//! HTTP/1.1 for provider adapters and for HTTP tools: one request goes out, one response comes in, piece by piece.
//!
//! A connection is driven by the task that reads its response, not by a task of its own, so that a byte on the socket
//! wakes exactly one task. Connections are kept and used again. Redirects are never followed. Nothing is tried twice,
//! except that a request which a kept connection did not take goes out on a fresh one.

mod body;
mod clock;
mod connect;
mod error;
mod line;
mod proxy;
mod tls;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, PROXY_AUTHORIZATION, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;

pub use body::Body;
pub use clock::Timeouts;
pub use connect::Guard;
pub use error::{Limit, TransportError};

use clock::Clock;
use connect::Target;
use line::{Line, Pool, Sent};
use proxy::Proxies;
use tls::Tls;

/// The longest body of a response, in bytes, unless a caller says otherwise.
pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Looks a variable of the environment up.
pub type LookupRef<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a transport is made of.
#[derive(Default)]
pub struct TransportSpec<'a> {
    /// Looks variables of the environment up: proxies and `SSL_CERT_FILE`. Without it there are none.
    pub lookup: Option<LookupRef<'a>>,
    /// PEM files with certificates that are trusted besides the system's.
    pub root_files: Vec<PathBuf>,
    /// Says which addresses may be reached. Without it all may.
    pub guard: Option<Arc<dyn Guard>>,
}

/// Sends requests. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Transport(Arc<Inner>);

pub(crate) struct Inner {
    pool: Pool,
    proxies: Proxies,
    tls: Tls,
    guard: Option<Arc<dyn Guard>>,
}

/// A request as it goes out. `Host` and the length are set by the transport.
#[derive(Clone)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The whole address, `http` or `https`.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A response whose body is still coming.
#[derive(Debug)]
pub struct Response {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Body,
}

/// A response with its whole body.
#[derive(Debug, Clone)]
pub struct Received {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Transport {
    /// Puts a transport together. Nothing is read or opened before it is needed.
    pub fn new(spec: TransportSpec<'_>) -> Self {
        let mut root_files = spec.root_files;
        let named = spec.lookup.and_then(|lookup| lookup("SSL_CERT_FILE")).filter(|path| !path.is_empty());
        let replaced = named.is_some();
        root_files.extend(named.map(PathBuf::from));
        let proxies = spec.lookup.map_or_else(Proxies::none, Proxies::from_lookup);
        let tls = Tls::new(root_files, replaced);
        Self(Arc::new(Inner { pool: Pool::default(), proxies, tls, guard: spec.guard }))
    }

    /// The variable, in capital letters, in which a proxy was looked up and no address of one was found. Every request
    /// fails then.
    pub fn wrong_proxy(&self) -> Option<&'static str> {
        self.0.proxies.wrong()
    }

    /// Sends a request and waits for the head of its response. The body is read from [`Response::body`], under the same
    /// limits, and may be `body_bytes_max` long.
    ///
    /// # Errors
    /// There was no connection, it broke, or a limit passed; [`TransportError::may_have_arrived`] says whether the
    /// server may have seen the request. A response with an error status is no error.
    pub async fn open(
        &self,
        request: &Outgoing,
        timeouts: Timeouts,
        body_bytes_max: usize,
    ) -> Result<Response, TransportError> {
        let target = Arc::new(Target::of(&request.uri)?);
        let mut clock = Clock::start(timeouts);
        loop {
            let connecting = self.line(&request.uri, &target);
            let (mut line, reused) = clock.bound(connecting).await.map_err(TransportError::Timeout)??;
            clock.enter(Limit::FirstByte);
            let outgoing = prepare(request, &target, &line)?;
            let sent = clock.bound(line.send(outgoing)).await.map_err(TransportError::Timeout)?;
            match sent {
                Sent::Answered(response) => {
                    let (head, incoming) = response.into_parts();
                    let body = Body::new(self.0.clone(), target, line, incoming, clock, body_bytes_max);
                    return Ok(Response { status: head.status, headers: head.headers, body });
                }
                Sent::NotTaken(_) if reused => clock.enter(Limit::Connect),
                Sent::NotTaken(reason) => {
                    return Err(TransportError::Connect { host: target.to_string(), reason });
                }
                Sent::Broken(reason) => return Err(TransportError::Broken { host: target.to_string(), reason }),
            }
        }
    }

    /// Sends a request and waits for its whole response.
    ///
    /// # Errors
    /// As [`Transport::open`]; a body over `body_bytes_max` bytes is one too.
    pub async fn send(
        &self,
        request: &Outgoing,
        timeouts: Timeouts,
        body_bytes_max: usize,
    ) -> Result<Received, TransportError> {
        let Response { status, headers, body } = self.open(request, timeouts, body_bytes_max).await?;
        Ok(Received { status, headers, body: body.whole().await? })
    }

    /// A connection to the target, and whether it was used before.
    async fn line(&self, uri: &Uri, target: &Arc<Target>) -> Result<(Box<Line>, bool), TransportError> {
        while let Some(mut line) = self.0.pool.take(target) {
            if line.revive().await {
                return Ok((line, true));
            }
        }
        // Set aside, because it takes more memory than all the rest of an exchange, and is seldom due.
        Ok((Box::pin(self.begin(uri, target)).await?, false))
    }

    async fn begin(&self, uri: &Uri, target: &Arc<Target>) -> Result<Box<Line>, TransportError> {
        let opened = connect::open(&self.0, uri, target).await?;
        let line = Line::begin(opened).await;
        line.map(Box::new).map_err(|reason| TransportError::Connect { host: target.to_string(), reason })
    }
}

/// The request as it is written on this connection.
fn prepare(request: &Outgoing, target: &Target, line: &Line) -> Result<Request<Full<Bytes>>, TransportError> {
    let unusable = || TransportError::Address(target.to_string());
    let mut out = Request::new(Full::new(request.body.clone()));
    *out.method_mut() = request.method.clone();
    *out.uri_mut() = match (line.absolute(), request.uri.path_and_query()) {
        (true, _) => request.uri.clone(),
        (false, Some(path)) => Uri::from(path.clone()),
        (false, None) => Uri::from_static("/"),
    };
    let headers = out.headers_mut();
    headers.clone_from(&request.headers);
    for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    // The authority may hold a name and a password, which are no part of this header.
    let host = request.uri.authority().map_or("", |it| it.as_str().rsplit('@').next().unwrap_or_default());
    headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| unusable())?);
    if let Some(auth) = line.proxy_auth() {
        headers.insert(PROXY_AUTHORIZATION, HeaderValue::from_str(auth).map_err(|_| unusable())?);
    }
    Ok(out)
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inner")
    }
}

/// Shows no header and no body: both may hold what must not be shown.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.uri.host().unwrap_or_default();
        write!(f, "{} {host}{} ({} bytes)", self.method, self.uri.path(), self.body.len())
    }
}
