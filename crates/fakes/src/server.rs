//! The loop that all HTTP fakes share: accept, read a request whole, answer it, stop when the handle is dropped.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::body::Steps;

/// How long answers that are under way may take when the server stops.
const GRACE: Duration = Duration::from_millis(300);

/// Any free port of this machine.
pub(crate) const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What a server does with a request.
pub(crate) trait Answers: Send + Sync + 'static {
    /// The longest request body that is read, in bytes. A longer one arrives as none.
    fn body_bytes_max(&self) -> usize;

    /// The answer; none closes the connection without one.
    fn answer(&self, request: Request<Option<Bytes>>) -> impl Future<Output = Option<Response<Steps>>> + Send;
}

/// A server that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    stop: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Listening {
    /// Binds and begins to accept. Must be called inside a tokio runtime.
    pub(crate) async fn start(bind: SocketAddr, answers: Arc<impl Answers>) -> io::Result<Self> {
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(());
        let task = tokio::spawn(accept(listener, answers, stopped));
        Ok(Self { address, stop, task })
    }

    /// Stops, and waits until the last answer is sent or the time for that is over.
    pub(crate) async fn shut_down(self) {
        drop(self.stop);
        // It cannot panic, and nobody else aborts it.
        self.task.await.unwrap_or_default();
    }
}

async fn accept(listener: TcpListener, answers: Arc<impl Answers>, mut stopped: watch::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&answers), stopped.clone()));
                }
                // Out of descriptors: the connections that are open will end.
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            },
            Some(_) = connections.join_next() => {}
            _ = stopped.changed() => break,
        }
    }
    drop(listener);
    let rest = async { while connections.join_next().await.is_some() {} };
    tokio::time::timeout(GRACE, rest).await.unwrap_or_default();
}

async fn connection<A: Answers>(stream: TcpStream, answers: Arc<A>, mut stopped: watch::Receiver<()>) {
    stream.set_nodelay(true).unwrap_or_default();
    let service = service_fn(|request: Request<Incoming>| {
        let answers = Arc::clone(&answers);
        async move {
            let (head, body) = request.into_parts();
            let body = Limited::new(body, answers.body_bytes_max()).collect().await.ok();
            let request = Request::from_parts(head, body.map(|body| body.to_bytes()));
            answers.answer(request).await.ok_or(io::Error::from(io::ErrorKind::ConnectionAborted))
        }
    });
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // How a connection ends is the client's business, and often the very point of a test.
    tokio::select! {
        ended = serving.as_mut() => drop(ended),
        _ = stopped.changed() => {
            serving.as_mut().graceful_shutdown();
            drop(serving.await);
        }
    }
}

/// An answer of announced length.
pub(crate) fn plain(status: u16, content_type: &str, body: impl Into<Bytes>) -> Response<Steps> {
    with_body(status, content_type, Steps::whole(body))
}

/// An answer with this body.
pub(crate) fn with_body(status: u16, content_type: &str, body: Steps) -> Response<Steps> {
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(value) = content_type.parse() {
        response.headers_mut().insert(http::header::CONTENT_TYPE, value);
    }
    response
}

/// The headers of a request, in order. Bytes that are no text are replaced.
pub(crate) fn headers_of(headers: &http::HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
