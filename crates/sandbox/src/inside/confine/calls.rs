//! The system calls that a worker may make once it stands; every other fails with `EPERM`.

use std::collections::BTreeMap;
use std::io;

use rustix::process::getpid;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// Calls that act on nothing but this process's own memory, clocks and open pipes.
const FREE: [libc::c_long; 24] = [
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// An argument and what it has to be.
type Argument = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

/// Raises the wall. It holds for this thread, the only one.
pub(super) fn raise() -> io::Result<()> {
    let filter = filter().map_err(io::Error::other)?;
    apply_filter(&filter).map_err(io::Error::other)
}

fn filter() -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = FREE.into_iter().map(|call| (call, Vec::new())).collect();
    for (call, arguments) in bounded() {
        let conditions: Result<Vec<_>, _> =
            arguments.into_iter().map(|(at, len, is, value)| SeccompCondition::new(at, len, is, value)).collect();
        rules.entry(call).or_default().push(SeccompRule::new(conditions?)?);
    }
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, denied, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?.try_into()
}

/// Calls that are allowed for some arguments only.
fn bounded() -> Vec<(libc::c_long, Vec<Argument>)> {
    let itself = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    let no_code = (2, Dword, SeccompCmpOp::MaskedEq(u64::from(libc::PROT_EXEC.unsigned_abs())), 0);
    let own_limit = (0, Dword, SeccompCmpOp::Eq, 0);
    vec![
        // Memory that can be written must never run.
        (libc::SYS_mmap, vec![no_code.clone()]),
        (libc::SYS_mprotect, vec![no_code]),
        // An abort is a signal to oneself.
        (libc::SYS_tgkill, vec![(0, Dword, SeccompCmpOp::Eq, itself)]),
        // The budget of CPU time, told anew before each call, and reading any limit; always one's own.
        (libc::SYS_prlimit64, vec![own_limit.clone(), (1, Dword, SeccompCmpOp::Eq, u64::from(libc::RLIMIT_CPU))]),
        (libc::SYS_prlimit64, vec![own_limit, (2, Qword, SeccompCmpOp::Eq, 0)]),
        // Asked by the standard library's own checks.
        (libc::SYS_fcntl, vec![(1, Dword, SeccompCmpOp::Eq, u64::from(libc::F_GETFD.unsigned_abs()))]),
    ]
}
