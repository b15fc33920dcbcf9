//! The walls, raised by the worker around itself before it reads a word (`spec/durability.md`, 6.4).

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod calls;
#[cfg(all(target_os = "linux", not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
mod calls {
    //! Here the list of system calls has not been written down yet.

    /// Says so.
    pub(super) fn raise() -> std::io::Result<()> {
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "not on this kind of processor"))
    }
}
#[cfg(target_os = "linux")]
mod linux;

use std::io;

use super::Open;

/// Walls this process in and serves over its standard input and output.
///
/// # Errors
/// The walls could not be raised, which the parent has been told, or the pipes broke.
#[cfg(target_os = "linux")]
pub(super) fn enter(open: Open) -> io::Result<()> {
    linux::enter(open)
}

/// Refuses: there are no walls here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub(super) fn enter(_open: Open) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "documents need Linux"))
}
