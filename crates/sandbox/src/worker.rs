//! A worker as its parent sees it: something to ask, which may answer late, wrongly, or never again.

use std::io::{self, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::time::{Instant, timeout, timeout_at};

use crate::inside::{Process, Wire, serve};
use crate::process::{Body, WorkerCommand};
use crate::protocol::{Answer, Ask, print};
use crate::{Cause, Isolation, Open, StartError, Walls};

/// How long a new worker may take to say that it is there.
const START_TIME_MAX: Duration = Duration::from_secs(10);

/// Bytes that are read of what a worker prints for one ask before it is ended; far above what is kept.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of the stack of a worker without a process of its own.
const STACK_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of the end of that output which are kept to find out what a worker died of.
const LAST_WORDS_BYTES: usize = 1024;

/// Bytes of a buffer that is kept between asks.
const BUFFER_BYTES_KEPT: usize = 64 * 1024;

/// Why an ask got no answer. The worker is not to be asked again.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It could not even be asked: it had died before.
    Unheard,
    /// It died.
    Gone,
    /// It took too long.
    Late,
    /// It printed without end.
    Loud,
    /// It said what makes no sense.
    Garbled(String),
}

impl Broken {
    /// The same for a worker that was at work: what it does not hear then is no call that has not begun.
    pub(crate) fn in_a_call(self) -> Self {
        if matches!(self, Self::Unheard) { Self::Gone } else { self }
    }
}

/// A process that has said that it is there.
#[derive(Debug)]
pub(crate) struct Worker {
    body: Body,
    asks: pipe::Sender,
    answers: pipe::Receiver,
    /// What it prints; none once that has come to its end.
    output: Option<pipe::Receiver>,
    heard: Vec<u8>,
    line: Vec<u8>,
    printed: Printed,
    /// Bytes of the longest line that it may say.
    pub(crate) answer_bytes_max: usize,
    pub(crate) walls: Walls,
    /// How often it was asked.
    pub(crate) asked: u32,
}

impl Worker {
    pub(crate) async fn start(isolation: &Isolation) -> Result<Self, StartError> {
        match isolation {
            Isolation::Process(command) => Self::start_process(command).await,
            Isolation::None => Self::start_thread(gesta_document::open),
        }
    }

    async fn start_process(command: &WorkerCommand) -> Result<Self, StartError> {
        if !cfg!(target_os = "linux") {
            return Err(StartError::NotHere);
        }
        let program = command.program.display().to_string();
        let mut body = command.start().await?;
        let pipes = body.take_pipes().ok_or_else(|| io::Error::other("no pipes"));
        let mut worker = pipes
            .and_then(|(asks, answers, output)| Self::over(asks, answers, Some(output), body))
            .map_err(|why| StartError::Program { program: program.clone(), why: why.to_string() })?;
        let why = match timeout(START_TIME_MAX, worker.hear()).await {
            Ok(Ok(Answer::Ready { walls })) => {
                worker.walls = walls;
                return Ok(worker);
            }
            Ok(Ok(Answer::NotReady { why })) => return Err(StartError::Walls { why }),
            Ok(Ok(_)) => "it speaks of something else".to_owned(),
            Ok(Err(Broken::Garbled(why))) => why,
            Ok(Err(_)) => "it ended at once".to_owned(),
            Err(_) => "it says nothing".to_owned(),
        };
        Err(StartError::Mute { program, why })
    }

    /// A worker without any wall: a thread of this process, which nobody can end.
    fn start_thread(open: Open) -> Result<Self, StartError> {
        let started = || {
            let ((heard, asks), (answers, told)) = (io::pipe()?, io::pipe()?);
            let thread = std::thread::Builder::new().name("gesta-document".to_owned()).stack_size(STACK_BYTES);
            thread.spawn(move || {
                // Broken pipes are how the parent says that it has enough.
                serve(&mut Wire::new(BufReader::new(heard), told), open, &Shared).ok();
            })?;
            Self::over(asks.into(), answers.into(), None, Body::none())
        };
        let failed = |why: io::Error| StartError::Program { program: "a thread".to_owned(), why: why.to_string() };
        let mut worker = started().map_err(failed)?;
        worker.walls = Walls::none("documents run in this process");
        Ok(worker)
    }

    fn over(asks: OwnedFd, answers: OwnedFd, output: Option<OwnedFd>, body: Body) -> io::Result<Self> {
        Ok(Self {
            asks: pipe::Sender::from_owned_fd(asks)?,
            answers: pipe::Receiver::from_owned_fd(answers)?,
            output: output.map(pipe::Receiver::from_owned_fd).transpose()?,
            body,
            heard: Vec::new(),
            line: Vec::new(),
            printed: Printed::default(),
            answer_bytes_max: 64 * 1024,
            walls: Walls::default(),
            asked: 0,
        })
    }

    /// Asks and waits for the answer until `deadline`.
    pub(crate) async fn ask(&mut self, ask: &Ask<'_>, deadline: Instant) -> Result<Answer, Broken> {
        self.line.clear();
        print(ask, &mut self.line).map_err(|why| Broken::Garbled(why.to_string()))?;
        self.send(deadline).await
    }

    /// Sends what is in `line`.
    async fn send(&mut self, deadline: Instant) -> Result<Answer, Broken> {
        let exchange = async {
            self.asks.write_all(&self.line).await.map_err(|_| Broken::Unheard)?;
            self.hear().await
        };
        timeout_at(deadline, exchange).await.unwrap_or(Err(Broken::Late))
    }

