//! A bare socket that reads HTTP requests and answers with scripted bytes: for tests of transports.
//!
//! ```
//! use gesta_fakes::raw::{Raw, Step};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let cut = vec![Step::send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"), Step::Close];
//! let server = Raw::start(vec![cut]).await?;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! # Ok::<(), std::io::Error>(())
//! # })?;
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::server::LOOPBACK;

/// The longest request that is read, in bytes.
const REQUEST_BYTES_MAX: usize = 64 << 20;

/// One thing that the socket does after it has read a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Writes these bytes and flushes them.
    Send(Bytes),
    /// Waits.
    Pause(Duration),
    /// Writes and reads nothing more until the client closes.
    Stall,
    /// Closes the connection. What was sent arrives.
    Close,
    /// Resets the connection, so that the client sees an error and not an end.
    Reset,
}

impl Step {
    /// Writes these bytes.
    pub fn send(bytes: impl Into<Bytes>) -> Self {
        Self::Send(bytes.into())
    }

    /// Writes each byte by itself.
    pub fn each_byte(bytes: &[u8]) -> Vec<Self> {
        bytes.iter().map(|byte| Self::send(vec![*byte])).collect()
    }

    /// A whole answer with this status, these header lines (each with its line end) and an announced length.
    pub fn answer(status: u16, headers: &str, body: &[u8]) -> Self {
        let head = format!("HTTP/1.1 {status} Told\r\n{headers}content-length: {}\r\n\r\n", body.len());
        Self::send([head.as_bytes(), body].concat())
    }
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRequest {
    /// Request line and headers, without the blank line.
    pub head: String,
    /// The body, chunks joined.
    pub body: Vec<u8>,
}

/// A socket that runs until this is dropped.
#[derive(Debug)]
pub struct Raw {
    address: SocketAddr,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: Vec<RawRequest>,
    connections: usize,
    closed: usize,
    next: usize,
}

impl State {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Nothing that is done under the lock can leave it half done.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Raw {
    /// Binds a free port. The n-th request gets the n-th answer, whichever connection it comes by; the last repeats.
    /// An answer without [`Step::Close`], [`Step::Reset`] or [`Step::Stall`] keeps the connection.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start(answers: Vec<Vec<Step>>) -> io::Result<Self> {
        let listener = TcpListener::bind(LOOPBACK).await?;
        let address = listener.local_addr()?;
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            let answers: Arc<[Vec<Step>]> = answers.into();
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                shared.seen().connections += 1;
                let (state, answers) = (Arc::clone(&shared), Arc::clone(&answers));
                connections.spawn(async move {
                    connection(stream, &state, &answers).await.unwrap_or_default();
                    state.seen().closed += 1;
                });
            }
        });
        Ok(Self { address, state, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as an address for HTTP without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests that were read whole, in order.
    pub fn requests(&self) -> Vec<RawRequest> {
        self.state.seen().requests.clone()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.state.seen().connections
    }

    /// How many of them have ended.
    pub fn closed(&self) -> usize {
        self.state.seen().closed
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn connection(mut stream: TcpStream, state: &State, answers: &[Vec<Step>]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await? {
        let at = {
            let mut seen = state.seen();
            seen.requests.push(request);
            seen.next += 1;
            seen.next - 1
        };
        for step in answers.get(at).or(answers.last()).map_or(&[][..], Vec::as_slice) {
            match step {
                Step::Send(bytes) => stream.write_all(bytes).await?,
                Step::Pause(time) => tokio::time::sleep(*time).await,
                Step::Stall => {
                    while stream.read(&mut [0; 1024]).await? > 0 {}
                    return Ok(());
                }
                Step::Close => {
                    stream.shutdown().await?;
                    // Data that nobody has read would turn the close into a reset.
                    while stream.read(&mut [0; 1024]).await? > 0 {}
                    return Ok(());
                }
                Step::Reset => return stream.set_zero_linger(),
            }
        }
    }
    Ok(())
}

/// The next request; none at the end of the connection.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<RawRequest>> {
    let end = loop {
        if let Some(at) = find(buffer, b"\r\n\r\n") {
            break at;
        }
        if !more(stream, buffer).await? {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end + 4);
    let lower = head.to_ascii_lowercase();
    let field = |name: &str| {
        lower.lines().filter_map(|line| line.split_once(':')).find(|(it, _)| *it == name).map(|(_, it)| it.trim())
    };
    let body = if field("transfer-encoding").is_some_and(|it| it.contains("chunked")) {
        read_chunks(stream, buffer).await?
    } else {
        let length = field("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        take(stream, buffer, length).await?
    };
    Ok(Some(RawRequest { head, body }))
}

async fn read_chunks(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = loop {
            match find(buffer, b"\r\n") {
                Some(at) => break at,
                None if more(stream, buffer).await? => {}
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        };
        let line = String::from_utf8_lossy(&buffer[..end]).into_owned();
        let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        buffer.drain(..end + 2);
        body.extend(take(stream, buffer, size).await?);
        take(stream, buffer, 2).await?;
        if size == 0 {
            return Ok(body);
        }
    }
}

async fn take(stream: &mut TcpStream, buffer: &mut Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
    while buffer.len() < length {
        if !more(stream, buffer).await? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(buffer.drain(..length).collect())
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<bool> {
    if buffer.len() > REQUEST_BYTES_MAX {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    Ok(stream.read_buf(buffer).await? > 0)
}

fn find(within: &[u8], what: &[u8]) -> Option<usize> {
    within.windows(what.len()).position(|it| it == what)
}
