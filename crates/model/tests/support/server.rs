//! A server that answers with raw bytes, whatever they are.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens after the bytes of an answer were sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Then {
    Keep,
    Close,
    Stall,
}

/// One answer: its bytes, each piece flushed by itself.
#[derive(Debug, Clone)]
pub struct Step(pub Vec<Vec<u8>>, pub Then);

/// What the server has seen.
#[derive(Debug, Default)]
pub struct Seen {
    pub connections: usize,
    pub closed: usize,
    /// Heads and bodies of requests, in order.
    pub requests: Vec<(String, Vec<u8>)>,
}

pub struct Server {
    pub address: String,
    pub seen: Arc<Mutex<Seen>>,
}

impl Server {
    /// Answers each request with the next step, and with an empty 500 when there is none left.
    pub async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let steps = Arc::new(Mutex::new(VecDeque::from(steps)));
        let shared = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.lock().unwrap().connections += 1;
                tokio::spawn(serve(stream, steps.clone(), shared.clone()));
            }
        });
        Self { address, seen }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> usize {
        self.seen.lock().unwrap().requests.len()
    }
}

async fn serve(mut stream: TcpStream, steps: Arc<Mutex<VecDeque<Step>>>, seen: Arc<Mutex<Seen>>) {
    stream.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut stream).await {
        seen.lock().unwrap().requests.push(request);
        let step = steps.lock().unwrap().pop_front();
        let Step(pieces, then) = step.unwrap_or_else(|| Step(vec![answer(500, "", b"")], Then::Close));
        for piece in pieces {
            if stream.write_all(&piece).await.is_err() || stream.flush().await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        match then {
            Then::Keep => {}
            Then::Close => break,
            Then::Stall => {
                // Ends when the client goes away.
                let _ = stream.read(&mut [0]).await;
                break;
            }
        }
    }
    seen.lock().unwrap().closed += 1;
}

async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

/// A whole response.
pub fn answer(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    out.extend_from_slice(body);
    out
}

/// A whole response in chunks, as streams come, and its terminator.
pub fn chunked(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let mut out = vec![head];
    for piece in pieces {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        out.push(chunk);
    }
    out.push(b"0\r\n\r\n".to_vec());
    out
}
