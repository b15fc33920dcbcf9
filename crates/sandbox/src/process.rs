//! Processes of workers: started by a few threads, buried by another, so that neither blocks the async runtime.
//!
//! The kernel kills a worker when the *thread* that started it ends. A runtime's threads come and go; those that start
//! workers stay for as long as the program.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use crate::{StartError, WORKER_ARGUMENT};

/// How a worker is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The program, which calls [`crate::worker_main`] first.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl Default for WorkerCommand {
    /// This very program, also where its file has been replaced meanwhile.
    fn default() -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), arguments: vec![OsString::from(WORKER_ARGUMENT)] }
    }
}

/// The most memory that any worker of this program has had which has ended by now, in bytes; 0 where none has, or where
/// the system does not say. A worker that was killed tells nothing of itself any more.
#[cfg(target_os = "linux")]
pub fn peak_bytes_of_ended() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to memory of the right size and type, which is zeroed and so initialised whatever the call
    // does.
    #[expect(unsafe_code, reason = "the standard library and rustix do not ask for the usage of children")]
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1_024)
}

/// Nothing, where the system does not say.
#[cfg(not(target_os = "linux"))]
pub fn peak_bytes_of_ended() -> u64 {
    0
}

impl WorkerCommand {
    /// Starts it, with pipes for standard input, output and error.
    pub(crate) async fn start(&self) -> Result<Body, StartError> {
        let failed =
            |why: io::Error| StartError::Program { program: self.program.display().to_string(), why: why.to_string() };
        let (reply, started) = oneshot::channel();
        let gone = || failed(io::Error::other("the thread that starts workers has gone"));
        starter().map_err(failed)?.send(Order { command: self.clone(), reply }).map_err(|_| gone())?;
        started.await.map_err(|_| gone())?.map_err(failed)
    }

    fn spawn(&self) -> io::Result<Body> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg0("gesta-worker").env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map(|child| Body { child: Some(child) })
    }
}

/// A process that was started; killed and buried when it is dropped. Without one for a worker in this process.
#[derive(Debug)]
pub(crate) struct Body {
    child: Option<Child>,
}

impl Body {
    /// What cannot be killed: a thread.
    pub(crate) fn none() -> Self {
        Self { child: None }
    }

    /// The pipes to it: for asks, for answers, and for what it prints.
    pub(crate) fn take_pipes(&mut self) -> Option<(OwnedFd, OwnedFd, OwnedFd)> {
        let child = self.child.as_mut()?;
        Some((child.stdin.take()?.into(), child.stdout.take()?.into(), child.stderr.take()?.into()))
    }

    /// Kills it if it lives, and tells how it ended.
    pub(crate) async fn end(mut self) -> Option<ExitStatus> {
        let (reply, ended) = oneshot::channel();
        bury(self.child.take()?, Some(reply));
        ended.await.ok()
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            bury(child, None);
        }
    }
}

struct Order {
    command: WorkerCommand,
    reply: oneshot::Sender<io::Result<Body>>,
}

struct Burial {
    child: Child,
    reply: Option<oneshot::Sender<ExitStatus>>,
}

fn bury(mut child: Child, reply: Option<oneshot::Sender<ExitStatus>>) {
    // Fails only for a process that has ended already.
    child.kill().ok();
    let burial = Burial { child, reply };
    let left = match reaper() {
        Ok(reaper) => reaper.send(burial).err().map(|unsent| unsent.0),
        Err(_) => Some(burial),
    };
    // Without the thread this one waits: a process that was killed is gone within moments.
    if let Some(burial) = left {
        wait_for(burial);
    }
}

fn wait_for(mut burial: Burial) {
    if let (Ok(status), Some(reply)) = (burial.child.wait(), burial.reply) {
        reply.send(status).ok();
    }
}

/// Threads that start workers. Starting one waits until the kernel has the program in place, which takes a few
/// milliseconds, and on a busy machine many: where one conversation waits for another's start, they add up.
const STARTERS: usize = 4;

fn starter() -> io::Result<&'static mpsc::Sender<Order>> {
    static EACH: [OnceLock<Result<mpsc::Sender<Order>, io::ErrorKind>>; STARTERS] =
        [const { OnceLock::new() }; STARTERS];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let place = &EACH[NEXT.fetch_add(1, Ordering::Relaxed) % STARTERS];
    thread_behind(place, "gesta-starter", |order: Order| {
        // Where nobody waits any more, the process is killed as it is dropped.
        order.reply.send(order.command.spawn()).ok();
    })
}

fn reaper() -> io::Result<&'static mpsc::Sender<Burial>> {
    static REAPER: OnceLock<Result<mpsc::Sender<Burial>, io::ErrorKind>> = OnceLock::new();
    thread_behind(&REAPER, "gesta-reaper", wait_for)
}

/// The sender to a thread that takes one thing after another, started by whoever needs it first.
fn thread_behind<T: Send>(
    place: &'static OnceLock<Result<mpsc::Sender<T>, io::ErrorKind>>,
    name: &str,
    mut each: impl FnMut(T) + Send + 'static,
) -> io::Result<&'static mpsc::Sender<T>> {
    let sender = place.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<T>();
        let thread =
            thread::Builder::new().name(name.to_owned()).spawn(move || receiver.into_iter().for_each(&mut each));
        thread.map(|_| sender).map_err(|why| why.kind())
    });
    sender.as_ref().map_err(|kind| io::Error::from(*kind))
}