    /// As [`Self::ask`], but for a message longer than `bytes_max`, in whose place `instead` is sent.
    pub(crate) async fn ask_bounded(
        &mut self,
        ask: &Ask<'_>,
        bytes_max: usize,
        instead: &Ask<'_>,
        deadline: Instant,
    ) -> Result<Answer, Broken> {
        self.line.clear();
        print(ask, &mut self.line).map_err(|why| Broken::Garbled(why.to_string()))?;
        if self.line.len() > bytes_max {
            return self.ask(instead, deadline).await;
        }
        self.send(deadline).await
    }

    /// Bytes of the last answer's line.
    pub(crate) fn heard_bytes(&self) -> usize {
        self.heard.len()
    }

    /// The next line that it says. What it prints meanwhile is read too, or it would wait for ever.
    async fn hear(&mut self) -> Result<Answer, Broken> {
        self.heard.clear();
        self.heard.shrink_to(BUFFER_BYTES_KEPT);
        let mut searched = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.heard[searched..]) {
                if searched + at + 1 != self.heard.len() {
                    return Err(Broken::Garbled("it speaks out of turn".to_owned()));
                }
                self.read_output()?;
                return serde_json::from_slice(&self.heard).map_err(|why| Broken::Garbled(why.to_string()));
            }
            searched = self.heard.len();
            if searched > self.answer_bytes_max {
                return Err(Broken::Garbled(format!("a line longer than {} bytes", self.answer_bytes_max)));
            }
            self.heard.reserve(4_096.max(searched / 2));
            tokio::select! {
                biased;
                read = self.answers.read_buf(&mut self.heard) => match read {
                    Ok(0) | Err(_) => return Err(Broken::Gone),
                    Ok(_) => {}
                },
                () = readable(self.output.as_ref()) => self.read_output()?,
            }
        }
    }

    /// Reads what it has printed so far, without waiting.
    fn read_output(&mut self) -> Result<(), Broken> {
        let mut chunk = [0; 4_096];
        while let Some(output) = &self.output {
            match output.try_read(&mut chunk) {
                Ok(bytes) if bytes > 0 => self.printed.add(&chunk[..bytes]),
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => break,
                Ok(_) | Err(_) => self.output = None,
            }
            if self.printed.bytes > OUTPUT_BYTES_MAX {
                return Err(Broken::Loud);
            }
        }
        Ok(())
    }

    /// What it has printed since this was last asked, cut at `bytes_max`.
    pub(crate) fn take_output(&mut self, bytes_max: usize) -> String {
        std::mem::take(&mut self.printed).text(bytes_max)
    }

    /// Ends it, and finds out which limit it met.
    pub(crate) async fn end(mut self, broken: Broken, limit_ms: u64, log_bytes_max: usize) -> (Cause, String) {
        // Only what is in the pipe already: a second excess changes nothing.
        self.read_output().ok();
        let last_words = self.printed.last_words();
        let log = self.take_output(log_bytes_max);
        let cause = match broken {
            Broken::Late => Cause::TimedOut { limit_ms },
            Broken::Loud => Cause::Output { bytes_max: OUTPUT_BYTES_MAX },
            Broken::Garbled(how) => Cause::Crash { how },
            Broken::Gone | Broken::Unheard => met(self.body.end().await, &last_words, limit_ms),
        };
        (cause, log)
    }
}

/// Until there is something to read, or the end; for ever where the end has been read.
async fn readable(output: Option<&pipe::Receiver>) {
    match output {
        // An error shows again as it is read.
        Some(output) => drop(output.readable().await),
        None => std::future::pending().await,
    }
}

/// A process that is not the document's alone says nothing of itself.
struct Shared;

impl Process for Shared {}

/// Which limit a process met that died by itself.
fn met(status: Option<ExitStatus>, last_words: &str, limit_ms: u64) -> Cause {
    // Words of the standard library's own ends; a document that prints them deceives only its own author.
    if last_words.contains("memory allocation of") {
        return Cause::Memory;
    }
    if last_words.contains("has overflowed its stack") {
        return Cause::Stack;
    }
    match status.map(|status| (status.signal(), status.code())) {
        Some((Some(SIGSEGV | SIGBUS), _)) => Cause::Stack,
        Some((Some(SIGXCPU), _)) => Cause::TimedOut { limit_ms },
        Some((Some(signal), _)) => Cause::Crash { how: format!("signal {signal}") },
        Some((None, Some(code))) => Cause::Crash { how: format!("exit code {code}") },
        _ => Cause::Crash { how: "it ended by itself".to_owned() },
    }
}

// Signals by number: these are the same on every Linux that Rust runs on but MIPS and SPARC.
const SIGBUS: i32 = 7;
const SIGSEGV: i32 = 11;
const SIGXCPU: i32 = 24;

/// What a worker printed for one ask: the beginning, the end, and how much it was.
#[derive(Debug, Default)]
struct Printed {
    bytes: usize,
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Printed {
    /// Bytes of the beginning that are kept, whatever the limits of a document say.
    const FIRST_BYTES_MAX: usize = 64 * 1024;

    fn add(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len();
        let room = Self::FIRST_BYTES_MAX.saturating_sub(self.first.len());
        self.first.extend_from_slice(&chunk[..chunk.len().min(room)]);
        self.last.extend_from_slice(chunk);
        let surplus = self.last.len().saturating_sub(LAST_WORDS_BYTES);
        self.last.drain(..surplus);
    }

    fn last_words(&self) -> String {
        String::from_utf8_lossy(&self.last).into_owned()
    }

    fn text(mut self, bytes_max: usize) -> String {
        let cut = format!("\n[what was printed beyond {bytes_max} bytes is left out]\n");
        let room = bytes_max.saturating_sub(cut.len());
        if self.bytes <= bytes_max || room == 0 {
            self.first.truncate(bytes_max);
            return String::from_utf8_lossy(&self.first).into_owned();
        }
        self.first.truncate(room);
        String::from_utf8_lossy(&self.first).into_owned() + &cut
    }
}
