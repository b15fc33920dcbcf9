//! The model server: a process of its own that answers from prepared bytes, so that only the client's work is measured.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, Mutex};

use crate::words;

/// The time between two events of a paced text.
const PACE: Duration = Duration::from_millis(10);

/// How long the server stays awake after a request.
const AWAKE: Duration = Duration::from_millis(50);

/// Everything that is ever sent, written down once.
struct Prepared {
    plain: Vec<Vec<u8>>,
    streamed: Vec<Vec<u8>>,
    /// The last exchange, event by event.
    paced: Vec<Vec<u8>>,
    /// When a request came last.
    asked: Cell<Instant>,
    /// Where requests wait for each other, by how many they are to be.
    held: Mutex<HashMap<usize, Arc<Barrier>>>,
}

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

impl Prepared {
    fn new() -> Self {
        let plain = |exchange| {
            let body = words::plain(exchange);
            let kind = "content-type: application/json";
            format!("HTTP/1.1 200 OK\r\n{kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
        };
        let streamed = |exchange| {
            let mut out = STREAM_HEAD.to_owned();
            words::events(exchange).iter().for_each(|event| words::chunk(event, &mut out));
            words::chunk("data: [DONE]\n\n", &mut out);
            out.push_str("0\r\n\r\n");
            out.into_bytes()
        };
        let one = |event: String| {
            let mut out = String::new();
            words::chunk(&event, &mut out);
            out.into_bytes()
        };
        Self {
            plain: (0..words::EXCHANGES).map(plain).collect(),
            streamed: (0..words::EXCHANGES).map(streamed).collect(),
            paced: words::events(words::EXCHANGES - 1).into_iter().map(one).collect(),
            asked: Cell::new(Instant::now()),
            held: Mutex::default(),
        }
    }

    /// Keeps the process awake while requests come: to wake a sleeping one is work of the client's system call, and a
    /// client that is quick enough never to let the server sleep would be spared it.
    async fn stay_awake(&self) {
        loop {
            match self.asked.get().elapsed() < AWAKE {
                true => tokio::task::yield_now().await,
                false => tokio::time::sleep(AWAKE / 10).await,
            }
        }
    }

    async fn answer(&self, socket: &mut TcpStream, path: &str, body: &[u8]) -> std::io::Result<()> {
        self.asked.set(Instant::now());
        let exchange = words::exchange_of(body);
        let streams = memchr::memmem::find(body, b"\"stream\":true").is_some();
        if let Some(count) = path.strip_prefix("/held/").and_then(|rest| rest.split('/').next()?.parse().ok()) {
            let barrier = self.held.lock().await.entry(count).or_insert_with(|| Arc::new(Barrier::new(count))).clone();
            barrier.wait().await;
        }
        if !path.starts_with("/paced/") || exchange + 1 < words::EXCHANGES {
            let bytes = if streams { &self.streamed } else { &self.plain };
            return socket.write_all(&bytes[exchange]).await;
        }
        socket.write_all(STREAM_HEAD.as_bytes()).await?;
        let mut pace = tokio::time::interval(PACE);
        for event in &self.paced {
            pace.tick().await;
            socket.write_all(event).await?;
        }
        socket.write_all(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n").await
    }
}

/// Serves until its standard input is closed, which happens when whoever started it is gone.
pub(crate) fn serve() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        std::process::exit(0);
    });
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&crate::runtime(), async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let _ = writeln!(std::io::stdout(), "{address}");
        let prepared = Rc::new(Prepared::new());
        let awake = prepared.clone();
        tokio::task::spawn_local(async move { awake.stay_awake().await });
        while let Ok((socket, _)) = listener.accept().await {
            let _ = socket.set_nodelay(true);
            let prepared = prepared.clone();
            tokio::task::spawn_local(async move {
                let _ = talk(socket, &prepared).await;
            });
        }
    });
}

async fn talk(mut socket: TcpStream, prepared: &Prepared) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        let (head_end, length) = loop {
            if let Some(found) = whole(&buffer) {
                break found;
            }
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let line = String::from_utf8_lossy(&buffer[..head_end]);
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        prepared.answer(&mut socket, &path, &buffer[head_end..head_end + length]).await?;
        buffer.drain(..head_end + length);
    }
}

/// Where the head of a request ends and how long its body is, once all of it is there.
fn whole(buffer: &[u8]) -> Option<(usize, usize)> {
    let head_end = memchr::memmem::find(buffer, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&buffer[..head_end]).to_ascii_lowercase();
    let length = head.split("content-length:").nth(1)?.split('\r').next()?.trim().parse().ok()?;
    (buffer.len() >= head_end + length).then_some((head_end, length))
}

/// A server in a process of its own; it ends when this is dropped.
pub(crate) struct Server {
    child: Child,
    /// Its address.
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        let program = std::env::current_exe().expect("a process knows its program");
        let mut child = Command::new(program)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        let mut address = String::new();
        let said = child.stdout.take().map(BufReader::new);
        let _ = said.map(|mut said| said.read_line(&mut address));
        Self { child, address: address.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
