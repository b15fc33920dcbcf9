//! The order in which the walls go up on Linux.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use gesta_document::{Record, Terms};
use landlock::{
    ABI, Access, AccessFs, AccessNet, RestrictionStatus, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::process::{self, DumpableBehavior, Resource, Rlimit, Signal};
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use rustix::time::{ClockId, clock_gettime};

use super::calls;
use crate::inside::{Open, Process, Wire, serve};
use crate::protocol::Answer;
use crate::{Usage, Wall, Walls};

/// Bytes of address space.
const ADDRESS_SPACE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Bytes of stack: enough for any value within its depth; beyond it the process dies of a fault and of nothing else.
const STACK_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Descriptors: standard input, output and error, two pipes, two files about the process itself; and some room.
const DESCRIPTORS_MAX: u64 = 10;

/// CPU time of a worker's whole life, in seconds.
const CPU_S_MAX: u64 = 3_600;

/// Grace above a call's limit before the kernel ends the process, in milliseconds. The parent is there much sooner.
const CPU_GRACE_MS: u64 = 2_000;

pub(super) fn enter(open: Open) -> io::Result<()> {
    // First of all. A parent that died before this line has closed its end of the pipe, which the first read finds.
    process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // A panic of the engine is caught and told as the call's error; its place in somebody's sources is nobody's matter.
    std::panic::set_hook(Box::new(|_| {}));
    let closed = close_the_rest();
    let (asks, answers) = take_pipes()?;
    let mut wire = Wire::new(BufReader::with_capacity(64 * 1024, asks), answers);
    match raise(open, closed) {
        Ok((process, walls)) => {
            wire.tell(&Answer::Ready { walls })?;
            serve(&mut wire, open, &process)
        }
        Err(why) => {
            wire.tell(&Answer::NotReady { why: why.to_string() })?;
            Err(why)
        }
    }
}

/// Moves the pipes of the protocol away from the standard descriptors. From then on standard input is at its end, and
/// standard output is standard error: the pipe for the log.
fn take_pipes() -> io::Result<(File, File)> {
    let asks = io::stdin().as_fd().try_clone_to_owned()?;
    let answers = io::stdout().as_fd().try_clone_to_owned()?;
    let (end, _) = io::pipe()?;
    rustix::stdio::dup2_stdin(&end)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((File::from(asks), File::from(answers)))
}

/// Closes every descriptor above standard error that the parent let slip through.
#[expect(unsafe_code, reason = "the standard library closes only what it owns")]
fn close_the_rest() -> io::Result<()> {
    let first: libc::c_uint = 3;
    // SAFETY: this runs first in the process, before any thread or any value that owns a descriptor exists, so no
    // descriptor that is closed here belongs to anybody; the call touches no memory.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0 as libc::c_uint) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Raises everything; what only some kernels have is reported, what every kernel has is an error where it fails.
fn raise(open: Open, closed: io::Result<()>) -> io::Result<(Confined, Walls)> {
    let mut walls = Walls { standing: vec![Wall::DiesWithParent], missing: Vec::new() };
    match (process::setpgid(None, None), closed) {
        (Err(why), _) => walls.missing.push((Wall::Bare, format!("no process group of its own: {why}"))),
        (_, Err(why)) => walls.missing.push((Wall::Bare, format!("what its parent left open stays open: {why}"))),
        _ if std::env::vars_os().next().is_some() => {
            walls.missing.push((Wall::Bare, "it was started with an environment".to_owned()));
        }
        _ => walls.standing.push(Wall::Bare),
    }
    thread::set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    let confined = Confined::around(File::open("/proc/self/statm").ok(), File::open("/proc/self/status").ok());
    process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    limit()?;
    walls.standing.extend([Wall::NoPrivileges, Wall::NotDumpable, Wall::Limits]);
    warm_up(open);
    match forbid_files() {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => walls.standing.push(Wall::Landlock),
        Ok(_) => walls.missing.push((Wall::Landlock, "the kernel has none".to_owned())),
        Err(why) => walls.missing.push((Wall::Landlock, why.to_string())),
    }
    match calls::raise() {
        Ok(()) => walls.standing.push(Wall::Seccomp),
        Err(why) => walls.missing.push((Wall::Seccomp, why.to_string())),
    }
    Ok((confined, walls))
}

fn limit() -> io::Result<()> {
    let limits = [
        (Resource::As, ADDRESS_SPACE_BYTES_MAX),
        (Resource::Stack, STACK_BYTES_MAX),
        (Resource::Cpu, CPU_S_MAX),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Memlock, 0),
        (Resource::Nproc, 0),
        (Resource::Nofile, DESCRIPTORS_MAX),
    ];
    for (resource, most) in limits {
        // Never above what the parent itself was given.
        let most = process::getrlimit(resource).maximum.map_or(most, |given| given.min(most));
        process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// Opens an empty document and drops it, so that whatever the engine asks the system once (where its stack ends, for
/// instance) is asked before that is forbidden, and so that a worker that was started ahead is warm.
fn warm_up(open: Open) {
    let record = Record { base: "tools: {}\nfn nothing() -> int { 1 }\n".to_owned(), ..Record::default() };
    // An engine that cannot open this says so for the first real document, to somebody who reads it.
    if let Ok(mut document) = open(&record, &Terms::default()) {
        document.specs().ok();
    }
}

/// Landlock with an empty set of rules over everything that the kernel knows to forbid.
fn forbid_files() -> Result<RestrictionStatus, RulesetError> {
    let abi = ABI::V7;
    Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .restrict_self()
}

/// How many asks share one look at the process: each look is a few system calls, and an ask may be as short as one.
const ASKS_PER_LOOK: u32 = 16;

/// The process behind its walls. What it says of itself comes from files that were opened before they went up.
struct Confined {
    statm: Option<File>,
    status: Option<File>,
    page_bytes: u64,
    /// Asks until the next look.
    until_look: Cell<u32>,
    resident_bytes: Cell<u64>,
}

impl Process for Confined {
    fn allow_cpu_ms(&self, ms: u64) {
        let until_look = self.until_look.get();
        self.until_look.set(until_look.checked_sub(1).unwrap_or(ASKS_PER_LOOK - 1));
        if until_look > 0 {
            return;
        }
        self.resident_bytes.set(self.read_resident_bytes());
        let each_ms = ms.saturating_add(CPU_GRACE_MS);
        let until_ms = (cpu_us() / 1_000).saturating_add(each_ms.saturating_mul(u64::from(ASKS_PER_LOOK)));
        let limit = Rlimit { current: Some((until_ms / 1_000 + 1).min(CPU_S_MAX)), maximum: Some(CPU_S_MAX) };
        // A backstop: without it the parent's clock and the limit on the whole life remain.
        process::setrlimit(Resource::Cpu, limit).ok();
    }

    fn print(&self, text: &str) -> bool {
        // The parent reads it also where this process does not come to its end. A pipe that is closed is the parent's
        // end.
        let mut log = io::stdout();
        log.write_all(text.as_bytes()).and_then(|()| log.flush()).ok();
        true
    }

    fn usage(&self) -> Usage {
        Usage { resident_bytes: self.read_resident_bytes(), peak_bytes: self.peak_bytes(), cpu_us: cpu_us() }
    }

    fn resident_bytes(&self) -> u64 {
        self.resident_bytes.get()
    }
}

fn cpu_us() -> u64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(used.tv_sec), u64::try_from(used.tv_nsec));
    seconds.unwrap_or(0).saturating_mul(1_000_000).saturating_add(nanoseconds.unwrap_or(0) / 1_000)
}

impl Confined {
    fn around(statm: Option<File>, status: Option<File>) -> Self {
        let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or(4_096);
        Self { statm, status, page_bytes, until_look: Cell::new(0), resident_bytes: Cell::new(0) }
    }

    fn read_resident_bytes(&self) -> u64 {
        let mut text = [0; 128];
        let read = self.statm.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(&text[..read]).unwrap_or_default();
        let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.unwrap_or(0).saturating_mul(self.page_bytes)
    }

    fn peak_bytes(&self) -> u64 {
        let mut text = [0; 4_096];
        let read = self.status.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..read]);
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0).saturating_mul(1_024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both walls of the kernel hold for a thread, so that each can be tried alone, without the other in front of it.
    fn alone<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(test).join().unwrap()
    }

    #[test]
    fn landlock_alone_closes_files_and_ports() {
        let (status, file, port) = alone(|| {
            let status = forbid_files().unwrap().ruleset;
            let port = std::net::TcpListener::bind("127.0.0.1:0").map(drop).map_err(|why| why.kind());
            (status, File::open("/proc/self/status").map(drop).map_err(|why| why.kind()), port)
        });
        if status != RulesetStatus::NotEnforced {
            assert_eq!(file, Err(io::ErrorKind::PermissionDenied));
        }
        if status == RulesetStatus::FullyEnforced {
            assert_eq!(port, Err(io::ErrorKind::PermissionDenied));
        }
    }

    #[test]
    fn the_list_of_calls_alone_closes_files_and_sockets() {
        let (file, socket) = alone(|| {
            calls::raise().unwrap();
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").map(drop).map_err(|why| why.kind());
            (File::open("/proc/self/status").map(drop).map_err(|why| why.kind()), socket)
        });
        assert_eq!(file, Err(io::ErrorKind::PermissionDenied));
        assert_eq!(socket, Err(io::ErrorKind::PermissionDenied));
    }
}
